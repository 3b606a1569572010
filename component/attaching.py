"""The files and pictures of this tab's next messages: read on upload, stored until a message is sent with them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast, get_args

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from component import page_state, redraw, widget
from component.bridge import delivery, service_provider
from component.format import escape_label, format_count
from component.words.words import Words
from graph.attachment import (
    IMAGE_TOKENS,
    MAX_BYTES,
    MAX_FILES,
    MAX_IMAGES,
    Attachment,
    estimate_tokens,
    is_image,
    read_attachment,
    read_image,
    thumbnail,
    with_attachments,
)
from graph.value.error import AttachmentError, AttachmentReason
from graph.value.view import NamedImage

_KEPT: Final = "attached"
_ASIDE: Final = "files_set_aside"
_REFUSED: Final = "refused_files"
_TOLD: Final = "told_files"
READ: Final = "read_files"  # how many this tab has sent; also the number of the last
_SMALL: Final = "small_pictures"
Kept = Attachment | NamedImage


def take(files: Sequence[UploadedFile]) -> None:
    """Reads files for the next message; what can't be read isn't sent, and says why.

    Streamlit passes each file on only once, even to the callback of an early press.
    """
    for file in files:
        number = st.session_state[READ] = st.session_state.get(READ, 0) + 1
        try:
            if len(attached()) >= MAX_FILES:
                raise AttachmentError("too_many", file.name)  # noqa: TRY301  # shown like the other errors
            st.session_state[_KEPT] = {**attached(), number: _read(file)}
        except AttachmentError as error:
            st.session_state[_REFUSED] = (*_refused(), error)


def refuse(told: object) -> None:
    """Takes the page's script's word for files that it didn't upload; it tells all of them each time."""
    every = told if isinstance(told, list) else []
    for one in every[st.session_state.get(_TOLD, 0) :]:
        match one:
            case {"name": str(name), "reason": str(reason)} if reason in get_args(AttachmentReason):
                st.session_state[_REFUSED] = (*_refused(), AttachmentError(cast("AttachmentReason", reason), name))
                st.session_state[READ] = st.session_state.get(READ, 0) + (reason == "upload")
    st.session_state[_TOLD] = len(every)
    redraw.changed()


def _read(file: UploadedFile) -> Kept:
    data = file.getvalue()
    if is_image(file.name, data):
        if len(images_of(attached().values())) >= MAX_IMAGES:
            raise AttachmentError("too_many_images", file.name)
        return read_image(file.name, data)
    return read_attachment(file.name, data, max_chars=MAX_BYTES, language=st.session_state[page_state.LANGUAGE])


def set_aside(message_id: str, last: int) -> None:
    """Makes the files up to the one with this number those of this message; what came later is for the next."""
    if last and message_id not in aside():
        own = {number: one for number, one in attached().items() if number <= last}
        later = {number: one for number, one in attached().items() if number > last}
        st.session_state.update({_ASIDE: {**aside(), message_id: own}, _KEPT: later, _REFUSED: ()})


def take_back(message_id: str) -> None:
    """Makes the files of a message those of the next one again."""
    st.session_state[_KEPT] = {**aside().get(message_id, {}), **attached()}
    sent(message_id)


def message_of(typed: str, files: Iterable[Kept]) -> str:
    texts = [one for one in files if isinstance(one, Attachment)]
    return with_attachments(typed, texts, st.session_state[page_state.LANGUAGE])


def images_of(files: Iterable[Kept]) -> list[NamedImage]:
    return [one for one in files if isinstance(one, NamedImage)]


def sent(message_id: str) -> None:
    """Forgets the files of a message that was sent, and the refusals."""
    others = {key: files for key, files in aside().items() if key != message_id}
    st.session_state.update({_ASIDE: others, _REFUSED: (), _SMALL: {}})


def draw(words: Words) -> None:
    for number, error in enumerate(_refused()):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", wrap=False):
            name = html.escape(error.detail)
            reason = words.attachment.reasons[error.reason].format(format_count(error.figure))
            st.html(f'<p class="refused" role="alert"><b>{name}</b> {reason}</p>', width="content")
            label = words.attachment.remove.format(name=escape_label(error.detail))
            widget.draw_action(label, f"icon_refused_{number}", "close", _remove, error)
    if not attached():
        return
    with st.container(key="attached", horizontal=True, gap="xsmall"):
        for number, (attachment, sent_file) in enumerate(zip(attached().values(), as_sent(), strict=True)):
            chip = st.container(key=f"kept_{number}", horizontal=True, width="content", gap="xsmall", wrap=False)
            with chip:
                st.html(_chip(words, attachment, sent_file), width="content")
                label = words.attachment.remove.format(name=escape_label(attachment.name))
                widget.draw_action(label, f"icon_detach_{number}", "close", _remove, attachment)


def _chip(words: Words, attachment: Kept, sent_file: Kept) -> str:
    """Returns what a file is called, how large it is, and how much of it is sent; of a picture, its thumbnail."""
    said: list[str] = []
    if isinstance(attachment, NamedImage):
        small = st.session_state.setdefault(_SMALL, {})
        if attachment.url not in small:  # made once, since the field is drawn often
            small[attachment.url] = thumbnail(attachment.url)
        icon, size = widget.picture(small[attachment.url], attachment.name), ""
    else:
        icon = '<i data-icon="description"></i>'
        size = words.attachment.size.format(chars=format_count(len(attachment.text)))
        said = [said_of_beginning(words, sent_file), *said_of_unread(words, attachment)]
    tokens = words.steering.pin_tokens.format(tokens=format_count(tokens_of(sent_file)))
    about = " · ".join(filter(None, (size, tokens)))
    lines = "".join(f"<small>{line}</small>" for line in (about, *filter(None, said)))
    return f'<p class="chip">{icon}<span><b>{html.escape(attachment.name)}</b>{lines}</span></p>'


def tokens_of(attachment: Kept) -> int:
    """Returns about how many tokens of the model's input a file takes."""
    return IMAGE_TOKENS if isinstance(attachment, NamedImage) else estimate_tokens(attachment.text)


def said_of_beginning(words: Words, file: Kept) -> str:
    """Returns what is said of a long file of which only the beginning is sent; "" of others."""
    lines = file.sent_lines if isinstance(file, Attachment) else 0
    return words.attachment.beginning.format(lines=format_count(lines)) if lines else ""


def said_of_unread(words: Words, file: Attachment) -> list[str]:
    """Returns what is said of a file that wasn't read whole: of its damaged parts, and of those that aren't text."""
    labels, count = words.attachment, file.left_out
    return [labels.partial] * file.is_partial + [labels.left_out.format(count=format_count(count))] * bool(count)


def as_sent() -> list[Kept]:
    """Returns the attached files as the next message would be sent with them."""
    about = {"options": page_state.options(), "language": st.session_state[page_state.LANGUAGE]}
    files = [*attached().values()]
    return service_provider.current().folds.sent_files(page_state.session_id(), files, **about)


def attached() -> Mapping[int, Kept]:
    return dict(st.session_state.get(_KEPT, {}))


def aside() -> Mapping[str, Mapping[int, Kept]]:
    """Returns the files that are set aside, by message and number; none after a reload."""
    return dict(st.session_state.get(_ASIDE, {}))


def _refused() -> tuple[AttachmentError, ...]:
    return tuple(st.session_state.get(_REFUSED, ()))


@delivery.once
def _remove(taken_off: Kept | AttachmentError) -> None:
    st.session_state[_KEPT] = {number: one for number, one in attached().items() if one is not taken_off}
    st.session_state[_REFUSED] = tuple(one for one in _refused() if one is not taken_off)
    redraw.changed()
