"""The context of sessions without a project: what programs say of it, and the block of a turn."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from graph.core.context_block import ContextRequest
from graph.layer.block_text import render_block
from graph.layer.context_key import CURRENT_FILE, SELECTION
from graph.layer.request_context import RequestPolicy, apply_request
from graph.layer.scope import ContextSnapshot
from graph.worker.newest import Newest
from prompt.system.context_layer import VOLATILE_HEADING
from prompt.system.framing import Language

_KEPT_SESSIONS: Final = 1_000


class SessionContexts:
    """The volatile values of the newest 1,000 sessions without a project, in memory. Safe to use from any thread.

    The server's own folder isn't among them: without a project, nobody works there.

    Args:
        policy: See `apply_request`.
    """

    def __init__(self, policy: RequestPolicy) -> None:
        self._policy = policy
        self._lock = threading.Lock()
        self._values: Newest[str, ContextSnapshot] = Newest(_KEPT_SESSIONS)

    def told(self, session_id: str, context: Mapping[str, object], language: Language) -> ContextSnapshot:
        """Takes over what a request says of its context, and returns the volatile values that hold for it.

        Args:
            session_id: The session.
            context: `currentFile` and `selection`, each a text; see `apply_request`. Others are dropped.
            language: Of the note of what was cut.
        """
        said = {key: context[key] for key in (CURRENT_FILE, SELECTION) if key in context}
        with self._lock:
            stored = self._values.get(session_id) or {}
            values = apply_request(stored, said, policy=self._policy, language=language)
            if values and self._policy == "merge":
                self._values.put(session_id, values)
            elif stored:
                self._values.drop(session_id)
        return values

    def forget(self, session_id: str) -> None:
        """Forgets the values of a deleted session."""
        self._values.drop(session_id)


def without_project(request: ContextRequest) -> tuple[str, str]:
    """Composes the blocks of a turn without a project, as a `ContextSource`: of its volatile values alone."""
    values = {key: request.context[key] for key in (CURRENT_FILE, SELECTION) if key in request.context}
    return "", render_block(VOLATILE_HEADING, values)
