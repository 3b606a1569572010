"""The page's texts on a project, its memory and its rules, with English defaults; `word_project_ko` has the Korean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ProjectWords:
    """Texts in one language. Names in braces are placeholders that the caller fills in.

    Attributes:
        primed_kinds: What a line of the first card is, by its kind.
        rule_kinds: When a rule applies, by its kind.
        rule_problems: Why a rule isn't applied, by its problem; `Words.path_reasons` says why a file wasn't read.
        rule_limits: What wasn't read, by the limit that was exceeded.
    """

    choice: str = "Project"
    none: str = "No project"
    below: str = "Folder below it"
    below_hint: str = "the folder itself"
    choice_note: str = "A new chat in a project starts with its plan, its decisions and its open files."
    without_memory: str = "Start without memory"

    tab: str = "Project"
    title: str = "📁 Project"
    not_chosen: str = "No project is chosen. The advanced settings have the choice."
    edit: str = "Edit"
    forget: str = "Forget"
    primed: str = "A new chat is told ≈{tokens} tokens of this."
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
    switch: str = "Switch to it"
    switch_note: str = "With a switch, the running summary begins anew with the plan's description."
    is_done: str = "done"
    is_active: str = "in progress"
    tasks: str = "Tasks"
    no_tasks: str = "No tasks are open."
    new_task: str = "New task"
    start_task: str = "Start"
    complete: str = "Complete"
    complete_of: str = "Complete: {text}"
    done_tasks: str = "Completed tasks: {count}"
    reopen: str = "Open again"

    decisions: str = "Decisions"
    no_decisions: str = "No decisions yet."
    new_decision: str = "New decision"
    edit_decision_note: str = "The new text replaces this decision. The old one stays below, folded away."
    replaced_decisions: str = "Replaced decisions: {count}"

    files: str = "Open files"
    no_files: str = "No open files."
    gone: str = "not there any more"
    new_file: str = "Note a file"
    file_path: str = "Path in the project"
    close_file: str = "Close"
    close_file_of: str = "Close: {text}"

    summary: str = "Running summary"
    no_summary: str = "No summary yet. It is made from what was said once that gets long."
    summary_limit: str = "{count} characters at most"

    snapshots: str = "Snapshots: {count}"
    no_snapshots: str = "No snapshots yet. One is taken every 30 minutes while something changes."
    restore: str = "Restore"
    restore_question: str = "Return to {time}? What stands now is kept as a snapshot."
    damaged: str = "{file} of the project's memory is damaged, so nothing is read from it or written to it."
    damaged_offer: str = "You can return to the newest snapshot. The damaged file is kept under another name."
    damaged_no_snapshot: str = "There is no snapshot to return to. Repair the file or move it away."
    vanished: str = "It isn't there any more."

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
    rule_kinds: Mapping[str, str] = field(
        default_factory=lambda: {
            "always": "always",
            "globs": "for matching files",
            "described": "when the model looks it up",
            "listed": "never by itself",
        }
    )
    rule_problems: Mapping[str, str] = field(
        default_factory=lambda: {
            "not_closed": "Not applied: the front matter isn't closed by `---`.",
            "not_a_line": "Not applied: a line of the front matter isn't a name and a value.",
            "twice": "Not applied: a name stands twice in the front matter.",
            "bad_description": "Not applied: `description` has to be one line.",
            "bad_globs": "Not applied: `globs` can't be read, or there are more than 128 of them.",
            "bad_always_apply": "Not applied: `alwaysApply` has to be `true` or `false`.",
        }
    )
    rule_refused: str = "Not read: {reason}"
    rule_limits: Mapping[str, str] = field(
        default_factory=lambda: {
            "files": "There are more than 64 rules files. The others aren't read.",
            "folders": "There are more than 200 folders of rules. The others aren't looked into.",
        }
    )

    suggestions: tuple[str, ...] = ("What is the task now?", "What was decided last?")
    card_title: str = "This chat starts knowing the following"
    card_begun: str = "This chat started knowing the following"
    card_note: str = "It may be out of date. What you say wins."
    card_rules: str = "There are rules that aren't used until you agree, in the Project tab."
    card_fresh: str = "This chat starts without the project's memory."
    card_was_fresh: str = "This chat started without the project's memory."
    card_as_sent: str = "Word for word as the model was told"
    card_nothing: str = "Nothing of it was sent with the newest turn."
    problem: str = "The project's memory or its rules weren't used in full."
    with_memory: str = "Start with memory"
    age_today: str = "today"
    age_yesterday: str = "yesterday"
    age_days: str = "{days} days ago"
    undated: str = "no date"
    is_old: str = "old"
    older_decisions: str = "Older decisions that aren't listed: {count}"
    forget_dialog: str = "Forget what was last said"
    primed_kinds: Mapping[str, str] = field(
        default_factory=lambda: {
            "project": "Project",
            "plan": "Plan",
            "task": "Task",
            "decision": "Decision",
            "file": "Open file",
            "summary": "Summary",
            "message": "Last said",
            "user": "You",
            "assistant": "Answer",
        }
    )
