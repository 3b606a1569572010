"""The files and pictures of this tab's next message: read on upload, stored until a message is sent with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import streamlit as st

from component import page_state, redraw, widget
from component.bridge import delivery, service_provider
from component.format import escape_label, format_count
from component.widget import show_error
from component.words.en import Words
from graph.attachment import (
    MAX_FILES,
    MAX_IMAGES,
    Attachment,
    is_image,
    read_attachment,
    read_image,
    thumbnail,
    with_attachments,
)
from graph.value.error import AttachmentError
from graph.value.view import NamedImage

_KEPT: Final = "attached"
_REFUSED: Final = "refused_files"
_READ: Final = "read_files"
_SMALL: Final = "small_pictures"


class File(Protocol):
    name: str

    def getvalue(self) -> bytes: ...


def take(files: Sequence[File]) -> None:
    """Reads files for the next message.

    Streamlit passes each file on only once, even to the callback of an early press.
    """
    if not files:
        return
    attached: list[Attachment | NamedImage] = []
    refused: list[AttachmentError] = []
    for number, file in enumerate(files, len(_attached()) + 1):
        try:
            if number > MAX_FILES:
                raise AttachmentError("too_many", file.name)  # noqa: TRY301  # shown like the other errors
            attached.append(_read(file, [*images(), *(one for one in attached if isinstance(one, NamedImage))]))
        except AttachmentError as error:
            refused.append(error)
    st.session_state.update({_KEPT: (*_attached(), *attached), _REFUSED: tuple(refused)})
    st.session_state[_READ] = st.session_state.get(_READ, 0) + 1


def _read(file: File, before: Sequence[NamedImage]) -> Attachment | NamedImage:
    data = file.getvalue()
    if is_image(file.name, data):
        if len(before) >= MAX_IMAGES:
            raise AttachmentError("too_many_images", file.name)
        return read_image(file.name, data)
    max_chars = service_provider.opened().settings.message_chars
    return read_attachment(file.name, data, max_chars=max_chars, language=st.session_state[page_state.LANGUAGE])


def has_files() -> bool:
    return bool(_attached())


def are_lost() -> bool:
    """Returns True if this tab has read no file, as after a reload: the files of a message sent again are gone."""
    return not has_files() and not st.session_state.get(_READ)


def message_of(typed: str) -> str:
    files = [one for one in _attached() if isinstance(one, Attachment)]
    return with_attachments(typed, files, st.session_state[page_state.LANGUAGE])


def images() -> list[NamedImage]:
    return [one for one in _attached() if isinstance(one, NamedImage)]


def sent(*, with_files: bool) -> None:
    """Clears the refusals after a message was sent, and the files if sent with it."""
    st.session_state.update({_KEPT: () if with_files else _attached(), _REFUSED: (), _SMALL: {}})


def mark() -> str:
    """Returns HTML attributes for the page's script: how often files were read, and if one was refused."""
    is_whole = not st.session_state.get(_REFUSED)
    return f'data-read="{st.session_state.get(_READ, 0)}" data-readable="{str(is_whole).lower()}"'


def draw(words: Words) -> None:
    for error in st.session_state.get(_REFUSED, ()):
        show_error(words, error)
    if not _attached():
        return
    with st.container(key="attached", gap="xsmall"):
        st.markdown(f":small[:gray[{words.attachment.kept}]]")
        with st.container(horizontal=True, gap="xsmall"):
            for number, attachment in enumerate(_attached()):
                with st.container(width="content", gap=None, key=f"kept_{number}"):
                    if isinstance(attachment, NamedImage):
                        st.html(widget.picture(_small(attachment), attachment.name), width="content")
                    st.button(
                        words.attachment.remove.format(name=escape_label(attachment.name)),
                        key=f"detach_{number}",
                        icon=":material/close:",
                        on_click=_remove,
                        args=(attachment,),
                    )


def chip_label(words: Words, attachment: Attachment) -> str:
    label = words.attachment.chip.format(name=escape_label(attachment.name), chars=format_count(len(attachment.text)))
    return f"{label} · {words.attachment.partial}" if attachment.is_partial else label


def _attached() -> tuple[Attachment | NamedImage, ...]:
    attached: tuple[Attachment | NamedImage, ...] = st.session_state.get(_KEPT, ())
    return attached


def _small(image: NamedImage) -> str:
    """Returns the small picture; made once, since the field is drawn often."""
    made: dict[str, str] = st.session_state.setdefault(_SMALL, {})
    if image.url not in made:
        made[image.url] = thumbnail(image.url)
    return made[image.url]


@delivery.once
def _remove(attachment: Attachment | NamedImage) -> None:
    attached = list(_attached())
    if attachment in attached:
        attached.remove(attachment)
    st.session_state.update({_KEPT: tuple(attached), _REFUSED: ()})
    redraw.changed()
