from __future__ import annotations

from graph.worker.newest import Newest


def test_the_values_that_were_put_last_are_kept() -> None:
    kept: Newest[str, int] = Newest(2)
    for name, value in [("a", 1), ("b", 2), ("a", 3), ("c", 4)]:
        kept.put(name, value)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (3, None, 4)
    assert ("a" in kept, "b" in kept, len(kept)) == (True, False, 2)
    kept.drop("a")
    kept.drop("b")
    assert (kept.get("a"), len(kept)) == (None, 1)
