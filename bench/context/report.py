"""Writes the figures as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from bench.context.run import CHECKPOINTS, Run
from bench.context.verdict import VIEWS, pays_from

_INTRODUCTION = """\
# Strategies and what they cost

Written by `make bench-context`; don't edit by hand.

## Which strategy when

| strategy | choose it for | it costs you |
|---|---|---|
| `interval` (default) | long working conversations: every earlier turn stays in the input as a summary of its three turns, old ones merged | a larger input than the others that fold; it grows to a bound and stays there |
| `rolling` | models that read a single message best, chats where only the gist of the far past counts | details go first: one summary of about 1,000 tokens stands for everything, and only what was said since its last version is sent word for word |
| `compaction` | models with a large window and a cache, work that needs the recent past word for word for long | the input grows to 75 % of `MAX_CONTEXT_TOKENS` before it's folded, then nearly all of the past is one summary |
| `window` | questions that have nothing to do with one another; no summary model at all | what is older than the last N turns isn't sent |

## How it was measured

One scripted chat, Korean and English by turns of 30, a tool call in each fourth turn, one planted fact (a ticket number)
in each turn: in the question, the answer or the tool result. Answers of 300, 1,200 and 2,000 characters. Every contender
summarises with the same extractive summariser, which picks sentences, as many as the prompt asks for, and doesn't know the
facts; tokens are counted exactly (o200k). Ours are the product's own strategies with its rules of adoption and its line
of facts, driven over the pure parts in one process (`graph/core`), with the archive in memory and folds made between two
turns; so "own time" is without database and checkpoints (`make bench-store` measures those), as the peers' is without a
checkpointer.

Peers: {peers}.
Each gets the exact token counter and a budget of 8,000 or 16,000 tokens, the middleware keeps the newest half of it and reads its source whole (`trim_tokens_to_summarize=None`), summaries aim at 1,024 tokens.

- **unchanged**: share of the tokens sent that is an unchanged prefix of the call before.
- **costs**, in thousands of input tokens at full price, output at 4 x: **A** unchanged prefix at 0.1 and one model for chat
  and summaries; **B** the same with summaries at a tenth of the price (a smaller model); **C** no cache at all, one model.
  The script's own answers are part of each. A provider's cache may work in coarser steps and expire between turns.
- **facts**: share of all facts planted so far that is in the input, averaged over the last tenth of the turns; then by
  age, the oldest quarter first. An extractive summariser likes sentences with identifiers: a model's own choice will differ.
- **recall**: share of these facts that one call of the tool `recall` shows, over the real archive and its full-text index,
  where the model may call it. The query is what a user would ask, with the topic, the person and the number of the request
  but never the fact: "채용 일정 건에서 한도윤 님의 190번째 요청은 접수 번호가 뭐였죠?" Of 1,000 facts every fourth is asked for.

![tokens of each turn, and cost against facts kept](bench-context.png)
"""


def write_report(
    path: Path, runs: Sequence[Run], lines: Sequence[tuple[bool, str]], *, beside: Sequence[str] = ()
) -> None:
    """Writes the page; `beside` are the lines of further sections."""
    peers = ", ".join(f"{name} {version(name)}" for name in ("langchain", "langmem", "langchain-core"))
    parts = [_INTRODUCTION.format(peers=peers), *_paying(runs)]
    for chars in dict.fromkeys(run.answer_chars for run in runs):
        for turns in CHECKPOINTS:
            parts += ["", f"## {turns:,} turns, answers of {chars:,} characters", "", *_table(runs, chars, turns)]
    parts += ["", *beside] if beside else []
    parts += ["", "## Verdict", ""]
    parts += [f"- {'met' if is_met else '**not met**'}: {words}" for is_met, words in lines]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _paying(runs: Sequence[Run]) -> Iterator[str]:
    yield "## From which turn on folding pays"
    yield ""
    yield "The first turn from which on the whole chat has cost less than with the full history, for good:"
    yield ""
    sizes = list(dict.fromkeys(run.answer_chars for run in runs))
    yield "| strategy | price | " + " | ".join(f"{chars:,} characters" for chars in sizes) + " |"
    yield "|---|---|" + "---:|" * len(sizes)
    for name in ("interval", "rolling", "compaction", "window"):
        for view, words in enumerate(VIEWS):
            turns = [pays_from(runs, name, chars, view) for chars in sizes]
            cells = " | ".join("not in 1,000" if turn is None else f"{turn:,}" for turn in turns)
            yield f"| `{name}` | {words} | {cells} |"


def _table(runs: Sequence[Run], answer_chars: int, turns: int) -> Iterator[str]:
    yield (
        "| | sent | largest | unchanged | summaries in / out | cost A | cost B | cost C | facts | by age, oldest first "
        "| recall | own ms a turn |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for run in runs:
        if run.answer_chars != answer_chars:
            continue
        at = run.at[turns]
        name = f"**{run.name}**" if run.is_ours else run.name
        costs = " | ".join(f"{cost / 1_000:,.0f}" for cost in at.costs)
        recalled = "" if at.recalled is None else f"{at.recalled:.0%}"
        ages = " ".join(f"{share:.0%}" for share in at.kept_by_age)
        yield (
            f"| {name} | {at.sent_tokens:,} | {at.largest_tokens:,} | {at.unchanged_share:.0%} "
            f"| {at.summary_in_tokens:,} / {at.summary_out_tokens:,} | {costs} | {at.kept:.0%} | {ages} "
            f"| {recalled} | {at.own_ms:.1f} |"
        )
