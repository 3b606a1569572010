"""The probes of `bench/quality`: their sets are sound, and what is counted of them is what is said."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.quality.folded import Part
from bench.quality.force import CONSENT, FORCES, mutations_of
from bench.quality.probe import SETS, Probe, Said, Talk, is_named, read_talks, stands, state_of
from graph.core.language import split_sentences
from graph.core.turn import split_turns, text_of
from graph.value.view import FACT_CLASSES, FactClass

_TALKS = [talk for language in SETS for talk in read_talks(language)]
_OLD = Said(1, ("limit", "20"), "Limit 20.")
_NEW = Said(5, ("limit", "30"), "Limit 30.")


@pytest.mark.parametrize("language", SETS)
def test_a_set_has_sixty_probes_of_all_classes_and_changes(language: str) -> None:
    probes = [probe for talk in read_talks(language) for probe in talk.probes]
    assert len(probes) == 60
    assert min(Counter(probe.kind for probe in probes)[kind] for kind in FACT_CLASSES) >= 6
    assert sum(probe.now is not None for probe in probes) >= 9
    assert all(probe.asked for probe in probes)


@pytest.mark.parametrize("talk", _TALKS, ids=lambda talk: talk.name)
def test_one_sentence_of_its_turn_has_the_words_of_each_probe(talk: Talk) -> None:
    turns = split_turns(talk.messages)
    for probe in talk.probes:
        for said in filter(None, (probe.said, probe.now)):
            sentences = [each for message in turns[said.turn - 1] for each in split_sentences(text_of(message))]
            assert stands(said, sentences), said
        assert not probe.other or probe.other[0] in probe.said.note
        assert (probe.now is None) is ("before" not in dict(probe.asked))


def test_a_number_is_named_by_its_value_and_a_rule_by_its_sentence() -> None:
    number = Probe("number", _OLD, None, (), ())
    assert is_named(number, ["20"])
    assert not is_named(number._replace(now=_NEW), ["20"])
    rule = Probe("rule", Said(1, ("never", "sunday"), ""), None, (), ())
    assert not is_named(rule, ["Sunday"])
    assert is_named(rule, ["Never book a Sunday"])


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ([("The limit is 20.", False), ("The limit is 30.", False)], (True, True, False)),
        ([("The limit is 30.", False), ("The limit is 20.", False)], (True, True, True)),
        ([("The limit is 30.", False), ("The limit was 20.", False)], (True, True, False)),
        ([("The limit is 30, no longer a limit of 20.", False)], (True, False, False)),
        ([("The limit is 20.", False)], (False, True, True)),
        ([("The limit is 30.", False), ("The limit is 20.", True)], (True, True, True)),
        ([("Nothing.", False)], (False, False, False)),
    ],
)
def test_a_former_value_is_sent_as_present_where_nothing_tells_that_it_changed(
    parts: list[tuple[str, bool]], state: tuple[bool, bool, bool]
) -> None:
    placed = [Part((number,), (text,), is_ledger=is_ledger) for number, (text, is_ledger) in enumerate(parts)]
    assert state_of(_OLD, _NEW, placed) == state


@pytest.mark.parametrize("language", SETS)
def test_a_false_line_differs_from_the_good_one_and_every_force_is_tried(language: str) -> None:
    mutations = [mutation for talk in read_talks(language) for mutation in mutations_of(talk)]
    assert min(Counter(each.force for each in mutations)[force] for force in (*FORCES, CONSENT)) >= 3
    for each in mutations:
        assert each.wrong not in each.good
        assert each.line in each.good or each.force == CONSENT
        assert len(set(each.text.split("\n")) - set(each.good)) == 1


@pytest.mark.parametrize(
    ("force", "kind", "note", "wrong"),
    [
        ("negation dropped", "rule", "규칙: 표를 쓰지 않음.", "결정: 표를 쓰기로 함."),
        ("negation added", "preference", "선호: 차보다 물.", "차보다 물 선호하지 않음."),
        ("must becomes should", "rule", "규칙: 반드시 서면으로.", "규칙: 되도록 서면으로."),
        ("limit dropped", "rule", "규칙: 5월 3일까지 주문하지 않음.", "규칙: 주문하지 않음."),
        ("limit dropped", "date", "마감은 5월 3일까지 제출.", ""),
        ("another date", "date", "마감 5월 3일.", "마감 5월 7일."),
        ("another number", "number", "예산 20만 원.", "예산 40만 원."),
        ("person swapped", "name", "담당 김해나.", "담당 박서우."),
        ("person whom nobody named", "name", "담당 김해나.", "담당 설동욱."),
    ],
)
def test_a_note_is_made_false_by_rule(force: str, kind: FactClass, note: str, wrong: str) -> None:
    said = Said(1, ("예산", "20만 원"), note)
    talk = Talk("", "ko", (("user", "5월 6일에 30만 원을 냈어요."),), ("김해나", "박서우"), (), ())
    assert FORCES[force](Probe(kind, said, None, (), ()), said, talk) == wrong
