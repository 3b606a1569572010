"""The table of images: what stands behind the references in a session's messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, insert, select

from graph.store.database import Database
from graph.store.schema import image_table

_image = image_table.c


class ImageStore:
    """Reads images; `keep_images` writes them in the transaction of the message that has them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, session_id: str, references: Collection[str]) -> dict[str, str]:
        """Returns the `data:` URLs behind these references; one that the session doesn't have is left out."""
        if not references:
            return {}
        query = select(_image.hash, _image.data_url).where(_image.session_id == session_id, _image.hash.in_(references))
        with self._database.read() as connection:
            return {row.hash: row.data_url for row in connection.execute(query)}


def keep_images(connection: Connection, session_id: str, images: Mapping[str, str], *, owner: str) -> None:
    """Keeps the `data:` URLs by the references to them; one that is there already stays.

    Args:
        connection: In a write transaction.
        session_id: The session.
        images: The URLs by the references to them.
        owner: The session's owner.
    """
    for reference, url in images.items():
        key = {"session_id": session_id, "hash": reference}
        if connection.execute(select(_image.hash).filter_by(**key)).first() is None:
            connection.execute(insert(image_table).values(**key, owner=owner, data_url=url))
