"""Lists, shows, configures, exports and deletes an owner's sessions, and makes the example."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from textwrap import dedent
from typing import Any, Final
from uuid import uuid4

from graph.core.text import HIDING, check_text, has_visible, plain_text, title_of
from graph.core.turn import edited_answer, label_of, text_of
from graph.layer.prompt_composer import memory_of
from graph.node.fold_worker import FoldWorker
from graph.search.term import count_marks, excerpt, strict_words, written_words
from graph.service.access import AFTERMATH_SECONDS, Choices, SessionAccess, new_session_id
from graph.service.deletion import OFFER_SECONDS, RETENTION_SECONDS, SessionEraser
from graph.service.example import EXAMPLE_RATE, ExampleWriter, read_example
from graph.service.turns import Turns, take_back_notes
from graph.store.owner import OwnerUseStore
from graph.store.search import Hit
from graph.store.session import SessionRow, is_in_title
from graph.store.session_import import import_sessions
from graph.store.transfer import export_lines
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.interval import IntervalStrategy
from graph.strategy.rolling import RollingStrategy, unsent_count
from graph.value.error import InputError, NotFoundError, PathError, UserTokensError
from graph.value.record import Record
from graph.value.view import (
    ContextNotice,
    EndpointProblem,
    ExportSize,
    FoldWhen,
    ModelOption,
    Outline,
    Place,
    SessionItem,
    SessionView,
    Thinking,
    TurnOptions,
    TurnView,
)
from graph.worker.project_context import SessionContexts
from graph.worker.project_turns import ProjectTurns
from graph.worker.session_watcher import Mark, Memory
from prompt.system.framing import CLOSED_ANSWER, SPEAKER, SUMMARY_HEADING, Language

_NEARLY_FULL: Final = 0.8
# Characters of all lines: thousands of turns. They are held in memory, and written in one transaction.
IMPORT_CHARS: Final = 20_000_000
_TURN: Final[Mapping[Language, str]] = {"ko": "{number}턴", "en": "Turn {number}"}
_FOUND_SESSIONS: Final = 1_000
_EXCERPT_CHARS: Final = 48  # three lines of the sidebar
_PLACE_CHARS: Final = 80


class Sessions:
    """The sessions of one owner. Methods that take a session id raise `NotFoundError` for an unknown one."""

    def __init__(  # noqa: PLR0913  # each is a piece of the engine
        self,
        access: SessionAccess,
        choices: Choices,
        turns: Turns,
        *,
        eraser: SessionEraser,
        fold_worker: FoldWorker,
        contexts: SessionContexts,
        project_turns: ProjectTurns | None,
        use: OwnerUseStore,
        example_writer: ExampleWriter,
    ) -> None:
        self._access = access
        self._owner = access.owner
        self._stores = access.stores
        self._choices = choices
        self._settings = choices.settings
        self._strategies = choices.strategies
        self._models = choices.models
        self._turns = turns
        self._eraser = eraser
        self._fold_worker = fold_worker
        self._contexts = contexts
        self._project_turns = project_turns
        self._use = use
        self._example_writer = example_writer

    def new_id(self, message_id: str | None = None) -> str:
        """Returns an unused id, always the same for the same `message_id`; the first message creates the session."""
        if message_id is None:
            return new_session_id()
        return hashlib.sha256(plain_text(f"{len(self._owner)}:{self._owner}{message_id}").encode()).hexdigest()[:32]

    def open_example(self, language: Language) -> str:
        """Returns the id of this owner's example chat, made if there is none; no model is called.

        Raises `BusyError` if it is being made and wasn't ready in time.
        """
        session_id = _example_id(self._owner, language)
        if not self.undo_delete([session_id]):
            self._eraser.erase_expired(has_others=True)
        example = read_example(language)
        session = self._stores.sessions.create(
            session_id,
            self._owner,
            compression_rate=EXAMPLE_RATE,
            strategy=IntervalStrategy.name,
            title=example["title"],
        )
        if session.turn_count >= len(example["turns"]):
            return session_id
        lease = self._stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
        try:
            if self._access.own(session_id).turn_count == 0:
                self._example_writer.write(lease, self._owner, example, language)
        except BaseException:
            self._stores.sessions.delete(session_id, self._owner)  # half of an example is none
            raise
        finally:
            self._stores.leases.release(lease)
        return session_id

    def list(
        self,
        *,
        search: str = "",
        last: int | None = None,
        also: str = "",
        before: tuple[datetime, str] | None = None,
        pinned_first: bool = False,
    ) -> tuple[SessionItem, ...]:
        """Returns the sessions, newest first.

        Args:
            search: Text in the title, or words that one message must have.
            last: Maximum number.
            also: A session appended if it is older than the others.
            before: Cursor: time and id of the last session of the page before.
            pinned_first: Not together with `before`.
        """
        hits = self._hits(search)
        rows = self._stores.sessions.list(
            self._owner, search=search, found=hits, limit=last, also=also, before=before, pinned_first=pinned_first
        )
        found = self._stores.search.found([row.session_id for row in rows if row.session_id in hits], search)
        return tuple(
            self._item(row, search, hits.get(row.session_id), len(found.get(row.session_id, ()))) for row in rows
        )

    def count(self, *, search: str = "") -> int:
        """Returns how many sessions `list` returns without a limit."""
        return self._stores.sessions.count(self._owner, search=search, found=self._hits(search))

    def _hits(self, search: str) -> dict[str, Hit]:
        return self._stores.search.sessions(self._owner, search, limit=_FOUND_SESSIONS) if search else {}

    def _item(self, row: SessionRow, search: str, hit: Hit | None, count: int) -> SessionItem:
        found_turn, found_text = None, ""
        if hit is not None and (count > 1 or not is_in_title(search, row.title)):
            ranges = [(hit.position, hit.position)]
            entries = self._stores.archive.live_within(row.session_id, ranges)
            found_turn = hit.turn
            found_text = excerpt(entries[0].message.text, strict_words(search), _EXCERPT_CHARS) if entries else ""
        is_running = row.is_open and self._access.is_running(row.session_id)
        return SessionItem(
            row.session_id,
            row.title,
            row.updated_at,
            row.turn_count,
            is_running,
            found_turn,
            found_text,
            count,
            row.client,
            row.is_pinned,
            row.forked_from,
            row.project_root,
            row.is_asking,
        )

    def outline(self, session_id: str, *, search: str = "") -> Outline:
        """Returns all turns by their questions, or by a sentence those with every word of `search` in one message."""
        self._access.own(session_id)
        words = strict_words(search)
        with self._stores.database.reading():
            started = self._stores.turns.started(session_id)
            questions = () if search else self._stores.archive.questions(session_id)
            texts = self._stores.search.found([session_id], search).get(session_id, {}) if search else {}
        marks = set[str]().union(*(written_words(text, search) for text in texts.values()))
        places = [Place(entry.turn, title_of(text_of(entry.message)), started[entry.turn]) for entry in questions]
        for turn, text in sorted(texts.items()):
            places.append(Place(turn, excerpt(text, words, _PLACE_CHARS), started[turn], count_marks(text, marks)))
        return Outline(tuple(places), tuple(sorted(marks)))

    def get(self, session_id: str) -> SessionView:
        """Returns a session's settings and state."""
        row = self._access.own(session_id)
        raw = self._stores.state(session_id).raw
        failures, code = self._stores.records.failures_in_a_row(session_id, raw[0].position) if raw else (0, "")
        origin = self._origin(row)
        projects = self._project_turns
        return SessionView(
            session_id=row.session_id,
            title=row.title,
            compression_rate=row.compression_rate,
            strategy=self._strategies.of(row.strategy).name,
            fold_when=row.fold_when or self._settings.fold_when,
            model=row.model or self._models.default_name,
            turn_count=row.turn_count,
            is_running=self._access.is_busy(session_id, is_open=row.is_open),
            fold_failures=failures,
            fold_error_code=code,
            unsent_messages=self._unsent_messages(row),
            context_notice=self._context_notice(row),
            project_root=row.project_root,
            has_memory=row.has_memory,
            project_problem=projects.problem(session_id) if projects is not None and row.project_root else None,
            client=row.client,
            is_pinned=row.is_pinned,
            forked_from=origin,
            forked_after=row.forked_after if origin else 0,
            thinking=row.thinking,
            is_asking=row.is_asking,
            brought_instructions=HIDING.sub(lambda found: ascii(found[0])[1:-1], row.brought_instructions),
        )

    def mark(self, session_id: str) -> Mark:
        """Returns what is equal as long as what a page shows of the session holds; see `SessionWatcher`.

        What other servers change shows within a second, and so does that an owner isn't let in any more.
        """
        mark, access, user = self._mark(session_id), self._access, (self._owner, self._access.sign_in)
        if access.is_ended() or not access.watcher.is_admitted(session_id, user, mark):
            access.own(session_id)
            access.watcher.admit(session_id, user, mark)
        return mark

    def _mark(self, session_id: str) -> Mark:
        access, models, projects = self._access, self._models, self._project_turns
        log = access.runner.running(session_id)
        memory = Memory(
            running=log.attempt_key if log else None,
            is_compacting=session_id in access.compacting,
            folds=(self._fold_worker.is_idle(session_id), self._fold_worker.is_held(session_id)),
            problem=projects.problem(session_id) if projects else None,
            window_tokens=models.window_tokens(models.default_name),
            is_signed_out=access.is_ended(),
        )
        return access.watcher.mark(self._owner, session_id, memory)

    def follow(
        self,
        session_id: str,
        tab: str,
        wake: Callable[[], bool],
        *,
        seen: Mark | None,
        again_seconds: float | None = None,
    ) -> None:
        """Has a tab that shows the session woken while its mark isn't the one seen; see `SessionWatcher.follow`."""
        self._access.own(session_id)
        look = partial(self._mark, session_id)
        follow = self._access.watcher.follow
        follow(tab, self._owner, session_id, look=look, wake=wake, seen=seen, again_seconds=again_seconds)

    def sharing(self, known: dict[Hashable, Any]) -> AbstractContextManager[None]:
        """Has methods called within share what each would read of the session, as long as its mark is the same."""
        return self._stores.database.sharing(known)

    def leave(self, tab: str) -> None:
        """Wakes a tab no more."""
        self._access.watcher.leave(tab)

    def siblings(self, session_id: str) -> Mapping[int, tuple[str, ...]]:
        """Returns by turn the sessions that part there, this one included: its origin, and branches of either."""
        return self._stores.sessions.siblings(self._access.own(session_id))

    def _origin(self, row: SessionRow) -> str:
        """Returns the session that this one was forked from if the owner has it still, else ""."""
        try:
            return self._access.own(row.forked_from).session_id if row.forked_from else ""
        except NotFoundError:
            return ""

    def _unsent_messages(self, row: SessionRow) -> int:
        """Counts the messages of complete turns that "rolling" neither summarised nor sends."""
        is_rolling = self._strategies.of(row.strategy).name == RollingStrategy.name
        if not is_rolling or self._settings.rolling_sends_unsummarised:
            return 0
        raw = self._stores.state(row.session_id).raw
        prior = [entry.message for entry in raw if entry.turn <= row.turn_count - row.is_open]
        return unsent_count(prior, self._settings.app_context_recent_messages)

    def _context_notice(self, row: SessionRow) -> ContextNotice:
        """Returns seed 004's warning: how full the context is while automatic compaction is off."""
        settings = self._settings
        if self._strategies.of(row.strategy).name != CompactionStrategy.name or settings.enable_auto_compaction:
            return ""
        turn_count, rate = row.turn_count, row.compression_rate
        snapshot = self._fold_worker.snapshot(row.session_id, complete_turns=turn_count, rate=rate)
        tokens = round(snapshot.context_tokens * snapshot.correction)
        if tokens > settings.max_context_tokens:
            return "full"
        return "nearly_full" if tokens > settings.max_context_tokens * _NEARLY_FULL else ""

    def configure(  # noqa: PLR0913  # each is a setting
        self,
        session_id: str,
        *,
        title: str | None = None,
        compression_rate: float | None = None,
        strategy: str | None = None,
        fold_when: FoldWhen | None = None,
        model: str | None = None,
        project_root: str | None = None,
        has_memory: bool | None = None,
        thinking: Thinking | None = None,
    ) -> SessionView:
        """Changes a session's title and settings, all or none; settings count from the next fold and turn on.

        Due folds are started again with them. Another project changes the context's front part with the next turn.

        Raises:
            InputError: A value is invalid.
            PathError: The project is outside the allowed folders.
        """
        options = TurnOptions(
            compression_rate=compression_rate,
            strategy=strategy,
            fold_when=fold_when,
            model=model,
            project_root=project_root,
            has_memory=has_memory,
            thinking=thinking,
        )
        session = self._access.own(session_id)
        changes = self._choices.changes_of(session, options)
        with self._stores.database.writing():
            if title is not None:
                self.rename(session_id, title)
            if changes:
                self._stores.sessions.update(session_id, self._owner, **changes)
        # Folds prepared with the old settings can't be used.
        self._prepare_folds(replace(session, **changes))
        return self.get(session_id)

    def choose_attempt(self, session_id: str, turn: int, attempt: int) -> None:
        """Makes one of a turn's `attempts` count from the next turn on; the present one stays among them.

        A record over the turn is withdrawn and its block folded again; the records behind it stand again after that.

        Raises:
            NotFoundError: The turn has no such attempt.
            BusyError: A turn is in progress.
        """
        self._turns.version(session_id, turn, attempt)  # raises
        with self._access.between_turns(session_id) as lease:
            session = self._access.own(session_id)
            if self._stores.turns.get(session_id, turn).attempt == attempt:
                return
            take_back_notes(self._access, self._project_turns, session, turn, roles={"ai"})
            self._stores.turns.choose(lease, turn, attempt)
        self._prepare_folds(session)

    def edit_answer(self, session_id: str, turn: int, text: str) -> str:
        """Makes a text count as a turn's answer, as a version beside the others; returns the session's id.

        Of an earlier turn than the last one, in a branch that ends with it. A record over the turn is withdrawn.

        Raises:
            NotFoundError: The turn has no answer.
            InputError: `empty` or `message_too_long`.
            BusyError: A turn is in progress.
        """
        if not has_visible(text):
            raise InputError("empty")
        if len(text) > self._settings.message_chars:
            raise InputError("message_too_long", f"{len(text)} > {self._settings.message_chars}")
        view = self._turns.transcript(session_id, last=1, before=turn + 1).turns
        if not view or view[0].number != turn or not view[0].answer_message_id:
            raise NotFoundError(str(turn))
        if not view[0].is_last:
            session_id = self._turns.fork(session_id, after_turn=turn)
        with self._access.between_turns(session_id) as lease:
            session, archive, turns = self._access.own(session_id), self._stores.archive, self._stores.turns
            messages = [entry.message for entry in archive.live_turns(session_id, turn, turn)]
            whole_texts = archive.whole_texts(session_id, turn, turn)
            said = [message for message in messages if message.type != "human"]
            edited = edited_answer(said, plain_text(text), lambda: f"edited-{uuid4().hex}")
            take_back_notes(self._access, self._project_turns, session, turn, roles={"ai"})
            row = turns.begin_attempt(lease, turn, model=view[0].model)
            cut = {str(new.id): whole_texts.get(str(old.id), "") for old, new in zip(said, edited, strict=True)}
            attempt, owner = row.attempt, self._owner
            archive.append(lease, owner=owner, turn=turn, attempt=attempt, messages=edited, whole_texts=cut)
            turns.finish(lease, turn, "finished")
        self._prepare_folds(session)
        return session_id

    def _prepare_folds(self, session: SessionRow) -> None:
        """Starts the due folds now, so that the next turn doesn't wait for them."""
        strategy = self._strategies.of(session.strategy)
        with suppress(UserTokensError):  # then they are made with the next turn that may begin
            self._use.check_tokens(self._owner)
            self._fold_worker.prepare_due(session.session_id, owner=self._owner, strategy=strategy)

    def update_context(self, session_id: str, context: Mapping[str, str]) -> Mapping[str, str]:
        """Stores a program's context for turns that begin from now on; returns the values in force.

        It is kept in memory: for this session without a project, else for all of the owner's sessions in the project.
        Keys are `currentFile` and `selection`; a blank value clears.

        Raises:
            InputError: Not all text, too long, or `context_not_kept` by `CONTEXT_VOLATILE`.
            PathError: The project's folder is gone or refused.
        """
        row = self._access.own(session_id)
        self._choices.chosen(TurnOptions(context=context))
        if self._settings.context_volatile == "request":
            raise InputError("context_not_kept")
        language = self._stores.state(session_id).language
        projects = self._project_turns
        if projects is not None and row.project_root:
            return projects.apply_context(self._owner, row.project_root, context, language)
        return self._contexts.apply_context(session_id, context, language)

    def memory(self, session_id: str) -> str:
        """Returns the lines of project memory in the session's prompt, as sent; "" for none."""
        self._access.own(session_id)
        front = self._stores.state(session_id).blocks.get("front")
        _, _, lines = memory_of(front.text if front else "").partition(":")
        return dedent(lines.lstrip("\n")).strip()

    def rename(self, session_id: str, title: str) -> None:
        """Changes a session's title; raises `InputError` if it is blank or too long."""
        self._access.own(session_id)
        check_text(title, max_chars=self._settings.message_chars)
        title = plain_text(title)
        self._stores.sessions.rename(session_id, self._owner, title_of(title))

    def pin(self, session_id: str, is_pinned: bool) -> None:  # noqa: FBT001  # what is chosen, not how
        """Lists a session before unpinned ones, or no longer."""
        self._access.own(session_id)
        self._stores.sessions.update(session_id, self._owner, is_pinned=is_pinned)

    def delete(self, session_id: str) -> None:
        """Stops the running turn and deletes everything stored of the session.

        Raises `BusyError` if the turn didn't end in time.
        """
        self._turns.stop(session_id)
        self._eraser.erase(session_id, self._owner)

    def delete_many(self, session_ids: Iterable[str]) -> tuple[str, ...]:
        """Marks sessions as deleted, and returns the ids of those that existed.

        They are gone for everybody at once, can be brought back for `RETENTION_SECONDS`, and are then erased in the
        background.
        """
        deleted: list[str] = []
        for session_id in dict.fromkeys(session_ids):
            try:
                self._turns.stop(session_id)
                self._stores.sessions.mark_deleted(session_id, self._owner)
            except NotFoundError:
                continue
            self._eraser.erase_later(session_id)
            deleted.append(session_id)
        return tuple(deleted)

    def just_deleted(self) -> dict[str, str]:
        """Returns the titles of the sessions whose deletion the page offers to undo, by their ids."""
        self._access.check_admitted()
        return self._stores.sessions.just_deleted(self._owner, within_seconds=OFFER_SECONDS)

    def undo_delete(self, session_ids: Iterable[str]) -> tuple[str, ...]:
        """Brings back deleted sessions, and returns the ids of those not erased yet."""
        self._access.check_admitted()
        return tuple(
            session_id
            for session_id in dict.fromkeys(session_ids)
            if self._stores.sessions.bring_back(session_id, self._owner, within_seconds=RETENTION_SECONDS)
        )

    def export(self, session_id: str, *, with_images: bool = True, with_whole: bool = True) -> tuple[str, ...]:
        """Returns the lines of an export of this session; see `graph.store.transfer.export_lines`.

        All lines are read at once, so that a slow reader doesn't block the database.
        """
        self._access.own(session_id)
        database = self._stores.database
        return tuple(export_lines(database, only=session_id, with_images=with_images, with_whole=with_whole))

    def export_size(self, session_id: str) -> ExportSize:
        """Returns how long the lines of an export of this session are."""
        self._access.own(session_id)
        read = partial(export_lines, self._stores.database, only=session_id)
        parts = read(), read(with_images=False), read(with_whole=False)
        whole, without_images, without_long = (sum(len(line) + 1 for line in lines) for lines in parts)
        return ExportSize(whole, whole - without_images, whole - without_long)

    def export_markdown(self, session_id: str) -> str:
        """Returns the session as Markdown to read: its turns with tools used, and its summaries."""
        with self._stores.database.reading():
            session = self._access.own(session_id)
            turns = self._turns.transcript(session_id, last=max(1, session.turn_count)).turns
            state = self._stores.state(session_id)
        return _to_markdown(session.title, turns, state.active, state.language)

    def import_session(self, lines: Iterable[str]) -> tuple[str, ...]:
        """Imports an export, and returns the new session ids.

        Turns with all attempts, versions of records, pins and model calls are kept. A taken id is replaced,
        and a project's folder not allowed here is left out. Contexts of programs and a project's memory can be read,
        but aren't sent any more.

        Raises:
            InputError: `not_an_export`, with the line's number, or `import_too_large`; nothing is stored.
            NewerDatabaseError: A newer version wrote the export.
            BusyError: The same session is being imported.
        """
        self._access.check_admitted()
        imported = import_sessions(
            self._stores.database,
            _bounded(lines),
            owner=self._owner,
            new_session_id=new_session_id,
            allowed=self._as_allowed,
        )
        for session_id in imported:
            last = self._stores.turns.last(session_id)
            if last is not None and last.status == "asking":
                self._turns.stop(session_id)  # nobody could allow its calls: it has no such tools here
        return imported

    def _as_allowed(self, row: dict[str, Any]) -> dict[str, Any]:
        """Returns an imported session's row without a strategy or a project's folder that there isn't here.

        Nor has it MCP tools or instructions: nobody here has chosen or allowed them. The latter are shown, to be used
        or not.
        """
        strategy, root = row["strategy"], row.get("project_root", "")
        try:
            root = str(self._choices.roots.resolve(root)) if root else ""
        except PathError:
            root = ""
        return {**row, "strategy": strategy if strategy in self._strategies.by_name else "", "project_root": root} | {
            "mcp_tools": (),
            "mcp_allowed": (),
            "instructions": "",
            "brought_instructions": row.get("instructions") or row.get("brought_instructions", ""),
        }

    def model_options(self) -> tuple[ModelOption, ...]:
        """Returns the models to choose from: the default one first, then those that the endpoint lists."""
        return self._models.options()

    def endpoint_problem(self) -> EndpointProblem | None:
        """Returns why the endpoint's list of models can't be had; None if it can."""
        return self._models.endpoint_problem()

    def default_model(self) -> str:
        """Returns the model of sessions that chose none; "" if the endpoint decides it and doesn't answer."""
        return self._models.default_name

    def strategies(self) -> tuple[str, ...]:
        """Returns the names of the strategies to choose from."""
        return tuple(self._strategies.by_name)

    def default_strategy(self) -> str:
        """Returns the strategy of sessions that chose none."""
        return self._strategies.default.name


def _example_id(owner: str, language: Language) -> str:
    """Returns the id that this owner's example always has, so that there is one at most."""
    return f"example-{language}-{hashlib.sha256(owner.encode()).hexdigest()[:24]}"


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines that aren't blank; raises `InputError` beyond `IMPORT_CHARS` characters."""
    left = IMPORT_CHARS
    for line in lines:
        left -= len(line)
        if left < 0:
            raise InputError("import_too_large", f"{IMPORT_CHARS:,}")
        if line.strip():
            yield line


# `</pre>` ends what begins with `<script>` and `<style>`, too.
_HTML_ENDS: Final = (("<!--", "-->"), ("<![", "]]>"), ("<!", ">"), ("<?", "?>"))


def _to_markdown(title: str, turns: Sequence[TurnView], records: Sequence[Record], language: Language) -> str:
    """Returns a session to read: each turn with its question quoted, then the summaries in force."""
    parts = [f"# {title}", *(_turn_text(turn, language) for turn in turns)]
    if records:
        parts += [f"## {SUMMARY_HEADING[language].strip('[]')}", *(_record_text(each, language) for each in records)]
    return "\n\n".join(parts) + "\n"


def _turn_text(turn: TurnView, language: Language) -> str:
    """Renders a turn. What the user said is quoted, so that no line of it is taken for a heading of another turn."""
    speakers = SPEAKER[language]
    answer = turn.answer_text or CLOSED_ANSWER.get((turn.status, language), "")
    parts = [
        f"## {_TURN[language].format(number=turn.number)}",
        f"**{speakers['human']}**",
        _quoted(turn.user_text),
        f"**{speakers['ai']}** · {turn.model}" if turn.model else f"**{speakers['ai']}**",
        "\n".join(f"- {speakers['tool']}: `{step.name}`" for step in turn.steps),
        _closed(answer),
    ]
    return "\n\n".join(part for part in parts if part)


def _closed(text: str) -> str:
    """Returns Markdown with its open code block or HTML closed, so that what follows isn't part of it.

    What is open in a list or a quote ends with that.
    """
    from markdown_it import MarkdownIt  # noqa: PLC0415  # needed for an export alone

    parser = MarkdownIt("commonmark", {"maxNesting": 20}).disable(["inline", "text_join"])
    last = parser.parse(f"{text}\n\n.")[-1]
    if last.type == "html_block":
        return (
            f"{text}\n{next((end for begin, end in _HTML_ENDS if last.content.lstrip().startswith(begin)), '</pre>')}"
        )
    return f"{text}\n{last.markup}" if last.type == "fence" else text


def _record_text(record: Record, language: Language) -> str:
    label = label_of(record.turns, language, record.days).strip()
    return f"**{label}**\n\n{_quoted(record.summary)}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or ">"
