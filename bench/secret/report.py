"""Writes the figures as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bench.secret.measure import SecretFigures

_INTRODUCTION: Final = """\
# Secrets that are found, ordinary text that passes

Written by `make bench-secret DATA=<folder>`; don't edit by hand. No model, no network.

What a project's memory keeps is searched for secrets (`graph/project/secret.py`): a dialog keeps a mark such as
`[secret: GitHub token]` in the secret's place, a decision or a title with one is refused. So a secret that is missed
stays on disk, and a sentence that is stopped by mistake can't be recorded.
"""
_KINDS: Final = """\
Each secret is drawn as its issuer forms it, or as people choose passwords, and stands in a sentence, a settings file,
JSON, code, a command or an address. It is missed if its first half, its second half or all of it is left in the
text."""
_SENTENCES: Final = """\
Sentences about work of {shapes:,} shapes, each with a beginning and an end that vary, filled with names, git commits,
UUIDs, digests, versions, paths, prices, dates, algorithms and models. The rules were made with these shapes in sight;
other seeds give other words. A sentence counts as stopped if anything in it is masked."""
_PUBLIC: Final = """\
Texts that nobody wrote for this bench, and that the rules weren't made on. Each masked one is shown as it is kept, for
the reader to judge."""
_LIMITS: Final = """\
## What is not found

- A password under 8 characters, one with spaces, one of Korean letters alone, and one of a single common word in prose
  (`password: sunshines`; behind `=` it is found).
- A value that doesn't follow its name: "the password we use everywhere, as you know, is …".
- UUIDs and 40 or 64 hexadecimal digits, whatever name they have: commits and digests look the same.
- What is split, spelled out, encoded again, or written with invisible characters inside.
- Source code is not measured: a string assigned to a name such as `password` is masked, as it can't be known to be
  an example.
"""


def report(figures: SecretFigures, public: Mapping[str, tuple[int, Sequence[str]]]) -> str:
    """Returns the page; `public` is, by data set, how many texts there were and those that were masked."""
    return "\n".join(
        [_INTRODUCTION, *_kinds(figures), *_sentences(figures), *_public(public), _LIMITS, *_verdict(figures)]
    )


def _kinds(figures: SecretFigures) -> Iterator[str]:
    yield from ("## Kinds of secrets", "", _KINDS, "", "| kind | secrets | missed |", "|---|---:|---:|")
    for kind, count in figures.samples.items():
        yield f"| {kind} | {count} | {figures.missed[kind]} |"
    yield ""


def _sentences(figures: SecretFigures) -> Iterator[str]:
    yield from ("## Ordinary sentences", "", _SENTENCES.format(shapes=figures.shapes), "")
    yield from ("| language, topic | sentences | stopped |", "|---|---:|---:|")
    for (language, topic), count in figures.sentences.items():
        name, stopped = {"ko": "Korean", "en": "English"}[language], figures.stopped[language, topic]
        yield f"| {name}, {topic} | {count} | {stopped} |"
    yield ""


def _public(public: Mapping[str, tuple[int, Sequence[str]]]) -> Iterator[str]:
    yield from ("## Public texts", "", _PUBLIC, "", "| data | texts | masked |", "|---|---:|---:|")
    for name, (count, texts) in public.items():
        yield f"| {name} | {count:,} | {len(texts)} |"
    yield ""
    for text in (text for _, texts in public.values() for text in texts):
        yield f"- {' '.join(text.split())}"
    yield ""


def _verdict(figures: SecretFigures) -> Iterator[str]:
    yield from ("## Verdict", "")
    for is_met, words in figures.requirements:
        yield f"- {'met' if is_met else '**not met**'}: {words}"
    yield ""
