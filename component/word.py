"""The shape of everything that the page says, one field a sentence; knows no language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Language = Literal["ko", "en"]
LANGUAGES: tuple[Language, ...] = ("ko", "en")
LANGUAGE_NAMES: Mapping[Language, str] = {"ko": "한국어", "en": "English"}


@dataclass(frozen=True)
class Suggestion:
    """A first message that the empty page offers."""

    icon: str
    text: str


@dataclass(frozen=True)
class Words:
    """All words of one language; names in braces are filled in by whoever shows the sentence.

    Attributes:
        errors: A sentence for each `code` of `graph.error`, and for those that a turn or a fold ends with by itself.
        input_reasons: A sentence for each `reason` of an `InputError`.
        strategies: A strategy's name as people say it; `strategy_notes` says what it does, in a line.
        shortcuts: Pairs of what is pressed and what it does.
    """

    language: Language

    new_chat: str
    search_chats: str
    no_chats: str
    no_match: str
    today: str
    yesterday: str
    last_week: str
    older: str
    more_chats: str
    chat_menu: str
    answering: str
    untitled: str
    rename: str
    rename_title: str
    title_label: str
    delete: str
    delete_title: str
    delete_question: str
    save: str
    cancel: str

    settings: str
    rate: str
    rate_help: str
    rate_short: str
    rate_balanced: str
    rate_detailed: str
    rate_note: str
    strategy: str
    strategies: Mapping[str, str]
    strategy_notes: Mapping[str, str]
    compact_now: str
    compacting: str
    compacted: str
    reset_done: str
    command_needs_chat: str
    restore: str
    restore_help: str
    command_note: str
    model: str
    model_offline: str
    language_label: str
    offline_note: str
    offline_short: str
    shortcuts_label: str
    shortcut_head: tuple[str, str]
    shortcuts: tuple[tuple[str, str], ...]

    empty_title: str
    empty_lead: str
    suggestions: tuple[Suggestion, ...]
    earlier: str
    more_of_message: str
    ask: str
    stop: str
    stopping: str
    retry: str
    regenerate: str
    copy: str
    copied: str
    copy_failed: str
    phase_folding: str
    phase_waiting: str
    phase_tool: str
    phase_answering: str
    phase_closing: str
    tools_used: str
    tool_arguments: str
    tool_result: str
    tool_seconds: str
    fold_divider: str
    fold_divider_verbatim: str
    fold_divider_compaction: str
    nearly_full: str
    full: str
    unsent: str
    fold_warning: str
    failed_title: str
    failed_kept: str
    stopped_partial: str
    stopped_empty: str
    answer_cut: str

    panel_title: str
    open_panel: str
    tab_summaries: str
    tab_statistics: str
    history: str
    current_rate: str
    no_records: str
    card_title: str
    card_rate: str
    card_chars: str
    card_compaction: str
    card_merged: str
    card_version: str
    summarisers: Mapping[str, str]
    card_cost: str
    card_free: str
    kept_verbatim: str
    was_shortened: str
    was_picked: str
    older_records: str
    earlier_compactions: str
    statistics: str
    stat_count: str
    stat_chars: str
    stat_saved: str
    stat_grown: str
    stat_unsent: str
    stat_fold_cost: str
    chart_title: str
    chart_note: str
    chart_turn: str
    chart_tokens: str
    chart_sent: str
    chart_full: str
    chart_fold: str
    chart_empty: str
    chart_alt: str
    gauge: str
    gauge_estimate: str
    gauge_usage: str
    gauge_help_estimate: str
    gauge_help_usage: str

    errors: Mapping[str, str]
    input_reasons: Mapping[str, str]
