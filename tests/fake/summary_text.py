"""Reads a summary: apart from the line of facts behind it, and where a request holds it."""

from __future__ import annotations

import re
from typing import Final

from tests.fake.body import content_of
from tests.fake.openai_reply import Body

_FACTS_LINE: Final = re.compile(r"\n(?:사실|Facts): (?P<facts>[^\n]+)\Z")


def split_facts(summary: str) -> tuple[str, list[str]]:
    """Returns what the summariser wrote, and the facts of the line that stands behind it."""
    line = _FACTS_LINE.search(summary)
    return (summary[: line.start()], line["facts"].split(", ")) if line else (summary, [])


def holds(body: Body, summary: str) -> bool:
    """Whether a request holds a summary word for word; behind a label its further lines are indented."""
    sent = "\n".join(content_of(message) for message in body["messages"])
    return summary in sent or "\n  ".join(summary.splitlines()) in sent
