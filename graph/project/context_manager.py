"""The context of a project's work: messages, decisions, open files, and the context for new sessions."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from graph.core.text import estimate_tokens
from graph.file.root_folder import RootFolder
from graph.fold.extract import cut_at_word
from graph.project import roll_up
from graph.project.brain_folder import FOLDER
from graph.project.context_file import (
    OPEN_FILES,
    SUMMARY_CHARS,
    SUMMARY_CHARS_ENGLISH,
    ContextFile,
    Conversation,
    Decision,
    Memory,
    Message,
    next_id,
)
from graph.project.file_pair import CONTEXT, ProjectState
from graph.project.project_memory import (
    Change,
    ItemId,
    MaskedText,
    Operation,
    OperationId,
    PathLine,
    ProjectMemory,
    TextLine,
)
from graph.project.roll_up import WINDOW_KEEP, leaving_count, picked_summary, window_tokens
from graph.project.secret import mask_secrets
from graph.project.vector_cache import Vector, nearest, with_vectors, without_gone, without_vectors
from graph.value.error import NotFoundError, PathError
from prompt import project_memory as words
from prompt.system.framing import Language


class RegisterMessage(Operation):
    """Adds a message; above `limit_tokens` the oldest are summarised by picked sentences, down to 800 tokens."""

    role: Literal["user", "assistant"]
    content: MaskedText
    is_repetition: bool = False
    limit_tokens: Annotated[int, Field(ge=WINDOW_KEEP)] = WINDOW_KEEP

    def change(self, state: ProjectState) -> Change:
        talk, stats = state.context.conversation, state.context.stats
        number = talk.message_count + 1
        message = Message(
            id=f"msg_{number:03}",
            role=self.role,
            content=self.content,
            ts=self.at,
            is_repetition=self.is_repetition,
        )
        talk = talk.changed(recent_window=(*talk.recent_window, message), message_count=number)
        if window_tokens(talk.recent_window) > self.limit_tokens:
            talk = self._rolled_up(talk)
        stats = stats.changed(
            dialog_turns=stats.dialog_turns + (self.role == "user"),
            total_tokens=stats.total_tokens + estimate_tokens(message.content),
        )
        return _with_talk(state, talk, stats=stats), message.id

    def _rolled_up(self, talk: Conversation) -> Conversation:
        count = leaving_count(talk.recent_window)
        if not count:
            return talk
        text = picked_summary(talk.running_summary, talk.recent_window[:count])
        return talk.changed(running_summary=text, summary_at=self.at, recent_window=talk.recent_window[count:])


class TakeBack(Operation):
    """Removes messages, by their operations' ids; those not registered yet never will be. The counts stay."""

    operations: tuple[OperationId, ...]

    def change(self, state: ProjectState) -> Change:
        """Leaves messages that are already part of the summary."""
        talk, applied = state.context.conversation, state.context.applied
        newest = {made: operation for operation, made in applied.items()}  # a restore makes message ids repeat
        window = tuple(each for each in talk.recent_window if newest.get(each.id) not in self.operations)
        marks = dict.fromkeys(self.operations, "")
        return _with_talk(state, talk.changed(recent_window=window), applied={**applied, **marks}), ""


class RollUp(Operation):
    """Replaces the oldest messages by a summary, unless `base` (`Conversation.base_of`) no longer matches."""

    count: Annotated[int, Field(ge=1)]
    base: str
    text: MaskedText

    def change(self, state: ProjectState) -> Change | None:
        talk = state.context.conversation
        if len(talk.recent_window) < self.count or talk.base_of(self.count) != self.base:
            return None
        changed = talk.changed(
            running_summary=self.text, summary_at=self.at, recent_window=talk.recent_window[self.count :]
        )
        return _with_talk(state, changed), talk.recent_window[self.count - 1].id


class EditSummary(Operation):
    text: MaskedText

    def change(self, state: ProjectState) -> Change:
        talk = state.context.conversation.changed(running_summary=self.text, summary_at=self.at)
        return _with_talk(state, talk), ""


class KeepVectors(Operation):
    """Adds vectors of messages by their ids; of messages that have left the window none."""

    model: str
    vectors: dict[str, tuple[float, ...]]

    def change(self, state: ProjectState) -> Change | None:
        talk = state.context.conversation
        if not any(each.id in self.vectors for each in talk.recent_window):
            return None
        return _with_talk(state, with_vectors(talk, self.model, self.vectors)), ""


class ForgetDialog(Operation):
    """Empties the recent window; the counts stay."""

    def change(self, state: ProjectState) -> Change:
        return _with_talk(state, state.context.conversation.changed(recent_window=())), ""


class RecordDecision(Operation):
    """Adds a decision, which may replace another."""

    text: TextLine
    replaces: ItemId | None = None
    source: Literal["user", "model"] = "user"

    def change(self, state: ProjectState) -> Change:
        """Returns the existing decision if one with the same text is in force."""
        memory = state.context.memory
        if self.replaces is not None and all(each.id != self.replaces for each in memory.decisions):
            raise NotFoundError(self.replaces)
        same = next((each for each in memory.decisions if each.in_force and each.text == self.text), None)
        if same is not None:
            return state, same.id
        retained = [each.changed(in_force=False) if each.id == self.replaces else each for each in memory.decisions]
        made = Decision(
            id=next_id("decision", [each.id for each in retained]),
            text=self.text,
            date=self.at,
            source=self.source,
            replaces=self.replaces,
        )
        return _with_memory(state, memory.with_decisions([*retained, made])), made.id


class ForgetDecision(Operation):
    """Deletes a decision; a decision replaced by it stays out of force."""

    decision_id: ItemId

    def change(self, state: ProjectState) -> Change:
        memory = state.context.memory
        retained = [each for each in memory.decisions if each.id != self.decision_id]
        if len(retained) == len(memory.decisions):
            raise NotFoundError(self.decision_id)
        return _with_memory(state, memory.with_decisions(retained)), self.decision_id


class NoteOpenFiles(Operation):
    """Updates the open files, as paths from the project's root; of more than 50 the newest stay."""

    opened: tuple[PathLine, ...] = ()
    closed: tuple[ItemId, ...] = ()

    def change(self, state: ProjectState) -> Change:
        memory = state.context.memory
        opened = list(dict.fromkeys(reversed(self.opened)))[::-1]
        retained = [path for path in memory.open_files if path not in {*opened, *self.closed}]
        paths = [*retained, *opened][-OPEN_FILES:]
        times = {**memory.file_times, **dict.fromkeys(opened, self.at)}
        return _with_memory(
            state, memory.changed(open_files=paths, file_times={path: times[path] for path in paths if path in times})
        ), ""


class Save(Operation):
    """Changes only the time of the last change."""

    def change(self, state: ProjectState) -> Change:
        return state, ""


def _with_memory(state: ProjectState, memory: Memory) -> ProjectState:
    return ProjectState(state.context.changed(memory=memory), state.workflow)


def _with_talk(state: ProjectState, talk: Conversation, **changes: object) -> ProjectState:
    return ProjectState(state.context.changed(conversation=without_gone(talk), **changes), state.workflow)


@dataclass(frozen=True)
class PrimedLine:
    """A line of the context for new sessions, without secrets and invisible characters; times are UTC.

    Attributes:
        label: One of the seed's labels, such as "DECISIONS".
        item_id: Id of the decision, plan, task or message; a file's path; else "".
        speaker: "USER" or "ASSISTANT" for a message, else "".
        is_old: Noted more than 14 days ago.
    """

    label: str
    text: str
    at: datetime | None
    item_id: str = ""
    speaker: str = ""
    is_old: bool = False
    is_gone: bool = False


@dataclass(frozen=True)
class Primed:
    """The context for new sessions, in order, at most 1,600 tokens; `older_decisions` are left out."""

    lines: tuple[PrimedLine, ...]
    older_decisions: int
    language: Language

    def prompt(self) -> list[str]:
        """Returns the lines of the prompt, the recent dialog last; none if the memory is empty."""
        if not self.lines:
            return []
        rendered = [words.NOTE[self.language]]
        for label in dict.fromkeys(line.label for line in self.lines):
            lines = [render_line(line, self.language) for line in self.lines if line.label == label]
            if label == words.RECENT_DIALOG:
                rendered += [f"{label}:", *lines]
                continue
            if label == words.DECISIONS and self.older_decisions:
                lines.insert(0, words.older_decisions(self.older_decisions, self.language))
            rendered.append(f"{label}: {', '.join(lines)}")
        return rendered

    @property
    def tokens(self) -> int:
        return estimate_tokens("\n".join(self.prompt()))


def render_line(line: PrimedLine, language: Language) -> str:
    marks = [f"{line.at:%Y-%m-%d}" if line.at else words.UNDATED[language]]
    marks += [mark[language] for mark, is_set in ((words.OLD, line.is_old), (words.GONE, line.is_gone)) if is_set]
    text = f"{line.speaker}: {line.text}" if line.speaker else line.text
    return f"{text} ({', '.join(marks)})"


BUDGET_TOKENS: Final = 1_600
OLD_AFTER: Final = timedelta(days=14)
_TITLE_CHARS: Final = 120
_DECISION_CHARS: Final = 300
_PATH_CHARS: Final = 160
_FILES: Final = 8
_MESSAGE_CHARS: Final = 4_000
_SPEAKERS: Final = ("user", "assistant")
_NEAR_MESSAGES: Final = 2
_CUT_SHARE: Final = 0.85
# Labels, separators and the count of older decisions.
_LABELS_TOKENS: Final = 60
# Joiners shape letters and emoji; other invisible characters may hide text that only a model reads.
_JOINERS: Final = "\u200c\u200d"
_HIDDEN: Final = {"Cc", "Cf", "Co", "Cs", "Cn"}
_LINES: Final = re.compile(r"\r\n?|[\n\v\f\x1c-\x1e\x85\u2028\u2029]")


def prime(
    state: ProjectState,
    now: datetime,
    is_there: Callable[[str], bool],
    language: Language,
    *,
    near: Sequence[str] = (),
) -> Primed:
    """Chooses the lines: plan, task, decisions in force, open files, summary, and last the recent dialog.

    The dialog gets at most 800 tokens of the 1,600; for older messages without a summary, sentences are picked. Beyond
    the limit the oldest decisions become a count, then the oldest files and messages are left out.

    Args:
        near: Ids of messages, the nearest to the session's first message first: the first two are in the dialog, in at
            most half of its room, even if newer ones would fill it.
    """
    dialog = _recent(state.context.conversation.recent_window, language, near)
    decisions, files, fixed = _decisions(state), _files(state, is_there), _fixed(state)
    room = BUDGET_TOKENS - _cost([words.NOTE[language]]) - _tokens([*fixed, *dialog], language) - _LABELS_TOKENS
    files = _newest(files, room, language, least=1)
    decisions_shown = _newest(decisions, room - _tokens(files, language), language, least=1)
    over = _tokens([*decisions_shown, *files], language) - room
    while over > 0 and dialog:
        over -= _tokens(dialog[:1], language)
        dialog = dialog[1:]
    head = [line for line in fixed if line.label != words.SUMMARY]
    summary = [line for line in fixed if line.label == words.SUMMARY]
    lines = [*head, *decisions_shown, *files, *summary, *dialog]
    aged = tuple(replace(line, is_old=line.at is not None and now - line.at > OLD_AFTER) for line in lines)
    return Primed(aged, len(decisions) - len(decisions_shown), language)


def _fixed(state: ProjectState) -> list[PrimedLine]:
    memory, talk, workflow = state.context.memory, state.context.conversation, state.workflow
    plan, task = workflow.find_plan(memory.active_plan_id), workflow.find_task(memory.active_task_id)
    lines = [PrimedLine(words.PROJECT, _line(workflow.project_name, _TITLE_CHARS), workflow.updated_at)]
    if plan is not None:
        lines.append(PrimedLine(words.ACTIVE_PLAN, _line(plan.title, _TITLE_CHARS), plan.created_at, plan.id))
    if task is not None:
        at = task[1].created_at
        lines.append(PrimedLine(words.ACTIVE_TASK, _line(task[1].title, _TITLE_CHARS), at, task[1].id))
    summary, at = talk.running_summary, talk.summary_at or state.context.updated_at
    if waiting := leaving_count(talk.recent_window):  # not summarised yet
        summary, at = picked_summary(summary, talk.recent_window[:waiting]), state.context.updated_at
    lines.append(PrimedLine(words.SUMMARY, _line(summary, SUMMARY_CHARS_ENGLISH), at))
    return _with_text(lines)


def _decisions(state: ProjectState) -> list[PrimedLine]:
    return _with_text(
        PrimedLine(words.DECISIONS, _line(each.text, _DECISION_CHARS), each.date, each.id)
        for each in state.context.memory.decisions
        if each.in_force
    )


def _files(state: ProjectState, is_there: Callable[[str], bool]) -> list[PrimedLine]:
    memory = state.context.memory
    return _with_text(
        PrimedLine(
            words.OPEN_FILES,
            _line(path, _PATH_CHARS),
            memory.file_times.get(path, state.context.updated_at),
            path,
            is_gone=not is_there(path),
        )
        for path in memory.open_files[-_FILES:]
    )


def _with_text(lines: Iterable[PrimedLine]) -> list[PrimedLine]:
    return [line for line in lines if line.text]


def _recent(window: Sequence[Message], language: Language, near: Sequence[str] = ()) -> list[PrimedLine]:
    """Returns the newest messages that fit into 800 tokens; if even the newest doesn't, it is cut.

    An older one that is among the two nearest takes the place of the oldest of these.
    """
    spoken = [each for each in window if each.role in _SPEAKERS]
    newest = _fitting(spoken, language, WINDOW_KEEP)
    older: list[PrimedLine] = []
    left = WINDOW_KEEP // 2
    for message in spoken[: len(spoken) - len(newest)]:
        if message.id and message.id in near[:_NEAR_MESSAGES]:
            line = _spoken(message)
            left -= _tokens([line], language)
            older += [line] if left >= 0 else []
    return [*older, *_fitting(spoken, language, WINDOW_KEEP - _tokens(older, language))] if older else newest


def _fitting(spoken: Sequence[Message], language: Language, room: int) -> list[PrimedLine]:
    chosen: list[PrimedLine] = []
    left = room
    for message in reversed(spoken):
        line = _spoken(message)
        while not chosen and _tokens([line], language) > left:
            line = replace(line, text=cut_at_word(line.text, int(len(line.text) * _CUT_SHARE)))
        left -= _tokens([line], language)
        if left < 0:
            break
        chosen.append(line)
    return chosen[::-1]


def _spoken(message: Message) -> PrimedLine:
    text = _paragraph(message.content)
    return PrimedLine(words.RECENT_DIALOG, text, message.ts, message.id, message.role.upper())


def _newest(lines: list[PrimedLine], room: int, language: Language, *, least: int) -> list[PrimedLine]:
    shown = 0
    for line in reversed(lines):
        room -= _tokens([line], language)
        if room < 0 and shown >= least:
            break
        shown += 1
    return lines[len(lines) - shown :]


def _tokens(lines: Iterable[PrimedLine], language: Language) -> int:
    return _cost(render_line(replace(line, is_old=True), language) for line in lines)


def _cost(texts: Iterable[str]) -> int:
    return sum(estimate_tokens(text) + 1 for text in texts)


def _line(text: str, max_chars: int) -> str:
    return cut_at_word(" ".join(mask_secrets(_visible(text)).split()), max_chars)


def _paragraph(text: str) -> str:
    """Indents further lines of a text, so that none of them looks like a label."""
    return cut_at_word("\n  ".join(_LINES.split(mask_secrets(_visible(text)))), _MESSAGE_CHARS)


def _visible(text: str) -> str:
    return "".join(
        sign for sign in text if sign.isspace() or sign in _JOINERS or unicodedata.category(sign) not in _HIDDEN
    )


_TRIES: Final = 3


@dataclass(frozen=True)
class Meaning:
    """The vector of a text, by an embedding model."""

    model: str
    vector: Vector


class ContextManager:
    """Manages `.ai-brain/context.json` (seed 000).

        context = ContextManager(memory, summarise=summarise)
        context.register_message("user", "포트를 바꿔 줘")      # before the call
        context.register_message("assistant", "8501로 바꿨어요")  # after the call
        context.roll_up()                                       # in the background
        lines = context.hydrate_prompt("ko")                    # when a new session starts

    Any number of managers may work on one project at once. Each method raises the errors of `ProjectMemory.apply`.
    Without `summarise`, sentences are picked as soon as the window is full.
    """

    PATH: Final = f"{FOLDER}/{CONTEXT}"
    TOKEN_LIMIT: Final = roll_up.TOKEN_LIMIT
    WINDOW_KEEP: Final = roll_up.WINDOW_KEEP
    SUMMARY_MAXLEN: Final = SUMMARY_CHARS
    SUMMARY_MAXLEN_ENGLISH: Final = SUMMARY_CHARS_ENGLISH

    def __init__(self, memory: ProjectMemory, *, summarise: roll_up.Summarise | None = None) -> None:
        self._memory = memory
        self._summarise = summarise

    @property
    def data(self) -> ContextFile:
        return self._memory.read().context

    def register_message(
        self,
        role: Literal["user", "assistant"],
        content: str,
        *,
        is_repetition: bool = False,
        operation_id: str | None = None,
    ) -> str:
        """Adds a message, with secrets masked, and returns its id; idempotent by `operation_id`.

        With a summariser, up to 4,096 tokens wait for `roll_up`; without, sentences are picked at once above
        800 tokens.
        """
        limit = self.WINDOW_KEEP if self._summarise is None else self.TOKEN_LIMIT
        operation = RegisterMessage(
            id=_id(operation_id),
            at=self._memory.now(),
            role=role,
            content=content,
            is_repetition=is_repetition,
            limit_tokens=limit,
        )
        return self._memory.apply(operation).made

    def take_back(self, operation_ids: Sequence[str]) -> None:
        """Removes the messages of these operations from the recent window; those not registered yet never will be."""
        self._memory.apply(TakeBack(at=self._memory.now(), operations=tuple(operation_ids)))

    def roll_up(self) -> bool:
        """Replaces the messages beyond the newest 800 tokens by a summary; returns False if there are none.

        No lock is held while the summariser works; if the source changes meanwhile, up to 3 tries. Its
        `ModelError` passes.
        """
        for _ in range(_TRIES):
            talk = self.data.conversation
            count = roll_up.leaving_count(talk.recent_window)
            if not count:
                return False
            leaving = talk.recent_window[:count]
            if self._summarise is None:
                text = roll_up.picked_summary(talk.running_summary, leaving)
            else:
                text = roll_up.written_summary(talk.running_summary, leaving, self._summarise)
            operation = RollUp(at=self._memory.now(), count=count, base=talk.base_of(count), text=text)
            if self._memory.apply(operation).is_applied:
                return True
        return False

    def hydrate_prompt(self, language: Language = "ko", *, meant: Meaning | None = None) -> list[str]:
        """Returns the prompt lines for a new session, at most 1,600 tokens in all.

        With what its first message means, older messages of the dialog that are near to that are among them.
        """
        return self.primed(language, meant=meant).prompt()

    def primed(self, language: Language = "ko", *, meant: Meaning | None = None) -> Primed:
        """Returns the prompt's lines with dates and ids, for display and editing."""
        state = self._memory.read()
        near = nearest(state.context.conversation, meant.model, meant.vector) if meant else []
        with self._memory.opened_root() as root:
            return prime(state, self._memory.now(), root.has, language, near=near)

    def without_vectors(self, model: str) -> list[Message]:
        """Returns the messages of the recent window that lack a vector of this model, the newest first."""
        return without_vectors(self.data.conversation, model)

    def keep_vectors(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Adds vectors of messages by their ids, in place of those of another model."""
        given = {each: tuple(vector) for each, vector in vectors.items()}
        self._memory.apply(KeepVectors(at=self._memory.now(), model=model, vectors=given))

    def save(self) -> None:
        """Updates `updated_at` and takes a snapshot if one is due; messages are already stored."""
        self._memory.apply(Save(at=self._memory.now()))

    def record_decision(
        self,
        text: str,
        *,
        replaces: str | None = None,
        source: Literal["user", "model"] = "user",
        operation_id: str | None = None,
    ) -> Decision:
        """Adds a decision, which may replace another.

        Raises:
            InputError: `empty`, `too_long`, `secret` or `project_full`.
        """
        operation = RecordDecision(
            id=_id(operation_id), at=self._memory.now(), text=text, replaces=replaces, source=source
        )
        done = self._memory.apply(operation)
        found = next((each for each in done.state.context.memory.decisions if each.id == done.made), None)
        if found is None:  # deleted since
            raise NotFoundError(done.made)
        return found

    def forget_decision(self, decision_id: str) -> None:
        self._memory.apply(ForgetDecision(at=self._memory.now(), decision_id=decision_id))

    def note_open_files(
        self, opened: Sequence[str] = (), *, closed: Sequence[str] = (), operation_id: str | None = None
    ) -> tuple[str, ...]:
        """Updates the open files and returns all of them, newest last; absolute paths must be inside the root.

        Raises:
            PathError: A path is outside of the project, or inside the folder of its memory.
            InputError: `secret` or `too_long`.
        """
        with self._memory.opened_root() as root:
            paths = tuple(_file_path(root, path) for path in opened)
        operation = NoteOpenFiles(id=_id(operation_id), at=self._memory.now(), opened=paths, closed=tuple(closed))
        return self._memory.apply(operation).state.context.memory.open_files

    def edit_summary(self, text: str) -> str:
        """Sets the running summary, cut to its limit, and returns it; "" deletes it."""
        done = self._memory.apply(EditSummary(at=self._memory.now(), text=text))
        return done.state.context.conversation.running_summary

    def forget_dialog(self) -> None:
        self._memory.apply(ForgetDialog(at=self._memory.now()))


def _id(operation_id: str | None) -> str:
    return operation_id or uuid.uuid4().hex


def _file_path(root: RootFolder, path: str) -> str:
    inside = root.relative(path)
    # The existence of files in the memory's folder would reveal other owners.
    if not inside or Path(inside).is_relative_to(root.relative(FOLDER)):
        raise PathError("not_regular", path)
    return inside
