"""Makes a model call of a turn, and stores the row of its input and cost."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import BaseTool

from graph.core.attached import Attachment, references_in, with_images
from graph.core.long_file import long_files
from graph.core.model_input import InputItem, ModelInput, full_tokens
from graph.core.text import message_tokens
from graph.core.turn import (
    FILE_TOOL,
    RECALL_TOOL,
    REPETITION,
    extract_current_turn,
    image_parts,
    text_of,
    with_words,
    without_images,
)
from graph.model.caller import ChatRunnable, Phase
from graph.model.chunk import Answer, Usage
from graph.model.early_end import EarlyEnd, EarlyEndSignal
from graph.model.embedder import QUERY_SECONDS
from graph.node.state import ChatState, NodeDeps, TurnContext, keep_call
from graph.search.fusion import fuse
from graph.store.call import ModelCall
from graph.store.database import outlast
from graph.tool.look_in_file import look_in_files
from graph.tool.recall import look_up
from graph.tool.registry import ToolContext
from graph.tool.tool_context import PastTurns, SideCall
from graph.value.client import ClientOptions
from graph.value.error import NoImagesError, StoreError, TurnfoldError
from graph.value.event import AnswerRestarted, InputRead, ThoughtDelta, TokenDelta
from graph.value.record import ArchivedMessage

_LOG = logging.getLogger(__name__)
# Of what the input leaves of the window: our estimate of the input may be too low, and some servers refuse the sum.
_ANSWER_SHARE: Final = 0.75
_LEAST_ANSWER_TOKENS: Final = 256
_MOST_ANSWER_TOKENS: Final = 16_384
_LIMITS: Final = {"max_tokens", "max_completion_tokens"}
_LOOKED_UP_SHARE: Final = 10  # of the input


class AnswerCall:
    """Calls the chat model in one run of the graph; every call is stored as a row, a failed one too.

    `answered` is the input of the last answered call; `is_heard`: the last call failed after some of its text was
    passed on, `is_shown`: after some of its text or thoughts were.
    """

    def __init__(self, deps: NodeDeps, turn: TurnContext, state: ChatState) -> None:
        self.answered: ModelInput | None = None
        self.is_heard = self.is_shown = False
        self._pieces: list[str] = []  # in the call that is under way, in all of its tries, with its thoughts
        self._text: list[str] = []  # in the try that is under way
        self._end = EarlyEnd()
        self._deps = deps
        self._turn = turn
        self._state = state

    def __call__(self, model: ChatRunnable, model_input: ModelInput) -> Answer:
        """Streams the answer's text as events; returns the whole answer. Raises `ModelError`, `TurnStoppedSignal`."""
        deps, settings = self._deps, self._deps.settings
        client = self._turn.client
        said = extract_current_turn(self._state["messages"])
        full = full_tokens(self._turn.system, model_input, self._turn.row.history_tokens, said)
        row_of = partial(call_row, deps, self._turn, model_input, kind="answer", full_tokens=full)
        keep = partial(keep_call, deps, self._turn)
        began = time.monotonic()
        self._pieces.clear()
        self._begin_try()
        if self.is_shown:
            self._restart()
        ask = partial(
            deps.models.caller.call,
            self._limited(model if client is None else _sampled(model, client, model_input), model_input),
            stop=self._turn.stop,
            deadline_seconds=settings.model_deadline_seconds,
            attempts=settings.model_attempts,
            on_text=self._hear,
            on_restart=self._restart,
            on_phase=self._tell,
            on_thought=self._hear_thought,
            on_revoke=self._sort,
            on_retry=self._turn.emit,
            may_restart=self._turn.supports_restart,
        )
        try:
            answer = self._ask_with_images(ask, model_input.messages)
        except EarlyEndSignal:
            answer = _ended_early("".join(self._text))
        except TurnfoldError as error:
            self._count(model_input, None, seconds=time.monotonic() - began, error_code=error.code)
            # The reason of the failure matters more to the user than a row that can't be written.
            with contextlib.suppress(StoreError):
                keep(row_of(None, seconds=time.monotonic() - began, error_code=error.code))
            raise
        seconds = time.monotonic() - began
        self._count(model_input, answer.usage, seconds=seconds)
        outlast(partial(keep, row_of(answer.usage, seconds=seconds)), self._turn.give_up)
        self.answered, self.is_heard, self.is_shown = model_input, False, False
        return answer

    def _hear(self, text: str) -> None:
        self.is_heard = self.is_shown = True
        self._pieces.append(text)
        self._text.append(text)
        self._turn.emit(TokenDelta(text))
        self._end.hear(text)

    def _begin_try(self) -> None:
        self._text.clear()
        self._end.restart()

    def _limited(self, model: ChatRunnable, model_input: ModelInput) -> ChatRunnable:
        """Returns the model with a limit on its answer where a weak one would keep the only slot busy for ever."""
        deps, client = self._deps, self._turn.client
        if not deps.models.has_one_slot or (client and _LIMITS & client.sampling.keys()):
            return model
        window_tokens = deps.models.window_tokens(deps.models.known_name(self._turn.row.model))
        sent_tokens = model_input.sent_tokens * deps.stores.state(self._turn.lease.session_id).calls.ratio
        left_tokens = int((window_tokens - sent_tokens) * _ANSWER_SHARE)
        return model.bind(max_tokens=min(max(left_tokens, _LEAST_ANSWER_TOKENS), _MOST_ANSWER_TOKENS))

    def _tell(self, phase: Phase) -> None:
        if phase.name == "reading":
            self._turn.emit(InputRead(phase.read_tokens, phase.input_tokens))

    def _hear_thought(self, thought: str) -> None:
        self.is_shown = True
        self._pieces.append(thought)
        self._turn.emit(ThoughtDelta(thought))

    def _sort(self) -> None:
        """Takes the call's text back: it comes again as thoughts, or the reverse."""
        self.is_heard = False
        self._pieces.clear()
        self._begin_try()
        self._turn.emit(AnswerRestarted(is_sorted=True))

    def _count(self, model_input: ModelInput, usage: Usage | None, *, seconds: float, error_code: str = "") -> None:
        self._deps.spending.add_call(
            self._turn.owner,
            "answer",
            usage,
            sent_tokens=model_input.sent_tokens,
            answer_text="".join(self._pieces),
            seconds=seconds,
            error_code=error_code,
        )

    def _restart(self) -> None:
        self.is_heard = self.is_shown = False
        self._begin_try()
        self._turn.emit(AnswerRestarted())

    def _ask_with_images(self, ask: Callable[..., Answer], messages: Sequence[AnyMessage]) -> Answer:
        """Calls the model with the images of the messages; one that takes none is sent older images as text.

        Raises:
            NoImagesError: The current question has images, and the model takes none.
        """
        models, name = self._deps.models, self._turn.row.model
        if not any(map(image_parts, messages)):
            return ask(messages)
        if models.takes_images(name):
            found = self._deps.stores.images.get(self._turn.lease.session_id, references_in(messages))
            try:
                return ask(with_images(messages, found))
            except NoImagesError:
                models.note_no_images(name)
                if _asks_with_images(messages):
                    raise
        elif _asks_with_images(messages):
            raise NoImagesError(models.known_name(name))
        return ask([without_images(message) for message in messages])


def _asks_with_images(messages: Sequence[AnyMessage]) -> bool:
    """Returns whether the current question has images; those of tools' results may be left out."""
    said = extract_current_turn(messages)
    return any(image_parts(message) for message in said if isinstance(message, HumanMessage))


def _ended_early(text: str) -> Answer:
    """Returns an answer that was ended as it repeats itself; without usage, which comes behind an answer's end."""
    metadata = {"finish_reason": REPETITION}
    return Answer(AIMessage(text, id=f"ai-{secrets.token_urlsafe(9)}", response_metadata=metadata), None)


def _sampled(model: ChatRunnable, client: ClientOptions, model_input: ModelInput) -> ChatRunnable:
    """Returns the model with the program's parameters as they are; that on tool calls only with tools."""
    sampling = dict(client.sampling)
    if all(item.kind != "tools" for item in model_input.items):
        sampling.pop("parallel_tool_calls", None)
    return model.bind(extra_body=sampling) if sampling else model


def call_row(
    deps: NodeDeps,
    turn: TurnContext,
    model_input: ModelInput,
    usage: Usage | None,
    *,
    kind: Literal["answer", "reasoning"],
    full_tokens: int,
    seconds: float,
    error_code: str = "",
) -> ModelCall:
    return ModelCall(
        id=f"call-{secrets.token_urlsafe(9)}",
        session_id=turn.lease.session_id,
        turn=turn.row.number,
        attempt=turn.row.attempt,
        kind=kind,
        model=deps.models.known_name(turn.row.model),
        manifest=tuple((item.kind, item.id, item.version, item.tokens) for item in model_input.items),
        input_hash=model_input.digest(),
        sent_tokens=model_input.sent_tokens,
        full_tokens=full_tokens,
        usage_input_tokens=usage.input_tokens if usage else None,
        usage_output_tokens=usage.output_tokens if usage else None,
        usage_cached_tokens=usage.cached_tokens if usage else None,
        seconds=seconds,
        error_code=error_code,
        created_at=deps.clock(),
    )


def tools_of(deps: NodeDeps, turn: TurnContext) -> list[BaseTool]:
    context = ToolContext(
        caller=deps.models.caller,
        model=deps.models.chat(turn.row.model),
        stop=turn.stop,
        time_zone=turn.time_zone,
        clock=deps.clock,
        deadline_seconds=deps.settings.tool_deadline_seconds,
        language=turn.language,
        keep=partial(_keep_side_call, deps, turn),
        past=_past_of(deps, turn) if turn.strategy.sends_records else None,
        project=turn.project,
        files=partial(_files_of, deps, turn) if turn.has_files else None,
        result_chars=deps.settings.tool_result_chars,
        user_words=partial(_user_words, deps, turn),
    )
    return [tool for tool in deps.tools(context) if turn.offers(tool.name)]


def looked_up(deps: NodeDeps, turn: TurnContext, question: str) -> str:
    """Returns what to set before a question if the model can't call tools: folded turns, passages of long files."""
    models = deps.models
    has_tools = models.takes_tools(models.known_name(turn.row.model)) or bool(turn.client_tools)
    can_call = has_tools and not turn.is_demand
    if can_call:
        return ""
    most_tokens = models.input_tokens(turn.row.model) // _LOOKED_UP_SHARE
    found = _turns_looked_up(deps, turn, question, most_tokens)
    if not turn.has_files or not turn.allows(FILE_TOOL):
        return found
    passages = look_in_files(_files_of(deps, turn), question, turn.language, max_tokens=most_tokens)
    return "\n\n".join(filter(None, (found, passages)))


def _turns_looked_up(deps: NodeDeps, turn: TurnContext, question: str, most_tokens: int) -> str:
    if not turn.strategy.sends_records or not turn.allows(RECALL_TOOL):
        return ""
    folded = {number for record in turn.state.active for number in record.turns}
    return look_up(_past_of(deps, turn), question, folded, turn.language, max_tokens=most_tokens)


def _files_of(deps: NodeDeps, turn: TurnContext) -> Mapping[str, Attachment]:
    """Returns the long files of a chat since its last reset, which the user made to have earlier ones forgotten."""
    return long_files(deps.stores.archive.whole_questions(turn.lease.session_id, turn.state.first_turn))


def _past_of(deps: NodeDeps, turn: TurnContext) -> PastTurns:
    past = past_turns(deps, turn.lease.session_id, turn.owner, open_turn=turn.row.number, stop=turn.stop)
    return replace(past, time_zone=turn.time_zone)


def past_turns(
    deps: NodeDeps, session_id: str, owner: str, *, open_turn: int, stop: threading.Event | None = None
) -> PastTurns:
    """Returns a session's turns before `open_turn`; `stop` ends the wait for the vector of a query."""
    search, vectors, embedder = deps.stores.search, deps.stores.vectors, deps.models.embedder

    def find(query: str, first: int, limit: int) -> list[int]:
        within = {"from_turn": first, "before_turn": open_turn, "limit": limit}
        by_words = search.turns(session_id, query, **within)
        if embedder is None or not vectors.has_any(session_id):
            return by_words
        began = time.monotonic()
        embedded = embedder.embed([query], deadline_seconds=QUERY_SECONDS, stop=stop)
        if embedded is None:
            return by_words
        seconds = time.monotonic() - began
        deps.spending.add(owner, "embedding", input_tokens=embedded.tokens, output_tokens=0, seconds=seconds)
        return fuse(by_words, vectors.turns(session_id, embedder.model, embedded.vectors[0], **within))[:limit]

    return PastTurns(
        open_turn=open_turn,
        result_chars=deps.settings.tool_result_chars,
        find=find,
        read=partial(_whole_turns, deps, session_id),
        first_turn=lambda: deps.stores.state(session_id).first_turn,
        unsaid=lambda query, first: search.unsaid(session_id, query, from_turn=first, before_turn=open_turn),
    )


def _whole_turns(deps: NodeDeps, session_id: str, first: int, last: int) -> list[ArchivedMessage]:
    """Returns the live messages of these turns, with the whole text of results that a later input has cut."""
    entries = deps.stores.archive.live_turns(session_id, first, last)
    whole = deps.stores.archive.whole_texts(session_id, first, last)
    return [
        replace(entry, message=with_words(entry.message, whole[str(entry.message.id)]))
        if str(entry.message.id) in whole
        else entry
        for entry in entries
    ]


def _user_words(deps: NodeDeps, turn: TurnContext) -> Iterator[str]:
    session_id = turn.lease.session_id
    entries = deps.stores.archive.live_turns(session_id, turn.state.first_turn, turn.row.number)
    return (text_of(entry.message) for entry in entries if isinstance(entry.message, HumanMessage))


def _keep_side_call(deps: NodeDeps, turn: TurnContext, side: SideCall) -> None:
    """Stores the model call of a tool; the tool's result counts more than a row that can't be written."""
    prompt, given = side.messages
    items = (
        InputItem("system", "reasoning", 1, message_tokens(prompt)),
        InputItem("call", side.call_id, 1, message_tokens(given)),
    )
    sent = ModelInput(side.messages, items)
    deps.spending.add_call(
        turn.owner,
        "reasoning",
        side.usage,
        sent_tokens=sent.sent_tokens,
        seconds=side.seconds,
        error_code=side.error_code,
    )
    row = call_row(
        deps,
        turn,
        sent,
        side.usage,
        kind="reasoning",
        full_tokens=sent.sent_tokens,
        seconds=side.seconds,
        error_code=side.error_code,
    )
    try:
        keep_call(deps, turn, row)
    except StoreError as error:
        session_id, number = turn.lease.session_id, turn.row.number
        _LOG.warning("a tool's call in session=%s turn=%d was not kept: %s", session_id, number, error.code)
