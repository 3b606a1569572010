"""The context of a project's work for a chat: what was said, decided and open, and what a new session starts with."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from graph.error import NotFoundError, PathError
from graph.project import roll_up
from graph.project.brain_folder import FOLDER
from graph.project.context_file import SUMMARY_CHARS, SUMMARY_CHARS_ENGLISH, ContextFile, Decision
from graph.project.context_operation import (
    EditSummary,
    ForgetDecision,
    ForgetDialog,
    NoteOpenFiles,
    RecordDecision,
    RegisterMessage,
    RollUp,
    Save,
    TakeBack,
)
from graph.project.primed import Primed
from graph.project.primer import prime
from graph.project.project_memory import ProjectMemory
from graph.project.project_state import CONTEXT
from graph.root_folder import RootFolder
from prompt.system.framing import Language

_TRIES: Final = 3


class ContextManager:
    """Keeps `.ai-brain/context.json` (seed 000).

        context = ContextManager(memory, summarise=summarise)
        context.register_message("user", "포트를 바꿔 줘")      # before the call
        context.register_message("assistant", "8501로 바꿨어요")  # behind it
        context.roll_up()                                       # in the background
        lines = context.hydrate_prompt("ko")                    # when a new session starts

    Any number of these may work on one project at once. Each method raises what `ProjectMemory.apply` does.

    Args:
        memory: The project's memory.
        summarise: Writes summaries; None picks sentences as soon as the window is full.
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
        """The file as it stands now."""
        return self._memory.read().context

    def register_message(
        self,
        role: Literal["user", "assistant"],
        content: str,
        *,
        is_repetition: bool = False,
        operation_id: str | None = None,
    ) -> str:
        """Adds a message, secrets masked, and returns its id.

        With a summariser up to 4,096 tokens wait for `roll_up`; without one, over 800 tokens are picked from at once.

        Args:
            role: Who said it.
            content: What was said.
            is_repetition: Whether it only says again what was said, as each answer of the embedded model does.
            operation_id: Makes a repeated call change nothing; such as the id of the message in the chat.
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
        """Takes the messages of these ids out of the recent window; those that aren't registered yet never will be."""
        self._memory.apply(TakeBack(at=self._memory.now(), operations=tuple(operation_ids)))

    def roll_up(self) -> bool:
        """Puts a summary in the place of the messages beyond the newest 800 tokens; returns whether it did.

        No lock is held while the summariser works. If what it was made from has changed meanwhile, it is made anew.

        Raises:
            ModelError: What the summariser raises; nothing was changed.
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

    def hydrate_prompt(self, language: Language = "ko") -> list[str]:
        """Returns the lines that a new session starts with, at most 1,600 tokens together."""
        return self.primed(language).prompt()

    def primed(self, language: Language = "ko") -> Primed:
        """Returns the same line by line, with dates and ids, for a page that shows and edits them."""
        state = self._memory.read()
        with self._memory.opened_root() as root:
            return prime(state, self._memory.now(), root.has, language)

    def save(self) -> None:
        """Renews `updated_at` and takes a snapshot if one is due; what was registered is stored already."""
        self._memory.apply(Save(at=self._memory.now()))

    def record_decision(
        self,
        text: str,
        *,
        replaces: str | None = None,
        source: Literal["user", "model"] = "user",
        operation_id: str | None = None,
    ) -> Decision:
        """Adds a decision that may replace another one, and returns it.

        Raises:
            InputError: `empty`, `too_long`, `secret` or `project_full`.
        """
        operation = RecordDecision(
            id=_id(operation_id), at=self._memory.now(), text=text, replaces=replaces, source=source
        )
        done = self._memory.apply(operation)
        found = next((each for each in done.state.context.memory.decisions if each.id == done.made), None)
        if found is None:  # forgotten since
            raise NotFoundError(done.made)
        return found

    def forget_decision(self, decision_id: str) -> None:
        """Deletes a decision."""
        self._memory.apply(ForgetDecision(at=self._memory.now(), decision_id=decision_id))

    def note_open_files(
        self, opened: Sequence[str] = (), *, closed: Sequence[str] = (), operation_id: str | None = None
    ) -> tuple[str, ...]:
        """Notes open files and returns all, the one noted last at the end.

        Args:
            opened: Paths from the project's root, or absolute ones inside it.
            closed: Those that are open no more, as they are listed.
            operation_id: Makes a repeated call change nothing.

        Raises:
            PathError: A path leads out of the project, or into the folder of its memory.
            InputError: `secret` or `too_long`.
        """
        with self._memory.opened_root() as root:
            paths = tuple(_file_path(root, path) for path in opened)
        operation = NoteOpenFiles(id=_id(operation_id), at=self._memory.now(), opened=paths, closed=tuple(closed))
        return self._memory.apply(operation).state.context.memory.open_files

    def edit_summary(self, text: str) -> str:
        """Sets the running summary, cut to its limit, and returns it; "" forgets it."""
        done = self._memory.apply(EditSummary(at=self._memory.now(), text=text))
        return done.state.context.conversation.running_summary

    def forget_dialog(self) -> None:
        """Empties the recent window."""
        self._memory.apply(ForgetDialog(at=self._memory.now()))


def _id(operation_id: str | None) -> str:
    return operation_id or uuid.uuid4().hex


def _file_path(root: RootFolder, path: str) -> str:
    inside = root.relative(path)
    # Whether something stands in the memory's folder would tell of its other owners.
    if not inside or Path(inside).is_relative_to(root.relative(FOLDER)):
        raise PathError("not_regular", path)
    return inside
