from __future__ import annotations

import threading
from collections import deque

import pytest

from graph.store.database import outlast
from graph.value.error import DatabaseBusyError, DatabaseUnreachableError, DiskFullError, StoreError


class Trying:
    """Raises these one after another, then returns how often it was called."""

    def __init__(self, *errors: StoreError) -> None:
        self._errors = deque(errors)
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        if self._errors:
            raise self._errors.popleft()
        return self.count


def test_what_the_database_could_not_do_while_it_was_away_is_done_again() -> None:
    assert outlast(Trying(DatabaseUnreachableError(), DatabaseBusyError()), threading.Event()) == 3


def test_any_other_error_is_told_at_once() -> None:
    trying = Trying(DiskFullError(), DatabaseUnreachableError())
    with pytest.raises(DiskFullError):
        outlast(trying, threading.Event())
    assert trying.count == 1


def test_it_is_tried_once_when_it_is_given_up_or_the_time_is_over() -> None:
    given_up = threading.Event()
    given_up.set()
    for give_up, seconds in ((given_up, 60.0), (threading.Event(), 0.0)):
        trying = Trying(DatabaseUnreachableError())
        with pytest.raises(DatabaseUnreachableError):
            outlast(trying, give_up, seconds=seconds)
        assert trying.count == 1
