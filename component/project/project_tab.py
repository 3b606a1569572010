"""Draws the panel's project tab: the editable memory and the rules."""

from __future__ import annotations

import streamlit as st

from component import open_form, project_choice, redraw
from component.format import escape_label, format_bytes, format_count, zone_of
from component.page_state import PageState
from component.project import project_card, project_form
from component.project.project_form import Field, Part
from graph.value.project_view import DecisionView, OpenFileView, PlanView, RuleFileView, TaskView


def draw(now: PageState) -> None:
    labels = now.words.project
    root = project_choice.root_of(now.service, now.session)
    open_form.leave(open_form.PANEL, root)
    redraw.note_project(None)
    if not root:
        st.markdown(f":small[:gray[{labels.not_chosen}]]")
        for number, allowed in enumerate(now.service.projects.roots()):
            st.button(
                escape_label(project_choice.label(allowed)),
                key=f"choose_project_{number}",
                icon=":material/folder_open:",
                on_click=_choose,
                args=(allowed,),
            )
        return
    view = now.service.projects.get(root, language=now.words.language)
    redraw.note_project(view)
    part = Part(now, view, open_form.PANEL)
    if not open_form.is_any_open(open_form.PANEL):
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
    _draw_snapshots(part)


def _choose(root: str) -> None:
    st.session_state[project_choice.LISTED] = root
    redraw.page()


def _draw_name(part: Part) -> None:
    labels, view = part.labels, part.view
    with st.container(gap=None, key=part.key("name")):
        if project_form.is_edited(part, "project", ""):
            project_form.draw_form(part, "project", "")
        else:
            with part.row("name"):
                st.markdown(f"**{escape_label(view.name)}**")
                if not view.damage:
                    project_form.draw_item_menu(part, "project", "", "name", escape_label(view.name))
        st.markdown(f":small[:gray[{escape_label(view.root)}]]")
        if not view.damage:
            count_text = labels.primed.format(tokens=format_count(view.primed_tokens))
            st.markdown(f":small[:gray[{count_text if len(view.primed) > 1 else labels.primed_nothing}]]")


def _draw_plans(part: Part) -> None:
    labels, view, plan = part.labels, part.view, part.view.active_plan
    with part.section("plan", labels.plan, new=labels.new_plan):
        fields = [Field(labels.plan_title), Field(labels.plan_description, is_long=True)]
        project_form.draw(
            part,
            "new_plan",
            fields,
            lambda projects, typed: projects.workflow(view.root).open_plan(*typed),
            labels.switch_note,
        )
        if plan is None:
            st.markdown(f":small[:gray[{labels.no_plan}]]")
        elif project_form.is_edited(part, "plan", plan.id):
            project_form.draw_form(part, "plan", plan.id)
        else:
            _draw_active(part, plan)
        _draw_others(part, [each for each in view.plans if each != plan])


def _draw_active(part: Part, plan: PlanView) -> None:
    title = escape_label(plan.title)
    with part.row("active_plan"):
        description = f"  \n:small[:gray[{escape_label(plan.description)}]]" if plan.description else ""
        st.markdown(f"{title}{description}")
        project_form.draw_item_menu(part, "plan", plan.id, "active_plan", title)


def _draw_others(part: Part, others: list[PlanView]) -> None:
    if not others:
        return
    labels = part.labels
    label = labels.other_plans.format(count=len(others))
    box = st.expander(label, key=part.key("other_plans"), icon=":material/list:", type="compact", on_change="rerun")
    if not box.open:
        return
    with box:
        for number, plan in enumerate(reversed(others)):
            _draw_other(part, number, plan)
        st.markdown(f":small[:gray[{labels.switch_note}]]")


def _draw_other(part: Part, number: int, plan: PlanView) -> None:
    if project_form.is_edited(part, "plan", plan.id):
        project_form.draw_form(part, "plan", plan.id)
        return
    labels = part.labels
    done = f" :green-badge[{labels.is_done}]" if plan.is_done else ""
    with part.row(f"other_plan_{number}"):
        st.markdown(f"{escape_label(plan.title)}{done}")
        switch = part.changing(lambda projects: projects.workflow(part.view.root).switch_plan(plan.id))
        choices = {labels.switch: switch, **project_form.asking_to_forget(part, plan.id)}
        project_form.draw_menu(part, project_form.label_of(part, "plan", plan.title), f"other_plan_{number}", choices)


def _draw_tasks(part: Part) -> None:
    labels, plan = part.labels, part.view.active_plan
    if plan is None:
        return
    with part.section("tasks", labels.tasks, new=labels.new_task):
        project_form.draw(
            part,
            "new_tasks",
            [Field(labels.new_task)],
            lambda projects, typed: projects.workflow(part.view.root).open_task(*typed),
        )
        waiting = [task for task in plan.tasks if not task.is_done]
        if not waiting:
            st.markdown(f":small[:gray[{labels.no_tasks}]]")
        for number, task in enumerate(waiting):
            _draw_task(part, number, task)
        _draw_done(part, [task for task in plan.tasks if task.is_done])


def _draw_task(part: Part, number: int, task: TaskView) -> None:
    labels, title = part.labels, escape_label(task.title)
    if project_form.is_edited(part, "task", task.id):
        project_form.draw_form(part, "task", task.id)
        return
    with part.row(f"task_{number}"):
        complete = part.changing(lambda projects: projects.workflow(part.view.root).complete_task(task.id))
        label = labels.complete_of.format(text=title)
        part.icon(label, f"complete_{number}", ":material/radio_button_unchecked:", complete)
        st.markdown(f"**{title}** :primary-badge[{labels.is_active}]" if task.is_active else title)
        choices = dict(project_form.choices(part, "task", task.id))
        if not task.is_active:
            start = part.changing(lambda projects: projects.workflow(part.view.root).start_task(task.id))
            choices = {labels.start_task: start, **choices}
        project_form.draw_menu(part, project_form.label_of(part, "task", title), f"task_{number}", choices)


def _draw_done(part: Part, done: list[TaskView]) -> None:
    if not done:
        return
    label = part.labels.done_tasks.format(count=len(done))
    box = st.expander(label, key=part.key("done"), icon=":material/task_alt:", type="compact", on_change="rerun")
    if not box.open:
        return
    with box:
        for number, task in enumerate(reversed(done)):
            _draw_done_task(part, number, task)


def _draw_done_task(part: Part, number: int, task: TaskView) -> None:
    title = escape_label(task.title)
    with part.row(f"done_{number}"):
        st.markdown(f":gray[~~{title}~~]")
        start = part.changing(lambda projects: projects.workflow(part.view.root).start_task(task.id))
        choices = {part.labels.reopen: start, **project_form.forgetting(part, task.id)}
        project_form.draw_menu(part, project_form.label_of(part, "task", title), f"done_{number}", choices)


def _draw_decisions(part: Part) -> None:
    labels = part.labels
    with part.section("decisions", labels.decisions, new=labels.new_decision):
        project_form.draw(
            part,
            "new_decisions",
            [Field(labels.new_decision, is_long=True)],
            lambda projects, typed: projects.context(part.view.root).record_decision(*typed),
        )
        in_force = [each for each in part.view.decisions if each.is_in_force]
        if not in_force:
            st.markdown(f":small[:gray[{labels.no_decisions}]]")
        for number, decision in enumerate(reversed(in_force)):
            _draw_decision(part, f"decision_{number}", decision)
        replaced = [each for each in part.view.decisions if not each.is_in_force]
        if not replaced:
            return
        label = labels.replaced_decisions.format(count=len(replaced))
        box = st.expander(label, key=part.key("replaced"), icon=":material/history:", type="compact", on_change="rerun")
        if box.open:
            with box:
                for number, decision in enumerate(reversed(replaced)):
                    _draw_decision(part, f"replaced_{number}", decision)


def _draw_decision(part: Part, key: str, decision: DecisionView) -> None:
    if project_form.is_edited(part, "decision", decision.id):
        project_form.draw_form(part, "decision", decision.id)
        return
    labels, text = part.labels, escape_label(decision.text)
    day = f"{decision.date:%Y-%m-%d}" if decision.date else labels.undated
    with part.row(key):
        st.markdown(f"{text}  \n:small[:gray[{day}]]" if decision.is_in_force else f":gray[{text}  \n:small[{day}]]")
        choices = dict(project_form.choices(part, "decision", decision.id))
        if not decision.is_in_force:
            choices.pop(labels.edit)
        project_form.draw_menu(part, project_form.label_of(part, "decision", text), key, choices)


def _draw_files(part: Part) -> None:
    labels = part.labels
    with part.section("files", labels.files, new=labels.new_file):
        project_form.draw(
            part,
            "new_files",
            [Field(labels.file_path)],
            lambda projects, typed: projects.context(part.view.root).note_open_files(typed),
        )
        if not part.view.open_files:
            st.markdown(f":small[:gray[{labels.no_files}]]")
        for number, file in enumerate(reversed(part.view.open_files)):
            _draw_file(part, number, file)


def _draw_file(part: Part, number: int, file: OpenFileView) -> None:
    labels, path = part.labels, escape_label(file.path)
    with part.row(f"file_{number}"):
        st.markdown(f"{path} :small[:orange[{labels.gone}]]" if file.is_gone else path)
        close = part.changing(lambda projects: projects.context(part.view.root).note_open_files(closed=[file.path]))
        part.icon(labels.close_file_of.format(text=path), f"close_{number}", ":material/close:", close)


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
            st.markdown(f":small[:gray[{labels.no_summary}]]")


def _draw_snapshots(part: Part) -> None:
    labels, snapshots = part.labels, part.view.snapshots
    if not snapshots:
        st.markdown(f":small[:gray[{labels.no_snapshots}]]")
        return
    label = labels.snapshots.format(count=len(snapshots))
    box = st.expander(label, key=part.key("snapshots"), icon=":material/backup:", type="compact", on_change="rerun")
    if box.open:
        with box:
            for snapshot in snapshots:
                project_card.draw_restore(part, snapshot.name, snapshot)


def _draw_rules(part: Part) -> None:
    labels, rules = part.labels, part.view.rules
    with part.section("rules", labels.rules):
        st.markdown(f":small[{_rules_state(part)}]")
        if rules.state in {"new", "changed"}:
            st.button(
                labels.use_rules,
                key=part.key("agree"),
                type="primary",
                on_click=part.changing(lambda projects: projects.agree(part.view.root, rules.digest)),
            )
        for limit in rules.exceeded:
            st.markdown(f":small[:orange[:material/warning: {labels.rule_limits[limit]}]]")
        if rules.state == "changed":
            _draw_difference(part)
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
        if file.refusal:
            st.markdown(f":material/block: `{file.path}`" if "`" not in file.path else escape_label(file.path))
            reason = part.words.path_reasons.get(file.refusal, part.words.errors["path"])
            st.markdown(f":small[:orange[{labels.rule_refused.format(reason=reason)}]]")
            return
        box = st.expander(
            f"`{file.path}`" if "`" not in file.path else escape_label(file.path),
            key=part.key(f"rule_{number}"),
            expanded=part.view.rules.state == "new",  # rules are shown before they are agreed to
            icon=":material/description:",
            type="compact",
            on_change="rerun",
        )
        if box.open:
            with box:
                st.code(file.text, language=None, wrap_lines=True)
        st.markdown(f":small[:gray[{_rule_size(part, file)}]]")
        for note in _rule_notes(part, file):
            st.markdown(f":small[:orange[{note}]]")
        hidden = (
            (labels.rule_comments, file.comment_count),
            (labels.rule_invisible, file.invisible_count),
            (labels.rule_bad, file.bad_count),
            (labels.rule_imports, file.import_count),
        )
        texts = [text.format(count=count) for text, count in hidden if count]
        if texts:
            st.markdown(f":small[:gray[{' · '.join(texts)}]]")


def _rule_size(part: Part, file: RuleFileView) -> str:
    labels, size = part.labels, format_bytes(file.size_bytes)
    sent = labels.rule_size.format(size=size, sent=format_bytes(file.sent_bytes))
    size_text = sent if file.sent_bytes else labels.rule_unsent.format(size=size)
    return f"{labels.rule_kinds[file.kind]} · {size_text}"


def _rule_notes(part: Part, file: RuleFileView) -> list[str]:
    labels, notes = part.labels, []
    if file.problem:
        notes.append(labels.rule_problems[file.problem])
    if file.left_out_bytes:
        left, size = format_bytes(file.left_out_bytes), format_bytes(file.size_bytes)
        notes.append(f":material/content_cut: {labels.rule_cut.format(left=left, size=size)}")
    return notes


def _draw_difference(part: Part) -> None:
    box = st.expander(
        part.labels.difference,
        key=part.key("difference"),
        icon=":material/difference:",
        type="compact",
        expanded=True,
        on_change="rerun",
    )
    if box.open:
        with box:
            st.code("\n".join(part.view.rules.difference), language="diff", wrap_lines=True)
