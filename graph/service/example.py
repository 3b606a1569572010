"""Makes the example chat: prepared turns and summaries, with the inputs that the product would send for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final, TypedDict

from langchain_core.messages import AIMessage, HumanMessage

from graph.core.model_input import full_tokens, system_part
from graph.fold.record import begin_record, end_record
from graph.fold.review import SummaryDraft
from graph.fold.spec import source_key
from graph.node.fold_worker import FoldWorker
from graph.store.call import ModelCall
from graph.store.database import Lease
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow
from graph.strategy.interval import IntervalStrategy
from graph.strategy.strategies import Strategies
from graph.tool.registry import KnownTools, schema_text
from graph.value.error import InternalError
from graph.value.record import to_entry
from graph.value.view import EXAMPLE_MODEL
from prompt.system.framing import Language

EXAMPLE_RATE: Final = 0.3
_FOLDER: Final = Path(__file__).parents[1] / "example"
_CLAIM_SECONDS: Final = 60.0


class ExampleTurn(TypedDict):
    user: str
    answer: str


class Example(TypedDict):
    """The file of an example; each fold that falls due takes the next summary."""

    title: str
    turns: list[ExampleTurn]
    summaries: list[str]


def read_example(language: Language) -> Example:
    example: Example = json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return example


class ExampleWriter:
    """Stores examples as a chat stores its turns, folds and calls; all but the texts is computed. Nothing is sent."""

    def __init__(
        self,
        stores: ChatStores,
        fold_worker: FoldWorker,
        strategies: Strategies,
        known_tools: KnownTools,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._stores = stores
        self._fold_worker = fold_worker
        self._strategy = strategies.by_name[IntervalStrategy.name]
        self._known_tools = known_tools
        self._clock = clock

    def write(self, lease: Lease, owner: str, example: Example, language: Language) -> None:
        """Stores the turns in order, each fold where a chat would have it: before the turn that first uses it."""
        for number, turn in enumerate(example["turns"], start=1):
            self._fold(lease, owner, number - 1, example["summaries"])
            question = HumanMessage(turn["user"], id=f"example-question-{number}")
            answer = AIMessage(
                turn["answer"], id=f"example-answer-{number}", response_metadata={"finish_reason": "stop"}
            )
            row, _ = self._stores.turns.begin(
                lease, owner=owner, message=question, model=EXAMPLE_MODEL, is_casual=False
            )
            self._stores.calls.add(lease, self._call(row, language), owner=owner)
            self._stores.archive.append(lease, owner=owner, turn=number, attempt=1, messages=[answer])
            self._stores.turns.finish(lease, number, "finished")

    def _fold(self, lease: Lease, owner: str, complete_turns: int, summaries: Sequence[str]) -> None:
        """Stores the due folds as the fold worker stores a model's drafts: planned, measured, reviewed, adopted."""
        session_id, records = lease.session_id, self._stores.records
        snapshot = self._fold_worker.snapshot(session_id, complete_turns=complete_turns, rate=EXAMPLE_RATE)
        for spec in self._strategy.due_folds(replace(snapshot, fold_when="due")):  # the example has a text for each
            key = source_key(spec, model=EXAMPLE_MODEL, prompt_version="")
            started = begin_record(session_id, spec, model=EXAMPLE_MODEL, source_key=key, created_at=self._clock())
            draft = SummaryDraft(summaries[len(snapshot.active)], input_tokens=0, output_tokens=0, is_usage=False)
            done = end_record(started, spec, [draft], "", seconds=0.0)
            records.start(started, owner=owner, expires_after_seconds=_CLAIM_SECONDS)
            records.end(done)
            if not records.adopt(lease, done.id):
                raise InternalError

    def _call(self, row: TurnRow, language: Language) -> ModelCall:
        """Returns the row of the call that the chat would have made for a turn that has begun."""
        snapshot = self._fold_worker.snapshot(row.session_id, complete_turns=row.number, rate=EXAMPLE_RATE)
        _, tools = self._known_tools.offered(language, has_past=True, has_project=False)
        system = replace(system_part(language, can_recall=True), tool_schema=schema_text(tools))
        messages = [entry.message for entry in snapshot.raw]
        model_input = self._strategy.assemble(system, [to_entry(record) for record in snapshot.active], messages)
        return ModelCall(
            id=f"example-call-{row.number}",
            session_id=row.session_id,
            turn=row.number,
            attempt=row.attempt,
            kind="answer",
            model=EXAMPLE_MODEL,
            manifest=tuple((item.kind, item.id, item.version, item.tokens) for item in model_input.items),
            input_hash=model_input.digest(),
            sent_tokens=model_input.sent_tokens,
            full_tokens=full_tokens(system, model_input, row.history_tokens, messages[-1:]),
            usage_input_tokens=None,
            usage_output_tokens=None,
            usage_cached_tokens=None,
            seconds=0.0,
            error_code="",
            created_at=self._clock(),
        )
