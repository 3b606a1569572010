"""Every text of the page, one field each, with English defaults; its errors, projects and Korean are beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from component.word_attachment import AttachmentWords
from component.word_cost import CostWords
from component.word_error import ERRORS, INPUT_REASONS, PATH_REASONS
from component.word_input import InputWords
from component.word_program import ProgramWords
from component.word_project import ProjectWords
from component.word_session import SessionWords
from component.word_sign_in import SignInWords
from component.word_steering import SteeringWords

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
    """The page's texts in one language. Names in braces are placeholders that the caller fills in.

    Attributes:
        errors: Sentences by `code` of `graph.value.error`, and by the other error codes that turns and folds end with.
        input_reasons: Sentences by `reason` of an `InputError`; `path_reasons` has those of a `PathError`.
        strategies: Display names by strategy; `strategy_notes` has a description of each, filled in by `wording`.
        shortcuts: Pairs of keys and effect.
    """

    language: Language = "en"

    new_chat: str = "New chat"
    search_chats: str = "Search chats"
    no_chats: str = "No chats yet."
    no_match: str = "No chat matches."
    program: str = "Program: {name}"
    begun_by_program: str = "The program “{name}” began this chat. You can go on with it here, and so can the program."
    found_in_turn: str = "Turn {turn}: {text}"
    today: str = "Today"
    yesterday: str = "Yesterday"
    last_week: str = "Last 7 days"
    older: str = "Earlier"
    more_chats: str = "Show {count} more chats"
    chat_menu: str = "Options for {title}"
    untitled: str = "Untitled chat"
    rename: str = "Rename"
    rename_title: str = "Rename this chat"
    title_label: str = "Name"
    title_missing: str = "Enter a name."
    delete: str = "Delete"
    delete_title: str = "Delete this chat?"
    delete_question: str = "All messages and summaries of “{title}” will be removed. This can't be undone."
    save: str = "Save"
    cancel: str = "Cancel"

    settings: str = "⚙️ Advanced settings"
    rate: str = "Summary length"
    rate_help: str = "Lower makes summaries shorter, higher keeps more detail"
    rate_short: str = "0.1 short"
    rate_balanced: str = "0.3 mid"
    rate_detailed: str = "0.5 detailed"
    rate_note: str = "A change applies from the next summary on."
    rate_unused: str = "This strategy doesn't use this setting."
    rate_share: str = "{percent}% of the original"
    strategy: str = "Summary strategy"
    strategies: Mapping[str, str] = field(
        default_factory=lambda: {
            "interval": "Every 3 turns",
            "rolling": "One running summary",
            "compaction": "Compact when full",
            "window": "Newest turns only",
        }
    )
    strategy_notes: Mapping[str, str] = field(
        default_factory=lambda: {
            "interval": "Folds every three turns into a summary; old summaries are merged.",
            "rolling": "Keeps one running summary and sends it with the latest messages.",
            "compaction": "When the context fills up, all but the last messages become one structured summary.",
            "window": "Sends only the last {count} turns. Older ones stay visible, but the model doesn't see them.",
        }
    )
    compact_now: str = "Compact now"
    compacting: str = "Compacting…"
    compacted: str = "{before} → {after} messages, ≈{tokens_before} → ≈{tokens_after} tokens ({percent}% less)"
    reset: str = "Start fresh"
    reset_title: str = "Start fresh from here?"
    reset_question: str = (
        "From your next message on, the model won't know what was said so far. "
        "Your chat stays visible, and you can undo this until you send that message."
    )
    reset_divider: str = "From here on the model starts fresh. Your chat stays visible."
    undo_reset: str = "Undo"
    command_needs_chat: str = "Start a chat first."
    restore: str = "Restore"
    restore_help: str = (
        "Undoes this compaction: what it replaced is sent again from the next turn on. "
        "It isn't compacted again by itself until the chat has grown."
    )
    command_note: str = "`/compact` compacts now; `/reset` lets the model start fresh, and your chat stays visible."
    model: str = "Model"
    model_offline: str = "{name} · built in"
    language_label: str = "Language"
    theme: str = "Theme"
    themes: Mapping[str, str] = field(default_factory=lambda: {"system": "System", "light": "Light", "dark": "Dark"})
    offline_note: str = (
        "This is the built-in trial model: it answers with what it finds in the chat. For a real AI, put "
        "`OPENAI_API_KEY` or `OPENAI_BASE_URL` into `.env` and restart the server."
    )
    shortcuts_label: str = "Keyboard shortcuts"
    shortcut_head: tuple[str, str] = ("Key", "What it does")
    shortcuts: tuple[tuple[str, str], ...] = (
        ("Ctrl/⌘ + Shift + O", "New chat"),
        ("/", "Go to the message box"),
        ("Enter", "Send"),
        ("Shift + Enter", "New line"),
        ("Esc", "Stop the answer"),
    )

    empty_title: str = "Long chats that keep their thread"
    empty_lead: str = "After every three turns, that part is summarised and remembered. Your words stay as they are."
    open_example: str = "Open an example chat"
    suggestions: tuple[Suggestion, ...] = (
        Suggestion(":material/event_note:", "Remember: we deploy on October 14"),
        Suggestion(":material/schedule:", "What time is it in Seoul?"),
        Suggestion(":material/unfold_less:", "When and how are summaries made?"),
    )
    earlier: str = "Show earlier ({count} turns)"
    ask: str = "Write a message"
    stop: str = "Stop"
    stopping: str = "Stopping"
    retry: str = "Retry"
    regenerate: str = "Regenerate"
    copy: str = "Copy answer"
    to_end: str = "Go to the newest message"
    copied: str = "Copied"
    copy_failed: str = "Could not copy"
    footnotes: str = "Footnotes"
    phase_folding: str = "Summarising turns {turns}…"
    phase_waiting: str = "Waiting for the answer…"
    phase_tool: str = "Using a tool…"
    phase_answering: str = "Answering…"
    phase_closing: str = "Saving the answer…"
    tool_used_once: str = "1 tool call"
    tools_used: str = "{count} tool calls"
    tools_failed: str = "{count} failed"
    tool_arguments: str = "Input"
    tool_result: str = "Result"
    tool_seconds: str = "{seconds} s"
    recalled_one: str = "Recall: turn {turns}"
    recalled_some: str = "Recall: turns {turns}"
    recalled_none: str = "Recall: nothing found"
    recalled_turn: str = "{turn}"
    to_turn: str = "Go to turn {turn}"
    fold_divider: str = "Turns {turns} above are remembered as a summary · {original} → {summary} chars"
    fold_divider_past: str = "Turns {turns} were summarised here · {original} → {summary} chars"
    fold_divider_verbatim: str = "Turns {turns} kept word for word · {original} chars"
    fold_divider_compaction: str = "Context compacted · {change}"
    fold_text: str = "What the model sees instead of turns {turns}"
    fold_text_verbatim: str = "Turns {turns} as the model sees them, word for word"
    fold_text_compaction: str = "What the model sees instead of what was compacted"
    fold_text_past: str = "Turns {turns}: this isn't sent to the model now"
    nearly_full: str = "The context is over 80% full. Type `/compact` to compact it, or `/reset` to start fresh."
    full: str = "The context is over its limit. Type `/compact` to compact it, or `/reset` to start fresh."
    unsent: str = "{count} messages are neither summarised yet nor sent to the model. They stay in the chat."
    fold_warning: str = (
        "No summary could be made {count} times in a row. From the next turn on, sentences picked from the original "
        "stand in for the summary."
    )
    failed_title: str = "Couldn't get an answer"
    failed_kept: str = "Your message is saved, so you can retry."
    stopped_partial: str = "Stopped. What had arrived so far is kept."
    stopped_empty: str = "Stopped before the answer began."
    client_tools: str = "{client} is to run these tools. A new message ends the wait."
    answer_cut: str = "The answer stopped at the model's length limit. Write “continue” to get the rest."

    open_panel: str = "Summaries {count}"
    open_panel_first: str = "Summary in {count} turns"
    open_panel_next: str = "Summary in 1 turn"
    tab_summaries: str = "Summaries"
    tab_statistics: str = "Statistics"
    history: str = "📝 Summary history"
    current_rate: str = "Current rate: {rate}"
    next_by_chars: str = "Next summary: {original} chars so far → about {summary}"
    next_verbatim: str = "Next summary: {original} chars so far · kept word for word if it stays this short"
    next_by_turn: str = "Next summary after turn {turn} · {original} chars would become about {summary}"
    next_by_tokens: str = "Next summary: ≈{tokens} of {threshold} tokens so far"
    step_talk: str = "Talk for three turns"
    step_fold: str = "They are summarised at the length you set"
    step_sent: str = "From then on the model reads the summary; your words stay here, whole"
    turns_left: str = "Turns until the first summary: {count}"
    sample: str = "Example"
    sample_text: str = "The launch is on October 14 and Min-su is in charge. The data is copied first."
    fold_due: str = "A summary is due. It's used as soon as it's ready."
    fold_retry: str = "The summary couldn't be made. It's tried again after the next answer."
    no_records: str = "No summary yet."
    no_records_since_reset: str = "No summary since the fresh start."
    no_record_notes: Mapping[str, str] = field(
        default_factory=lambda: {
            "rolling": "Once more than {threshold} tokens aren't summarised, one is made after an answer.",
            "compaction": "At {threshold} tokens of context, all but the last messages become one.",
        }
    )
    compact_by_hand: str = "Automatic compaction is off. Type `/compact` to compact."
    window_turns: str = "This strategy makes and sends no summaries. Only the newest turns are sent: {count} at most."
    window_alone: str = "This strategy makes and sends no summaries. Only the message itself is sent."
    card_title: str = "[Turns {turns}]"
    card_rate: str = "rate {rate}"
    card_chars: str = "{original} → {summary} chars ({percent}% of the original length)"
    card_row: str = "[Turns {turns}] {original} → {summary} chars"
    card_chars_verbatim: str = "{original} chars · word for word"
    card_row_verbatim: str = "[Turns {turns}] {original} chars · word for word"
    card_compaction: str = "[Turns {turns} compacted]"
    card_merged: str = "{count} summaries merged into one"
    card_version: str = "v{version}"
    summarisers: Mapping[str, str] = field(
        default_factory=lambda: {"extractive": "key sentences", "example": "written for this chat"}
    )
    to_turns: str = "Go to these turns"
    card_cost: str = "{input} in · {output} out tokens · {seconds} s · {model}"
    card_free: str = "0 tokens · {model}"
    kept_verbatim: str = "Too short to shrink: kept word for word."
    was_shortened: str = "Longer than asked for: the sentences that weigh least were left out."
    was_picked: str = "The summary model gave nothing usable in time: sentences were picked from the original."
    facts_kept: str = "{kept} of {all} facts kept"
    facts_missing: str = "Missing"
    facts_present: str = "Kept"
    show_more: str = "Show more"
    show_less: str = "Show less"
    older_records: str = "Older summaries: {count}"
    more_records: str = "Show {count} more"
    earlier_compactions: str = "Earlier compactions: {count}"
    statistics: str = "📊 Summary statistics"
    stat_count: str = "Summaries: {count} ({turns} turns folded)"
    stat_chars: str = "Original: {original} → summary: {summary} chars"
    stat_saved: str = "Overall: {percent}% saved ({length_percent}% of the original length)"
    stat_grown: str = "Overall: {percent}% larger ({length_percent}% of the original length)"
    stat_unsent: str = "Tokens not sent: {tokens}"
    stat_fold_cost: str = "Tokens spent on summaries: {tokens}"
    stat_net: str = "Net savings: {tokens} tokens"
    stat_net_note: str = "≈ is our estimate. Without it, the model provider reported the number."
    stat_nothing: str = "No summary yet. Once turns are summarised or left out, this shows what it saves."
    chart_title: str = "Tokens sent per turn"
    chart_note: str = "≈ Token counts are estimates."
    chart_turn: str = "Turn"
    chart_tokens: str = "Tokens (≈)"
    chart_sent: str = "Sent"
    chart_full: str = "Full history"
    chart_fold: str = "Summary"
    chart_empty: str = "The chart appears after the next answer."
    chart_alt: str = (
        "Tokens sent and tokens of the full history per turn (estimates). Turn {turn}: sent {sent}, full {full}."
    )
    gauge: str = "Context"
    gauge_help_estimate: str = "≈ is our own estimate of the last input."
    gauge_help_usage: str = "The model provider reported this usage for the last input."

    cost: CostWords = field(default_factory=CostWords)
    project: ProjectWords = field(default_factory=ProjectWords)
    attachment: AttachmentWords = field(default_factory=AttachmentWords)
    input: InputWords = field(default_factory=InputWords)
    programs: ProgramWords = field(default_factory=ProgramWords)
    sessions: SessionWords = field(default_factory=SessionWords)
    sign_in: SignInWords = field(default_factory=SignInWords)
    steering: SteeringWords = field(default_factory=SteeringWords)
    errors: Mapping[str, str] = field(default_factory=lambda: ERRORS)
    input_reasons: Mapping[str, str] = field(default_factory=lambda: INPUT_REASONS)
    path_reasons: Mapping[str, str] = field(default_factory=lambda: PATH_REASONS)
