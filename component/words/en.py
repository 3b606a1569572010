"""Every text of the page, a field each, with English defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

_REASONS: Final[Mapping[str, str]] = {
    "bad_image": "This can't be read as a picture. PNG, JPEG, WebP and GIF are supported.",
    "busy": "The server is reading other files right now. Attach it again in a moment.",
    "damaged": "This file is damaged and can't be read.",
    "empty": "This file is empty.",
    "encrypted": "This file has a password. Save it without one first.",
    "hwp": "HWP documents can't be read. Save it as a PDF and attach that.",
    "kind": "Only text files (Markdown, code, CSV, logs …), PDF, .docx, .xlsx, .pptx and pictures can be attached.",
    "lost": "The attached files are gone. Attach them again, then send the message.",
    "no_text": "This PDF has no text, only pictures of pages.",
    "not_text": "This isn't a text file, or its encoding isn't known. Save it as UTF-8.",
    "old_office": "This is an old Office format. Save it as .docx, .xlsx or .pptx and attach that.",
    "too_heavy": "Reading this file takes too much time or memory.",
    "too_large": "This file is larger than 10 MB.",
    "too_long": "The text of this file is longer than a message may be. Attach a part of it.",
    "too_many": "A message takes at most 10 files.",
    "too_many_images": "A message takes at most 8 pictures.",
    "too_many_pages": "This PDF has more than 500 pages. Attach a part of it.",
    "too_many_pixels": "This picture has too many pixels to be opened. Save it smaller first.",
    "upload": "This file couldn't be sent to the server. Attach it again.",
}


class AttachmentWords(NamedTuple):
    attach: str = "Attach files"
    drop: str = "Drop files to attach them to your next message"
    reading: str = "Reading the files…"
    remove: str = "Remove {name}"
    chip: str = "{name} · {chars} chars"
    partial: str = "⚠️ not all of it could be read"
    kept: str = "These files go with the next message:"
    enlarge: str = "Enlarge {name}"
    picture: str = "Picture"
    picture_gone: str = "This picture is no longer stored, or can't be shown."
    cut: str = "Only the beginning is shown. The model is sent all {chars} characters."
    reasons: Mapping[str, str] = _REASONS


class QueueWords(NamedTuple):
    name: str = "Messages to send"
    waits: str = "Sent when the answer is done"
    held: str = "Not sent: the answer before it failed"
    send: str = "Send now"
    edit: str = "Edit message"
    back: str = "Move back to the message box"


class CostWords(NamedTuple):
    title: str = "💰 Cost"
    of_session: str = "This chat: {amount}"
    of_summaries: str = "Its summaries alone: {amount}"
    of_all: str = "All chats: {amount}"
    unpriced: str = "+ calls without a price: {count}"
    estimate: str = (
        "≈ is our estimate: the model provider didn't report all tokens, or summaries are counted without its cache."
    )
    less: str = "Cost down by {amount}"
    more: str = "Cost up by {amount}"
    saved_note: str = (
        "Where the provider has a cache, tokens that weren't sent count at the price of cached ones: nearly all of "
        "them would have been read there."
    )


ERRORS: Final[Mapping[str, str]] = {
    "internal": "Something unexpected went wrong. The server's log has the details.",
    "closing": "The server is shutting down. Reload the page once it's back.",
    "settings": "A setting has an invalid value.",
    "input": "This input isn't accepted.",
    "path": "This path can't be used.",
    "attachment": "This file can't be attached.",
    "not_found": "Chat not found. It was deleted, or the address is wrong.",
    "sign_in": "You're signed out. Reload the page to sign in.",
    "busy": "An answer is still being written. Send when it's done, or stop it.",
    "server_busy": "The server is busy right now. Please send it again in a moment.",
    "user_busy": (
        "You have as many answers under way as one user may have at once. Please send it again when one of them has "
        "ended."
    ),
    "turn_rate": "That's too many messages within a minute. Please send it again in a little while.",
    "user_rate": "You've reached this server's per-minute limit. Please send it again shortly.",
    "user_tokens": "Your tokens for today are used up. The limit resets at midnight UTC.",
    "stopped": "Stopped.",
    "store": "The chat couldn't be stored.",
    "database": "The database refused the request.",
    "not_a_database": "The database file is damaged or isn't a database.",
    "newer_database": "A newer version wrote this database. Please update Turnfold.",
    "older_database": (
        "A version that is too old wrote this database. Export its chats with that version (make export TO=file) and "
        "import them into a new one with this version (make import FROM=file)."
    ),
    "database_busy": "The database is locked by another process. Please try again in a moment.",
    "database_unreachable": "The database can't be reached right now. Please try again in a moment.",
    "disk_full": "The disk is full.",
    "lease_lost": "Another server has taken over this chat. Reload and try again.",
    "file_access": "A file that is kept for this project couldn't be read or written.",
    "project": "The project's memory can't be read or written.",
    "project_busy": "Something else is writing the project's memory. Please try again in a moment.",
    "project_damaged": "A file of the project's memory is damaged. The Project tab says how to go on.",
    "project_newer": "A newer version wrote this project's memory. Please update Turnfold.",
    "model": "The model couldn't be called.",
    "authentication": (
        "The API key is missing or wrong. Put it into `.env` as `OPENAI_API_KEY` and restart the server."
    ),
    "access_denied": "This key may not use this model.",
    "model_missing": "There is no model of this name. Choose another one at the model's name above the message box.",
    "rate_limit": "The provider refused: too many requests for now. Please try again in a moment.",
    "quota": "The account at the model provider has no credit left.",
    "context_length": "The question and all that goes with it are longer than the model's context window. "
    "Shorten the question, compact the chat with `/compact`, or choose a model with a larger window.",
    "unreachable": "The model's server can't be reached. Is it running?",
    "deadline": "The answer didn't finish in time.",
    "silence": "The model's server went silent.",
    "cut_stream": "The answer broke off in the middle.",
    "empty_answer": "The model sent an empty answer.",
    "thought_limit": "The model used all its tokens for thinking and had none left for an answer.",
    "refused": "The model refused to answer.",
    "no_images": (
        "This model takes no pictures. Choose another model above the message box and retry: the message and its "
        "pictures are kept."
    ),
    "bad_response": "The model's server sent a reply that can't be read.",
    "tools_refused": "This model takes no tools.",
    "provider": "The model's server failed.",
    "tool_rounds": "The model kept calling tools and gave no answer.",
    "interrupted": "The server stopped while it was answering. What had arrived by then is kept.",
    "expired": "A summary wasn't finished in time.",
    "summary_empty": "The summary model's answer was empty.",
    "summary_short": "The summary was too short to hold anything.",
    "summary_language": "The summary wasn't in the language of the user's words.",
    "summary_copy": "The summary was a copy of the original.",
    "summary_answer": "The summary model answered the chat instead of summarising it.",
    "summary_markup": "The summary had marks of the request in it.",
    "summary_repetition": "The summary repeated itself.",
    "summary_lacking": "The summary lost too much of what the user said.",
    "summary_inflated": "The summary wasn't shorter than the original.",
}
DETAILED_ERRORS: Final[Mapping[str, str]] = {
    "unreachable": "Can't reach `{detail}`. Is the model server running?",
    "deadline": "Stopped after {detail} s (MODEL_DEADLINE_SECONDS); what had arrived is kept.",
    "silence": "The model's server was silent for {detail} s (MODEL_SILENCE_SECONDS); what had arrived is kept.",
}
INPUT_REASONS: Final[Mapping[str, str]] = {
    "over_guessed_window": "This one message is longer than the model's context window. The window is a guess: if it's "
    "larger, set `MODEL_WINDOW_TOKENS`; otherwise, please send the message in parts.",
    "over_window": "This one message is longer than the model's context window. Please send it in parts.",
    "nothing_to_compact": "The chat isn't long enough to compact.",
    "reset_words": "/reset takes no text after it, so nothing was sent. Type /reset alone to clear the context.",
    "instructions_too_long": "These instructions are too long. Please shorten them.",
    "no_effect": "The chosen strategy sends only the newest turns, so compacting changes nothing.",
    "compact_stopped": "Compacting was stopped. Nothing has changed.",
    "compact_failed": "No shorter summary could be made. Please try again in a moment.",
    "not_active": "This summary has been replaced by another one in the meantime. Look at it again.",
    "remake_failed": "No other summary could be made. The current one stays.",
    "stands_verbatim": "Already sent verbatim.",
    "before_reset": "This message came before the context was cleared, so it's no longer sent to the model.",
    "pin_budget": "Too long to pin: ≈{} tokens, {} left.",
    "not_shorter": "A summary has to be shorter than its original.",
    "not_a_compaction": "This compaction can't be restored.",
    "empty": "There is no text.",
    "bad_program_name": "A name has 1 to 32 visible characters.",
    "token_name_taken": "There is already a program with this name. Choose another name.",
    "too_many_tokens": "There are too many programs. Revoke one that is no longer used.",
    "bad_image": "Images have to be sent in the message or by an https address of a public host.",
    "too_long": "That's too long. Please send it in parts.",
    "unknown_call": "This answers no tool call that is still open.",
    "unanswered_call": "An open tool call has no answer yet.",
    "context_not_kept": "The setting CONTEXT_VOLATILE has each message bring its own context: none is kept.",
    "bad_context": "The context of a request consists of names and texts.",
    "project_full": "The project's memory has no room for more of this kind.",
    "rules_changed": "The rules have changed since they were shown. Look at them again.",
    "secret": "This looks like a secret, so it isn't stored.",
    "bad_rate": "The summary length must be between 0.1 and 0.5.",
    "bad_strategy": "There is no summary strategy of this name.",
    "no_images": (
        "This model takes no pictures, so nothing was sent. Choose another model above the message box, or remove "
        "the pictures."
    ),
    "no_reset": "This can no longer be undone: the chat has gone on since.",
    "not_an_export": "This isn't an exported chat.",
    "import_too_large": "This file is too large to be imported here.",
    "not_last": "Only the last turn can be retried.",
}
PATH_REASONS: Final[Mapping[str, str]] = {
    "not_allowed": "This folder isn't among the projects that the server's administrator allows.",
    "outside": "This path leads out of the project.",
    "symlink_outside": "A symbolic link leads out of the project.",
    "not_regular": "This isn't a regular file.",
    "not_a_folder": "This isn't a folder.",
    "too_large": "This is too large to be read.",
    "too_slow": "Reading took too long.",
    "binary": "This isn't a text file.",
    "unreadable": "The server can't read this.",
    "vanished": "This doesn't exist, or it was replaced while it was being read.",
}


class InputWords(NamedTuple):
    tab: str = "Model input"
    nothing: str = "After the first answer, this shows what the model was sent, block by block."
    not_called: str = "No model was called in this turn, so there is nothing to show."
    newest: str = "Latest request"
    in_turn: str = "Sent in turn {turn}"
    choose_call: str = "Call"
    call: str = "Call {number} of {count}"
    call_again: str = "Attempt {attempt}, call {number}"
    call_by_tool: str = "{call} · by the tool `reasoning`"
    call_failed: str = "{call} · failed"
    sent: str = "Sent in turn {turn}"
    bar: str = "Sent: about {sent} tokens. The full history: about {full}. {blocks}."
    cacheable: str = "≈{tokens} cacheable ({percent}%)"
    cacheable_help: str = "Unchanged since the previous request, so the provider can cache it."
    saved: str = "{percent}% less than the full history"
    grown: str = "{percent}% more than the full history"
    reported: str = "The provider reported {tokens} tokens"
    reported_cached: str = "The provider reported {tokens} tokens, {cached} of them from its cache"
    verified: str = "Verified: exactly what was sent."
    unverified: str = "This couldn't be rebuilt as it was sent: the stored hash differs. What is known is shown."
    groups: Mapping[str, str] = {
        "system": "System prompt",
        "own": "My instructions",
        "layers": "Standing context",
        "records": "Summaries: {count}",
        "pins": "Pinned messages: {count}",
        "tools": "Tool descriptions",
        "note": "Section headings",
        "raw": "Verbatim turns: {count}",
        "volatile": "Context of this turn",
        "current": "Current turn {turn}",
        "call": "Tool's question",
    }
    roles: Mapping[str, str] = {"user": "User", "assistant": "Assistant", "tool": "Tool", "": "Text"}
    contexts: Mapping[str, str] = {
        "front": "Project and rules",
        "client": "Instructions of the program",
        "volatile": "Context",
        "before": "Messages of the program",
    }
    turn: str = "Turn {turn}"
    gone: str = "Its text is no longer stored."
    no_schema: str = "Only their size is known: they aren't this version's, or a program brought its own."
    same_words: str = "These words are always the same. Only their size is stored."
    tools: str = "Tools: {count}"
    request_gone: str = "Too little of this request is stored to rebuild it."
    request_of_program: str = (
        "A program asked here. The tools and parameters that it added aren't stored and are missing."
    )
    request_without_tools: str = "The tools are missing: they aren't those of this version."
    request_rest: str = (
        "The rest reflects the current settings. The key isn't shown; it goes in a header of the request."
    )
    request_embedded: str = "The embedded model ran on this server; nothing was sent over a network."
    request_cut: str = "The file has all of it; this is the beginning."
    request_file: str = "Save as JSON"
    lost: str = "Cache invalidated by summaries: {tokens}"
    history: str = "Full history, turn by turn"
    history_more: str = "Show earlier turns"
    ways: Mapping[str, str] = {
        "record": "as a summary",
        "raw": "verbatim",
        "current": "current turn",
        "none": "not sent",
    }


class ProgramWords(NamedTuple):
    choose: str = "API access"
    title: str = "Programs with access to your chats"
    note: str = "Give a program its token as the API key: it can then read your chats and continue them."
    address: str = "Its base URL is `{address}`."
    unused: str = "Created on {made} · not used yet"
    used: str = "Created on {made} · last used on {used}"
    without_tools: str = "without tools"
    some_tools: str = "tools: {tools}"
    withdraw: str = "Revoke"
    withdraw_question: str = "“{name}” is refused from its next request on. Its chats stay here."
    new: str = "New program"
    tools: str = "Allow server tools"
    make: str = "Create a token"
    made: str = "The token of “{name}”. Copy it now: it can't be shown again."
    copy: str = "Copy the token"


class ProjectWords(NamedTuple):
    """Texts in one language. Names in braces are placeholders filled in by the caller."""

    none: str = "No project"
    below: str = "Subfolder"
    below_hint: str = "this folder"
    choice_note: str = "A new chat in a project starts with its plan, its decisions and its open files."
    without_memory: str = "Start without memory"

    tab: str = "Project"
    not_chosen: str = "No project selected. Choose one:"
    forget: str = "Forget"
    primed: str = "A new chat knows ≈{tokens} tokens of this."
    primed_nothing: str = (
        "Nothing is noted yet. Plans, tasks and decisions can be added here, or by the model in a chat."
    )

    plan: str = "Plan"
    no_plan: str = "No plan is active."
    new_plan: str = "New plan"
    plan_title: str = "Title"
    plan_description: str = "What it is about"
    plan_done: str = "Complete the plan"
    forget_plan_question: str = "Forget the plan “{text}” and all its tasks? This can't be undone."
    other_plans: str = "Other plans: {count}"
    switch: str = "Switch"
    switch_note: str = "After a switch, the running summary starts over from the plan's description."
    is_done: str = "done"
    is_active: str = "in progress"
    tasks: str = "Tasks"
    no_tasks: str = "No tasks are open."
    new_task: str = "New task"
    start_task: str = "Start"
    complete: str = "Complete"
    complete_of: str = "Complete: {text}"
    done_tasks: str = "Completed tasks: {count}"
    reopen: str = "Reopen"

    decisions: str = "Decisions"
    no_decisions: str = "No decisions yet."
    new_decision: str = "New decision"
    edit_decision_note: str = "The new text replaces this decision. The old one is kept below."
    replaced_decisions: str = "Replaced decisions: {count}"

    files: str = "Open files"
    no_files: str = "No open files."
    gone: str = "no longer there"
    new_file: str = "Add a file"
    file_path: str = "Path in the project"
    close_file_of: str = "Close: {text}"

    summary: str = "Running summary"
    no_summary: str = "No summary yet. One is made once the conversation gets long."
    summary_limit: str = "{count} characters at most"

    snapshots: str = "Snapshots: {count}"
    no_snapshots: str = "No snapshots yet. One is taken every 30 minutes while something changes."
    restore: str = "Restore"
    restore_question: str = "Restore {time}? The current state is saved as a snapshot first."
    damaged: str = "{file} of the project's memory is damaged, so nothing is read from it or written to it."
    damaged_offer: str = "Restore the newest snapshot or start over. The damaged file is kept under another name."
    damaged_no_snapshot: str = "There is no snapshot to restore. Repair the file or start over."
    start_over: str = "Start over"
    start_over_question: str = "Start with an empty memory? Both files stay in `.ai-brain`, as `damaged-…`."
    vanished: str = "It's already gone."

    rules: str = "Rules"
    no_rules: str = "There are no rules files in this folder, such as `AGENTS.md`."
    rules_new: str = "These rules aren't used until you agree."
    rules_changed: str = "The rules have changed. The old ones are used until you agree."
    rules_agreed: str = "In use, as agreed on {date}."
    use_rules: str = "Use these rules"
    difference: str = "What has changed"
    rule_size: str = "{size} · {sent} sent"
    rule_unsent: str = "{size} · not sent"
    rule_cut: str = "{left} of {size} left out: there is no room for more."
    rule_comments: str = "Comments left out: {count}"
    rule_invisible: str = "Invisible characters left out: {count}"
    rule_bad: str = "Places that aren't text: {count}"
    rule_imports: str = "Imports not followed: {count}"
    rule_kinds: Mapping[str, str] = {
        "always": "always",
        "globs": "for matching files",
        "described": "when the model looks it up",
        "listed": "never by itself",
    }
    rule_problems: Mapping[str, str] = {
        "not_closed": "Not applied: the front matter isn't closed by `---`.",
        "not_a_line": "Not applied: a line of the front matter isn't a name and a value.",
        "twice": "Not applied: a name occurs twice in the front matter.",
        "bad_description": "Not applied: `description` has to be one line.",
        "bad_globs": "Not applied: `globs` can't be read, or there are more than 128 of them.",
        "bad_always_apply": "Not applied: `alwaysApply` has to be `true` or `false`.",
    }
    rule_refused: str = "Not read: {reason}"
    rule_limits: Mapping[str, str] = {
        "files": "There are more than 64 rules files. The others aren't read.",
        "folders": "There are more than 200 folders of rules. The others aren't looked into.",
    }

    suggestions: tuple[str, ...] = ("What is the task now?", "What was decided last?")
    card_title: str = "This chat starts knowing the following"
    card_origin: str = "This chat started knowing the following"
    card_note: str = "It may be out of date. What you type now takes precedence."
    card_rules: str = "There are rules that aren't used until you agree, in the Project tab."
    card_fresh: str = "This chat starts without the project's memory."
    card_was_fresh: str = "This chat started without the project's memory."
    card_as_sent: str = "Exactly as the model was told"
    card_nothing: str = "Nothing of it was sent with the newest turn."
    problem: str = "The project's memory or its rules weren't used in full."
    with_memory: str = "Start with memory"
    age_today: str = "today"
    age_yesterday: str = "yesterday"
    age_days: str = "{days} days ago"
    undated: str = "no date"
    is_old: str = "old"
    older_decisions: str = "Older decisions that aren't listed: {count}"
    forget_dialog: str = "Forget the last exchange"
    primed_kinds: Mapping[str, str] = {
        "project": "Project",
        "plan": "Plan",
        "task": "Task",
        "decision": "Decision",
        "file": "Open file",
        "summary": "Summary",
        "message": "Last exchange",
        "user": "You",
        "assistant": "Answer",
    }


class SessionWords(NamedTuple):
    regenerate: str = "Regenerate in a branch"
    edit: str = "Edit this question"
    question: str = "Your question"
    edit_note: str = "It's asked in a new branch. This chat stays as it is."
    ask_in_branch: str = "Ask in a branch"
    previous_answer: str = "Previous answer"
    next_answer: str = "Next answer"
    use_answer: str = "Use this answer"
    use_answer_hint: str = "Use this answer from your next message on"
    previous_question: str = "Question in the previous branch"
    next_question: str = "Question in the next branch"
    branch_of: str = "Branch of “{title}”, the same up to turn {turn}."
    branch_of_all: str = "Branch of “{title}”, from its first turn on."
    to_origin: str = "Open the original chat"

    pinned: str = "Pinned"
    pin: str = "Pin"
    unpin: str = "Unpin"
    fork: str = "Branch into a new chat"

    select: str = "Select"
    delete_ticked: str = "Delete ({count})"
    deleted_one: str = "“{title}” deleted"
    deleted: str = "Chats deleted: {count}"

    export: str = "Export"
    export_title: str = "Export this chat"
    as_markdown: str = "Markdown (for reading)"
    as_json: str = "JSON Lines (complete, can be re-imported)"
    open_file: str = "Import a chat"
    opened: str = "Chats imported: {count}"
    json_note: str = "JSON Lines holds every answer and summary, and can be re-imported here."
    json_too_large: str = (
        "This JSON Lines file has {size}. More than {limit} can't be re-imported here; the server's operator can read "
        "it with `python -m graph.admin import FILE`."
    )
    without_images: str = "JSON Lines without pictures: {without} instead of {whole}"


class SignInWords(NamedTuple):
    title: str = "Sign in to Turnfold"
    needed: str = "Your chats are yours alone. Sign in to see them."
    ended: str = "Your session has ended. Sign in again to go on; everything you wrote is kept."
    withdrawn: str = "This account no longer has access. Ask whoever runs this server."
    sign_in: str = "Sign in"
    elsewhere: str = "Signing in works at this page's own address."
    go_there: str = "Go there"
    signed_in: str = "Signed in"
    sign_out: str = "Sign out"
    more: str = "More ways to sign out"
    everywhere: str = "Sign out everywhere"
    everywhere_title: str = "Sign out everywhere?"
    everywhere_question: str = (
        "You will be signed out in every browser and on every device where you are signed in, this one included."
    )
    everywhere_note: str = (
        "Answers under way are finished. Programs keep working with their tokens; revoke those under “API access” in "
        "the advanced settings."
    )


class SteeringWords(NamedTuple):
    menu: str = "Options for the summary of turns {turns}"
    edited: str = "edited"
    in_force: str = "in use"
    from_next_turn: str = "Takes effect with your next message. The chat and all earlier versions are kept."

    edit: str = "Edit"
    edit_title: str = "Edit this summary"
    summary: str = "Summary of turns {turns}"
    edit_done: str = "The summary of turns {turns} was edited."

    remake: str = "Regenerate…"
    remake_title: str = "Regenerate this summary"
    instruction: str = "What it should keep (optional)"
    instruction_hint: str = "For example: keep the prices"
    make: str = "Regenerate"
    making: str = "Regenerating the summary of turns {turns}…"
    remake_done: str = "The summary of turns {turns} was regenerated: {before} → {after} chars."
    still_making: str = "A summary is being made. Please try again when it's done."

    versions: str = "Versions"
    versions_title: str = "Versions of this summary"
    other_version: str = "Compare with the one in use"
    version: str = "v{version} · {about} · {summary} chars"
    version_verbatim: str = "verbatim"
    only_here: str = "Only here: "
    change_ends: str = " (end) "
    same_text: str = "The texts are the same."
    not_compared: str = "What differs isn't marked: comparing texts that repeat themselves this often takes too long."
    only_version: str = (
        "There is no other version yet. Edit or regenerate this one to compare and restore versions here."
    )
    close: str = "Close"
    use: str = "Use this version"
    use_done: str = "Version {version} of the summary of turns {turns} is in use."

    undo_fold: str = "Unfold"
    undo_fold_done: str = "Turns {turns} are sent verbatim again."
    unmerged: str = "The summary of turns {turns} was split back into the {count} summaries it came from."
    undone: str = "Unfolded: sent verbatim."
    fold_again: str = "Fold again"
    fold_again_done: str = "Turns {turns} are folded again."
    fact_added: str = "Added to the summary of turns {turns}."

    pin: str = "Pin this message"
    pin_hint: str = "Always send this message verbatim"
    pins: str = "Pinned messages: {count} · ≈{used} of {budget} tokens"
    pins_unsent: str = "The chosen strategy sends only the newest turns, so pins aren't sent beside them."
    pins_over: str = "Not sent, as this model's window has no room: {count} of the pinned messages."
    pin_unsent: str = "not sent"
    pin_tokens: str = "≈{tokens} tokens"

    rates: str = "target {target} → achieved {achieved}"
    dense_rates: str = "{target} asked, {needed} needed: many facts → achieved {achieved}"
    tokens: str = "≈{before} → ≈{after} tokens"


Language = Literal["ko", "en"]
LANGUAGES: tuple[Language, ...] = ("ko", "en")
LANGUAGE_NAMES: Mapping[Language, str] = {"ko": "한국어", "en": "English"}


class Suggestion(NamedTuple):
    icon: str
    text: str


class Words(NamedTuple):
    """The page's texts in one language. Names in braces are placeholders filled in by the caller.

    `errors` has the sentences by `code` of `graph.value.error`, `detailed_errors` those with a detail in them;
    `input_reasons` and `path_reasons` by `reason`.
    """

    language: Language = "en"

    new_chat: str = "New chat"
    search_chats: str = "Search chats"
    no_chats: str = "No chats yet."
    no_match: str = "No chat matches."
    program: str = "Program: {name}"
    started_by_program: str = (
        "The program “{name}” began this chat. You can go on with it here, and so can the program."
    )
    found_in_turn: str = "Turn {turn}: {text}"
    found_in_turns: str = "{count} turns · turn {turn}: {text}"
    skip_to_chat: str = "Skip to the chat"
    skip_to_field: str = "Skip to the message box"
    skip_to_panel: str = "Skip to the panel"
    find: str = "Find in this chat"
    find_close: str = "Close search"
    find_previous: str = "Previous"
    find_next: str = "Next"
    find_none: str = "No matches"
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
    undo: str = "Undo"
    save: str = "Save"
    instructions_all: str = "My instructions, all chats"
    instructions_chat: str = "My instructions, this chat"
    instructions_saved: str = "Saved. Takes effect with your next message."
    instructions_help: str = (
        "Sent with every chat from your next message on, except in chats that a program began through the API."
    )
    cancel: str = "Cancel"

    settings: str = "⚙️ Advanced settings"
    rate: str = "Summary length"
    rate_help: str = "Lower makes summaries shorter, higher keeps more detail"
    rate_short: str = "0.1 short"
    rate_balanced: str = "0.3 balanced"
    rate_detailed: str = "0.5 detailed"
    change_rate: str = "Change"
    rate_note: str = "A change applies from the next summary on."
    rate_unused: str = "This strategy doesn't use this setting."
    rate_share: str = "{percent}% of the original"
    strategy: str = "Summary strategy"
    strategies: Mapping[str, str] = {
        "interval": "Every 3 turns",
        "rolling": "One running summary",
        "compaction": "Compact when full",
        "window": "Newest turns only",
    }
    strategy_notes: Mapping[str, str] = {
        "interval": "Folds every three turns into a summary; old summaries are merged.",
        "rolling": "Keeps one running summary and sends it with the latest messages.",
        "compaction": "When the context fills up, all but the last messages become one structured summary.",
        "window": "Sends only the last {count} turns. Older ones stay visible, but the model doesn't see them.",
    }
    compact_now: str = "Compact now"
    compacting: str = "Compacting…"
    compacted: str = "{before} → {after} messages, ≈{tokens_before} → ≈{tokens_after} tokens ({percent}% less)"
    reset_divider: str = "Context cleared: the model doesn't see the messages above. Your chat stays visible."
    command_needs_chat: str = "Start a chat first."
    restore_help: str = (
        "Undoes this compaction: what it replaced is sent again from the next turn on. "
        "It isn't compacted again by itself until the chat has grown."
    )
    commands: Mapping[str, str] = {
        "compact": "Compact the chat now",
        "reset": "Clear the context: the chat stays visible, but the model no longer sees it",
        "help": "Show commands and shortcuts",
    }
    unknown_command: str = "There is no command {command}. Did you mean {nearest}? Send again to send it as text."
    model: str = "Model"
    model_offline: str = "{name} · built in"
    language_label: str = "Language"
    theme: str = "Theme"
    themes: Mapping[str, str] = {"system": "System", "light": "Light", "dark": "Dark"}
    no_model: str = "No model"
    no_model_list: str = (
        "No list of models from `{address}`: {reason} Check `OPENAI_BASE_URL` in `.env` and restart the server."
    )
    model_window: str = "Context window"
    model_tools: str = "Tools"
    model_images: str = "Pictures"
    model_without_tools: str = "No: recall and clock are off"
    is_supported: str = "Yes"
    is_unsupported: str = "No"
    is_unknown: str = "Unknown"
    offline_note: str = (
        "This is the built-in trial model: it answers with what it finds in the chat. For a real AI, put "
        "`OPENAI_API_KEY` or `OPENAI_BASE_URL` into `.env` and restart the server."
    )
    shortcuts_label: str = "Commands and shortcuts"
    shortcut_head: tuple[str, str] = ("Shortcut", "Action")
    shortcuts: tuple[tuple[str, str], ...] = (
        ("Ctrl/⌘ + Shift + O", "New chat"),
        ("/", "Go to the message box"),
        ("Enter", "Send"),
        ("Shift + Enter", "New line"),
        ("Esc", "Stop the answer"),
        ("Ctrl/⌘ + Shift + F", "Find in this chat"),
        ("Ctrl/⌘ + K", "Search chats"),
        ("Ctrl/⌘ + Shift + S", "Open or close the panel"),
        ("Ctrl/⌘ + Shift + ;", "Copy the last answer"),
        ("Alt + ↑ / ↓", "Previous or next question"),
    )

    empty_title: str = "Long chats that keep their thread"
    empty_intro: str = (
        "After every three turns, they're condensed into a summary the model remembers. Your messages stay intact."
    )
    open_example: str = "Open an example chat"
    suggestions: tuple[Suggestion, ...] = (
        Suggestion(":material/event_note:", "Remember: we deploy on October 14"),
        Suggestion(":material/schedule:", "What time is it in Seoul?"),
        Suggestion(":material/unfold_less:", "When and how are summaries made?"),
    )
    earlier: str = "Show earlier ({count} turns)"
    ask: str = "Write a message"
    stop: str = "Stop"
    disconnected: str = "Disconnected from the server. Reconnecting… (Is <code>make run</code> still running?)"
    stopping: str = "Stopping"
    retry: str = "Retry"
    regenerate: str = "Regenerate"
    copy: str = "Copy answer"
    about_answer: str = "About this answer"
    answer_tokens: str = "{input} in · {output} out tokens"
    date: str = "{weekday}, {day} {month} {year}"
    weekdays: tuple[str, ...] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    months: tuple[str, ...] = (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    )
    copy_code: str = "Copy code"
    to_end: str = "Go to the newest message"
    copied: str = "Copied"
    copy_failed: str = "Could not copy"
    footnotes: str = "Footnotes"
    phase_folding: str = "Summarising turns {turns}"
    thinking_level: str = "Thinking"
    thinking_levels: Mapping[str, str] = {"": "As the model does", "off": "Off", "low": "Low", "high": "High"}
    thinking: str = "Thinking …"
    thinking_unit: str = " s"
    thought: str = "Thought for {seconds} s"
    phase_waiting: str = "Waiting"
    phase_attempt: str = "(attempt {attempt} of {most})"
    phase_retry: str = "{reason} · trying again in {time} {attempt}"
    retry_reasons: Mapping[str, str] = {
        "rate_limit": "Rate limit of the model's server",
        "unreachable": "Can't reach the model's server",
        "cut_stream": "The answer broke off",
        "empty_answer": "Empty answer",
        "provider": "Error of the model's server",
    }
    phase_reading: str = "Reading the conversation · {percent}%"
    phase_tool: str = "Using a tool"
    phase_answering: str = "Answering…"
    phase_closing: str = "Saving the answer…"
    tool_used_once: str = "1 tool call"
    tools_used: str = "{count} tool calls"
    tools_failed: str = "{count} failed"
    tool_arguments: str = "Input"
    tool_result: str = "Result"
    tool_seconds: str = "{seconds} s"
    recalled_one: str = "Looked up turn {turns}"
    recalled_some: str = "Looked up turns {turns}"
    recalled_none: str = "Looked up: nothing found"
    recalled_turn: str = "{turn}"
    to_turn: str = "Go to turn {turn}"
    fold_divider: str = "Turns {turns} above are remembered as a summary · {original} → {summary} chars"
    fold_divider_past: str = "Turns {turns} summarised (not sent now) · {original} → {summary} chars"
    fold_divider_verbatim: str = "Turns {turns} kept verbatim · {original} chars"
    fold_divider_compaction: str = "Context compacted · {change}"
    fold_text: str = "What the model sees instead of turns {turns}"
    fold_text_verbatim: str = "Turns {turns} as the model sees them, verbatim"
    fold_text_compaction: str = "What the model sees instead of what was compacted"
    fold_text_past: str = "Turns {turns}: this isn't sent to the model now"
    nearly_full: str = "The context is over 80% full. Type `/compact` to compact it, or `/reset` to clear it."
    full: str = "The context is over its limit. Type `/compact` to compact it, or `/reset` to clear it."
    unsent: str = "{count} messages are neither summarised yet nor sent to the model. They stay in the chat."
    fold_warning: str = (
        "No summary could be made {count} times in a row. From the next turn on, sentences picked from the original "
        "stand in for the summary."
    )
    failed_title: str = "Couldn't get an answer"
    failed_kept: str = "Your message is saved, so you can retry."
    stopped_partial: str = "Stopped. What had arrived so far is kept."
    stopped_empty: str = "Stopped before the answer began."
    client_tools: str = "Waiting for {client} to run these tools. Send a message to stop waiting."
    answer_cut: str = "The answer stopped at the model's length limit. Send “continue” to get the rest."
    answer_repeats: str = "The model began to repeat itself; the answer was stopped."

    panel: str = "Summary panel"
    close_panel: str = "Close panel"
    open_panel: str = "Summaries {count}"
    open_panel_first: str = "Summary in {count} turns"
    open_panel_next: str = "Summary in 1 turn"
    tab_summaries: str = "Summaries"
    tab_statistics: str = "Statistics"
    history: str = "📝 Summary history"
    current_rate: str = "Summary length: {rate}"
    next_by_chars: str = "Next summary: {original} chars so far → about {summary}"
    next_verbatim: str = "Next summary: {original} chars so far · kept verbatim if it stays this short"
    next_by_turn: str = "Next summary after turn {turn} · e.g. {original} → about {summary} chars"
    next_by_tokens: str = "Next summary: ≈{tokens} of {threshold} tokens so far"
    step_talk: str = "Talk for three turns"
    step_fold: str = "They're summarised at the length you set"
    step_sent: str = "From then on the model reads the summary; your messages stay here in full"
    turns_left: str = "Turns until the first summary: {count}"
    sample: str = "Example"
    sample_text: str = (
        "The launch is set for October 14, and Min-su is in charge. The data is copied first, and traffic follows "
        "once it has been checked. The user's rule: no downtime between 9 and 18."
    )
    fold_making: str = "Summarising…"
    fold_waiting: str = "The summary will be made with your next message."
    fold_retry: str = "The summary couldn't be made. It's tried again after the next answer."
    no_records: str = "No summary yet."
    no_records_since_reset: str = "No summary since the context was cleared."
    no_record_notes: Mapping[str, str] = {
        "rolling": "Once more than {threshold} tokens aren't summarised, one is made after an answer.",
        "compaction": "At {threshold} tokens of context, all but the last messages become one.",
    }
    compact_by_hand: str = "Automatic compaction is off. Type `/compact` to compact."
    window_turns: str = "This strategy makes and sends no summaries. Only the newest turns are sent: {count} at most."
    window_alone: str = "This strategy makes and sends no summaries. Only the message itself is sent."
    details: str = "Details"
    card_title: str = "[Turns {turns}]"
    card_verbatim: str = "[Turns {turns}, verbatim]"
    card_ready: str = "Used from your next message"
    card_rate: str = "length {rate}"
    card_chars: str = "{original} → {summary} chars ({percent}% of the original length)"
    card_row: str = "[Turns {turns}] {original} → {summary} chars"
    card_chars_verbatim: str = "{original} chars · verbatim"
    card_row_verbatim: str = "[Turns {turns}] {original} chars · verbatim"
    card_compaction: str = "[Turns {turns} compacted]"
    card_merged: str = "{count} summaries merged into one"
    card_version: str = "v{version}"
    summarisers: Mapping[str, str] = {"extractive": "key sentences", "example": "prepared for this example"}
    to_turns: str = "Go to these turns"
    card_cost: str = "{input} in · {output} out tokens · {seconds} s · {model}"
    card_free: str = "0 tokens · {model}"
    kept_verbatim: str = "Too short to shrink: kept verbatim."
    was_shortened: str = "Longer than asked: the least important sentences were left out."
    was_picked: str = "No summary could be made in time: key sentences of the original are used."
    was_weak: str = "The model's summary lost too much or wasn't one: key sentences of the original are used."
    facts_kept: str = "{kept} of {all} facts kept"
    facts_missing: str = "Missing"
    facts_present: str = "Kept"
    facts_add: str = "Add to the summary"
    facts_invented: str = "Not in the conversation: {facts}. Check the summary and edit it."
    show_more: str = "Show more"
    show_less: str = "Show less"
    unsent_records: str = "Summaries that aren't sent now: {count}"
    older_records: str = "Older summaries: {count}"
    more_records: str = "Show {count} more"
    earlier_compactions: str = "Earlier compactions: {count}"
    statistics: str = "📊 Summary statistics"
    stat_count: str = "Summaries: {count} ({turns} turns folded)"
    stat_chars: str = "Original: {original} → summary: {summary} chars"
    stat_saved: str = "Overall: {percent}% saved ({length_percent}% of the original length)"
    stat_grown: str = "Overall: {percent}% larger ({length_percent}% of the original length)"
    stat_unsent: str = "Input tokens saved: {tokens}"
    stat_fold_cost: str = "Tokens spent on summaries: {tokens}"
    stat_net: str = "Net savings: {tokens} tokens"
    stat_net_more: str = "Net increase: {tokens} tokens"
    prepared: str = "Prepared for this example: nothing was sent to a model."
    stat_net_note: str = "≈ is Turnfold's estimate. Numbers without it were reported by the model provider."
    stat_nothing: str = "No summary yet. Once turns are summarised or left out, this shows what it saves."
    chart_title: str = "Tokens sent per turn"
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
    gauge_help_estimate: str = "≈ is Turnfold's estimate of the next input."
    gauge_help_usage: str = "{tokens}: the model provider reported this usage for the last input."
    window_guess: str = " (guess)"
    window_guess_help: str = "The model's context window isn't known, so this is a guess. MODEL_WINDOW_TOKENS sets it."

    cost: CostWords = CostWords()
    project: ProjectWords = ProjectWords()
    attachment: AttachmentWords = AttachmentWords()
    queue: QueueWords = QueueWords()
    input: InputWords = InputWords()
    programs: ProgramWords = ProgramWords()
    sessions: SessionWords = SessionWords()
    sign_in: SignInWords = SignInWords()
    steering: SteeringWords = SteeringWords()
    errors: Mapping[str, str] = ERRORS
    detailed_errors: Mapping[str, str] = DETAILED_ERRORS
    input_reasons: Mapping[str, str] = INPUT_REASONS
    path_reasons: Mapping[str, str] = PATH_REASONS
