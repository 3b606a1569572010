"""Sends, retries, branches, resumes, stops and follows turns; each turn runs in a worker thread."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.attached import data_urls, images_of, question_of, url_of, urls_of
from graph.core.language import is_casual, system_language
from graph.core.long_file import MOST_WHOLE_CHARS, sent_text, with_whole_files
from graph.core.made import NOTHING_MADE, MadeCalls, made_calls
from graph.core.text import estimate_tokens, has_visible, plain_text
from graph.core.title_text import opening_title
from graph.core.turn import ANY_IMAGE_MARK, text_of, without_returned, words_of
from graph.recognise.client_chain import is_chat_id
from graph.recognise.client_turns import check_history, continued, new_prefix, newest_calls, results_of
from graph.recognise.decide import Decision
from graph.service.access import AFTERMATH_SECONDS, Choices, SessionAccess, new_session_id, newest_mcp_tools
from graph.service.deletion import SessionEraser
from graph.service.program_input import import_history, pictures_of, tokens_beside
from graph.service.turn_start import TurnStarter, fingerprint_of
from graph.service.turn_stream import TurnStream, view_aside, views_of
from graph.store.database import Lease
from graph.store.fork import copy_session
from graph.store.session import ENDS_FRONT, SessionRow
from graph.store.state import SessionState
from graph.store.turn import TurnRow
from graph.tool.registry import allowance_of, mcp_tools, read_mcp
from graph.value.client import ClientMessage, is_image_url
from graph.value.error import BusyError, InputError, InputReason, NotFoundError
from graph.value.event import Event
from graph.value.view import LiveTurn, NamedImage, StartedTurn, Transcript, TurnOptions, TurnView, Word
from graph.worker.project_turns import ProjectTurns
from graph.worker.turn_log import pending_in
from prompt.system.framing import Language

_SMALLEST_WINDOW_TOKENS: Final = 1_000


class _Opening(NamedTuple):
    """Fields of a session that a message may create; the title is made from `questions`."""

    questions: tuple[str, ...]
    client: str
    group: str
    language: Language | None


class Turns:
    """The turns of one owner's sessions.

    Every method but `send` raises `NotFoundError` for an unknown session. `eraser` erases a branch whose question was
    refused.
    """

    def __init__(
        self,
        access: SessionAccess,
        choices: Choices,
        *,
        eraser: SessionEraser,
        starter: TurnStarter,
        project_turns: ProjectTurns | None,
    ) -> None:
        self._access = access
        self._owner = access.owner
        self._stores = access.stores
        self._runner = access.runner
        self._choices = choices
        self._message_chars = choices.settings.message_chars
        self._eraser = eraser
        self._starter = starter
        self._project_turns = project_turns

    # A message is sent: accepted, reserved, begun, started.

    def send(
        self,
        session_id: str,
        text: str,
        *,
        message_id: str | None = None,
        options: TurnOptions | None = None,
        images: Sequence[str | NamedImage] = (),
        wait_seconds: float = 0.0,
        decision: Decision | None = None,
        made: MadeCalls = NOTHING_MADE,
    ) -> int:
        """Commits the user's message and starts its turn in a worker; returns the turn's number.

        Idempotent by `message_id`; a refused message stores nothing.

        Args:
            session_id: Created if it doesn't exist.
            text: NUL and lone surrogates become U+FFFD, in the ids too. Of the page's, long files are kept beside the
                chat; a program's is sent whole or refused.
            options: Changes to the session's settings, from this turn on.
            images: `data:` URLs, kept with the session, or addresses for the provider, each with a name or not;
                the text may then be empty.
            wait_seconds: How long to wait for a turn in progress.
            decision: How a program's request was recognised; None for the page.
            made: What the turn whose place this one takes has done by tools.

        Raises:
            InputError: The text or an option is invalid, or the model takes no images.
            NotFoundError: The session belongs to another owner, or the owner was withdrawn.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
            StoreError: The message couldn't be committed.
        """
        options = options or TurnOptions()
        session_id = plain_text(session_id)
        urls = [url_of(image) for image in images]
        known = self._access.find(session_id)
        name = self._choices.models.known_name(options.model or (known.model if known else ""))
        sent = self._sent(name, text, options)
        message = self._accept(name, sent, message_id, options, images, urls)
        if message_id is not None and (number := self._number_of(session_id, message)) is not None:
            return number
        imported, brought = (decision.imported, decision.brought) if decision else ((), ())
        check_history((*imported, *brought))
        if decision is not None and decision.stop_first:
            self._stop_and_wait(session_id)
        first_tools = self._first_mcp_tools(known, options)  # may wait for a server: nothing is reserved yet
        try:
            opening = _opening_of(text_of(message), options, decision)
            with self._reserve(session_id, wait_seconds, opening=opening, known=known) as lease:
                self._check_unchanged(session_id, decision)
                with self._stores.database.writing() if imported or brought else contextlib.nullcontext():
                    if imported:
                        self._import(lease, imported, options.client_name)
                    before = options.client.preamble if options.client else ()
                    every = [*urls, *(plain_text(url) for earlier in before for url in earlier.images)]
                    whole = "" if sent == text else plain_text(text)
                    turn, session, state = self._begin(
                        lease, message, options, decision, data_urls(every), first_tools, whole_text=whole, known=known
                    )
                    messages = [message, *self._add(lease, turn, [message], brought), *made.messages]
                    self._append_made(lease, turn, made)
                if state is None or brought or made.messages:
                    state = self._state_of(session)
                self._starter.start(lease, turn, state, options, decision, messages=messages)
                return turn.number
        except BusyError:
            # If the message was sent twice at once, the session may be busy with this very message.
            if (number := self._number_of(session_id, message)) is not None:
                return number
            raise

    def _state_of(self, session: SessionRow) -> SessionState:
        return self._stores.state(session.session_id, whole_turns=self._choices.whole_turns(session.strategy))

    def _import(self, lease: Lease, imported: Sequence[ClientMessage], client: str) -> None:
        """Archives a history as turns; what isn't behind a user's message belongs to the turn that is open."""
        turn, messages = self._open_turn(lease.session_id)
        if turn is not None and newest_calls(messages):
            first = next((at for at, message in enumerate(imported) if message.role == "user"), len(imported))
            self._add(lease, turn, messages, imported[:first], is_all=True)
            imported = imported[first:]
        # Behind a turn that is left open, it would stay open for good: only the last one is closed.
        self._access.recovery.reconcile(lease, self._access.own(lease.session_id))
        if imported:
            import_history(self._access, lease, imported, client=client, model="")

    def _add(
        self,
        lease: Lease,
        turn: TurnRow,
        begun: Sequence[AnyMessage],
        added: Sequence[ClientMessage],
        *,
        is_all: bool = False,
    ) -> list[AnyMessage]:
        """Archives what a program brings to a turn that has begun: calls, their results, answers of other models."""
        if not added:
            return []
        language = self._stores.state(lease.session_id).language
        messages = continued(begun, added, id_prefix=new_prefix(), language=language, is_all=is_all)
        append, images = partial(self._stores.archive.append, lease, owner=self._owner), pictures_of(added, messages)
        append(turn=turn.number, attempt=turn.attempt, messages=messages, images=images)
        return messages

    def _sent(self, model: str, text: str, options: TurnOptions) -> str:
        """Returns a message of the page as it is sent, with the beginnings of long files."""
        if options.client is not None or len(text) > MOST_WHOLE_CHARS:
            return text  # the latter is refused
        window_tokens = self._choices.models.window_tokens(model)
        return sent_text(text, window_tokens=window_tokens, most_chars=self._message_chars)

    def _accept(
        self,
        model: str,
        text: str,
        message_id: str | None,
        options: TurnOptions,
        images: Sequence[str | NamedImage],
        urls: Sequence[str],
    ) -> HumanMessage:
        """Returns the message to store, once all that is sent is found to be valid; raises `InputError`."""
        if (text or not images) and not has_visible(text):
            raise InputError("empty")
        self._check_length(text)
        if not all(is_image_url(url) and url.isprintable() for url in urls):
            raise InputError("bad_image")
        text = plain_text(text)
        self._choices.chosen(options)
        self._check_window(model, text, options)
        if images and not self._choices.models.takes_images(model):
            raise InputError("no_images", model)
        return question_of(text, images, message_id=plain_text(message_id or f"user-{uuid.uuid4().hex}"))

    def _check_length(self, text: str) -> None:
        if len(text) > self._message_chars:
            raise InputError("message_too_long", f"{len(text)} > {self._message_chars}")

    def _check_window(self, model: str, text: str, options: TurnOptions) -> None:
        """Refuses a message that alone fills the context window, as no fold could make it fit.

        A program's, with all that is sent beside it, only if the window is known: else the model's server decides.
        """
        tokens = estimate_tokens(text) + (tokens_beside(options.client) if options.client else 0)
        if tokens < _SMALLEST_WINDOW_TOKENS:
            return
        models = self._choices.models
        window = models.reported_window_tokens(model) if options.client else models.window_tokens(model)
        if window is not None and tokens >= window:
            reason: InputReason = "over_guessed_window" if models.is_window_guessed(model) else "over_window"
            raise InputError(reason, f"≈{tokens} > {window}")

    def _number_of(self, session_id: str, message: HumanMessage) -> int | None:
        """Returns the turn of an archived message, else None; `NotFoundError` for another owner's."""
        try:
            number = self._stores.archive.get(session_id, str(message.id)).turn
        except NotFoundError:
            return None
        self._access.own(session_id)
        return number

    def _stop_and_wait(self, session_id: str) -> None:
        """Ends a turn to which its program no longer listens."""
        self.stop(session_id)
        if (log := self._runner.running(session_id)) is not None:
            log.wait_for_end(AFTERMATH_SECONDS)

    @contextmanager
    def _reserve(
        self,
        session_id: str,
        wait_seconds: float = 0.0,
        *,
        opening: _Opening | None = None,
        known: SessionRow | None = None,
    ) -> Iterator[Lease]:
        """Reserves a slot of the server and acquires the lease; the worker releases both.

        Waits for a turn in progress, and 5 s more for the clean-up after one. On error both are released, and a session
        created by `opening` is deleted if still empty. `known` is the session as it was just read.

        Raises:
            NotFoundError: The session belongs to another owner.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
        """
        access, stores, limiter = self._access, self._stores, self._runner.limiter
        if wait_seconds == 0 and access.is_busy(session_id, is_open=known is None or known.is_open):
            access.own(session_id)  # of another's nothing is told, not even this
            raise BusyError
        with ExitStack() as undo:
            limiter.begin(self._owner)
            undo.callback(limiter.end, self._owner)
            if opening is not None and known is None:
                stores.sessions.create(
                    session_id,
                    self._owner,
                    title=opening_title(map(plain_text, opening.questions)),
                    compression_rate=self._choices.settings.compression_rate,
                    strategy="",
                    client=opening.client,
                    group=opening.group,
                    language=opening.language,
                )
            lease = stores.leases.acquire(
                session_id,
                wait_seconds=max(wait_seconds, AFTERMATH_SECONDS),
                is_in_vain=None if wait_seconds else partial(access.is_busy, session_id),
            )
            undo.callback(stores.leases.release, lease)
            if opening is not None:
                undo.callback(stores.sessions.discard_empty, lease)
                if known is None:
                    access.own(session_id)  # nobody has checked yet that the owner is admitted
            yield lease
            undo.pop_all()

    def _check_unchanged(self, session_id: str, decision: Decision | None) -> None:
        """Checks that no other turn or attempt began since a program's request was recognised; raises `BusyError`."""
        if decision is None or decision.turn == 0:
            return
        last = self._stores.turns.last(session_id)
        if last is None or (last.number, last.attempt) != (decision.turn, decision.attempt):
            raise BusyError

    def _begin(
        self,
        lease: Lease,
        message: HumanMessage,
        options: TurnOptions,
        decision: Decision | None,
        images: Mapping[str, str],
        first_tools: Sequence[Mapping[str, Any]],
        *,
        whole_text: str,
        known: SessionRow | None,
    ) -> tuple[TurnRow, SessionRow, SessionState | None]:
        """Commits the message with its turn and changed settings; returns the turn, the session and its known state.

        Raises:
            NotFoundError: The owner has no such session.
            InputError: An option is invalid.
            BusyError: The same message was sent at the same time.
        """
        whole_turns = self._choices.whole_turns(known.strategy if known else "")
        state = self._stores.state(lease.session_id, whole_turns=whole_turns)
        session = state.row
        changes = self._choices.changes_of(session, options)
        if first_tools:
            changes["mcp_tools"] = tuple(first_tools)
        group = decision.group if decision else ""
        if group and group != session.family and (is_chat_id(group) or not session.family):
            changes["family"] = group
        session = replace(session, **changes)
        self._access.recovery.reconcile(lease, session, last=state.last)
        text = text_of(message)
        turn, entry = self._stores.turns.begin(
            lease,
            owner=self._owner,
            message=message,
            model=session.model,
            is_casual=is_casual(text) and is_casual(text, self._last_answer(lease.session_id)),
            settings=changes,
            client=options.client_name,
            fingerprint=fingerprint_of(decision),
            images=images,
            whole_text=whole_text,
        )
        if entry is None:
            raise BusyError  # the same message was sent twice at once, and the other call committed it
        session = replace(session, turn_count=turn.number)
        if ENDS_FRONT & changes.keys() or state.whole_turns != self._choices.whole_turns(session.strategy):
            return turn, session, None
        carried = self._stores.carry(lease.session_id, lambda known: known.said([entry], is_long=bool(whole_text)))
        if carried is not None:
            row = replace(session, context_revision=carried.row.context_revision)
            carried = replace(carried, row=row, last=turn, for_all=state.for_all).within(state.whole_turns)
        return turn, session, carried

    def _first_mcp_tools(self, known: SessionRow | None, options: TurnOptions) -> Sequence[Mapping[str, Any]]:
        """Returns the MCP tools that a new session begins with: the newest chat's, or those that a token names.

        None if the message brings its own, or the session isn't new.
        """
        if options.mcp_tools is not None or (known is not None and known.turn_count):
            return ()
        if options.client is not None:
            return self._choices.mcp_named(options.client)
        return newest_mcp_tools(self._stores.sessions, self._owner)

    def _last_answer(self, session_id: str) -> str:
        with self._stores.database.reading():
            last = self._stores.turns.last(session_id)
            entries = self._stores.archive.live_turns(session_id, last.number, last.number) if last else []
        return text_of(entries[-1].message) if entries else ""

    # A turn is run again: the last one in its place, an earlier one in a branch.

    def retry(self, session_id: str, *, options: TurnOptions | None = None) -> int:
        """Runs a failed, stopped or waiting last turn again, and returns its number.

        Raises:
            InputError: `not_last`: the last turn is none of these; or an option is invalid.
            BusyError: A turn is in progress.
        """
        return self._run_again(session_id, {"failed", "stopped"}, options or TurnOptions())

    def regenerate(
        self, session_id: str, *, turn: int | None = None, options: TurnOptions | None = None
    ) -> StartedTurn:
        """Answers a turn again: the last one (None) in its place, an earlier one in a branch of the session.

        Raises:
            NotFoundError: There is no such turn.
            InputError: `not_last`: the last turn is neither finished nor waits for a program; or an option is invalid.
            BusyError: The last turn is in progress, or a limit of the server is reached.
        """
        options = options or TurnOptions()
        if turn not in {None, self._access.own(session_id).turn_count}:
            return self._ask_in_branch(session_id, turn, options)
        return StartedTurn(session_id, self._run_again(session_id, {"finished"}, options, turn=turn))

    def regenerate_answer(self, session_id: str, *, options: TurnOptions, decision: Decision) -> int:
        """Answers the last turn again for a program that sent its question again, however the turn ended.

        Raises:
            InputError: An option is invalid.
            BusyError: A turn is in progress.
        """
        return self._run_again(session_id, {"finished", "failed", "stopped"}, options, decision)

    def _run_again(
        self,
        session_id: str,
        statuses: Collection[str],
        options: TurnOptions,
        decision: Decision | None = None,
        *,
        turn: int | None = None,
    ) -> int:
        """Starts another attempt if the last turn has such a status or waits for a program, and is `turn` if given."""
        self._choices.chosen(options)
        self._access.own(session_id)
        turns = self._stores.turns
        with self._reserve(session_id) as lease:
            self._check_unchanged(session_id, decision)
            session = self._access.own(session_id)
            last = turns.last(session_id)
            is_waiting = last is not None and last.is_waiting
            self._access.recovery.reconcile(lease, session)
            last = turns.last(session_id)
            if last is None or turn not in {None, last.number} or not (is_waiting or last.status in statuses):
                raise InputError("not_last", f"{last.number if last else 0}")
            take_back_notes(self._access, self._project_turns, session, last.number, roles={"ai"})
            made = self._made(session, last)
            changes = self._choices.changes_of(session, options)
            session = replace(session, **changes)
            started = turns.begin_attempt(
                lease,
                last.number,
                model=session.model,
                settings=changes,
                client=options.client_name,
                fingerprint=fingerprint_of(decision),
            )
            if decision is not None and decision.brought:
                asked = self._stores.archive.get(session_id, started.user_message_id).message
                self._add(lease, started, [asked], decision.brought)
            self._append_made(lease, started, made)
            self._starter.start(lease, started, self._state_of(session), options, decision, messages=made.messages)
        return started.number

    def _made(self, session: SessionRow, turn: TurnRow) -> MadeCalls:
        """Returns what the attempts of a turn have done by tools of servers, for the next attempt to go on behind."""
        session_id, state = session.session_id, self._stores.state(session.session_id)
        begun = state.blocks.get("mcp")
        tools = {tool.offered: tool for tool in (*mcp_tools(session.mcp_tools), *read_mcp(begun.text if begun else ""))}
        entries = self._stores.archive.all_of_turn(session_id, turn.number)
        waiting = [str(call["id"]) for call in turn.asked_calls]
        attempts = [(entry.attempt, entry.message) for entry in entries]
        whole_text, returned = partial(self._stores.archive.whole_text, session_id), self._access.recovery.returned
        return made_calls(attempts, tools, whole_text, state.language, waiting=waiting, returned=returned(session_id))

    def _append_made(self, lease: Lease, turn: TurnRow, made: MadeCalls) -> None:
        """Archives what earlier attempts have made as the beginning of this one."""
        if made.messages:
            append, texts = partial(self._stores.archive.append, lease, owner=self._owner), made.whole_texts
            messages = [*map(without_returned, made.messages)]
            append(turn=turn.number, attempt=turn.attempt, messages=messages, whole_texts=texts)

    def edit(self, session_id: str, turn: int, text: str, *, options: TurnOptions | None = None) -> str:
        """Asks another question in place of a turn's, in a branch; returns the branch's id.

        The branch has the turns before that one, and the question's images.

        Raises:
            NotFoundError: There is no such turn.
            InputError: The text or an option is invalid.
            BusyError: A limit of the server is reached.
        """
        return self._ask_in_branch(session_id, turn, options or TurnOptions(), text=text).session_id

    def _ask_in_branch(
        self, session_id: str, turn: int, options: TurnOptions, *, text: str | None = None
    ) -> StartedTurn:
        """Asks the turn's question, or `text`, in a session with the turns before it; none is left if refused."""
        with self._stores.database.reading():
            session = self._access.own(session_id)
            row = self._stores.turns.get(session_id, turn)
            asked = self._stores.archive.get(session_id, row.user_message_id).message
            retained = self._stores.images.get(session_id, urls_of(asked))
            whole = self._stores.archive.whole_text(session_id, row.user_message_id)
            made = self._made(session, row)
        text = words_of(asked) if text is None else _without_marks(text, len(urls_of(asked)))
        text = with_whole_files(text, whole) if whole else text
        # An image that is no longer there leaves its reference behind, which no provider takes.
        found = [image._replace(url=retained.get(image.url, image.url)) for image in images_of(asked)]
        images = [image for image in found if is_image_url(image.url)]
        with ExitStack() as undo:
            branch = self.fork(session_id, after_turn=turn - 1, client=options.client_name)
            undo.callback(self._eraser.erase, branch, self._owner)
            if has_visible(text):
                self._stores.sessions.rename(branch, self._owner, opening_title([plain_text(text)]), source="")
            number = self.send(branch, text, options=options, images=images, made=made)
            undo.pop_all()
        return StartedTurn(branch, number)

    def fork(
        self, session_id: str, *, after_turn: int, group: str = "", client: str = "", new_id: str | None = None
    ) -> str:
        """Copies the turns up to `after_turn`, with all their attempts, into a new session, and returns its id.

        Nothing is copied if there is a session `new_id` already.

        Records that reach further give way to their sources or to raw turns. Folds cost in the origin only.

        Raises:
            NotFoundError: There is no such turn.
            BusyError: The last turn to copy is in progress.
        """
        new_id, database = new_id or new_session_id(), self._stores.database
        # All that is read within takes the connection that writes: with another one each, forks would wait for one
        # another.
        with database.writing(), database.write(session_id=session_id) as connection:
            # Nobody else writes to it meanwhile, so what is read here stays true.
            if not 0 <= after_turn <= self._access.own(session_id).turn_count:
                raise NotFoundError(str(after_turn))
            live = self._access.live_turn(session_id)
            if live is not None and live.number == after_turn:
                raise BusyError
            if self._access.find(new_id) is not None:
                return new_id
            copy_session(connection, session_id, new_id, after_turn=after_turn, client=client, group=group)
        return new_id

    # A turn that waits for a program goes on.

    def resume(
        self,
        session_id: str,
        answers: Sequence[ClientMessage],
        *,
        options: TurnOptions | None = None,
        decision: Decision | None = None,
    ) -> int:
        """Continues the turn that waits for a program, in the same attempt, and returns its number.

        `answers` are to all calls of `ActionRequired`, in any order; the program's copy of the assistant's message may
        be among them; a call that it changed is added with its answer. The same answers again continue a turn whose
        server died.

        Raises:
            InputError: `unanswered_call` or `unknown_call`, with their ids; `message_too_long`; an option is invalid.
            BusyError: See `send`.
        """
        options = options or TurnOptions()
        self._choices.chosen(options)
        self._access.own(session_id)
        for answer in answers:
            if answer.role == "tool":
                self._check_length(answer.text)
        with self._reserve(session_id) as lease:
            session = self._access.own(session_id)
            changes = self._choices.changes_of(session, options)
            session = replace(session, **changes)
            last, messages = self._open_turn(session_id)
            if last is not None and last.status == "asking":
                raise InputError("unknown_call")  # the user decides, and no program
            language = self._stores.state(session_id).language
            results = results_of(messages, answers, id_prefix=new_prefix(), language=language)
            turn = self._stores.turns.resume(
                lease,
                last.number if last else 0,
                owner=self._owner,
                messages=results,
                images=pictures_of(answers, results),
                model=session.model,
                settings=changes,
                client=options.client_name,
                fingerprint=fingerprint_of(decision),
            )
            resumed = [*messages, *results]
            self._starter.start(lease, turn, self._state_of(session), options, decision, resumed=resumed)
        return turn.number

    def answer(self, session_id: str, words: Mapping[str, Word], *, options: TurnOptions | None = None) -> int:
        """Continues the turn that waits for the user's word, in the same attempt; see `McpChat.answer`."""
        self._access.own(session_id)
        with self._reserve(session_id) as lease:
            session = self._access.own(session_id)
            last, messages = self._open_turn(session_id)
            pending = pending_in(last, messages) if last else ()
            if unknown := words.keys() - {call.call_id for call in pending}:
                raise InputError("unknown_call", ", ".join(sorted(unknown)))
            if last is None or (missing := [call.call_id for call in pending if call.call_id not in words]):
                raise InputError("unanswered_call", ", ".join(missing) if last else "")
            self._access.recovery.reconcile(lease, session, keeps_waiting=True)
            always = {call["name"] for call in newest_calls(messages) if words.get(str(call["id"])) == "always"}
            begun = self._stores.state(session_id).blocks.get("mcp")
            tools = read_mcp(begun.text) if begun else ()
            added = (allowance_of(tool) for tool in tools if tool.offered in always)
            allowed = tuple(dict.fromkeys((*session.mcp_allowed, *added)))
            turn = self._stores.turns.resume(
                lease, last.number, owner=self._owner, messages=(), model=last.model, settings={"mcp_allowed": allowed}
            )
            session = replace(session, mcp_allowed=allowed)
            made = {call_id: word != "no" for call_id, word in words.items()}
            state, options = self._state_of(session), options or TurnOptions()
            self._starter.start(lease, turn, state, options, None, resumed=messages, words=made)
        return turn.number

    def _open_turn(self, session_id: str) -> tuple[TurnRow | None, list[AnyMessage]]:
        """Returns the session's open turn and its messages, (None, []) for none."""
        last = self._stores.turns.last(session_id)
        if last is None or not last.is_open:
            return None, []
        entries = self._stores.archive.live_turns(session_id, last.number, last.number)
        return last, [entry.message for entry in entries]

    # Turns are followed, stopped and shown.

    def follow(self, session_id: str, *, timeout_seconds: float | None = None) -> Iterator[Event]:
        """Yields all events of the newest turn that this process ran for the session; see `graph.value.event`.

        Ends early after `timeout_seconds` without an event. Raises `NotFoundError` if this process ran none.
        """
        self._access.own(session_id)
        log = self._runner.log(session_id)
        if log is None:
            raise NotFoundError(session_id)
        return log.follow(timeout_seconds=timeout_seconds)

    def stop(self, session_id: str) -> None:
        """Ends the running turn or compaction, keeping partial text, or closes a turn that waits."""
        self._access.own(session_id)
        if (log := self._runner.running(session_id)) is not None:
            log.stop.set()
        if (compaction := self._access.compacting.get(session_id)) is not None:
            compaction.set()
        last = self._stores.turns.last(session_id)
        if last is None or not last.is_open or not (last.is_waiting or self._access.is_running(session_id)):
            return  # of a turn whose server died nobody stops anything
        self._stores.turns.request_stop(session_id, last.number)
        if last.is_waiting:
            with contextlib.suppress(BusyError), self._access.between_turns(session_id, keeps_waiting=False):
                pass  # to hold the lease closes it

    def live(self, session_id: str, *, seen: LiveTurn | None = None, wait_seconds: float = 0.0) -> LiveTurn | None:
        """Returns the progress of the running turn once it differs from `seen`, in whichever process.

        None if none runs.
        """
        self._access.own(session_id)
        log = self._access.followed(session_id, seen) if wait_seconds else None
        if log is not None:
            log.wait_for_news(seen, wait_seconds)
            if not log.is_over:
                return log.view()
        return self._access.live_turn(session_id)

    def thoughts(self, session_id: str, turn: int, *, attempt: int | None = None) -> str:
        """Returns what the model thought in an attempt, the one that counts if None; no model is sent it again."""
        self._access.own(session_id)
        return self._stores.turns.thoughts(session_id, turn, attempt)

    def stream(self, session_id: str, turn: int | None = None) -> TurnStream | None:
        """Returns a turn for a program to follow, the newest one if `turn` is None; None if there is none yet."""
        session, turns = self._access.own(session_id), self._stores.turns
        row = turns.last(session_id) if turn is None else turns.get(session_id, turn)
        if row is None:
            return None
        return TurnStream(self._access, self._choices.models, session, row, self._access.log_of(row))

    def transcript(self, session_id: str, *, last: int = 30, before: int | None = None) -> Transcript:
        """Returns the newest `last` turns, or the newest before this number, each in its last attempt."""
        session = self._access.own(session_id)
        found = self._stores.turns.list(session_id, last=last + 1, before=before)
        rows = found[-last:]
        if not rows:
            return Transcript((), 0)
        turns, resets = views_of(self._access, session, rows), self._stores.resets
        reset_after = resets.turns(session_id) if session.context_from_position else ()
        previous_at = found[0].started_at if len(found) > last else None
        return Transcript(
            turns,
            rows[0].number - 1,
            reset_after,
            can_undo_reset=bool(reset_after) and resets.can_undo(session_id),
            previous_at=previous_at,
        )

    def whole_result(self, session_id: str, turn: int, attempt: int, call_id: str) -> str:
        """Returns the whole text of a call's result in an attempt, which the input may have cut."""
        self._access.own(session_id)
        archive = self._stores.archive
        of_attempt = (each.message for each in archive.all_of_turn(session_id, turn) if each.attempt == attempt)
        results = (message for message in of_attempt if isinstance(message, ToolMessage))
        found = next((result for result in results if result.tool_call_id == call_id), None)
        if found is None:
            raise NotFoundError(call_id)
        return archive.whole_text(session_id, str(found.id)) or words_of(found)

    def version(self, session_id: str, turn: int, attempt: int) -> TurnView:
        """Returns a turn as one of its `attempts` answered it; raises `NotFoundError` if it isn't one of them."""
        return view_aside(self._access, self._access.own(session_id), turn, attempt)

    def image(self, session_id: str, reference: str) -> str:
        """Returns the `data:` URL of an image of the session; "" if it isn't there any more."""
        self._access.own(session_id)
        return self._stores.images.get(session_id, {reference}).get(reference, "")


def take_back_notes(
    access: SessionAccess, projects: ProjectTurns | None, session: SessionRow, turn: int, *, roles: Collection[str]
) -> None:
    """Has the session's project forget the live messages of these types in a turn."""
    if projects is not None and session.project_root:
        entries = access.stores.archive.live_turns(session.session_id, turn, turn)
        ids = [str(entry.message.id) for entry in entries if entry.message.type in roles]
        projects.take_back(access.owner, session.project_root, session.session_id, ids)


def _without_marks(text: str, count: int) -> str:
    """Returns the text without the last `count` lines that only stand for an image."""
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if ANY_IMAGE_MARK.fullmatch(line.strip())]
    left_out = set(marks[-count:] if count else ())
    return "\n".join(line for number, line in enumerate(lines) if number not in left_out)


def _opening_of(text: str, options: TurnOptions, decision: Decision | None) -> _Opening:
    """Returns the fields of a session to create; an imported one is titled after its first questions."""
    language = system_language(options.client.system or "") if options.client else None
    if decision is None:
        return _Opening((text,), options.client_name, "", language)
    questions = (earlier.text for earlier in decision.imported if earlier.role == "user")
    return _Opening((*questions, text), options.client_name, decision.group, language)
