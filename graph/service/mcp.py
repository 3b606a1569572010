"""The MCP tools of a chat: which are chosen, and the user's word on calls that wait for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from graph.service.access import SessionAccess
from graph.value.event import PendingCall
from graph.value.view import McpChoice, TurnOptions, Word


class McpChat:
    """The MCP tools of one owner's chats; `choices` and `choose` take "" for the next new chat.

    Methods that take a session id raise `NotFoundError` for an unknown one.
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    def choices(
        self,
        session_id: str = "",
        *,
        chosen: Collection[str] | None = None,  # noqa: ARG002
        model: str = "",  # noqa: ARG002
    ) -> McpChoice:
        """Returns the servers and tools to choose from, with what is chosen; starts no server and never waits.

        Args:
            session_id: "" for a new chat, which begins with the choice of the owner's newest one.
            chosen: Offered names to take as chosen instead, for a choice that isn't kept yet.
            model: The model whose window counts; "" for that of the chat.
        """
        if session_id:
            self._access.own(session_id)
        return McpChoice(())

    def choose(self, session_id: str, offered: Collection[str]) -> None:  # noqa: ARG002
        """Chooses these tools, in place of the chat's, from the next turn on.

        A tool that its server has changed is chosen as it is now.

        Raises `InputError` `unknown_tool`: no server here that is ready has a tool of that name.
        """
        self._access.own(session_id)

    def start(self, server: str) -> None:
        """Begins to start a server in the background, so that `choices` has its tools soon; ignores unknown names."""

    def pending(self, session_id: str) -> tuple[PendingCall, ...]:
        """Returns the calls that wait for the user's word, in order; () for none."""
        self._access.own(session_id)
        return ()

    def answer(
        self,
        session_id: str,
        words: Mapping[str, Word],  # noqa: ARG002
        *,
        options: TurnOptions | None = None,  # noqa: ARG002
    ) -> int:
        """Gives the user's word on all pending calls by their ids, continues the turn, and returns its number.

        "always" allows all calls of the tool in this chat. A call that gets "no" isn't made, and the model is told.

        Raises:
            InputError: `unanswered_call` or `unknown_call`, with their ids: nothing was done.
            BusyError: A turn is in progress, or a limit of the server is reached.
        """
        self._access.own(session_id)
        return 0
