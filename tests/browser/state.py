"""The walks through the states that the page can be in; each is reached from the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.browser import state_attach as attach
from tests.browser import state_branch as branch
from tests.browser import state_chat as chat
from tests.browser import state_fold as fold
from tests.browser import state_session as session
from tests.browser import state_steering as steering
from tests.browser.stage import State

WALKS: Final[dict[str, Sequence[State]]] = {
    "settings": (
        chat.empty,
        chat.settings_open,
        chat.shortcuts_open,
        chat.languages_changed,
        chat.themes_changed,
        chat.strategies_listed,
        chat.without_summaries,
    ),
    "chats": (
        session.many_chats,
        session.more_chats,
        session.no_chat_found,
        session.lines_found,
        session.chats_found,
        session.search_cleared,
        session.chat_opened,
        session.renamed,
        session.not_deleted,
        session.deleted,
        session.suggestion_sent,
        session.new_chat,
        session.example_open,
    ),
    "branches": (
        branch.rated,
        branch.edit_open,
        branch.edit_refused,
        branch.branch_made,
        branch.origin_open,
        branch.pinned,
        branch.file_offered,
        branch.ticked,
        branch.many_deleted,
        branch.brought_back,
    ),
    "folded": (
        fold.folded,
        fold.fold_open,
        fold.panel_open,
        fold.summary_whole,
        fold.facts_open,
        fold.older_rows_open,
        fold.statistics,
        fold.input_shown,
        fold.input_turns_listed,
        fold.input_blocks_open,
        fold.input_history_open,
        fold.input_request_open,
        fold.card_followed,
        fold.turns_recalled,
        fold.recalled_followed,
        fold.menu_open,
        fold.rename_dialog,
        fold.rename_refused,
        fold.delete_dialog,
    ),
    "steering": (
        steering.card_menu,
        steering.edit_dialog,
        steering.edit_refused,
        steering.edited,
        steering.taken_back,
        steering.versions,
        steering.version_used,
        steering.remake_dialog,
        steering.remade,
        steering.only_version,
        steering.fold_undone,
        steering.folded_again,
        steering.message_pinned,
        steering.pins_listed,
        steering.message_unpinned,
        steering.pin_refused,
    ),
    "context": (
        fold.reset_dialog,
        fold.reset_cancelled,
        fold.reset_done,
        fold.reset_undone,
        fold.compacted,
        fold.compaction_card,
        fold.compacted_again,
        fold.restored,
        fold.long_chat,
        fold.earlier_shown,
    ),
    "answers": (
        chat.rich_answer,
        chat.steps_open,
        chat.failed,
        chat.retried,
        chat.regenerated,
        chat.copied,
        chat.streaming,
        chat.refused,
        chat.stopped,
        chat.long_message,
        chat.message_whole,
        chat.message_clamped,
        chat.scrolled_up,
        chat.back_at_the_end,
        chat.tool_running,
        chat.tool_stopped,
    ),
    "files": (
        attach.files_in_field,
        attach.file_refused,
        attach.files_sent,
        attach.file_open,
    ),
}
