from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from tests.fake.asked_plot import AskedPlot
from tests.fake.drawn import at_most
from tests.fake.kind_plot import KindPlot
from tests.fake.openai_server import FakeOpenAI
from tests.fake.plot import Plot
from tests.fake.postgres import PostgresServer
from tests.fake.resized_plot import ResizedPlot
from tests.fake.server_kind import KINDS, ServerKind

pytestmark = pytest.mark.both_engines

Step = tuple[Any, ...]

PARTIALS = st.sampled_from(["", " \n", "반쯤 말한 답"])
ROUNDS = st.integers(0, 2)
STEPS = st.one_of(
    st.just(("ask",)),
    st.just(("ask",)),
    st.just(("thank",)),
    st.tuples(st.just("use_tools"), st.integers(1, 3)),
    st.tuples(st.just("fail"), PARTIALS, ROUNDS),
    st.tuples(st.just("stop"), PARTIALS, ROUNDS),
    st.tuples(st.just("crash"), PARTIALS, ROUNDS),
    st.tuples(st.just("stop_in_tool"), ROUNDS),
    st.tuples(st.just("crash_in_tool"), ROUNDS),
    st.just(("regenerate",)),
    st.just(("retry",)),
    st.just(("restart",)),
    st.just(("lose_checkpoints",)),
    st.tuples(st.just("set_rate"), st.sampled_from([0.1, 0.25, 0.5])),
    st.just(("break_folds",)),
    st.just(("mend_folds",)),
    st.just(("enter_project",)),
    st.just(("leave_project",)),
    st.just(("change_rules",)),
)
LONG = " 이어서 조건을 하나씩 적습니다. 백업은 매일 새벽에 하고 점검은 매달 첫째 월요일에 합니다." * 4
EARLY_MERGES = {"records_budget_tokens": 500, "merged_together": 2, "newest_records": 1, "merged_tokens": 200}


def repeatable(examples: int) -> settings:
    """A failing story is shown as it was drawn; each has files or a database of its own: `open_plot` makes them."""
    return settings(
        max_examples=at_most(examples),
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


OpenPlot = Callable[..., AbstractContextManager[Plot]]


@pytest.fixture
def open_plot(engine: str, request: pytest.FixtureRequest) -> OpenPlot:
    """Opens a story of its own for each example: over a scripted model, or over a server of a kind."""
    is_postgres = engine == "postgres"
    server: PostgresServer | None = request.getfixturevalue("postgres") if is_postgres else None
    template: str = request.getfixturevalue("postgres_template") if is_postgres else ""

    @contextmanager
    def opened(
        *, words: str = "", kind: ServerKind | None = None, asks: bool = False, **changes: object
    ) -> Iterator[Plot]:
        url = server.make_database(template) if server else ""
        with tempfile.TemporaryDirectory() as folder:
            here, database = Path(folder), SecretStr(url) if url else None
            if asks:
                plot: Plot = AskedPlot(here, database, words=words, **changes)
            elif kind is None:
                plot = Plot(here, database, words=words, **changes)
            else:
                endpoint: FakeOpenAI = request.getfixturevalue("server")
                plot = KindPlot(here, database, endpoint, kind, words=words, **changes)
            try:
                yield plot
            finally:
                plot.close()
        if server:
            server.drop_database(url)

    return opened


def play(plot: Plot, steps: list[Step]) -> None:
    for name, *arguments in steps:
        getattr(plot, name)(*arguments)
        plot.check()


def end_well(plot: Plot) -> None:
    """Whatever came before, two answered turns later all due blocks are folded and state is what the tables say."""
    plot.mend_folds()
    plot.ask()
    plot.check()
    plot.ask()
    plot.check()
    plot.check_end()


STORIES: Final[list[list[Step]]] = [
    [("ask",), ("ask",), ("fail", "", 1), ("retry",), ("regenerate",), ("ask",), ("crash", "반쯤", 1), ("retry",)],
    [("crash", "", 0), ("crash", "", 2), ("lose_checkpoints",), ("stop", "", 1), ("regenerate",), ("thank",)],
    [("ask",), ("stop_in_tool", 1), ("crash_in_tool", 0), ("ask",), ("regenerate",), ("stop_in_tool", 0), ("retry",)],
    [("enter_project",), *[("ask",)] * 5, ("change_rules",), ("use_tools", 2), ("crash", "", 1), ("retry",), ("ask",)],
    [("ask",), ("enter_project",), ("regenerate",), ("leave_project",), ("ask",), ("enter_project",), ("restart",)],
]


@pytest.mark.parametrize("steps", STORIES)
def test_every_turn_is_sent_once_in_a_story(open_plot: OpenPlot, steps: list[Step]) -> None:
    with open_plot() as plot:
        play(plot, steps)
        end_well(plot)


@pytest.mark.sqlite
@pytest.mark.timeout(900)
@repeatable(45)
@given(KINDS, st.lists(STEPS | st.tuples(st.just("serve"), KINDS), max_size=12))
def test_every_turn_is_sent_once_whatever_happens(open_plot: OpenPlot, kind: ServerKind, steps: list[Step]) -> None:
    """Neither is a thought of the model sent, folded or found."""
    with open_plot(kind=kind) as plot:
        play(plot, steps)
        end_well(plot)


STRATEGIES = ["interval", "rolling", "compaction", "window"]
CONTEXT_STEPS = st.one_of(
    st.just(("ask",)),
    st.just(("ask",)),
    st.just(("ask",)),
    STEPS,
    st.just(("reset",)),
    st.just(("undo_reset",)),
    st.just(("compact",)),
    st.tuples(st.just("restore"), st.integers(0, 2)),
    st.tuples(st.just("switch"), st.sampled_from(STRATEGIES)),
    st.just(("refuse",)),
    st.just(("elsewhere",)),
    st.just(("regenerate",)),
    st.tuples(st.just("choose"), st.integers(0, 3)),
    st.tuples(st.just("fork"), st.integers(0, 6)),
)
ASKS = [("ask",)] * 4
# Each strategy folds early, and what isn't folded is always sent.
EARLY: dict[str, Any] = {
    "app_context_threshold": 500,
    "rolling_sends_unsummarised": True,
    "max_context_tokens": 1_000,
    "compaction_threshold": 0.6,
    "window_turns": 2,
    **EARLY_MERGES,
}


CONTEXT_STORIES: Final[list[list[Step]]] = [
    [("ask",), ("ask",), ("reset",), ("regenerate",), ("ask",), ("reset",), ("fail", "", 0), ("reset",), ("retry",)],
    [("switch", "compaction"), *[("ask",)] * 7, ("restore", 0), ("switch", "interval"), *[("ask",)] * 3, ("refuse",)],
    [*ASKS, ("compact",), *ASKS, ("restore", 0), *ASKS, ("regenerate",)],
    [("ask",), ("regenerate",), *ASKS, ("regenerate",), *ASKS, ("choose", 0), ("ask",), ("choose", 1), ("fork", 1)],
    [("ask",), ("regenerate",), *ASKS, ("compact",), *ASKS, ("choose", 0), ("reset",), ("choose", 0), ("undo_reset",)],
    [("switch", "rolling"), ("ask",), *ASKS, ("regenerate",), *ASKS, ("choose", 0), ("switch", "compaction"), *ASKS],
    [*ASKS, ("reset",), ("undo_reset",), ("ask",), ("reset",), ("ask",), ("reset",), ("undo_reset",), ("retry",)],
    [*ASKS, ("compact",), ("reset",), ("regenerate",), ("undo_reset",), *ASKS, ("reset",), ("undo_reset",)],
    [("enter_project",), *ASKS, ("compact",), ("change_rules",), *ASKS, ("reset",), ("regenerate",), ("ask",)],
    [("enter_project",), *(step for name in STRATEGIES for step in (("ask",), ("switch", name), *ASKS))],
    [*ASKS, *ASKS, ("fork", 5), ("ask",), ("compact",), ("ask",), ("fork", 1), *ASKS, ("reset",), ("fork", 0)],
    [("switch", "rolling"), *ASKS, *ASKS, ("fork", 3), ("regenerate",), ("switch", "compaction"), *ASKS, ("fork", 2)],
]


def some_quick(all_stories: list[list[Step]]) -> pytest.MarkDecorator:
    """Has the first two stories in the quick tests, and the others in the slow ones."""
    marked = [pytest.param(steps, marks=pytest.mark.slow) for steps in all_stories[2:]]
    return pytest.mark.parametrize("steps", [*all_stories[:2], *marked])


def change_context(open_plot: OpenPlot, steps: list[Step], kind: ServerKind | None = None) -> None:
    with open_plot(kind=kind, **EARLY) as plot:
        play(plot, steps)
        end_well(plot)


@some_quick(CONTEXT_STORIES)
def test_every_turn_is_sent_once_in_a_story_of_a_changed_context(open_plot: OpenPlot, steps: list[Step]) -> None:
    change_context(open_plot, steps)


@pytest.mark.sqlite
@repeatable(24)
@given(st.none() | KINDS, st.lists(CONTEXT_STEPS, min_size=4, max_size=16))
def test_every_turn_is_sent_once_whatever_is_done_to_the_context(
    open_plot: OpenPlot, kind: ServerKind | None, steps: list[Step]
) -> None:
    change_context(open_plot, steps, kind)


INDEXES = st.integers(0, 4)
STEERED = st.one_of(
    st.tuples(st.just("edit"), INDEXES, st.text(max_size=80)),
    st.tuples(st.just("remake"), INDEXES, st.sampled_from([0.1, 0.5])),
    st.tuples(st.just("undo"), INDEXES),
    st.tuples(st.just("redo"), INDEXES),
    st.tuples(st.just("use"), INDEXES, INDEXES),
    st.tuples(st.just("pin"), INDEXES),
    st.tuples(st.just("unpin"), INDEXES),
)
STEERING_STEPS = st.one_of(
    st.just(("ask",)),
    STEERED,
    STEERED,
    STEERED.map(lambda step: ("meanwhile", *step)),
    st.sampled_from([("regenerate",), ("reset",), ("undo_reset",), ("compact",), ("restart",)]),
    st.tuples(st.just("restore"), st.integers(0, 2)),
    st.tuples(st.just("choose"), st.integers(0, 3)),
    st.tuples(st.just("switch"), st.sampled_from(STRATEGIES)),
    st.tuples(st.just("fork"), st.integers(0, 6)),
)


STEERED_STORIES: Final[list[list[Step]]] = [
    [("edit", 0, "짧게"), ("undo", 0), ("ask",), ("use", 0, 0), ("fork", 2), ("ask",), ("use", 0, 1), *ASKS],
    [("undo", 0), ("undo", 1), ("ask",), ("redo", 0), ("edit", 0, "합친 것"), ("undo", 0), ("ask",), ("redo", 0)],
    [("pin", 4), ("pin", 0), *ASKS, ("reset",), ("ask",), ("pin", 0), ("undo_reset",), ("unpin", 0), ("ask",)],
    [("compact",), ("undo", 0), ("ask",), ("remake", 0, 0.5), ("restore", 0), ("meanwhile", "undo", 0), ("ask",)],
    [("pin", 3), ("switch", "rolling"), *ASKS, ("edit", 0, "[1-3턴] \n---"), ("switch", "compaction"), *ASKS],
    [("fork", 1), ("regenerate",), ("ask",), ("fork", 1), ("regenerate",)],
    [("regenerate",), *ASKS, ("edit", 0, "짧게"), ("choose", 0), ("ask",), ("undo", 0), ("choose", 0), ("redo", 0)],
]


def steer(open_plot: OpenPlot, steps: list[Step], kind: ServerKind | None = None) -> None:
    with open_plot(words=LONG, kind=kind, **EARLY) as plot:
        play(plot, [("ask",)] * 10)
        play(plot, steps)
        end_well(plot)


@some_quick(STEERED_STORIES)
def test_every_turn_is_sent_once_in_a_story_of_steered_folds(open_plot: OpenPlot, steps: list[Step]) -> None:
    steer(open_plot, steps)


@pytest.mark.sqlite
@repeatable(16)
@given(st.none() | KINDS, st.lists(STEERING_STEPS, min_size=4, max_size=14))
def test_every_turn_is_sent_once_however_folds_are_steered(
    open_plot: OpenPlot, kind: ServerKind | None, steps: list[Step]
) -> None:
    steer(open_plot, steps, kind)


@pytest.mark.slow
@pytest.mark.sqlite
@repeatable(12)
@example([*[("ask",)] * 12, ("regenerate",), ("restore", 0), ("ask",), ("ask",)])
@example([("enter_project",), *[("ask",)] * 6, ("change_rules",), ("switch", "rolling"), *[("ask",)] * 3])
@given(st.lists(CONTEXT_STEPS, min_size=8, max_size=16))
def test_every_turn_is_sent_once_in_a_small_window(open_plot: OpenPlot, steps: list[Step]) -> None:
    with open_plot(words=LONG, model_window_tokens=2_500, rolling_sends_unsummarised=True) as plot:
        play(plot, [("ask",)] * 4)
        play(plot, steps)
        end_well(plot)


@pytest.mark.slow
@pytest.mark.sqlite
@repeatable(8)
@example([("fork", 5), ("ask",), ("fork", 2), *[("ask",)] * 9])
@given(st.lists(STEPS, min_size=4, max_size=8))
def test_every_turn_is_sent_once_while_old_records_merge(open_plot: OpenPlot, steps: list[Step]) -> None:
    with open_plot(words=LONG, **EARLY_MERGES) as plot:
        play(plot, [("ask",)] * 12)
        play(plot, steps)
        end_well(plot)
        assert "merge" in {record.kind for record in plot.chat.service.folds.records(plot.chat.session_id)}


LONG_STEPS = st.one_of(
    st.just(("ask",)),
    st.tuples(st.just("read"), st.integers(1, 6), st.integers(1, 120)),
    st.tuples(st.just("resize"), st.sampled_from([2_048, 4_096]) | st.integers(2_048, 32_768)),
    st.tuples(st.just("instruct"), st.integers(0, 60) | st.integers(0, 600)),
    st.tuples(st.just("report"), st.sampled_from([0.0, 0.1, 0.4, 0.7, 1.0, 1.5])),
    st.tuples(st.just("pin"), INDEXES),
    st.tuples(st.just("switch"), st.sampled_from(STRATEGIES)),
    st.sampled_from([("compact",), ("regenerate",), ("restart",), ("break_folds",), ("mend_folds",)]),
)
LARGE = ("resize", 32_768)
SMALL = ("resize", 2_048)


@pytest.mark.slow
@pytest.mark.sqlite
@repeatable(24)
@example([LARGE, *ASKS, ("pin", 0), ("pin", 1), ("pin", 2), SMALL, *ASKS, LARGE, *ASKS])
@example([LARGE, ("instruct", 200), ("read", 3, 60), SMALL, ("ask",), ("read", 6, 60), LARGE, ("ask",)])
@example([("switch", "compaction"), ("read", 3, 40), ("compact",), SMALL, ("ask",), ("report", 1.5), ("read", 6, 9)])
@given(st.lists(LONG_STEPS, min_size=4, max_size=14))
def test_no_input_passes_the_limit_of_the_model_that_is_asked(tmp_path: Path, steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        plot = ResizedPlot(Path(folder), words=LONG, model_window_tokens=8_192)
        try:
            play(plot, [("ask",)] * 2)
            play(plot, steps)
        finally:
            plot.close()


WORDS: Final = st.lists(st.sampled_from(["once", "always", "no"]), min_size=1, max_size=2)
CALLED: Final = st.lists(st.sampled_from(["look", "write_note", "erase"]), min_size=1, max_size=3)
ASKED_STEPS = st.one_of(
    CALLED.map(lambda names: ("want", *names)),
    CALLED.map(lambda names: ("want", *names)),
    WORDS.map(lambda words: ("answer", words)),
    st.tuples(WORDS, CALLED).map(lambda drawn: ("answer", drawn[0], *drawn[1])),
    st.tuples(st.sampled_from(["die_in_call", "stop_in_call", "fail_behind"]), WORDS),
    st.just(("repeat",)),
    st.sampled_from([("stop_asking",), ("die",), ("restart",), ("lose_checkpoints",), ("regenerate",), ("retry",)]),
    st.sampled_from([("ask",), ("thank",), ("compact",), ("reset",), ("undo_reset",), ("use_tools", 1)]),
    st.tuples(st.just("fork"), st.integers(0, 2)),
    st.tuples(st.just("choose"), st.integers(0, 3)),
    st.tuples(st.just("switch"), st.sampled_from(STRATEGIES)),
)
WANT: Final = ("want", "look", "write_note")
ONCE: Final = ("answer", ["once"])


ASKED_STORIES: Final[list[list[Step]]] = [
    [WANT, ("restart",), ONCE, WANT, ("lose_checkpoints",), ONCE, WANT, ("die",), ONCE, ("ask",), WANT, ("ask",)],
    [WANT, ("stop_asking",), WANT, ("answer", ["no"], "erase"), ("answer", ["always"], "write_note"), ONCE, ("ask",)],
    [WANT, ("die_in_call", ["once"]), ("retry",), WANT, ("stop_in_call", ["once"]), WANT, ("regenerate",), ("ask",)],
    [*ASKS, WANT, ("compact",), ONCE, WANT, ("reset",), ("ask",), WANT, ("fork", 0), ONCE, WANT, ("fork", 1), ("ask",)],
    [WANT, ("fail_behind", ["always"]), ("repeat",), ("retry",), WANT, ONCE, ("repeat",), ("regenerate",), ("repeat",)],
    [("ask",), ("regenerate",), WANT, ("choose", 0), ONCE, WANT, ("switch", "rolling"), ONCE, *ASKS],
]


def decide(open_plot: OpenPlot, steps: list[Step]) -> None:
    with open_plot(asks=True, **EARLY) as plot:
        play(plot, steps)
        end_well(plot)


@some_quick(ASKED_STORIES)
def test_every_call_is_made_once_if_the_user_allows_it_in_a_story(open_plot: OpenPlot, steps: list[Step]) -> None:
    decide(open_plot, steps)


@pytest.mark.sqlite
@repeatable(24)
@given(st.lists(ASKED_STEPS, min_size=4, max_size=14))
def test_every_call_is_made_once_if_the_user_allows_it_whatever_happens(open_plot: OpenPlot, steps: list[Step]) -> None:
    decide(open_plot, steps)
