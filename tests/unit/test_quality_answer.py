from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from bench.quality.answer import Kept, check, keep
from bench.quality.contender import contenders, count_chars, picked, random_sentences, tf_idf, window
from bench.quality.memory import Question, find_place, is_kept, normalise, read_questions, read_sessions
from graph.core.extract import extract_summary
from graph.core.weight import count_terms

TURNS = [
    "I moved to the coast last year. My daughter Lena is nine — she sails. The sea is calm here, and the sea is near.",
    "We wake up at 6:30 in the morning. The well-known harbour has 7 berths!",
    "The sea is calm here today too. Berth 17 is ours.",
]
TEXTS = [normalise(text) for text in TURNS]


@pytest.mark.parametrize(
    ("answers", "source", "place"),
    [
        (["9", "nine"], "My daughter Lena is nine...", "lena is nine she sails"),
        (["06:30 AM", "6:30"], "wake up at 6:30", "up at 6:30 in the"),
        (["7", "seven"], "...harbour has 7 berths", "harbour has 7 berths"),
        (["well known"], "The well-known harbour has", "the well known harbour has"),
        (["berth"], "Berth 17 is ours.", "berth 17 is"),
    ],
)
def test_the_place_of_an_answer_is_where_its_source_says_it(answers: list[str], source: str, place: str) -> None:
    assert find_place(TEXTS, answers, source) == place


def test_an_answer_that_the_session_never_says_has_no_place() -> None:
    assert find_place(TEXTS, ["Oslo"], "We live in Oslo") == ""
    assert find_place(TEXTS, ["7"], "The rent is due on the 7th of each month, says the letter from our landlord") == ""


def test_an_answer_counts_with_the_words_around_it_alone() -> None:
    assert is_kept("harbour has 7 berths", normalise("The well-known harbour has 7 berths!"))
    assert not is_kept("harbour has 7 berths", normalise("Berth 7 is ours."))
    assert not is_kept("is 7", "this 7")


SESSIONS = {"a": [HumanMessage(text) for text in TURNS]}
QUESTIONS = [
    Question("1", "a", "lena is nine she sails", is_for_tuning=True),
    Question("2", "a", "berth 17 is", is_for_tuning=False),
]


def test_kept_shares_are_those_of_all_and_of_both_halves() -> None:
    everything = keep(SESSIONS, QUESTIONS, [lambda messages, _: "\n".join(message.text for message in messages)])
    assert (everything.everything, everything.rest, everything.tuned) == ((1.0,) * 3,) * 3
    newest = keep(SESSIONS, QUESTIONS, [lambda messages, _: messages[-1].text, lambda *_: ""])
    assert (newest.everything, newest.rest, newest.tuned) == ((0.25,) * 3, (0.5,) * 3, (0.0,) * 3)
    assert newest.size[0] == pytest.approx(len(TURNS[2]) / count_chars(SESSIONS["a"]) / 2)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_no_contender_keeps_more_than_its_share(rate: float) -> None:
    messages = SESSIONS["a"] * 3
    for ways in contenders().values():
        for shorten in ways:
            assert len(shorten(messages, rate).replace("\n", "")) <= count_chars(messages) * rate


def test_contenders_do_what_their_names_say() -> None:
    messages = SESSIONS["a"]
    assert window(messages, 0.1) == "\n".join(TURNS)[-int(count_chars(messages) * 0.1) :]
    assert random_sentences(messages, 0.5, seed=1) == random_sentences(messages, 0.5, seed=1)
    assert len({random_sentences(messages, 0.3, seed=seed) for seed in range(10)}) > 1
    assert "The sea is calm here" not in tf_idf(messages, 0.3, is_average=True)
    assert picked(messages, 0.3) == extract_summary(
        messages, int(count_chars(messages) * 0.3), counts=count_terms(TURNS)
    )


def test_requirements_say_what_is_not_met() -> None:
    even = Kept((0.2, 0.4, 0.6), (0,) * 3, (0,) * 3, (0,) * 3)
    names = list(contenders())
    assert [is_met for is_met, _ in check(dict.fromkeys(names, even))] == [True, True, True, False, False]
    better = Kept((0.2, 0.55, 0.75), (0,) * 3, (0,) * 3, (0,) * 3)
    assert all(is_met for is_met, _ in check({**dict.fromkeys(names, even), names[0]: better}))
    worse = Kept((0.1, 0.4, 0.6), (0,) * 3, (0,) * 3, (0,) * 3)
    assert not next(iter(check({**dict.fromkeys(names, even), names[0]: worse})))[0]


def test_data_is_read_chat_by_chat_and_its_absence_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        read_sessions(tmp_path)
    assert missing.value.filename == str(tmp_path / "memory_prereq_conversation")
    chats = [
        {"id": f"memory_prereq_{number}-a-{number}", "question": [[{"role": "user", "content": TURNS[number % 3]}]]}
        for number in (10, 9)
    ]
    (tmp_path / "memory_prereq_conversation").mkdir()
    path = tmp_path / "memory_prereq_conversation" / "memory_a.json"
    path.write_text("\n".join(map(json.dumps, chats)), encoding="utf-8")
    sessions = read_sessions(tmp_path)
    assert [message.text for message in sessions["a"]] == [TURNS[0], TURNS[1]]
    entries = [
        {"id": "memory_0-a-0", "ground_truth": ["nine"], "source": "My daughter Lena is nine"},
        {"id": "memory_1-a-1", "ground_truth": ["17"], "source": "Berth 17 is ours"},
    ]
    (tmp_path / "possible_answer_memory.json").write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    questions, unplaced = read_questions(tmp_path, sessions)
    assert ([question.place for question in questions], unplaced) == (["lena is nine she sails"], 1)
