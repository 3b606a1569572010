from __future__ import annotations

import pytest

from tests.fake.body import content_of, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.trip import Talk, fold, requests, target_of

CODE = """\
```python
def lock_batch(ids):
    for attempt in range(3):
        try:
            return select(ids, nowait=True)
        except LockNotAvailable:
            sleep(0.2 * attempt)

    raise TimeoutError("batch is locked")
```"""
ERROR = 'psycopg.errors.LockNotAvailable: could not obtain lock on row in relation "orders"'
SAID = "배치를 다시 돌릴 때 잠긴 행에서 멈추지 않도록 차례로 시도하고, 그래도 안 되면 포기하는 쪽으로 이야기했습니다. "
TALK: Talk = (
    ("배치가 잠긴 행에서 멈춥니다. 어떻게 할까요?", f"이렇게 고치면 됩니다.\n{CODE}\n{SAID * 6}"),
    ("오류는 그대로 두나요?", f"네, 이 오류만 잡습니다: {ERROR}\n{SAID * 6}"),
    ("그럼 그렇게 합시다.", SAID * 4),
)
WITH_CODE = f"""\
(1턴) 잠긴 행에서 멈추는 배치를 이렇게 고치기로 함:
{CODE}
(2턴) 이 오류만 잡음: {ERROR}
(3턴) 그렇게 하기로 결정함."""


def sent(chat: Chat, server: FakeOpenAI) -> str:
    """What the newest request holds of the summaries, as it was written."""
    chat.say(question(5))
    return system_prompt(server.bodies("chat")[-1]).replace("\n  ", "\n")


def test_short_code_and_an_error_stay_letter_for_letter(chat: Chat, server: FakeOpenAI) -> None:
    assert 0.6 < len(WITH_CODE) / target_of(TALK) < 1.3
    record = fold(chat, server, TALK, WITH_CODE)
    assert record is not None
    assert (record.summary, record.outcome) == (WITH_CODE, "compressed")
    assert len(requests(server)) == 1
    told = sent(chat, server)
    assert CODE in told
    assert ERROR in told


def test_code_stays_whole_where_a_summary_loses_sentences_around_it(chat: Chat, server: FakeOpenAI) -> None:
    draft = f"{WITH_CODE}\n{SAID * 8}".strip()
    record = fold(chat, server, TALK, draft, f"{draft} ")
    assert record is not None
    assert record.outcome == "shortened"
    assert record.summary_chars <= record.target_chars * 1.25
    assert CODE in record.summary
    assert ERROR in record.summary
    assert record.summary.count(SAID.strip()) < draft.count(SAID.strip())


@pytest.mark.parametrize(
    ("asked", "answer", "rule"),
    [
        (
            "잠긴 행에서 멈추는 배치를 어떻게 고치죠?",
            SAID * 4,
            "지금 쓰는 코드는 10줄까지 그대로 둡니다.",
        ),
        (
            "How do I mend a batch that stops at locked rows?",
            "Try each of the locked rows three times, then give up. " * 6,
            "Code that is current may stay as it is, up to 10 lines.",
        ),
    ],
    ids=["korean", "english"],
)
def test_the_request_lets_ten_lines_of_code_stand_and_commands_and_errors_be_kept_exactly(
    chat: Chat, server: FakeOpenAI, asked: str, answer: str, rule: str
) -> None:
    server.script(*[text(f"{answer}\n{CODE}")] * 3)
    for _ in range(3):
        chat.say(asked)
    chat.wait_for_folds()
    rules, material = (content_of(message) for message in requests(server)[0])
    assert rule in rules
    exact = next(line for line in rules.splitlines() if line.startswith("4. "))
    assert all(
        word in exact for word in (("명령", "오류 문구") if rule.startswith("지금") else ("commands", "error texts"))
    )
    assert CODE in material
