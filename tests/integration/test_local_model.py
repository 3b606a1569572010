"""A real model on a real server with one slot: `make bench-local` measures it, this sees that it works at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.local.script import MESSAGES
from bench.local.served import NoLocalModelError, install, served_model
from graph.value.event import TurnFinished
from tests.fake.open_chat import chat_opener, settings_maker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    try:
        with served_model(install()) as address:
            yield address
    except NoLocalModelError as error:
        pytest.skip(f"no llama.cpp server with a model ({error})")


@pytest.mark.timeout(600)
def test_turns_are_answered_from_the_slots_cache_and_folded_in_place(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Weak as it is, the model is asked to be short: what it says is of no interest.
    messages = [f"{message[:120]} Answer in at most ten words." for message in MESSAGES[:5]]
    maker = settings_maker(tmp_path_factory.mktemp("local") / "data", f"{address}/v1")
    patience = {"model_deadline_seconds": 300, "fold_deadline_seconds": 300, "model_window_tokens": 4_096}
    with chat_opener(maker) as open_chat:
        chat = open_chat(model_slots=None, chat_model="local", auto_titles=True, compression_rate=0.2, **patience)
        assert chat.service.settings.has_one_slot
        for message in messages:
            ending = chat.say(message)[-1]
            assert isinstance(ending, TurnFinished), ending
        chat.wait_until(lambda: chat.service._engine.fold_worker.is_idle(chat.session_id))  # noqa: SLF001  # nobody but a test has to know
        calls = chat.rows(
            "SELECT usage_input_tokens, usage_cached_tokens FROM model_call WHERE kind = 'answer' ORDER BY turn"
        )
        codes = [code for (code,) in chat.rows("SELECT error_code FROM record")]
    assert len(calls) == len(messages)
    assert all(cached > tokens / 3 for tokens, cached in calls[1:3]), calls
    assert codes
    # A draft may be as bad as a weak model's is; no call has failed.
    assert all(not code or code == "stopped" or code.startswith("summary_") for code in codes), codes
