from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, get_args

import psycopg
import pytest

from graph.settings import Settings
from graph.store.postgres import pooled_saver, postgres_database
from prompt.system.framing import Language
from tests.unit.test_scale_guide import coded, guide

pytestmark = pytest.mark.postgres
LANGUAGES: Final = pytest.mark.parametrize("language", get_args(Language))
_TABLES: Final = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
_KEYS: Final = """
    SELECT holder.relname, array_agg(attname::text)
    FROM pg_index JOIN pg_class AS holder ON holder.oid = indrelid
    JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
    WHERE indisunique AND relnamespace = 'public'::regnamespace
    GROUP BY indexrelid, holder.relname
"""
_REFERENCES: Final = """
    SELECT holder.relname, held.relname, array_agg(attname::text)
    FROM pg_constraint JOIN pg_class AS holder ON holder.oid = conrelid JOIN pg_class AS held ON held.oid = confrelid
    JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
    WHERE contype = 'f'
    GROUP BY pg_constraint.oid, holder.relname, held.relname
"""


@pytest.fixture
def connection(postgres_head_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_head_url) as opened:
        yield opened


def distributed(language: Language) -> dict[str, str]:
    """The tables that the guide distributes, with their columns."""
    return dict(re.findall(r"create_distributed_table\('(\w+)', '(\w+)'", guide(language)))


def referred(language: Language) -> set[str]:
    return set(re.findall(r"create_reference_table\('(\w+)'\)", guide(language)))


def left(language: Language) -> set[str]:
    """The tables that the guide leaves where they are: the last two rows of its table."""
    rows = [line for line in guide(language).splitlines() if line.startswith("| `")]
    return coded(rows[-2].split("|")[1]) | coded(rows[-1].split("|")[1])


@LANGUAGES
def test_every_table_has_its_place(connection: psycopg.Connection, language: Language) -> None:
    there = sorted(name for (name,) in connection.execute(_TABLES))
    assert sorted([*distributed(language), *referred(language), *left(language)]) == there


@LANGUAGES
def test_every_key_of_a_distributed_table_has_its_column(connection: psycopg.Connection, language: Language) -> None:
    columns = distributed(language)
    keys = [(table, names) for table, names in connection.execute(_KEYS) if table in columns]
    assert {table for table, _ in keys} == {*columns}
    assert [table for table, names in keys if columns[table] not in names] == []


@LANGUAGES
def test_distributed_tables_refer_to_what_is_distributed_with_them(
    connection: psycopg.Connection, language: Language
) -> None:
    columns = distributed(language)
    references = connection.execute(_REFERENCES).fetchall()
    assert references
    for table, held, names in references:
        if table in columns or held in columns:
            assert (columns[held], columns[table]) == ("session_id", "session_id")
            assert "session_id" in names
    assert next(iter(columns)) == "session"


@LANGUAGES
def test_the_guide_s_connections_are_those_of_the_pools(language: Language) -> None:
    tables = postgres_database._POOL_SIZE + postgres_database._POOL_OVERFLOW  # noqa: SLF001  # a figure of the guide
    checkpoints = pooled_saver._POOL_SIZE  # noqa: SLF001  # a figure of the guide
    (paragraph,) = [line for line in guide(language).splitlines() if line.startswith(("**Connections.**", "**연결.**"))]
    told = sorted(int(figure) for figure in re.findall(r"\d+", paragraph))
    seconds = int(Settings.model_fields["busy_timeout_seconds"].default)
    assert told == sorted([tables, checkpoints, 2 * (tables + checkpoints), 100, seconds])
