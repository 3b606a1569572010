"""The page's texts on signing in, with English defaults, and the Korean ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class SignInWords:
    """Texts in one language, `needed`, `ended` and `withdrawn` by `reason` of a `SignInError`."""

    title: str = "Sign in to Turnfold"
    needed: str = "Your chats are yours alone. Sign in to see them."
    ended: str = "Your sign-in has ended. Sign in again to go on; everything you wrote is kept."
    withdrawn: str = "This account has no access any more. Whoever runs this server can tell you why."
    sign_in: str = "Sign in"
    elsewhere: str = "Signing in works at this page's own address."
    go_there: str = "Go there"
    signed_in: str = "Signed in"
    sign_out: str = "Sign out"


KOREAN_SIGN_IN: Final = SignInWords(
    title="Turnfold에 로그인",
    needed="대화는 본인만 볼 수 있습니다. 로그인하면 이어서 볼 수 있습니다.",
    ended="로그인이 끝났습니다. 다시 로그인하면 이어집니다. 쓴 글은 모두 남아 있습니다.",
    withdrawn="이 계정은 더 이상 쓸 수 없습니다. 이유는 서버 관리자에게 물어보세요.",
    sign_in="로그인",
    elsewhere="로그인은 이 페이지의 정식 주소에서만 할 수 있습니다.",
    go_there="정식 주소로 가기",
    signed_in="로그인됨",
    sign_out="로그아웃",
)
