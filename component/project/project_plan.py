"""Draws the plans of a project and the tasks of the active one."""

from __future__ import annotations

from functools import partial

import streamlit as st

from component.format import escape_label
from component.project import project_form
from component.project.project_form import Field, Part
from graph.value.project_view import PlanView, TaskView


def draw_plan(part: Part) -> None:
    """Draws the active plan, the form of a new one, and the other plans, folded away."""
    said, view, plan = part.said, part.view, part.view.active_plan
    with part.section("plan", said.plan, new=said.new_plan):
        fields = [Field(said.plan_title), Field(said.plan_description, is_long=True)]
        open_plan = partial(part.projects.open_plan, view.root)
        project_form.draw(part, "new_plan", fields, open_plan, said.switch_note)
        if plan is None:
            st.markdown(f":small[:gray[{said.no_plan}]]")
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
    said = part.said
    label = said.other_plans.format(count=len(others))
    box = st.expander(label, key=part.key("other_plans"), icon=":material/list:", type="compact", on_change="rerun")
    if not box.open:
        return
    with box:
        for number, plan in enumerate(reversed(others)):
            if project_form.is_edited(part, "plan", plan.id):
                project_form.draw_form(part, "plan", plan.id)
                continue
            done = f" :green-badge[{said.is_done}]" if plan.is_done else ""
            with part.row(f"other_plan_{number}"):
                st.markdown(f"{escape_label(plan.title)}{done}")
                label = project_form.label_of(part, "plan", plan.title)
                switch = {said.switch: part.changing(part.projects.switch_plan, plan.id)}
                choices = {**switch, **project_form.asking_to_forget(part, plan.id)}
                project_form.draw_menu(part, label, f"other_plan_{number}", choices)
        st.markdown(f":small[:gray[{said.switch_note}]]")


def draw_tasks(part: Part) -> None:
    """Draws the tasks of the active plan: the open ones, the form of a new one, and the done ones, folded away."""
    said, plan = part.said, part.view.active_plan
    if plan is None:
        return
    with part.section("tasks", said.tasks, new=said.new_task):
        open_task = partial(part.projects.open_task, part.view.root)
        project_form.draw(part, "new_tasks", [Field(said.new_task)], open_task)
        waiting = [task for task in plan.tasks if not task.is_done]
        if not waiting:
            st.markdown(f":small[:gray[{said.no_tasks}]]")
        for number, task in enumerate(waiting):
            _draw_task(part, number, task)
        _draw_done(part, [task for task in plan.tasks if task.is_done])


def _draw_task(part: Part, number: int, task: TaskView) -> None:
    said, title = part.said, escape_label(task.title)
    if project_form.is_edited(part, "task", task.id):
        project_form.draw_form(part, "task", task.id)
        return
    with part.row(f"task_{number}"):
        label, done = said.complete_of.format(text=title), part.changing(part.projects.complete_task, task.id)
        part.icon(label, f"complete_{number}", ":material/radio_button_unchecked:", done)
        st.markdown(f"**{title}** :primary-badge[{said.is_active}]" if task.is_active else title)
        choices = dict(project_form.choices(part, "task", task.id))
        if not task.is_active:
            choices = {said.start_task: part.changing(part.projects.start_task, task.id), **choices}
        project_form.draw_menu(part, project_form.label_of(part, "task", title), f"task_{number}", choices)


def _draw_done(part: Part, done: list[TaskView]) -> None:
    if not done:
        return
    said = part.said
    label = said.done_tasks.format(count=len(done))
    box = st.expander(label, key=part.key("done"), icon=":material/task_alt:", type="compact", on_change="rerun")
    if not box.open:
        return
    with box:
        for number, task in enumerate(reversed(done)):
            title = escape_label(task.title)
            with part.row(f"done_{number}"):
                st.markdown(f":gray[~~{title}~~]")
                again = {said.reopen: part.changing(part.projects.start_task, task.id)}
                choices = {**again, **project_form.forgetting(part, task.id)}
                project_form.draw_menu(part, project_form.label_of(part, "task", title), f"done_{number}", choices)
