"""The page's texts on ratings, branches and what is done with chats in Korean."""

from __future__ import annotations

from typing import Final

from component.word_session import SessionWords

KOREAN_SESSION: Final = SessionWords(
    good="좋은 답변",
    bad="아쉬운 답변",
    not_good="‘좋은 답변’ 표시 지우기",
    not_bad="‘아쉬운 답변’ 표시 지우기",
    regenerate="새 갈래에서 다시 생성",
    edit="질문 고치기",
    question="질문",
    edit_note="고친 질문은 새 갈래에서 묻습니다. 지금 대화는 그대로 남습니다.",
    ask_in_branch="새 갈래에서 묻기",
    branched="새 갈래로 옮겨 왔습니다. 원래 대화는 그대로 있습니다.",
    branch_of="‘{title}’ 대화의 {turn}턴까지 이어받은 갈래입니다.",
    branch_of_all="‘{title}’ 대화를 첫 턴부터 다시 시작한 갈래입니다.",
    to_origin="원래 대화 열기",
    pinned="고정됨",
    pin="고정",
    unpin="고정 해제",
    fork="갈래 만들기",
    select="여러 개 선택",
    delete_ticked="{count}개 삭제",
    deleted="대화 {count}개를 삭제했습니다.",
    undo_delete="되돌리기",
    export="파일로 저장",
    export_title="대화를 파일로 저장",
    as_markdown="Markdown · 읽기 좋은 글",
    as_json="JSON Lines · 빠짐없이",
    open_file="파일에서 대화 불러오기",
    opened="파일에서 대화 {count}개를 불러왔습니다.",
    json_note="JSON Lines 파일에는 모든 답변과 요약, 평가가 들어 있고, 여기서 다시 불러올 수 있습니다.",
    json_too_large=(
        "이 JSON Lines 파일은 {size}입니다. {limit}가 넘으면 여기서 다시 불러올 수 없습니다. "
        "서버 운영자는 `python -m graph.admin import 파일`로 읽을 수 있습니다."
    ),
    without_images="JSON Lines에서 그림 빼기: {whole} 대신 {without}",
)
