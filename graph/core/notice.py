"""The embedded offline model's fixed sentences, which are no content; knows nothing of who says or drops them."""

from __future__ import annotations

from typing import Final

INTRODUCTION: Final = {
    "ko": (
        "저는 네트워크 없이 도는 내장 오프라인 모델입니다. "
        "OPENAI_API_KEY나 OPENAI_BASE_URL을 설정하면 실제 모델이 답합니다."
    ),
    "en": (
        "I'm the embedded offline model and run without a network. "
        "Set OPENAI_API_KEY or OPENAI_BASE_URL and a real model answers."
    ),
}
SHORT_NOTICE: Final = {"ko": "— 내장 오프라인 모델", "en": "— embedded offline model"}
_LEADS: Final = (
    "저는 네트워크 없이 도는",
    "OPENAI_API_KEY나 OPENAI_BASE_URL을",
    "I'm the embedded offline model",
    "Set OPENAI_API_KEY or",
    "— 내장 오프라인 모델",
    "— embedded offline model",
)


def is_notice(sentence: str) -> bool:
    """Whether the sentence is one of the fixed ones."""
    return sentence.lstrip("*_> ").startswith(_LEADS)
