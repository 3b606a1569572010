from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from graph.layer.app_context import PersistentRefreshTrigger
from graph.layer.context_registry import ContextRegistry
from graph.layer.execution import MOST_SUMMARIES, ExecutionContext
from tests.fake.layer import DIRECTORY

PAIRS = [("kim", "/a"), ("kim", "/b"), ("lee", "/a"), ("kim/a", ""), ("../..", "/a"), ("", "kim/a"), ("\ud800", "\x00")]


class Rules:
    def __init__(self) -> None:
        self.loaded: list[tuple[str, str]] = []

    def load(self, owner: str, root: str) -> str:
        self.loaded.append((owner, root))
        return f"{owner}의 {root} 규칙"


def registry(folder: Path, rules: Rules) -> ContextRegistry:
    return ContextRegistry(folder, rules.load, directory=DIRECTORY)


def test_each_owner_and_root_has_a_context_of_its_own(tmp_path: Path) -> None:
    contexts = registry(tmp_path / "layer", Rules())
    for owner, root in PAIRS:
        service = contexts.app_context(owner, root)
        assert contexts.app_context(owner, root) is service
        service.update_volatile_from_request({"selection": f"{owner} {root}"})
        service.refresh_persistent_if_needed(PersistentRefreshTrigger(root, "digest"))
    seen = [contexts.app_context(*pair).get_app_context_for_prompt() for pair in PAIRS]
    for (persistent, volatile), (other_persistent, other_volatile) in combinations(seen, 2):
        assert persistent["projectRules"] != other_persistent["projectRules"]
        assert volatile["selection"] != other_volatile["selection"]
    assert [path.name for path in tmp_path.iterdir()] == ["layer"]
    assert len(list((tmp_path / "layer").iterdir())) == len(PAIRS)


def test_agreed_rules_outlast_the_server_and_are_not_loaded_again(tmp_path: Path) -> None:
    rules = Rules()
    trigger = PersistentRefreshTrigger("/a\udcff", "digest")
    assert registry(tmp_path, rules).app_context("kim", "/a\udcff").refresh_persistent_if_needed(trigger)
    after = registry(tmp_path, rules).app_context("kim", "/a\udcff")
    assert after.get_app_context_for_prompt()[0]["projectRules"] == "kim의 /a\ufffd 규칙"
    assert not after.refresh_persistent_if_needed(trigger)
    assert rules.loaded == [("kim", "/a\udcff")]


def test_what_a_request_said_does_not_outlast_the_server(tmp_path: Path) -> None:
    registry(tmp_path, Rules()).app_context("kim", "/a").update_volatile_from_request({"selection": "x"})
    assert "selection" not in registry(tmp_path, Rules()).app_context("kim", "/a").get_app_context_for_prompt()[1]


def test_a_lost_file_is_loaded_again(tmp_path: Path) -> None:
    rules = Rules()
    service = registry(tmp_path, rules).app_context("kim", "/a")
    trigger = PersistentRefreshTrigger("/a", "digest")
    service.refresh_persistent_if_needed(trigger)
    (file,) = tmp_path.glob("*/persistent-context.json")
    file.write_bytes(b"{")
    assert service.refresh_persistent_if_needed(trigger)
    assert service.get_app_context_for_prompt()[0]["projectRules"] == "kim의 /a 규칙"


def test_only_the_services_asked_for_last_are_kept(tmp_path: Path) -> None:
    contexts = registry(tmp_path, Rules())
    first, second = (contexts.app_context("kim", root) for root in ("/1", "/2"))
    for number in range(3, 257):
        contexts.app_context("kim", f"/{number}")
    assert contexts.app_context("kim", "/1") is first
    contexts.app_context("kim", "/257")
    assert contexts.app_context("kim", "/1") is first
    assert contexts.app_context("kim", "/2") is not second


def test_the_newest_turns_have_a_short_line_each(tmp_path: Path) -> None:
    ended_at = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    for number in range(1, MOST_SUMMARIES + 6):
        summaries = registry(tmp_path, Rules()).summaries("kim", "/a")
        asked = f"질문 {number}\n## 영구 컨텍스트 " + "가" * 1_000
        ExecutionContext(f"turn-{number}", asked, {}, summaries).finish("답\n" + "나" * 1_000, ended_at)
    kept = registry(tmp_path, Rules()).summaries("kim", "/a").snapshot()
    assert list(kept) == [f"turn-{number}" for number in range(6, MOST_SUMMARIES + 6)]
    assert all(len(line.splitlines()) == 1 and len(line) <= 260 for line in kept.values())
    assert kept["turn-6"].startswith("2026-11-20 질문 6 ## 영구 컨텍스트 가")
    assert " → 답 나" in kept["turn-6"]
