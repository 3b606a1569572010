from __future__ import annotations

import pytest

from graph.event import TurnFinished
from tests.fake.chat import question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI

OPEN = "아직 답이 없는 질문입니다. " + "이 내용이 요약에 들어가면 안 됩니다. " * 200
# Small enough that the open question would make each fold due, large enough that the answered turns alone don't.
DUE = {
    "interval": {},
    "rolling": {"app_context_threshold": 1_000},
    "compaction": {"max_context_tokens": 2_000, "preserve_recent_messages": 1},
}


@pytest.mark.parametrize("strategy", DUE)
def test_settings_changed_while_an_answer_is_written_fold_nothing_of_its_question(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(context_strategy=strategy, enable_auto_compaction=True, **DUE[strategy])
    chat.ask(1, 2)
    assert server.bodies("summary") == []
    server.script(hang("쓰는 중"))
    chat.start(OPEN)
    chat.wait_until_live(lambda live: live.text == "쓰는 중")
    chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
    chat.wait_for_folds()
    assert server.bodies("summary") == []
    assert chat.rows("SELECT id FROM record") == []
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.wait_for_folds()
    # Its answer is out now, if only as far as it came: now the question is folded with it.
    assert isinstance(chat.say(question(4))[-1], TurnFinished)
    chat.wait_for_folds()
    assert any("요약에 들어가면" in str(body) for body in server.bodies("summary"))
