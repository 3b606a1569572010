"""Has the oldest dialog of a project summarised in a thread of its own, as a model takes its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.fold_spec import Asked
from graph.core.review import SummaryDraft
from graph.error import TurnfoldError
from graph.model.factory import ChatModels
from graph.model.summariser import generate_summary
from graph.project.roll_up import TOKEN_LIMIT, Summarise
from graph.spending import Spending
from prompt.system.framing import Language

# Each summary costs a call; until it's made, a new session's is picked from what waits.
ROLL_UP_TOKENS: Final = TOKEN_LIMIT // 2


class RollUps:
    """Runs roll-ups one after the other; one that waits does for all that are asked for meanwhile.

    Args:
        models: Summarise; the session's summary model does.
        spending: Hears of what the summaries cost.
        deadline_seconds: How long a summary may take.
    """

    def __init__(self, models: ChatModels, spending: Spending, *, deadline_seconds: float) -> None:
        self._models = models
        self._spending = spending
        self._deadline_seconds = deadline_seconds
        self._stop = threading.Event()
        self._waiting: set[tuple[str, str]] = set()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="project-roll-up")

    def soon(self, memory: tuple[str, str], roll_up: Callable[[], object]) -> None:
        """Has the roll-up of a memory, by its owner and root, run; called by one thread."""
        if memory not in self._waiting:
            self._waiting.add(memory)
            self._pool.submit(self._run, memory, roll_up)

    def summarise(self, owner: str, model: str, language: Language) -> Summarise:
        """Returns what summarises for an owner's session of this chat model, as `Summariser.summarise` does."""

        def summarise(messages: Sequence[AnyMessage], target_chars: int) -> str:
            write = partial(
                self._models.summariser(model).summarise,
                asked=Asked(language=language),
                stop=self._stop,
                deadline_seconds=self._deadline_seconds,
            )
            drafts: list[SummaryDraft] = []
            began, error_code = time.monotonic(), ""
            try:
                return generate_summary(messages, target_chars, write, drafts=drafts)
            except TurnfoldError as error:
                error_code = error.code
                raise
            finally:
                seconds = time.monotonic() - began
                self._spending.add_summary(owner, drafts, seconds=seconds, error_code=error_code)

        return summarise

    def close(self) -> None:
        """Ends the summary that is being made: it is made after another answer."""
        self._stop.set()
        self._pool.shutdown(wait=True)

    def _run(self, memory: tuple[str, str], roll_up: Callable[[], object]) -> None:
        self._waiting.discard(memory)
        if not self._stop.is_set():
            roll_up()
