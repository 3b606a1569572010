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
    more: str = "More ways to sign out"
    everywhere: str = "Sign out everywhere"
    everywhere_title: str = "Sign out everywhere?"
    everywhere_question: str = (
        "You will be signed out in every browser and on every device where you are signed in, this one included."
    )
    everywhere_note: str = (
        "Answers under way are finished. Programs go on to work by their tokens; withdraw those under “Programs” in "
        "the advanced settings."
    )


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
    more="다른 로그아웃 방법",
    everywhere="모든 기기에서 로그아웃",
    everywhere_title="모든 기기에서 로그아웃할까요?",
    everywhere_question="이 브라우저를 포함해, 로그인한 모든 브라우저와 기기에서 로그아웃됩니다.",
    everywhere_note=(
        "쓰고 있는 답변은 끝까지 씁니다. 프로그램은 토큰으로 계속 들어올 수 있습니다. "
        "막으려면 고급 설정의 ‘프로그램’에서 토큰을 회수하세요."
    ),
)
