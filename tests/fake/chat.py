"""Drives one session of a real service as a user would, and reads the rows behind it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from graph.service import ChatService
from graph.store.schema import METADATA
from graph.value.event import LAST_EVENTS, Event, TokenDelta, TurnFinished
from graph.value.view import LiveTurn, SessionView, TurnOptions, TurnView
from tests.fake.rows import change_rows, read_rows

_PATIENCE_SECONDS: Final = 60.0


def question(number: int) -> str:
    """A question long enough for a summary to be worth it; it names its number, so that it can be found again."""
    return (
        f"질문 {number}번입니다. 서버 이전은 10월 {number}일에 하기로 했고 담당자는 김민수입니다. "
        f"예산은 {number}20만 원이며 데이터베이스를 먼저 복제한 뒤에 트래픽을 옮깁니다. 빠진 점이 있는지 설명해 주세요."
    )


class Chat:
    """One session of a service, turn by turn; as a context it ends with the service that was opened for it."""

    def __init__(self, service: ChatService, session_id: str = "", *, close: Callable[[], None] | None = None) -> None:
        self.service = service
        self.session_id = session_id or service.sessions.new_id()
        self._close = close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the service, as its server would at the end."""
        assert self._close is not None, "its service was opened by somebody else"
        self._close()

    def say(self, text: str, *, options: TurnOptions | None = None) -> list[Event]:
        self.start(text, options=options)
        return self.events()

    def ask(self, first: int, last: int) -> None:
        """Has the turns `first` to `last` with a question of that number each; every one must be answered."""
        for number in range(first, last + 1):
            ending = self.say(question(number))[-1]
            assert isinstance(ending, TurnFinished), ending
            assert ending.turn == number
            self.wait_for_folds()

    def start(self, text: str, *, options: TurnOptions | None = None) -> int:
        return self.service.turns.send(self.session_id, text, message_id=f"user-{uuid.uuid4().hex}", options=options)

    def retry(self) -> list[Event]:
        self.service.turns.retry(self.session_id)
        return self.events()

    def regenerate(self) -> list[Event]:
        self.service.turns.regenerate(self.session_id)
        return self.events()

    def stop_when(self, is_time: Callable[[LiveTurn], bool]) -> list[Event]:
        """Stops the running turn once it looks like that, and returns its events."""
        self.wait_until_live(is_time)
        self.service.turns.stop(self.session_id)
        return self.events()

    def events(self) -> list[Event]:
        events = list(self.service.turns.follow(self.session_id, timeout_seconds=_PATIENCE_SECONDS))
        assert isinstance(events[-1], LAST_EVENTS), events
        return events

    @property
    def view(self) -> SessionView:
        return self.service.sessions.get(self.session_id)

    @property
    def turns(self) -> tuple[TurnView, ...]:
        return self.service.turns.transcript(self.session_id, last=1_000).turns

    @property
    def last_turn(self) -> TurnView:
        return self.turns[-1]

    @property
    def covered(self) -> list[tuple[int, ...]]:
        """The turns of each active record, oldest first."""
        return [record.turns for record in self.service.folds.records(self.session_id)]

    def rows(self, query: str, *values: object) -> list[Any]:
        return read_rows(self.service.settings, query, *values)

    def change(self, statement: str) -> None:
        """Writes to the database itself, as a crash or a full disk would leave it."""
        change_rows(self.service.settings, statement)

    def copy(self, count: int) -> None:
        """Adds copies of this session to the file, for lists of many."""
        for table in ("session", "turn"):  # a chat is listed by its turns
            columns = [column.name for column in METADATA.tables[table].columns]
            name = f"'{self.session_id}-' || n"
            values = ", ".join(name if column == "session_id" else column for column in columns)
            self.change(
                f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) "  # noqa: S608  # names of our own
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table}, numbers "
                f"WHERE session_id = '{self.session_id}'"
            )

    def wait_for_folds(self) -> None:
        query = "SELECT count(*) FROM record WHERE session_id = ? AND status = 'IN_PROGRESS'"
        fold_worker = self.service._engine.fold_worker  # noqa: SLF001  # nobody but a test has to know
        self.wait_until(lambda: fold_worker.is_idle(self.session_id) and self.rows(query, self.session_id) == [(0,)])

    def wait_until_live(self, is_time: Callable[[LiveTurn], bool]) -> None:
        """Waits until a turn is running and looks like that."""
        self.wait_until(lambda: (live := self.service.turns.live(self.session_id)) is not None and is_time(live))

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_true():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.01)


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TokenDelta))


def text_in(content: str) -> str:
    """The text of a message as its row has it."""
    said = json.loads(content)
    return str(said if isinstance(said, str) else said["content"])


def names(events: Sequence[Event]) -> list[str]:
    """The events' names in order, each run of text pieces as one."""
    found: list[str] = []
    for event in events:
        name = type(event).__name__
        if not (isinstance(event, TokenDelta) and found[-1:] == [name]):
            found.append(name)
    return found
