from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.thinking import ThinkingSplitter, split_whole, thought_blocks, thought_in

THOUGHT = "The port was 7777.\nIs it `9090`? I keep 9090."
ANSWER = "The port is 9090.\n\nSay `<think>` or `</think>` for a tag: 1 < 2, [THIN]."
FORMS = {
    "tags": f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    "long tags": f"\n<Thinking>{THOUGHT}</Thinking>{ANSWER}",
    "end alone": f"{THOUGHT}\n</think>\n\n{ANSWER}",
    "end alone in a line": f"{THOUGHT}</think>{ANSWER}",
    "kimi": f"◁think▷{THOUGHT}◁/think▷{ANSWER}",
    "magistral": f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
    "channels": (
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>"
    ),
    "channels without a start": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|channel|>final<|message|>{ANSWER}",
    "channels one after the other": (
        f"<|start|>assistant<|channel|>analysis<|message|>{THOUGHT[:9]}<|channel|>commentary<|message|>{THOUGHT[9:]}"
        f"<|start|>assistant<|channel|>final<|message|>{ANSWER}<|end|>"
    ),
    "gemini": f"<thought>\n{THOUGHT}\n</thought>\n\n{ANSWER}",
    "seed": f"<seed:think>{THOUGHT}</seed:think>{ANSWER}<seed:eos>",
    "reasoning": f"<reasoning>{THOUGHT}</reasoning>\n{ANSWER}",
    "reason": f"<Reason>{THOUGHT}</Reason>\n{ANSWER}",
    "longcat": f"<longcat_think>{THOUGHT}</longcat_think>{ANSWER}</s>",
    "minimax": f"<mm:think>{THOUGHT}</mm:think>{ANSWER}",
    "claude": f"<antThinking>{THOUGHT}</antThinking>{ANSWER}",
    "analysis": f"<analysis>{THOUGHT}</analysis>\n{ANSWER}",
    "scratchpad": f"<scratchpad>{THOUGHT}</scratchpad>\n{ANSWER}",
    "marco": f"<Thought>\n{THOUGHT}\n</Thought>\n<Output>\n{ANSWER}\n</Output>",
    "hunyuan": f"<think>\n{THOUGHT}\n</think>\n<answer>\n{ANSWER}\n</answer>",
    "ernie": f"{THOUGHT}\n</think>\n\n<response>\n{ANSWER}\n</response>\n",
    "sky": (
        f"<|begin_of_thought|>\n{THOUGHT}\n<|end_of_thought|>\n\n<|begin_of_solution|>\n{ANSWER}\n<|end_of_solution|>"
    ),
    "cohere": (
        f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"
    ),
    "cohere, end alone": f"{THOUGHT}<|END_THINKING|><|START_TEXT|>{ANSWER}<|END_TEXT|>",
    "apertus": f"<|inner_prefix|>{THOUGHT}<|inner_suffix|>{ANSWER}",
    "gemma": f"<|channel>thought\n{THOUGHT}<channel|>{ANSWER}<turn|>",
    "apriel": f"{THOUGHT}\n[BEGIN FINAL RESPONSE]\n{ANSWER}\n[END FINAL RESPONSE]\n<|end|>",
    "solar": f"<|think|>{THOUGHT}<|end|><|begin|>assistant<|content|>{ANSWER}<|end|>",
    "glm": f"<think>{THOUGHT}</think><|begin_of_box|>{ANSWER}<|end_of_box|>",
    "marks that end in end": f"<|reasoning_start|>{THOUGHT}<|reasoning_end|>{ANSWER}",
    "monologue": f"<inner_monologue>{THOUGHT}</inner_monologue>{ANSWER}",
    "a blank in the end": f"<think>{THOUGHT}</think >{ANSWER}",
    "end of turn": f"<think>{THOUGHT}</think>{ANSWER}<|im_end|>",
    "two ends of turn": f"<think>{THOUGHT}</think>{ANSWER}\n<|eot_id|><|end_of_text|>\n",
    "deepseek's end": f"<think>{THOUGHT}</think>{ANSWER}<｜end▁of▁sentence｜>",
    "open webui": (
        f'<details type="reasoning" done="true" duration="4">\n<summary>Thought for 4 seconds</summary>\n{THOUGHT}\n'
        f"</details>\n{ANSWER}"
    ),
    "z.ai": f'<details type="reasoning" open>\n{THOUGHT}\n</details>\n\n{ANSWER}',
    "details in another order": f"<Details open=\"\" type='thinking'><summary>…</summary>{THOUGHT}</Details>{ANSWER}",
    "two details": (
        f'<details type="reasoning">{THOUGHT[:9]}</details>\n<details type="reasoning">{THOUGHT[9:]}</details>{ANSWER}'
    ),
    "two blocks": f"<think>{THOUGHT[:9]}</think>\n<think>{THOUGHT[9:]}</think>\n{ANSWER}",
}
TEXTS = [
    "A model begins with <think> and ends with </think>. Then it answers.",
    "Use `</think>` for the end.",
    "```xml\n<think>\n</think>\n```\nThat is all.",
    "The end tag is:\n\n    </think>\n\nThat is all.",
    'It ends with "</think>" there.',
    "The tag </think> ends it.",
    "`<think>` begins the thoughts\n</think>\nends them.",
    "  1 < 2 and <b>bold</b>",
    "<thin",
    "The mark is <|im_end|>",
    "It ends with `<|im_end|>`",
    "```\n<|im_end|>",
    "It was <s>old</s>",
    "Use <answer>x</answer>",
    "The tags are <thought> and\n</thought>",
    "<summary>It is a summary.</summary>",
    "<details><summary>Reasons</summary>Three.</details> So it is.",
    '<details type="tool_calls" name="reason">\n<summary>Done</summary>\n</details>\nIt is 3.',
    'It is 3.\n<details type="reasoning">\nSo.\n</details>',
    '`<details type="reasoning">` begins it.',
    '<details type="reasoning"',
    "[Reasons](https://a.kr) are here",
    "Here is my thought: none.",
    "analysis of it",
    "analysisX is a name",
    "<|im_end|>\nis a mark",
    "<|start|>",
    "[THIS] is a list [1]",
    "",
    " ",
]


def split(text: str, cuts: list[int], *, ends_alone: bool = False) -> tuple[str, str]:
    splitter = ThinkingSplitter(ends_alone=ends_alone)
    places = sorted({0, *(cut % (len(text) + 1) for cut in cuts), len(text)})
    pieces = [text[a:b] for a, b in pairwise(places)]
    thought, said = "", ""
    for part in [*(splitter.add(piece) for piece in pieces), splitter.end()]:
        if part.is_revoked:
            thought, said = thought + said, ""
        thought, said = thought + part.thought, said + part.text
    # As whoever reads a stream takes what was only held to be thoughts.
    return ("", text) if splitter.is_unended and not ends_alone else (thought, said)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_thoughts_is_told_from_the_answer(form: str) -> None:
    thought, answer = split_whole(FORMS[form])
    assert answer.strip() == ANSWER
    assert thought.strip() == THOUGHT


def test_thoughts_announced_in_words_are_thoughts_if_the_answer_is_announced_as_well() -> None:
    thought, answer = split_whole(f"Here is my thought process:\n{THOUGHT}\nHere is my response:\n{ANSWER}")
    assert (THOUGHT in thought, answer.strip()) == (True, ANSWER)
    thought, answer = split_whole(f"analysis{THOUGHT}assistantfinal{ANSWER}")  # gpt-oss, its marks left out
    assert (THOUGHT in thought, answer) == (True, ANSWER)
    said = f"Here is my thought process: {ANSWER}"
    assert split_whole(said) == ("", said)


def test_marks_of_an_end_go_from_an_answer_without_thoughts() -> None:
    for mark in (
        "<|im_end|>",
        "</s>",
        "<end_of_turn>",
        "<|eot_id|>\n",
        "[|endofturn|]",
        "<|endoftext|><|im_end|>",
        "<eos>",
    ):
        assert split_whole(f"{ANSWER}{mark}") == ("", ANSWER)
        assert split_whole(f"{ANSWER}\n{mark}") == ("", f"{ANSWER}\n")


def test_thoughts_end_with_their_own_tag() -> None:
    assert split_whole("<think>A </analysis> tag.\n</think>\nYes.") == ("A </analysis> tag.\n", "Yes.")


@pytest.mark.parametrize("text", TEXTS)
def test_tags_that_an_answer_tells_of_are_text(text: str) -> None:
    assert split_whole(text) == ("", text)


@given(st.sampled_from([*FORMS.values(), *TEXTS]), st.lists(st.integers(0, 500)))
def test_cuts_change_nothing(text: str, cuts: list[int]) -> None:
    assert split(text, cuts) == split_whole(text)
    assert split(text, list(range(len(text)))) == split_whole(text)


@given(st.text(alphabet="<>/think◁▷|`\n aé[]THINK", max_size=60), st.lists(st.integers(0, 60)))
def test_nothing_is_lost_and_cuts_change_nothing_in_any_text(text: str, cuts: list[int]) -> None:
    thought, answer = split_whole(text)
    assert split(text, cuts) == (thought, answer)
    if not thought:
        assert answer.strip() in text


@given(st.lists(st.integers(0, 500)))
def test_text_of_a_model_that_ends_alone_is_held_back(cuts: list[int]) -> None:
    splitter = ThinkingSplitter(ends_alone=True)
    assert splitter.add("The port").text == ""
    for form in ("end alone", "end alone in a line", "tags"):
        assert [part.strip() for part in split(FORMS[form], cuts, ends_alone=True)] == [THOUGHT, ANSWER]


def test_an_answer_about_tags_is_read_in_no_time() -> None:
    text = "`</think>` " * 20_000
    began = time.monotonic()
    assert split_whole(text) == ("", text)
    assert time.monotonic() - began < 2


def test_unclosed_thoughts_are_thoughts() -> None:
    assert split_whole("<think>\nThe port") == ("\nThe port", "")
    assert split_whole("<|channel|>analysis<|message|>The port") == ("The port", "")


def test_an_end_tag_without_a_start_is_noted() -> None:
    splitter = ThinkingSplitter()
    splitter.add(FORMS["end alone"])
    assert splitter.has_ended_alone
    splitter = ThinkingSplitter()
    splitter.add(FORMS["tags"])
    assert not splitter.has_ended_alone


def test_thoughts_beside_the_text_are_read_once() -> None:
    assert thought_in({"reasoning_content": "A", "reasoning": "A"}) == "A"
    details = [{"type": "reasoning.text", "text": "A"}, {"type": "reasoning.summary", "summary": "B"}]
    encrypted = {"type": "reasoning.encrypted", "data": "x"}
    assert thought_in({"reasoning_details": [*details, encrypted]}) == "AB"
    assert thought_in({"reasoning": None, "reasoning_content": 3}) == ""
    blocks: list[str | dict[str, Any]] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "A"}]},
        {"type": "text", "text": "B"},
    ]
    assert thought_blocks(blocks) == "A"
    assert thought_blocks([{"type": "reasoning", "reasoning": "A"}, "B"]) == "A"
