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

# Written for this: what was said, and a question in other words; no public set at hand has such pairs in Korean.
OTHER_WORDS = (
    ("여행 경비는 모두 120만 원으로 잡았어요.", "예산이 얼마예요"),
    ("묵을 곳은 서면역 앞 바다호텔이에요.", "숙박 장소"),
    ("엄마는 새우를 드시면 두드러기가 나요.", "못 먹는 음식 알레르기"),
    ("비행기는 아침 일곱 시에 떠나요.", "출발 시각"),
    ("우리 집 강아지 이름은 보리예요.", "반려동물을 뭐라고 부르나요"),
    ("다음 주에는 회사에 못 나갑니다, 수술을 받거든요.", "병가 이유"),
    ("차는 빌리지 않고 지하철로 다니기로 했어요.", "교통수단"),
    ("사진기는 민수가 챙겨 옵니다.", "카메라 담당"),
    ("집을 옮기는 날은 손 없는 날로 골랐어요.", "이사 날짜"),
    ("딸아이가 이번에 초등학교에 들어가요.", "자녀 입학"),
    ("서버가 자꾸 죽어서 메모리를 두 배로 늘렸습니다.", "장애 대응"),
    ("월급은 매달 스무닷새에 들어옵니다.", "급여일"),
    ("We put aside two thousand dollars for the whole trip.", "travel budget"),
    ("Shrimp gives my mother a rash.", "food allergy"),
    ("The plane leaves at seven in the morning.", "departure time of the flight"),
    ("We sleep at the Seaview, right behind the station.", "accommodation"),
    ("Our puppy is called Barley.", "name of the pet"),
    ("I can't come to the office next week because of an operation.", "reason for sick leave"),
    ("No rental car; we take the subway everywhere.", "means of transport"),
    ("Minsu brings his camera along.", "who takes photos"),
    ("My daughter starts primary school this spring.", "child's education"),
    ("The machine kept crashing, so we doubled its memory.", "fix for the outage"),
    ("I get paid on the twenty-fifth of each month.", "salary date"),
    ("The walls will be painted light grey.", "colour of the room"),
)
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
        sessions["other words"] = [said for said, _ in OTHER_WORDS]
        asked = enumerate((question for _, question in OTHER_WORDS), start=1)
        sets = {
            "written for this, in other words": [
                Wanted("other words", question, frozenset({number})) for number, question in asked
            ],
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
