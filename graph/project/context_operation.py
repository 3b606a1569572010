"""The changes of what is said, decided and open: all that stands in `context.json` alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from graph.core.token import estimate_tokens
from graph.error import NotFoundError
from graph.project.context_file import OPEN_FILES, Conversation, Decision, Memory, Message
from graph.project.operation import Change, ItemId, MaskedText, Operation, OperationId, PathLine, TextLine
from graph.project.part import next_id
from graph.project.project_state import ProjectState
from graph.project.roll_up import WINDOW_KEEP, leaving_count, picked_summary, window_tokens


class RegisterMessage(Operation):
    """Adds a message to the recent window.

    Attributes:
        is_repetition: See `Message`.
        limit_tokens: Over it the oldest messages go at once into the summary, by picked sentences, down to 800 tokens.
    """

    role: Literal["user", "assistant"]
    content: MaskedText
    is_repetition: bool = False
    limit_tokens: Annotated[int, Field(ge=WINDOW_KEEP)] = WINDOW_KEEP

    def change(self, state: ProjectState) -> Change:
        """Adds the message and counts it; its id is the `made` one."""
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
    """Takes messages out of the recent window again; one that isn't registered yet never will be. The counts stay.

    Attributes:
        operations: The ids of the operations that registered them.
    """

    operations: tuple[OperationId, ...]

    def change(self, state: ProjectState) -> Change:
        """Takes out those that the summary doesn't cover yet."""
        talk, applied = state.context.conversation, state.context.applied
        newest = {made: operation for operation, made in applied.items()}  # after a restore, a number comes again
        window = tuple(each for each in talk.recent_window if newest.get(each.id) not in self.operations)
        marks = dict.fromkeys(self.operations, "")
        return _with_talk(state, talk.changed(recent_window=window), applied={**applied, **marks}), ""


class RollUp(Operation):
    """Puts a summary in the place of the oldest messages.

    Attributes:
        count: How many messages it covers.
        base: What it was made from (`Conversation.base_of`); if that isn't there any more, nothing changes.
    """

    count: Annotated[int, Field(ge=1)]
    base: str
    text: MaskedText

    def change(self, state: ProjectState) -> Change | None:
        """Takes the messages out and sets the summary."""
        talk = state.context.conversation
        if len(talk.recent_window) < self.count or talk.base_of(self.count) != self.base:
            return None
        changed = talk.changed(
            running_summary=self.text, summary_at=self.at, recent_window=talk.recent_window[self.count :]
        )
        return _with_talk(state, changed), talk.recent_window[self.count - 1].id


class EditSummary(Operation):
    """Sets the running summary; "" forgets it."""

    text: MaskedText

    def change(self, state: ProjectState) -> Change:
        """Sets it."""
        talk = state.context.conversation.changed(running_summary=self.text, summary_at=self.at)
        return _with_talk(state, talk), ""


class ForgetDialog(Operation):
    """Empties the recent window; the counts stay."""

    def change(self, state: ProjectState) -> Change:
        """Empties it."""
        return _with_talk(state, state.context.conversation.changed(recent_window=())), ""


class RecordDecision(Operation):
    """Adds a decision.

    Attributes:
        replaces: The id of the decision that is no longer in force then, or None.
        source: "model" if the model recorded it by the user's word.
    """

    text: TextLine
    replaces: ItemId | None = None
    source: Literal["user", "model"] = "user"

    def change(self, state: ProjectState) -> Change:
        """Adds it; one that is in force already, word for word, is not added again."""
        memory = state.context.memory
        if self.replaces is not None and all(each.id != self.replaces for each in memory.decisions):
            raise NotFoundError(self.replaces)
        same = next((each for each in memory.decisions if each.in_force and each.text == self.text), None)
        if same is not None:
            return state, same.id
        kept = [each.changed(in_force=False) if each.id == self.replaces else each for each in memory.decisions]
        made = Decision(
            id=next_id("decision", [each.id for each in kept]),
            text=self.text,
            date=self.at,
            source=self.source,
            replaces=self.replaces,
        )
        return _with_memory(state, memory.with_decisions([*kept, made])), made.id


class ForgetDecision(Operation):
    """Deletes a decision; one that it had replaced stays out of force."""

    decision_id: ItemId

    def change(self, state: ProjectState) -> Change:
        """Deletes it."""
        memory = state.context.memory
        kept = [each for each in memory.decisions if each.id != self.decision_id]
        if len(kept) == len(memory.decisions):
            raise NotFoundError(self.decision_id)
        return _with_memory(state, memory.with_decisions(kept)), self.decision_id


class NoteOpenFiles(Operation):
    """Notes which files are open, as paths from the project's root; of more than 50 the newest stay."""

    opened: tuple[PathLine, ...] = ()
    closed: tuple[ItemId, ...] = ()

    def change(self, state: ProjectState) -> Change:
        """Puts the opened ones at the end, the last one last."""
        memory = state.context.memory
        opened = list(dict.fromkeys(reversed(self.opened)))[::-1]
        kept = [path for path in memory.open_files if path not in {*opened, *self.closed}]
        paths = [*kept, *opened][-OPEN_FILES:]
        times = {**memory.file_times, **dict.fromkeys(opened, self.at)}
        return _with_memory(
            state, memory.changed(open_files=paths, file_times={path: times[path] for path in paths if path in times})
        ), ""


class Save(Operation):
    """Changes nothing but the time of the last change."""

    def change(self, state: ProjectState) -> Change:
        """Returns the state as it is."""
        return state, ""


def _with_memory(state: ProjectState, memory: Memory) -> ProjectState:
    return ProjectState(state.context.changed(memory=memory), state.workflow)


def _with_talk(state: ProjectState, talk: Conversation, **changes: object) -> ProjectState:
    return ProjectState(state.context.changed(conversation=talk, **changes), state.workflow)
