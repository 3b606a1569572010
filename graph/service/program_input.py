"""What a program brings to a turn: its options, what it sends beside its messages, and a history of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.attached import data_urls, references_in
from graph.core.language import session_language
from graph.core.text import estimate_tokens, plain_text, plain_value
from graph.recognise.client_turns import new_prefix, turns_of
from graph.service.access import SessionAccess
from graph.store.archive import keep_images
from graph.store.database import Lease
from graph.store.session_import import insert_turns
from graph.tool.registry import schema_text
from graph.value.client import ClientMessage, ClientOptions


def cleaned_options(client: ClientOptions) -> ClientOptions:
    """Returns the options as every endpoint accepts them; the texts are cleaned where they are kept."""
    return replace(
        client,
        tools=tuple(plain_value(tool) for tool in client.tools),
        tool_choice=plain_value(client.tool_choice),
        sampling=plain_value(client.sampling),
    )


def tokens_beside(client: ClientOptions) -> int:
    """Estimates what a program sends beside its messages and what stands in front of them."""
    texts = (
        client.system or "",
        schema_text([dict(tool) for tool in client.tools]),
        *(message.text for message in client.preamble),
    )
    return sum(map(estimate_tokens, texts))


def pictures_of(sent: Iterable[ClientMessage], archived: Iterable[AnyMessage]) -> dict[str, str]:
    """Returns the pictures of a program's messages to which what is archived of them refers, by reference."""
    referred = references_in(archived)
    images = data_urls(plain_text(url) for message in sent for url in message.images)
    return {reference: url for reference, url in images.items() if reference in referred}


def import_history(
    access: SessionAccess, lease: Lease, messages: Sequence[ClientMessage], *, client: str, model: str
) -> int:
    """Stores a foreign history as turns after the session's last one, in one transaction; returns the last number.

    Invalid sequences are mended (`recognise.client_turns`). Raises `LeaseLostError`; nothing is written then.
    """
    asked = [HumanMessage(message.text) for message in messages if message.role == "user"]
    state = access.stores.state(lease.session_id)
    language = state.row.language or session_language(asked, state.language)
    turns = turns_of(messages, id_prefix=new_prefix(), language=language)
    images = pictures_of(messages, (message for turn in turns for message in turn))
    with access.stores.database.write(lease) as connection:
        session = access.own(lease.session_id)
        keep_images(connection, session.session_id, images, owner=access.owner)
        return insert_turns(
            connection,
            turns,
            session_id=session.session_id,
            owner=access.owner,
            turn_count=session.turn_count,
            client=client,
            model=model,
            now=access.clock(),
        )
