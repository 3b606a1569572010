"""The page's texts on ratings, branches and what is done with chats, with English defaults; Korean stands beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SessionWords:
    """Texts in one language. Names in braces are placeholders that the caller fills in."""

    good: str = "Good answer"
    bad: str = "Bad answer"
    not_good: str = "Take back “good answer”"
    not_bad: str = "Take back “bad answer”"

    regenerate: str = "Regenerate in a branch"
    edit: str = "Edit this question"
    question: str = "Your question"
    edit_note: str = "It is asked in a new branch of this chat. What stands here stays as it is."
    ask_in_branch: str = "Ask in a branch"
    branched: str = "You are in a new branch now. The chat that it comes from stays as it was."
    branch_of: str = "Branch of “{title}”, the same up to turn {turn}."
    branch_of_all: str = "Branch of “{title}”, from its first turn on."
    to_origin: str = "Open that chat"

    pinned: str = "Pinned"
    pin: str = "Pin"
    unpin: str = "Unpin"
    fork: str = "Make a branch"

    select: str = "Select several"
    delete_ticked: str = "Delete ({count})"
    deleted: str = "Deleted chats: {count}"
    undo_delete: str = "Undo"

    export: str = "Save as a file"
    export_title: str = "Save this chat as a file"
    as_markdown: str = "Markdown, for reading"
    as_json: str = "JSON Lines, with everything"
    open_file: str = "Open a chat from a file"
    opened: str = "Chats opened from the file: {count}"
    json_note: str = "JSON Lines holds every answer, summary and rating, and can be opened here again."
    json_too_large: str = (
        "This JSON Lines file has {size}. More than {limit} can't be opened here again; the server's operator can read "
        "it with `python -m graph.admin import FILE`."
    )
    without_images: str = "JSON Lines without pictures: {without} instead of {whole}"
