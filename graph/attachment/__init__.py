"""Files that a user attaches to a message: read as text, added to the message, and extracted again; and pictures.

Example:
    attachment = read_attachment("report.pdf", data, max_chars=200_000)
    message = with_attachments("What does it say?", [attachment], "en")
    typed, attachments = split_attached(message)
"""

from graph.attachment.image import MAX_IMAGES, enlarged, is_image, read_image, thumbnail
from graph.attachment.reading import MAX_BYTES, MAX_FILES, REFUSED_KINDS, read_attachment
from graph.core.attached import Attachment, split_attached, with_attachments
from graph.core.text import IMAGE_TOKENS, estimate_tokens

__all__ = [
    "IMAGE_TOKENS",
    "MAX_BYTES",
    "MAX_FILES",
    "MAX_IMAGES",
    "REFUSED_KINDS",
    "Attachment",
    "enlarged",
    "estimate_tokens",
    "is_image",
    "read_attachment",
    "read_image",
    "split_attached",
    "thumbnail",
    "with_attachments",
]
