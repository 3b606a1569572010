"""A real model on a real server with one slot: `make bench-local` measures it, this sees that it works at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.local.proxy import Proxy, counting_proxy
from bench.local.script import MESSAGES
from bench.local.served import NoLocalModelError, install, served_model
from graph.model.factory import open_models
from graph.value.event import TurnFinished
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.titled import tries

pytestmark = pytest.mark.slow

_TURNS = 4
_PATIENCE_SECONDS = 300.0


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    """In front of the model, so that it doesn't talk for minutes."""
    try:
        with served_model(install()) as address, counting_proxy(address) as proxy:
            yield proxy
    except NoLocalModelError as error:
        pytest.skip(f"no llama.cpp server with a model ({error})")


def test_a_real_server_with_two_slots_is_not_taken_for_one_with_one(tmp_path: Path) -> None:
    try:
        with served_model(install(), slots=2) as address:
            settings = settings_maker(tmp_path / "data", address)(model_slots=None)
            with open_models(settings) as models:
                until = time.monotonic() + _PATIENCE_SECONDS / 10
                while models.has_one_slot:  # by its address, until it has told
                    assert time.monotonic() < until
                    time.sleep(0.1)
    except NoLocalModelError as error:
        pytest.skip(f"no llama.cpp server with a model ({error})")


@pytest.mark.timeout(600)
def test_turns_are_answered_from_the_slots_cache_and_folded_in_place(
    proxy: Proxy, tmp_path_factory: pytest.TempPathFactory
) -> None:
    maker = settings_maker(tmp_path_factory.mktemp("local") / "data", proxy.url)
    patience = {"model_deadline_seconds": 300, "fold_deadline_seconds": 300}
    with chat_opener(maker) as open_chat:
        chat = open_chat(model_slots=None, chat_model="local", auto_titles=True, **patience)
        assert chat.service.settings.has_one_slot
        for message in MESSAGES[:_TURNS]:
            ending = chat.say(message)[-1]
            assert isinstance(ending, TurnFinished), ending
        fold_worker = chat.service._engine.fold_worker  # noqa: SLF001  # nobody but a test has to know
        until = time.monotonic() + _PATIENCE_SECONDS
        while not (fold_worker.is_idle(chat.session_id) and tries(chat)):
            assert time.monotonic() < until
            time.sleep(0.1)
        codes = [code for (code,) in chat.rows("SELECT error_code FROM record")]
    answers = [call.evaluated or 0 for call in proxy.calls if call.kind == "chat"]
    assert len(answers) == _TURNS
    assert max(answers[1:3]) < answers[0] / 2
    # Drafts may be as bad as a weak model's are, but no call has failed.
    assert codes
    assert all(not code or code == "stopped" or code.startswith("summary_") for code in codes), codes
