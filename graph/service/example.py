"""Makes the example chat: seven turns and two folds that were written beforehand, stored as any session is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from langchain_core.messages import AIMessage, HumanMessage

from graph.core.fold_record import begin_record, end_record, source_of
from graph.core.fold_spec import source_key
from graph.core.review import SummaryDraft
from graph.core.schedule import should_summarize
from graph.error import InternalError
from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.service.deletion import bring_back, erase_expired
from graph.store.database import Lease
from graph.strategy.interval import IntervalStrategy

ExampleLanguage = Literal["ko", "en"]
# Stands in the rows where a model's name does: no model wrote these answers and summaries.
EXAMPLE_MODEL: Final = "example"
EXAMPLE_RATE: Final = 0.3
_FOLDER: Final = Path(__file__).parents[1] / "example"
_CLAIM_SECONDS: Final = 60.0


def open_example(access: SessionAccess, language: ExampleLanguage) -> str:
    """Returns the id of the owner's example chat in this language, and makes it if there is none.

    Raises:
        BusyError: It is being made and wasn't ready in time.
    """
    session_id = _id_of(access.owner, language)
    told = json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    if not bring_back(access, [session_id]):
        erase_expired(access, has_others=True)
    session = access.stores.sessions.create(
        session_id,
        access.owner,
        compression_rate=EXAMPLE_RATE,
        strategy=IntervalStrategy.name,
        title=told["title"],
    )
    if session.turn_count >= len(told["turns"]):
        return session_id
    lease = access.stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
    try:
        if access.own(session_id).turn_count == 0:
            _write(access, lease, told["turns"], iter(told["summaries"]))
    except BaseException:
        access.stores.sessions.delete(session_id, access.owner)  # half of an example is none
        raise
    finally:
        access.stores.leases.release(lease)
    return session_id


def _id_of(owner: str, language: ExampleLanguage) -> str:
    """Returns the id that this owner's example always has, so that there is one at most."""
    return f"example-{language}-{hashlib.sha256(owner.encode()).hexdigest()[:24]}"


def _write(access: SessionAccess, lease: Lease, turns: Sequence[Mapping[str, str]], summaries: Iterator[str]) -> None:
    """Stores the turns in order, each fold where a chat would have it: before the turn that is the first to use it."""
    for number, told in enumerate(turns, start=1):
        if should_summarize(number):
            _fold(access, lease, number - 1, next(summaries))
        question = HumanMessage(told["user"], id=f"example-question-{number}")
        answer = AIMessage(told["answer"], id=f"example-answer-{number}", response_metadata={"finish_reason": "stop"})
        access.stores.turns.begin(lease, owner=access.owner, message=question, model=EXAMPLE_MODEL, is_casual=False)
        access.stores.archive.append(lease, owner=access.owner, turn=number, attempt=1, messages=[answer])
        access.stores.turns.finish(lease, number, "finished")


def _fold(access: SessionAccess, lease: Lease, complete_turns: int, summary: str) -> None:
    """Stores a summary as the fold worker stores a model's draft: planned, measured, reviewed, adopted."""
    session_id, records = lease.session_id, access.stores.records
    snapshot = access.fold_worker.snapshot(session_id, complete_turns=complete_turns, rate=EXAMPLE_RATE)
    spec = access.strategies.by_name[IntervalStrategy.name].due_folds(snapshot)[0]
    now = access.own(session_id).updated_at
    key = source_key(spec, model=EXAMPLE_MODEL, prompt_version="")
    begun = begin_record(session_id, spec, model=EXAMPLE_MODEL, source_key=key, created_at=now)
    draft = SummaryDraft(summary, input_tokens=0, output_tokens=0, is_usage=False)
    done = end_record(begun, source_of(spec, is_quoted=False), [draft], "", seconds=0.0)
    records.start(begun, owner=access.owner, expires_after_seconds=_CLAIM_SECONDS)
    records.end(done)
    if not records.adopt(lease, done.id):
        raise InternalError
