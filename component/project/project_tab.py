"""Draws the panel's project tab: the editable memory and the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from component import dialog, project_choice, redraw, widget
from component.format import escape_label, format_bytes, format_count, zone_of
from component.page_state import PageState
from component.project import project_card, project_form
from component.project.project_form import Field, Part
from graph.value.project_view import DecisionView, PlanView, RuleFileView, TaskView

if TYPE_CHECKING:
    from graph.service.projects import Projects


def draw(now: PageState) -> None:
    labels = now.words.project
    root = project_choice.root_of(now.service, now.session)
    dialog.leave_form(dialog.PANEL, root)
    redraw.note(redraw.PROJECT, None)
    if not root:
        widget.draw_note(labels.not_chosen)
        for number, allowed in enumerate(now.service.projects.roots()):
            label, key = escape_label(project_choice.label(allowed)), f"choose_project_{number}"
            widget.draw_action(label, key, "folder_open", _choose, allowed, type="secondary")
        return
    view = now.service.projects.get(root, language=now.words.language)
    redraw.note(redraw.PROJECT, view)
    part = Part(now, view, dialog.PANEL)
    if not dialog.has_form(dialog.PANEL):
        part.show_refusal()
    _draw_name(part)
    if view.damage:
        project_card.draw_project_damage(part)
        _draw_rules(part)
        return
    asks_first = view.rules.state in {"new", "changed"}
    if asks_first:
        _draw_rules(part)
    _draw_plans(part)
    _draw_tasks(part)
    _draw_decisions(part)
    _draw_files(part)
    _draw_summary(part)
    if not asks_first:
        _draw_rules(part)
    if not view.snapshots:
        widget.draw_note(labels.no_snapshots)
    _draw_folded(part, "snapshots", labels.snapshots, "backup", view.snapshots, project_card.draw_restore)


def _choose(root: str) -> None:
    st.session_state[widget.choice_key(project_choice.LISTED)] = root
    redraw.page()


def _draw_name(part: Part) -> None:
    labels, view, name = part.labels, part.view, escape_label(part.view.name)
    with st.container(gap=None, key=part.key("name")):
        choices: project_form.Choices | None = {} if view.damage else None
        project_form.draw_item(part, "project", "", "name", name, f"**{name}**", choices)
        widget.draw_note(escape_label(view.root))
        if not view.damage:
            count_text = labels.primed.format(tokens=format_count(view.primed_tokens))
            widget.draw_note(count_text if len(view.primed) > 1 else labels.primed_nothing)


@contextmanager
def _section(
    part: Part, name: str, title: str, new: str = "", fields: Sequence[Field] = (), note: str = ""
) -> Iterator[None]:
    """Draws a section; `new` is the label of the button that opens the form of a new item, with these fields."""
    with st.container(border=True, gap="xsmall", key=part.key(name)):
        with part.row(f"head_of_{name}"):
            st.markdown(f"**{title}**")
            if new:
                part.icon(new, f"new_{name}", "add", part.opening(f"new_{name}"))
        if new:
            project_form.draw(part, f"new_{name}", fields, partial(_add, name, part.view.root), note)
        yield


def _add(name: str, root: str, projects: Projects, typed: Sequence[str]) -> None:
    if name == "plan":
        projects.workflow(root).open_plan(*typed)
    elif name == "tasks":
        projects.workflow(root).open_task(*typed)
    elif name == "decisions":
        projects.context(root).record_decision(*typed)
    else:
        projects.context(root).note_open_files(typed)


def _draw_folded(
    part: Part, name: str, label: str, icon: str, items: Sequence[Any], draw_item: Callable[..., None], note: str = ""
) -> None:
    """Draws items behind a line that opens, if there are any."""
    if items and (box := widget.open_box(label.format(count=len(items)), part.key(name), icon)):
        with box:
            for number, item in enumerate(items):
                draw_item(part, number, item)
            if note:
                widget.draw_note(note)


def _draw_plans(part: Part) -> None:
    labels, view, plan = part.labels, part.view, part.view.active_plan
    fields = [Field(labels.plan_title), Field(labels.plan_description, is_long=True)]
    with _section(part, "plan", labels.plan, labels.new_plan, fields, labels.switch_note):
        if plan is None:
            widget.draw_note(labels.no_plan)
        else:
            title = escape_label(plan.title)
            description = f"  \n:small[:gray[{escape_label(plan.description)}]]" if plan.description else ""
            project_form.draw_item(part, "plan", plan.id, "active_plan", title, f"{title}{description}")
        others = [each for each in reversed(view.plans) if each != plan]
        _draw_folded(part, "other_plans", labels.other_plans, "list", others, _draw_other, labels.switch_note)


def _draw_other(part: Part, number: int, plan: PlanView) -> None:
    labels, title = part.labels, escape_label(plan.title)
    done = f" :green-badge[{labels.is_done}]" if plan.is_done else ""
    switch = part.changing(lambda projects: projects.workflow(part.view.root).switch_plan(plan.id))
    choices = {labels.switch: switch, **project_form.asking_to_forget(part, plan.id)}
    project_form.draw_item(part, "plan", plan.id, f"other_plan_{number}", title, f"{title}{done}", choices)


def _draw_tasks(part: Part) -> None:
    labels, plan = part.labels, part.view.active_plan
    if plan is None:
        return
    with _section(part, "tasks", labels.tasks, labels.new_task, [Field(labels.new_task)]):
        waiting = [task for task in plan.tasks if not task.is_done]
        if not waiting:
            widget.draw_note(labels.no_tasks)
        for number, task in enumerate(waiting):
            _draw_task(part, number, task)
        done = [task for task in reversed(plan.tasks) if task.is_done]
        _draw_folded(part, "done", labels.done_tasks, "task_alt", done, _draw_task)


def _draw_task(part: Part, number: int, task: TaskView) -> None:
    labels, title = part.labels, escape_label(task.title)
    start = part.changing(lambda projects: projects.workflow(part.view.root).start_task(task.id))
    if task.is_done:
        choices = {labels.reopen: start, **project_form.forgetting(part, task.id)}
        project_form.draw_item(part, "task", task.id, f"done_{number}", title, f":gray[~~{title}~~]", choices)
        return
    usual = project_form.choices(part, "task", task.id)
    choices = {**usual} if task.is_active else {labels.start_task: start, **usual}
    shown = f"**{title}** :primary-badge[{labels.is_active}]" if task.is_active else title
    project_form.draw_item(part, "task", task.id, f"task_{number}", title, shown, choices)


def _draw_decisions(part: Part) -> None:
    labels = part.labels
    with _section(part, "decisions", labels.decisions, labels.new_decision, [Field(labels.new_decision, is_long=True)]):
        newest_first = part.view.decisions[::-1]
        in_force = [each for each in newest_first if each.is_in_force]
        if not in_force:
            widget.draw_note(labels.no_decisions)
        for number, decision in enumerate(in_force):
            _draw_decision(part, number, decision)
        replaced = [each for each in newest_first if not each.is_in_force]
        _draw_folded(part, "replaced", labels.replaced_decisions, "history", replaced, _draw_decision)


def _draw_decision(part: Part, number: int, decision: DecisionView) -> None:
    text, is_in_force = escape_label(decision.text), decision.is_in_force
    day = f"{decision.date:%Y-%m-%d}" if decision.date else part.labels.undated
    shown = f"{text}  \n:small[:gray[{day}]]" if is_in_force else f":gray[{text}  \n:small[{day}]]"
    choices = dict(project_form.choices(part, "decision", decision.id))
    if not is_in_force:
        choices.pop(part.now.words.steering.edit)
    key = f"{'decision' if is_in_force else 'replaced'}_{number}"
    project_form.draw_item(part, "decision", decision.id, key, text, shown, choices)


def _draw_files(part: Part) -> None:
    labels = part.labels
    with _section(part, "files", labels.files, labels.new_file, [Field(labels.file_path)]):
        if not part.view.open_files:
            widget.draw_note(labels.no_files)
        for number, file in enumerate(reversed(part.view.open_files)):
            path = escape_label(file.path)
            with part.row(f"file_{number}"):
                st.markdown(f"{path} :small[:orange[{labels.gone}]]" if file.is_gone else path)
                (close,) = project_form.choices(part, "file", file.path).values()
                part.icon(labels.close_file_of.format(text=path), f"close_{number}", "close", close)


def _draw_summary(part: Part) -> None:
    labels, summary = part.labels, part.view.summary
    with st.container(border=True, gap="xsmall", key=part.key("summary")):
        with part.row("head_of_summary"):
            st.markdown(f"**{labels.summary}**")
            project_form.draw_item_menu(part, "summary", "", "summary", labels.summary)
        if project_form.is_edited(part, "summary", ""):
            project_form.draw_form(part, "summary", "")
        elif summary:
            st.text(summary)
        else:
            widget.draw_note(labels.no_summary)


def _draw_rules(part: Part) -> None:
    labels, rules = part.labels, part.view.rules
    with _section(part, "rules", labels.rules):
        st.markdown(f":small[{_rules_state(part)}]")
        if rules.state in {"new", "changed"}:
            agree = part.changing(lambda projects: projects.agree(part.view.root, rules.digest))
            st.button(labels.use_rules, key=part.key("agree"), type="primary", on_click=agree)
        for limit in rules.exceeded:
            st.markdown(f":small[:orange[:material/warning: {labels.rule_limits[limit]}]]")
        key = part.key("difference")
        if rules.state == "changed" and (box := widget.open_box(labels.difference, key, "difference", is_open=True)):
            box.code("\n".join(rules.difference), language="diff", wrap_lines=True)
        for number, file in enumerate(rules.files):
            _draw_rule_file(part, number, file)


def _rules_state(part: Part) -> str:
    labels, rules = part.labels, part.view.rules
    if rules.state == "none":
        return f":gray[{labels.no_rules}]"
    if rules.state == "agreed" and rules.agreed_at is not None:
        date = rules.agreed_at.astimezone(zone_of(part.now.time_zone))
        return f":gray[{labels.rules_agreed.format(date=f'{date:%Y-%m-%d}')}]"
    return f":orange[:material/info: {labels.rules_changed if rules.state == 'changed' else labels.rules_new}]"


def _draw_rule_file(part: Part, number: int, file: RuleFileView) -> None:
    labels = part.labels
    with st.container(gap=None, key=part.key(f"file_of_rules_{number}")):
        name = escape_label(file.path) if "`" in file.path else f"`{file.path}`"
        if file.refusal:
            st.markdown(f":material/block: {name}")
            reason = part.now.words.path_reasons.get(file.refusal, part.now.words.errors["path"])
            st.markdown(f":small[:orange[{labels.rule_refused.format(reason=reason)}]]")
            return
        is_open = part.view.rules.state == "new"  # rules are shown before they are agreed to
        if box := widget.open_box(name, part.key(f"rule_{number}"), "description", is_open=is_open):
            box.code(file.text, language=None, wrap_lines=True)
        size, sent = format_bytes(file.size_bytes), format_bytes(file.sent_bytes)
        told = (labels.rule_size if file.sent_bytes else labels.rule_unsent).format(size=size, sent=sent)
        widget.draw_note(f"{labels.rule_kinds[file.kind]} · {told}")
        if file.problem:
            st.markdown(f":small[:orange[{labels.rule_problems[file.problem]}]]")
        if file.left_out_bytes:
            cut = labels.rule_cut.format(left=format_bytes(file.left_out_bytes), size=size)
            st.markdown(f":small[:orange[:material/content_cut: {cut}]]")
        hidden = (
            (labels.rule_comments, file.comment_count),
            (labels.rule_invisible, file.invisible_count),
            (labels.rule_bad, file.bad_count),
            (labels.rule_imports, file.import_count),
        )
        texts = [text.format(count=count) for text, count in hidden if count]
        if texts:
            widget.draw_note(" · ".join(texts))
