"""The line above the text of a file that a user attached to a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prompt.system.framing import Language

ATTACHMENT_LABEL: Final[Mapping[Language, str]] = {"ko": "[첨부: {name}]", "en": "[Attachment: {name}]"}
