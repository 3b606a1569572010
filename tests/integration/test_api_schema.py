from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS
from schemathesis.specs.openapi.schemas import OpenApiSchema

from tests.fake.chat import Chat, question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.served_programs import TOKEN, ServedPrograms

SESSION = "known"
# What a schema can't say: that a message has words, that there is something to compact.
BEYOND_A_SCHEMA = {"positive_data_acceptance"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenApiSchema]:
    data = tmp_path_factory.mktemp("schema")
    offline = {"openai_api_key": None, "openai_base_url": None, "concurrent_turns": 64, "turns_per_minute": 100_000}
    with chat_opener(settings_maker(data, "http://127.0.0.1:9")) as open_chat:
        chat = open_chat(SESSION, **offline)
        chat.ask(1, 4)
        with ServedPrograms(chat.service) as served, served.client() as client:
            schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
            schema.config.update(base_url=served.url, headers={"Authorization": f"Bearer {TOKEN}"})
            yield schema


schema = schemathesis.pytest.from_fixture("programs")


@schema.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_the_document_allows_is_answered_as_it_says(case: schemathesis.Case) -> None:
    if "session_id" in case.path_parameters and hash(case.path_parameters["session_id"]) % 2:
        case.path_parameters["session_id"] = SESSION
    checks = [check for check in CHECKS.get_all() if check.__name__ not in BEYOND_A_SCHEMA]
    case.call_and_validate(checks=checks, timeout=60)
