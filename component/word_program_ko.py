"""The page's texts on programs and their tokens in Korean."""

from __future__ import annotations

from typing import Final

from component.word_program import ProgramWords

KOREAN_PROGRAM: Final = ProgramWords(
    choose="프로그램",
    title="내 대화를 쓰는 프로그램",
    note="프로그램은 자기 토큰을 API 키로 보내고, 그러면 내 대화를 보고 이어갈 수 있습니다.",
    address="기본 주소(base URL)는 `{address}`입니다.",
    unused="{made}에 만듦 · 아직 쓰지 않음",
    used="{made}에 만듦 · 마지막 사용 {used}",
    without_tools="도구 없음",
    some_tools="도구: {tools}",
    withdraw="회수",
    withdraw_question="‘{name}’ 프로그램은 다음 요청부터 들어올 수 없습니다. 이 프로그램이 시작한 대화는 남습니다.",
    new="새 프로그램",
    name="이름",
    tools="서버의 도구를 쓸 수 있음",
    make="토큰 만들기",
    made="‘{name}’의 토큰입니다. 다시 볼 수 없으니 지금 복사하세요.",
    copy="토큰 복사",
)
