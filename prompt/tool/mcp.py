"""What a model is told where a server's tool gave no result, or a part of one that isn't text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from prompt.system.framing import Language

NoResult = Literal[
    "broken", "changed", "ended", "gone", "not_started", "refused", "silent", "too_large", "wants_input"
]  # fmt: skip

EMPTY: Final[Mapping[Language, str]] = {
    "ko": "(도구가 내용 없이 끝났습니다.)",
    "en": "(The tool ended without a result.)",
}
_NO_RESULT: Final[Mapping[NoResult, Mapping[Language, str]]] = {
    "broken": {
        "ko": "도구 서버 {server}의 답이 규격에 맞지 않아 읽을 수 없습니다. 실행되었는지는 알 수 없습니다.",
        "en": "the answer of the tool server {server} breaks the protocol. The call may have taken effect.",
    },
    "changed": {
        "ko": "선택한 뒤에 이 도구가 바뀌어 실행하지 않았습니다. 사용자가 도구 메뉴에서 다시 선택해야 합니다.",
        "en": "this tool has changed since it was chosen, so it wasn't run. The user has to choose it again.",
    },
    "ended": {
        "ko": "실행 중에 도구 서버 {server}의 연결이 끊겼습니다. 실행되었는지는 알 수 없습니다.",
        "en": "the connection to the tool server {server} ended during the call, which may have taken effect.",
    },
    "gone": {
        "ko": "도구 서버 {server}에 이제 이 도구가 없어 실행하지 않았습니다.",
        "en": "the tool server {server} no longer has this tool; nothing was run.",
    },
    "not_started": {
        "ko": "도구 서버 {server}에 연결할 수 없어 실행하지 않았습니다.",
        "en": "the tool server {server} can't be reached; nothing was run.",
    },
    "refused": {
        "ko": "도구 서버 {server}에서 호출을 거절했습니다.",
        "en": "the tool server {server} refused the call.",
    },
    "silent": {
        "ko": "도구가 {limit:g}초 동안 아무것도 알리지 않아 취소했습니다. 실행되었는지는 알 수 없습니다.",
        "en": "nothing came from the tool for {limit:g} s. It was cancelled, but may have taken effect.",
    },
    "too_large": {
        "ko": "도구의 결과가 {limit:g}MB를 넘거나 값이 너무 많아 받지 않았습니다. 더 적게 요청하세요.",
        "en": "the tool's result is larger than {limit:g} MB or has too many values, and wasn't read. Ask for less.",
    },
    "wants_input": {
        "ko": "도구가 실행 중에 모델의 답, 사용자의 입력 또는 폴더 목록을 요구했습니다. 도구에는 이런 것을 주지 않으므로 결과가 없습니다.",
        "en": (
            "while it ran, the tool asked for a model's answer, the user's input or a list of folders. Tools aren't given "
            "these, so there is no result."
        ),
    },
}
_ERROR: Final[Mapping[Language, str]] = {"ko": "오류: ", "en": "Error: "}
_LEFT_OUT: Final[Mapping[Language, str]] = {
    "ko": "[표시할 수 없는 내용: {what}]",
    "en": "[Content that can't be shown: {what}]",
}


def no_result(reason: NoResult, *, server: str, detail: str, limit: float, language: Language) -> str:
    """Returns the sentence in place of a result.

    Args:
        detail: What the server said of it, or "".
        limit: The seconds or megabytes that were passed, if the reason has any.
    """
    sentence = _NO_RESULT[reason][language].format(server=server, limit=limit)
    return f"{_ERROR[language]}{sentence} {detail}".rstrip()


def left_out(what: str, language: Language) -> str:
    """Stands for a part of a result that is neither text nor a picture of a known kind."""
    return _LEFT_OUT[language].format(what=what)
