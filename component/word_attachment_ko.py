"""The page's texts on attached files in Korean."""

from __future__ import annotations

from typing import Final

from component.word_attachment import AttachmentWords

KOREAN_ATTACHMENT: Final = AttachmentWords(
    attach="파일 첨부",
    drop="텍스트나 PDF 파일을 여기에 놓으세요",
    upload_failed="파일을 서버로 보내지 못했습니다. 빼고 다시 첨부해 주세요.",
    remove="{name} 빼기",
    chip="{name} · {chars}자",
    kept="다음 메시지와 함께 보낼 파일입니다.",
    cut="앞부분만 보입니다. 모델에는 {chars}자를 모두 보냅니다.",
    reasons={
        "busy": "서버가 다른 PDF를 읽는 중입니다. 잠시 뒤 다시 첨부해 주세요.",
        "damaged": "PDF가 손상되어 읽을 수 없습니다.",
        "empty": "파일에 글이 없습니다.",
        "encrypted": "암호가 걸린 PDF입니다. 암호를 풀어 저장한 뒤 첨부해 주세요.",
        "kind": "텍스트 파일(마크다운, 코드, CSV 등)과 PDF만 첨부할 수 있습니다.",
        "lost": "첨부한 파일이 사라졌습니다. 다시 첨부한 뒤 보내 주세요.",
        "no_text": "글자 없이 그림으로만 된 PDF입니다.",
        "not_text": "텍스트 파일이 아니거나 인코딩을 알 수 없습니다. UTF-8로 저장해 주세요.",
        "too_heavy": "이 PDF는 읽는 데 시간이나 메모리가 너무 많이 듭니다.",
        "too_large": "10MB보다 큰 파일입니다.",
        "too_long": "파일의 글이 메시지 하나에 담기에는 너무 깁니다. 일부만 첨부해 주세요.",
        "too_many": "메시지 하나에 파일은 10개까지 첨부할 수 있습니다.",
        "too_many_pages": "500쪽이 넘는 PDF입니다. 일부만 첨부해 주세요.",
    },
)
