from __future__ import annotations

import pytest

from bench.context.prefix import view, with_results
from bench.context.script import build_script
from graph.core.in_place import CACHED_PRICE
from tests.fake.caching import count


def test_a_fold_in_place_reads_its_prefix_at_a_tenth() -> None:
    played = view(build_script(13, 1_200), 1_200)
    quoted, in_place = played.costs_after(13)
    assert in_place < quoted
    meter = played.in_place
    assert meter.cached_tokens > meter.new_tokens > 0
    assert meter.summary_in_tokens == meter.cached_tokens + meter.new_tokens
    assert meter.summary_in_cost == pytest.approx(meter.new_tokens + CACHED_PRICE * meter.cached_tokens)
    assert played.quoted.summary_in_cost == played.quoted.summary_in_tokens
    more_tokens = meter.summary_in_tokens - played.quoted.summary_in_tokens
    assert meter.costs[2] - played.quoted.costs[2] == pytest.approx(more_tokens)


def test_both_runs_send_the_same_chat_and_write_the_same_summaries() -> None:
    played = view(build_script(13, 300), 300)
    assert played.quoted.sent_by_turn == played.in_place.sent_by_turn
    assert played.quoted.summary_out_tokens == played.in_place.summary_out_tokens


def test_long_tool_results_halve_what_the_summaries_read() -> None:
    script = with_results(build_script(16, 1_200))
    results = [message.text for turn in script for message in turn.messages if message.id == f"t{turn.number}r"]
    assert [len(result) for result in results] == [10_000] * 5
    assert count(results[0]) > 2_000
    played = view(script, 1_200)
    assert played.in_place.summary_in_cost <= played.quoted.summary_in_cost / 2
