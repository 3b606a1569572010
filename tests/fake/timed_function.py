"""Runs functions of the product over texts of 200,000 characters; a process of its own, which may hang in one of them.

    python -m tests.fake.timed_function excerpt title_of

Prints as JSON lines the names of each function and text with 0 before it runs, then with the CPU seconds that it took.
Over `_DEADLINE` seconds for one the system ends the process.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from component.chat.transcript import split_code
from component.format import escape_label
from component.markdown import answer_markdown, summary_markdown
from graph.core.attached import split_attached
from graph.core.open_question import without_question
from graph.core.pasted import without_pasted
from graph.core.text import has_visible, title_of
from graph.fold.extract import extract_summary
from graph.fold.fact_check import compare_facts
from graph.fold.fact_compare import missing_from
from graph.fold.fact_find import facts_in, facts_of
from graph.fold.fact_line import carried_facts, facts_for_line, kept_lines
from graph.fold.invented import invented_in
from graph.fold.replaced import superseded_in
from graph.fold.review import SummaryDraft, flaw_of, is_copy, review_drafts
from graph.fold.spec import FoldSpec
from graph.fold.statement import reversed_in, softened_in, unsaid_in
from graph.fold.user_word import user_words
from graph.layer.rule_clean import clean_rules, count_imports
from graph.layer.rule_file import parse_front_matter
from graph.model.summariser import inside_tags
from graph.offline.chat_model import compose
from graph.project.secret import mask_secrets
from graph.recognise.client_chain import canonical
from graph.search.term import (
    broad_words,
    closeness,
    cut_around,
    excerpt,
    has_content_of,
    index_terms,
    named_words,
    strict_words,
    weighed,
)
from graph.value.record import Record
from graph.worker.title import clean_title
from prompt.summary.quote import escape
from prompt.system.framing import quote_rules
from prompt.tool.words import recalled_numbers, recalled_texts
from tests.fake.draft import spec_of
from tests.fake.long_text import long_texts
from tests.fake.snapshot import record_of

_DEADLINE: Final = 6
# The limit may count a long process's time a little otherwise than its own clock does.
_CLOCKS_DIFFER: Final = 1.2
_WORDS: Final = [["가나"], ["b"]]
# A rule's file and a draft are cut to so much before.
_RULE_CHARS: Final = 32_768
_DRAFT_CHARS: Final = 60_000
_WISHES: Final = tuple(f"항목 {number}번은 절대 빼지 말고 보내 주세요" for number in range(100))
_FACTS: Final = facts_in(
    "야간버스는 절대 안 되고, 일요일에만 가요. 오전 9시, 97만 원, 5명, 금요일, 1월 24일, 10.0.0.15, limit_a at 25."
)
_LIFTING: Final = " ".join(f"항목 {number}번을 빼지 말라는 금지 해제." for number in range(5_000))
_QUESTIONS: Final = " ".join(f"항목 {number} 값은 얼마였나요?" for number in range(5_000))


def _spec() -> FoldSpec:
    said: list[AnyMessage] = [HumanMessage("질문입니다"), AIMessage("답입니다. " * 200)]
    return spec_of(said, 900, source_chars=3_000, source_tokens=1_000)


def _record(text: str) -> Record:
    return record_of((1, 2, 3), text).with_changes(kept_facts=_WISHES, missing_facts=_WISHES)


def _draft(text: str) -> SummaryDraft:
    return SummaryDraft(text[:_DRAFT_CHARS], 1, 1, is_usage=True)


FUNCTIONS: Final[Mapping[str, Callable[[str], object]]] = {
    "answer_markdown": answer_markdown,
    "summary_markdown": summary_markdown,
    "split_code": split_code,
    "escape_label": escape_label,
    "split_attached": split_attached,
    "canonical": lambda text: (canonical("user", text), canonical("assistant", text)),
    "has_visible": has_visible,
    "title_of": title_of,
    "clean_title": clean_title,
    "index_terms": index_terms,
    "strict_words": strict_words,
    "broad_words": broad_words,
    "has_content_of": lambda text: has_content_of("가나 예산", text),
    "excerpt": lambda text: excerpt(text, _WORDS, 200),
    "closeness": lambda text: closeness(text, weighed(_WORDS, (1.0,) * len(_WORDS)), 100),
    "cut_around": lambda text: cut_around(text, _WORDS, 1_000),
    "extract_summary": lambda text: extract_summary([HumanMessage(text)], 1_000),
    "inside_tags": inside_tags,
    "is_copy": lambda text: is_copy(text, [text]),
    "flaw_of": lambda text: flaw_of(_draft(text), _spec()),
    "review_drafts": lambda text: review_drafts([_draft(text)], _spec()),
    "compare_facts": lambda text: compare_facts(text, _spec()),
    "carried_facts": lambda text: carried_facts([_record(text), _record(_QUESTIONS)]),
    "kept_lines": lambda text: kept_lines([_record(_QUESTIONS), _record(f"{text}. {_LIFTING}")]),
    "without_question": without_question,
    "without_pasted": without_pasted,
    "user_words": user_words,
    "invented_in": lambda text: (invented_in("5명", [text]), invented_in(text[:_DRAFT_CHARS], [text])),
    "reversed_in": lambda text: reversed_in(text[:_DRAFT_CHARS], [text]),
    "softened_in": lambda text: softened_in(text[:_DRAFT_CHARS], [text]),
    "unsaid_in": lambda text: unsaid_in(text[:_DRAFT_CHARS], [HumanMessage(text)], [text], [text]),
    "facts_for_line": lambda text: facts_for_line(facts_in(text), [text]),
    "mask_secrets": mask_secrets,
    "compose": lambda text: compose([SystemMessage(""), HumanMessage(text)], ()),
    "compose_behind": lambda text: compose([SystemMessage(""), HumanMessage(text), AIMessage(text)], ()),
    "compose_questions": lambda text: compose([SystemMessage(""), HumanMessage(text), HumanMessage(_QUESTIONS)], ()),
    "clean_rules": clean_rules,
    "count_imports": count_imports,
    "parse_front_matter": lambda text: parse_front_matter(f"---\n{text[:_RULE_CHARS]}\n---\n"),
    "quote_rules": lambda text: quote_rules("AGENTS.md", text, ""),
    "escape": escape,
    "recalled_texts": lambda text: (list(recalled_texts(text)), recalled_numbers(text)),
    "named_words": named_words,
    "facts_of": lambda text: facts_of([HumanMessage(text)]),
    "superseded_in": lambda text: superseded_in([HumanMessage(text)]),
    "missing_from": lambda text: missing_from(_FACTS, text),
}


def main() -> None:
    """Runs the named functions, each over every fourth long text and the next one over the texts between."""
    texts = list(long_texts().items())
    for function in sys.argv[1:]:
        for name, text in texts[list(FUNCTIONS).index(function) % 4 :: 4]:
            _tell([f"{function}: {name}", 0])
            allowed = math.ceil(time.process_time() * _CLOCKS_DIFFER) + _DEADLINE
            resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
            began = time.process_time()
            FUNCTIONS[function](text)
            _tell([f"{function}: {name}", round(time.process_time() - began, 3)])


def _tell(said: object) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
