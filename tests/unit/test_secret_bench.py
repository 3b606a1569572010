from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.secret.__main__ import main
from bench.secret.kind import KINDS, Sample, secret_samples
from bench.secret.measure import MOST_STOPPED_SHARE, measure, stopped_texts
from bench.secret.public import FILE, read_public
from bench.secret.report import report
from bench.secret.sentence import Sentence, ordinary_sentences
from graph.project.secret import mask_secrets

SAMPLES = [Sample(f"kind {number}", "0123456789", f"see 0123456789 {number}") for number in range(25)]


def sentences(count: int) -> list[Sentence]:
    return [Sentence("ko", "work", "", f"문장 {number}") for number in range(count)]


def test_half_a_secret_that_is_left_is_a_missed_one() -> None:
    for left, missed in (("", 0), ("01234", 1), ("56789", 1), ("0123", 0)):
        figures = measure(SAMPLES[:1], [], lambda text, left=left: text.replace("0123456789", left))  # type: ignore[misc]
        assert figures.missed.total() == missed


def test_one_missed_secret_or_too_few_kinds_break_the_bound() -> None:
    def mask(text: str) -> str:
        return text.replace("0123456789", "*")

    assert [met for met, _ in measure(SAMPLES, [], mask).requirements] == [True, True]
    assert not measure(SAMPLES[1:], [], mask).requirements[0][0]
    assert not measure([*SAMPLES, Sample("kind 3", "abcdefgh", "abcdefgh")], [], mask).requirements[0][0]


@pytest.mark.parametrize(("stopped", "met"), [(0, True), (10, True), (11, False)])
def test_at_most_ten_of_two_thousand_sentences_may_be_stopped(stopped: int, met: bool) -> None:  # noqa: FBT001  # parametrised
    wrong = {f"문장 {number}" for number in range(stopped)}
    figures = measure([], sentences(2_000), lambda text: "*" if text in wrong else text)
    assert figures.stopped.total() == stopped
    assert figures.stopped_share == stopped / 2_000
    assert (figures.stopped_share <= MOST_STOPPED_SHARE) == met == figures.requirements[1][0]


def test_the_sentences_are_different_in_both_languages_and_of_many_shapes() -> None:
    made = list(ordinary_sentences(1, 2_000))
    assert len({sentence.text for sentence in made}) == 2_000
    assert sum(sentence.language == "ko" for sentence in made) == 1_000
    assert len({sentence.shape for sentence in made}) > 250
    assert not any(re.search(r"(?<!\$)\{\w+\}", sentence.text) for sentence in made)
    assert made == list(ordinary_sentences(1, 2_000)) != list(ordinary_sentences(2, 2_000))


def test_each_secret_is_new_and_stands_in_its_text() -> None:
    samples = list(secret_samples(1, 12))
    assert len(samples) == 12 * len(KINDS)
    assert all(sample.secret in sample.text for sample in samples)
    assert len({sample.secret for sample in samples}) > 0.99 * len(samples)


def test_the_bounds_are_met_with_another_seed_than_the_page_has() -> None:
    figures = measure(secret_samples(7, 8), ordinary_sentences(7, 1_000), mask_secrets)
    assert all(met for met, _ in figures.requirements), figures.failures


def test_public_texts_are_read_once_each_and_the_masked_ones_are_shown(tmp_path: Path) -> None:
    (tmp_path / "klue-ner").mkdir()
    (tmp_path / "klue-ner" / "klue-ner-v1.1_dev.tsv").write_text("## a\n끝\tO\n\n## b\n끝\tO\n\n", encoding="utf-8")
    (tmp_path / FILE).parent.mkdir()
    said = {"query": [{"role": "user", "content": "비밀번호는 abc123def"}, {"content": None}], "ground_truth": {}}
    (tmp_path / FILE).write_text(json.dumps({"turns": [said, said]}) + "\n", encoding="utf-8")
    chats = tmp_path / "bfcl-memory" / "memory_prereq_conversation"
    chats.mkdir(parents=True)
    chat = {"id": "memory_prereq_0-kim-0", "question": [[{"role": "user", "content": "hello"}]]}
    (chats / "memory_kim.json").write_text(json.dumps(chat) + "\n", encoding="utf-8")
    read = read_public(tmp_path)
    assert [*read.values()] == [["끝"], ["비밀번호는 abc123def", ""], ["hello"]]
    stopped = {name: (len(texts), stopped_texts(texts, mask_secrets)) for name, texts in read.items()}
    page = report(measure(SAMPLES, sentences(4), mask_secrets), stopped)
    assert "| functionchat-ko, Korean messages | 2 | 1 |" in page
    assert "- 비밀번호는 [secret: password]\n" in page
    assert "| kind 3 | 1 | 1 |" in page


def test_missing_data_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path)]) == 2
    assert "klue-ner" in capsys.readouterr().err
