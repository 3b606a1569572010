"""Helpers of tests with compaction: true token counts as usage, files to read, asking until a compaction happens."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from bpe_openai import get_encoding
from langchain_core.tools import BaseTool, StructuredTool

from graph.event import Folded, TurnFinished
from graph.record import Record
from tests.fake.body import content_of
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_responder import answer_body, kind_of

# Compacts after about a dozen turns.
COMPACTING: dict[str, Any] = {"context_strategy": "compaction", "max_context_tokens": 2_000}
HEADING = "[Previous conversation summary]"
FILES = [f"src/not_agent/tools/part_{number}.py" for number in range(1, 13)]
STEPS = [
    "Python 계산기 프로젝트를 만들어줘. 파일은 calculator.py로 하고 0으로 나누면 ValueError를 내줘",
    "테스트도 작성해줘. pytest를 쓰고 파일은 test_calculator.py로 해줘",
    "README.md도 작성해줘. 설치 방법과 사용 예를 넣어줘",
    "setup.py도 추가해줘. 지원하는 파이썬은 3.11 이상이야",
    "타입 힌트를 추가해줘. 모든 공개 함수에 붙여줘",
    "예외 메시지를 한국어로 바꿔줘. 다른 부분은 그대로 둬",
    "명령줄에서 쓸 수 있게 해줘. 인자는 식 하나만 받아줘",
    "로그를 남겨줘. 파일 이름은 calculator.log로 해줘",
]


def read_file() -> BaseTool:
    def read(path: str) -> str:
        return f"# {path}\n" + f"def load_{FILES.index(path)}(name): return open(name).read()\n" * 30

    return StructuredTool.from_function(read, name="read_file", description="Reads a file of the project.")


@cache
def encoding() -> Any:  # noqa: ANN401  # the library has no types
    return get_encoding("o200k_base")


def with_true_usage(body: Body) -> Reply:
    deltas = [json.loads(event)["choices"] for event in answer_body(body).events]
    answer = "".join(choice["delta"].get("content") or "" for choices in deltas for choice in choices)
    asked, said = true_tokens(body), len(encoding().encode_ordinary(answer))
    usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    return text(answer if kind_of(body) == "chat" else f"<summary>{answer}</summary>", usage=usage)


def true_tokens(body: Body) -> int:
    """The exact count of what was sent: messages, tool calls and tools."""
    offered = [json.dumps(body["tools"], ensure_ascii=False)] if body.get("tools") else []
    called = [str(message["tool_calls"]) for message in body["messages"] if message.get("tool_calls")]
    told = [content_of(message) for message in body["messages"]]
    return sum(len(encoding().encode_ordinary(words)) for words in [*told, *offered, *called])


def history_tokens(body: Body) -> int:
    """The exact count of what was said before the open turn."""
    last = max(place for place, message in enumerate(body["messages"]) if message["role"] == "user")
    return true_tokens({"messages": body["messages"][1:last]})


def ask_until_compacted(chat: Chat) -> int:
    """Asks questions until a turn begins with a compaction; returns its number."""
    ((last,),) = chat.rows("SELECT coalesce(max(turn), 0) FROM message WHERE session_id = ?", chat.session_id)
    for number in range(last + 1, 60):
        events = chat.say(question(number))
        assert isinstance(events[-1], TurnFinished)
        chat.wait_for_folds()
        if any(isinstance(event, Folded) for event in events):
            return number
    raise AssertionError


def compaction(chat: Chat) -> Record:
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.kind == "compaction"
    return record
