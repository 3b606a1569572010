"""Counts missed secrets and falsely stopped sentences, and compares the counts with the bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from bench.secret.kind import Sample
from bench.secret.sentence import Sentence

LEAST_KINDS: Final = 25
MOST_STOPPED_SHARE: Final = 0.005
Mask = Callable[[str], str]


@dataclass(frozen=True)
class SecretFigures:
    """Counts over the samples of secrets and the ordinary sentences.

    Attributes:
        samples: By kind, how many secrets there were.
        missed: By kind, how many of them stood in the masked text, whole or the first or second half.
        sentences: By language and topic, how many ordinary sentences there were.
        stopped: By language and topic, how many of them were changed.
        shapes: How many different shapes the sentences had.
        failures: The texts with a missed secret, and the stopped sentences as they were masked.
    """

    samples: Counter[str]
    missed: Counter[str]
    sentences: Counter[tuple[str, str]]
    stopped: Counter[tuple[str, str]]
    shapes: int
    failures: tuple[str, ...]

    @property
    def stopped_share(self) -> float:
        """The share of ordinary sentences that were stopped."""
        return self.stopped.total() / max(1, self.sentences.total())

    @property
    def requirements(self) -> tuple[tuple[bool, str], ...]:
        """Whether each bound is met, and its sentence."""
        kinds, missed, secrets = len(self.samples), self.missed.total(), self.samples.total()
        stopped, said = self.stopped.total(), self.sentences.total()
        share = f"{self.stopped_share:.2%} (at most {MOST_STOPPED_SHARE:.1%})"
        return (
            (
                missed == 0 and kinds >= LEAST_KINDS,
                f"{missed} of {secrets:,} secrets of {kinds} kinds missed (none of at least {LEAST_KINDS})",
            ),
            (
                self.stopped_share <= MOST_STOPPED_SHARE,
                f"{stopped} of {said:,} ordinary sentences stopped: {share}",
            ),
        )


def measure(samples: Iterable[Sample], sentences: Iterable[Sentence], mask: Mask) -> SecretFigures:
    """Masks every text and counts."""
    samples, sentences = tuple(samples), tuple(sentences)
    missed = [sample for sample in samples if _is_left(sample.secret, mask(sample.text))]
    stopped = [sentence for sentence in sentences if mask(sentence.text) != sentence.text]
    return SecretFigures(
        Counter(sample.kind for sample in samples),
        Counter(sample.kind for sample in missed),
        Counter((sentence.language, sentence.topic) for sentence in sentences),
        Counter((sentence.language, sentence.topic) for sentence in stopped),
        len({sentence.shape for sentence in sentences}),
        (
            *(f"missed, {sample.kind}: {sample.text}" for sample in missed),
            *(f"stopped: {mask(sentence.text)}" for sentence in stopped),
        ),
    )


def _is_left(secret: str, masked: str) -> bool:
    middle = len(secret) // 2
    return secret[:middle] in masked or secret[middle:] in masked


def stopped_texts(texts: Iterable[str], mask: Mask) -> list[str]:
    """Returns the texts in which something was masked, as they were masked."""
    return [masked for text in texts if (masked := mask(text)) != text]
