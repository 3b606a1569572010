"""What a model is told where a server's tool gave no result, or a part of one that isn't text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prompt.system.framing import Language

CHANGED: Final[Mapping[Language, str]] = {
    "ko": "오류: 선택한 뒤에 이 도구가 바뀌어 실행하지 않았습니다. 사용자가 도구 메뉴에서 다시 선택해야 합니다.",
    "en": "Error: this tool has changed since it was chosen, so it wasn't run. The user has to choose it again.",
}
GONE: Final[Mapping[Language, str]] = {
    "ko": "오류: 서버에 이제 이 도구가 없어 실행하지 않았습니다.",
    "en": "Error: the server no longer has this tool; nothing was run.",
}
WANTS_INPUT: Final[Mapping[Language, str]] = {
    "ko": (
        "오류: 도구가 실행 중에 모델의 답, 사용자의 입력 또는 폴더 목록을 요구했습니다. 도구에는 이런 것을 주지 않으므로 "
        "결과가 없습니다."
    ),
    "en": (
        "Error: while it ran, the tool asked for a model's answer, the user's input or a list of folders. Tools aren't "
        "given these, so there is no result."
    ),
}
BROKEN: Final[Mapping[Language, str]] = {
    "ko": "오류: 도구 서버의 답이 규격에 맞지 않아 읽을 수 없습니다. 실행되었는지는 알 수 없습니다.",
    "en": "Error: the server's answer breaks the protocol and can't be read; the call may have taken effect.",
}
EMPTY: Final[Mapping[Language, str]] = {
    "ko": "(도구가 내용 없이 끝났습니다.)",
    "en": "(The tool ended without a result.)",
}
_NOT_STARTED: Final[Mapping[Language, str]] = {
    "ko": "오류: 도구 서버 {server}에 연결할 수 없어 실행하지 않았습니다. {detail}",
    "en": "Error: the tool server {server} can't be reached; nothing was run. {detail}",
}
_ENDED: Final[Mapping[Language, str]] = {
    "ko": "오류: 실행 중에 도구 서버 {server}의 연결이 끊겼습니다. 실행되었는지는 알 수 없습니다. {detail}",
    "en": "Error: the connection to the tool server {server} ended during the call, which may have taken effect. {detail}",
}
_FAILED: Final[Mapping[Language, str]] = {
    "ko": "오류: 도구 서버 {server}가 호출을 거절했습니다. {detail}",
    "en": "Error: the tool server {server} refused the call. {detail}",
}
_SILENT: Final[Mapping[Language, str]] = {
    "ko": "오류: 도구가 {seconds:g}초 동안 아무것도 알리지 않아 취소했습니다. 실행되었는지는 알 수 없습니다.",
    "en": "Error: nothing came from the tool for {seconds:g} seconds. It was cancelled, but may have taken effect.",
}
_TOO_LARGE: Final[Mapping[Language, str]] = {
    "ko": "오류: 도구의 결과가 {megabytes}MB를 넘어 받지 않았습니다. 더 적게 요청하세요.",
    "en": "Error: the tool's result is larger than {megabytes} MB and wasn't read. Ask for less.",
}
_LEFT_OUT: Final[Mapping[Language, str]] = {
    "ko": "[표시할 수 없는 내용: {what}]",
    "en": "[Content that can't be shown: {what}]",
}


def not_started(server: str, detail: str, language: Language) -> str:
    return _NOT_STARTED[language].format(server=server, detail=detail).rstrip()


def ended(server: str, detail: str, language: Language) -> str:
    return _ENDED[language].format(server=server, detail=detail).rstrip()


def failed(server: str, detail: str, language: Language) -> str:
    return _FAILED[language].format(server=server, detail=detail).rstrip()


def silent(seconds: float, language: Language) -> str:
    return _SILENT[language].format(seconds=seconds)


def too_large(megabytes: int, language: Language) -> str:
    return _TOO_LARGE[language].format(megabytes=megabytes)


def left_out(what: str, language: Language) -> str:
    """Stands for a part of a result that is neither text nor a picture of a known kind."""
    return _LEFT_OUT[language].format(what=what)
