"""Measures what an embedding model adds to the search behind `recall`: `python -m bench.quality.hybrid --help`.

Prints a table for docs/recall.md. The endpoint is any OpenAI-compatible one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from pydantic import SecretStr

from bench.quality.data import SOURCES, database_over, read_marked, read_sessions
from bench.quality.found import FIRST, Wanted, noun_queries, questions, share_within
from bench.report import percent, table
from graph.model.embedder import Embedder
from graph.model.factory import open_models
from graph.search.fusion import fuse
from graph.server.settings import Settings
from graph.store.database import Database
from graph.store.search import SearchStore
from graph.store.vector import VectorStore

_BATCH = 32
_SECONDS = 600.0
_BEYOND = 1_000_000
_RANKED = 200
Find = Callable[[Wanted], Sequence[int]]


def main() -> int:
    """Returns 0, or 2 if the data isn't there."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.hybrid", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the data sets")
    parser.add_argument("--url", required=True, help="the endpoint, such as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", required=True, help="its embedding model")
    parser.add_argument("--sentences", type=int, default=5_000, help="how many of klue-ner, as each is embedded")
    parser.add_argument("--key", default="not-needed", help="its key")
    given = parser.parse_args()
    settings = Settings(
        _env_file=None, embedding_model=given.model, embedding_base_url=given.url, embedding_api_key=SecretStr(given.key)
    )
    try:
        sessions = {name: [message.text for message in said] for name, said in read_sessions(given.data).items()}
        sentences = [marked.text for marked in read_marked(given.data)][: given.sentences]
        sets = {
            "bfcl-memory, the question as it stands": list(questions(given.data)),
            "klue-ner, two nouns": list(noun_queries(sentences)),
        }
    except FileNotFoundError as error:
        print(f"There is no {error.filename}.\n{SOURCES}", file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory(prefix="turnfold-bench-") as files,
        open_models(settings) as models,
        database_over(Path(files) / "hybrid.db", {**sessions, "korean": sentences}) as database,
    ):
        embedder = models.embedder
        fill(database, embedder, [*sessions, "korean"])
        print("\n".join(measured(database, embedder, sets)))
    return 0


def fill(database: Database, embedder: Embedder, session_ids: Sequence[str]) -> None:
    """Gives each message its vector, as the product does after a turn."""
    vectors = VectorStore(database)
    for session_id in session_ids:
        while batch := vectors.missing(session_id, embedder.model, limit=_BATCH):
            embedded = _embedded(embedder, [message.text for message in batch])
            made = dict(zip((message.position for message in batch), embedded, strict=True))
            vectors.keep(session_id, embedder.model, made)


def measured(database: Database, embedder: Embedder, sets: Mapping[str, Sequence[Wanted]]) -> list[str]:
    """Returns the lines of the table, and of the times."""
    search, vectors = SearchStore(database), VectorStore(database)
    rows: list[list[str]] = []
    seconds: dict[str, list[float]] = {"index": [], "vectors": [], "query": []}

    def timed(name: str, find: Callable[[], Sequence[int]]) -> Sequence[int]:
        began = time.perf_counter()
        found = find()
        seconds[name].append(time.perf_counter() - began)
        return found

    for name, wanted in sets.items():
        ranks: dict[str, list[int]] = {"index": [], "vectors": [], "both": []}
        for each in wanted:
            within = {"before_turn": _BEYOND, "limit": _RANKED}
            by_words = timed("index", lambda: search.turns(each.session, each.query, **within))
            began = time.perf_counter()
            (asked,) = _embedded(embedder, [each.query])
            seconds["query"].append(time.perf_counter() - began)
            by_meaning = timed("vectors", lambda: vectors.turns(each.session, embedder.model, asked, **within))
            for way, found in (("index", by_words), ("vectors", by_meaning), ("both", fuse(by_words, by_meaning))):
                ranks[way].append(_rank(found[: FIRST[-1]], each))
        rows += [
            [name, way, f"{len(found):,}", *(percent(share_within(found, most)) for most in FIRST)]
            for way, found in ranks.items()
        ]
    times = ", ".join(f"{name} {median(each) * 1000:.1f} ms" for name, each in seconds.items())
    return [*table(["queries", "ranked by", "n", *(f"@{most}" for most in FIRST)], rows), "", f"Median: {times}."]


def _rank(found: Sequence[int], wanted: Wanted) -> int:
    return next((rank for rank, turn in enumerate(found, start=1) if turn in wanted.turns), 0)


def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    embedded = embedder.embed(texts, deadline_seconds=_SECONDS)
    if embedded is None:
        raise SystemExit("the endpoint failed")
    return embedded.vectors


if __name__ == "__main__":
    sys.exit(main())
