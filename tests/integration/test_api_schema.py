from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

from api.program_routes import OPERATIONS, document
from tests.fake.drawn import at_most
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.served_programs import TOKEN, ServedPrograms

SESSION = "known"
# What a schema can't say: that a message has words, that there is something to compact.
BEYOND_A_SCHEMA = {"positive_data_acceptance"}
pytestmark = pytest.mark.slow
DOCUMENT = schemathesis.openapi.from_dict(document(OPERATIONS))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    offline = {"openai_api_key": None, "openai_base_url": None, "concurrent_turns": 64, "turns_per_minute": 100_000}
    with chat_opener(settings_maker(tmp_path_factory.mktemp("schema"), "http://127.0.0.1:9")) as open_chat:
        chat = open_chat(SESSION, **offline)
        chat.ask(1, 4)
        with ServedPrograms(chat.service) as served:
            yield served.url


@DOCUMENT.parametrize()
@settings(max_examples=at_most(10), suppress_health_check=list(HealthCheck))
def test_whatever_the_document_allows_is_answered_as_it_says(case: schemathesis.Case[Any], url: str) -> None:
    named = case.path_parameters
    if "session_id" in named and case.operation.method != "delete" and len(str(named["session_id"])) % 2:
        named["session_id"] = SESSION
    checks = [check for check in CHECKS.get_all() if check.__name__ not in BEYOND_A_SCHEMA]
    case.call_and_validate(url, headers={"Authorization": f"Bearer {TOKEN}"}, checks=cast("Any", checks), timeout=60)
