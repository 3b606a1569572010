"""Builds the requests for a summary: a quoted source in parts, a request in place, and the repair of a draft."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.cost import CACHED_PRICE
from graph.core.day import has_relative_day, written
from graph.core.language import is_english, user_language
from graph.core.ledger import render_line, standing, with_room
from graph.core.model_input import ModelInput
from graph.core.text import estimate_tokens, message_tokens, sum_tokens
from graph.core.turn import is_repetition, text_of, without_images
from graph.fold.fact_find import facts_in
from graph.fold.fact_line import carried_line
from graph.fold.ledger import ledger_of
from graph.fold.replaced import changed_in
from graph.fold.review import Flaw, SummaryDraft, facts_to_name
from graph.fold.spec import FoldSpec, PromptStyle
from graph.value.record import LedgerLine
from prompt.summary import (
    compaction_generator,
    in_place_generator,
    merge_generator,
    repair_generator,
    rolling_generator,
    summary_generator,
)
from prompt.summary.quote import (
    AFTER_CHARS,
    FACTS_VERSION,
    RESULTS_RULE,
    count_turns,
    escape,
    list_days,
    list_facts,
    list_kept,
    quote_after,
    quote_instruction,
)
from prompt.summary.summary_generator import MAX_TARGET_CHARS
from prompt.system.framing import Language

_GENERATORS: Final = (
    summary_generator,
    merge_generator,
    rolling_generator,
    compaction_generator,
    in_place_generator,
)
# Changes whenever the words of any style's prompt change.
PROMPT_VERSION: Final = "/".join((*(text.PROMPT_VERSION for text in _GENERATORS), FACTS_VERSION))
_LONG_RESULTS_CHARS: Final = 1_000
# Of the room for the source.
_AFTER_SHARE: Final = 4


class _GetPrompt(Protocol):
    def __call__(
        self,
        messages: Sequence[AnyMessage],
        target_length: int,
        *,
        language: str = "ko",
        before: str = "",
        turns: Sequence[int] = (),
    ) -> str: ...


_PROMPTS: Final[Mapping[PromptStyle, tuple[Callable[[str], str], _GetPrompt]]] = {
    "plain": (summary_generator.get_rules, summary_generator.get_prompt),
    "merge": (merge_generator.get_rules, merge_generator.get_prompt),
    "rolling": (rolling_generator.get_rules, rolling_generator.get_prompt),
    "structured": (compaction_generator.get_rules, compaction_generator.get_prompt),
}


@dataclass(frozen=True)
class SummaryRequest:
    """Request for one part of a source; tools are sent for the cached prefix, none may be called.

    `language` is that of the summary (`language_of`).
    """

    messages: list[BaseMessage]
    aim_chars: int
    most_chars: int
    language: str
    tools: Sequence[Mapping[str, Any]] = ()


def requests_for(spec: FoldSpec, source_tokens: int) -> Iterator[SummaryRequest]:
    """Yields the request for each part of a source of at most `source_tokens`."""
    get_rules, get_prompt = _PROMPTS[spec.style]
    if spec.is_merge:
        facts = carried_line(spec.carried, spec.language, spec.max_tokens or 0, level=spec.level)
        after = quote_after(_told_behind(spec), min(AFTER_CHARS, source_tokens // _AFTER_SHARE))
        source_tokens -= estimate_tokens(after)
        get_prompt = partial(merge_generator.get_prompt, facts=facts, after=after)
    language = language_of(spec.messages, spec.language)
    rules = get_rules(language)
    numbered = zip(map(without_images, spec.messages), spec.message_turns or count_turns(spec.messages), strict=True)
    parts = list(_split(numbered, source_tokens))
    sizes = [sum_tokens(message for message, _ in part) for part in parts]
    for index, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        chars = max(1, int(spec.asked_chars * (size / sum(sizes) if sum(sizes) else 1.0)))
        prompt = get_prompt(
            [message for message, _ in part],
            chars,
            language=language,
            before=spec.before if index == 0 else text_of(parts[index - 1][-1][0]),
            turns=[turn for _, turn in part],
        )
        task = with_facts(prompt.removeprefix(rules).lstrip("\n"), [message for message, _ in part], chars, spec)
        aim_chars, most_chars = lengths_of(chars, spec.style)
        sent: list[BaseMessage] = [SystemMessage(rules), HumanMessage(task)] if rules else [HumanMessage(task)]
        yield SummaryRequest(sent, aim_chars, most_chars, language)


def with_facts(
    request: str, messages: Sequence[AnyMessage], target_chars: int, spec: FoldSpec, *, shows_ledger: bool = True
) -> str:
    """Inserts what is kept, the facts to keep and the user's instruction before the last line, which states the size.

    With `shows_ledger` the ledger's other lines, too, not only those that the fold adds.

    A fold with long results of tools has a rule for them.
    A merge prompt names its own facts. Only the prompts of plain summaries and merges are in the session's language.
    """
    language = language_of(messages, spec.language) if spec.style in ("plain", "merge") else "en"
    has_ledger = spec.ledger is not None
    named = () if spec.is_merge else facts_to_name(messages, target_chars, spec.language, has_ledger=has_ledger)
    listed = list_facts([fact.text for fact in named], language)
    rule = RESULTS_RULE["ko" if language == "ko" else "en"] if _has_long_results(spec) else ""
    start, _, size = request.rpartition("\n")
    kept = list_kept([render_line(line, spec.language) for line in _kept(messages, spec, shows_ledger=shows_ledger)])
    rule += list_days(_relative_days(spec, language), language)
    return f"{start}\n{kept}{listed}{rule}{quote_instruction(spec.instruction, language)}{size}"


def _told_behind(spec: FoldSpec) -> list[str]:
    """Returns what stands behind a merge, newest first, but before all others what changes a value of its source."""
    said = {fact.identity for message in spec.messages for fact in facts_in(text_of(message))}
    newest_first = spec.after[::-1]
    return sorted(newest_first, key=lambda text: said.isdisjoint(fact.identity for fact in changed_in(text)))


def _kept(messages: Sequence[AnyMessage], spec: FoldSpec, *, shows_ledger: bool) -> list[LedgerLine]:
    """Returns the lines of the user's word to show: first what the fold adds or carries on, then the others."""
    added = [line for line in standing(ledger_of(spec), {}) if line.kind != "lifted"]
    lines = with_room([*added, *(spec.ledger or () if shows_ledger else ())], spec.ledger_tokens, spec.language)
    if spec.is_merge:
        return lines
    asked = "\n".join(text_of(message) for message in messages if isinstance(message, HumanMessage))
    return [line for line in lines if line not in added or line.text in asked]


def _relative_days(spec: FoldSpec, language: str) -> dict[str, list[int]]:
    """Returns the turns of each day, as they are written, if a message names a day by when it was said."""
    turns: dict[str, list[int]] = {}
    if any(
        has_relative_day(text_of(each)) for each in spec.messages if not isinstance(each, (ToolMessage, SystemMessage))
    ):
        for turn, day in spec.turn_days.items():
            turns.setdefault(written(day, "ko" if language == "ko" else "en"), []).append(turn)
    return turns


def _has_long_results(spec: FoldSpec) -> bool:
    results = (message for message in spec.messages if isinstance(message, ToolMessage) and not is_repetition(message))
    return sum(len(text_of(result)) for result in results) >= _LONG_RESULTS_CHARS


def language_of(messages: Sequence[AnyMessage], session_language: Language) -> str:
    """Returns "ko" for a Korean session, else "en", or the script of the user's messages if they aren't in English.

    "latin" stands for whatever language the user writes; none is named. Of a merge, its summaries are judged.
    """
    if session_language == "ko":
        return "ko"
    if not any(isinstance(message, HumanMessage) for message in messages):
        messages = [HumanMessage(text_of(message)) for message in messages if isinstance(message, SystemMessage)]
    script = user_language(messages)
    if script == "ko" or (script == "latin" and not is_english(messages)):
        return "latin"
    return "en" if script in (None, "latin") else script


def lengths_of(target_chars: int, style: PromptStyle) -> tuple[int, int]:
    """Returns the length that a prompt of this style requests and the length that it allows, in characters."""
    if style == "plain":
        return summary_generator.sizes(target_chars)
    chars = min(target_chars, MAX_TARGET_CHARS)
    return chars, chars


def messages_behind(request: SummaryRequest, index: int, draft: SummaryDraft, flaw: Flaw) -> list[BaseMessage]:
    """Returns the draft and a repair prompt, which names only what its own part lacks or invented."""
    text = draft.parts[index] if index < len(draft.parts) else draft.text
    is_part = len(draft.parts) > 1
    request_text = request.messages[-1].text
    repair = repair_generator.get_prompt(
        flaw.kind,
        chars=len(text),
        aim=request.aim_chars,
        most=request.most_chars,
        language=request.language,
        missing=[fact for fact in flaw.missing if not is_part or escape(fact) in request_text],
        invented=[fact for fact in flaw.invented if not is_part or fact in text],
    )
    return [AIMessage(text or repair_generator.EMPTY_DRAFT), HumanMessage(repair)]


def _split(numbered: Iterable[tuple[AnyMessage, int]], limit_tokens: int) -> Iterator[list[tuple[AnyMessage, int]]]:
    part: list[tuple[AnyMessage, int]] = []
    part_tokens = 0
    for message, turn in ((piece, turn) for whole, turn in numbered for piece in _cut(whole, limit_tokens)):
        tokens = message_tokens(message)
        if part and part_tokens + tokens > limit_tokens:
            yield part
            part, part_tokens = [], 0
        part.append((message, turn))
        part_tokens += tokens
    yield part


def _cut(message: AnyMessage, limit_tokens: int) -> Iterator[AnyMessage]:
    tokens = message_tokens(message)
    if tokens <= limit_tokens:
        yield message
        return
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    text = "\n".join([text_of(message), *(f"(tool call: {call['name']}({call['args']}))" for call in calls)])
    changes = {"content": "", "tool_calls": []} if calls else {"content": ""}
    bare = message.model_copy(update=changes)
    while text:
        # Tokens per character vary within a text, so each piece is estimated for itself.
        chars = max(1, len(text) * limit_tokens // max(1, estimate_tokens(text)))
        while chars > 1 and estimate_tokens(text[:chars]) > limit_tokens:
            chars = chars * 9 // 10
        space = text.rfind(" ", chars // 2, chars)
        end = space + 1 if space > 0 and chars < len(text) else chars
        yield bare.model_copy(update={"content": text[:end]})
        text = text[end:]


# The repair prompt after a draft.
_REPAIR_TOKENS: Final = 200


@dataclass(frozen=True)
class LastInput:
    """Last input of a session's chat model for an answer without tool calls, and the answer."""

    model: str
    model_input: ModelInput
    tools: tuple[Mapping[str, Any], ...]
    answer: AIMessage

    def holds(self, spec: FoldSpec) -> bool:
        """Returns True if the input contains a fold's messages word for word and the records that it replaces."""
        items = self.model_input.items
        sent = {item.id for item in items if item.kind == "message"} | {str(self.answer.id)}
        if not {item.id for item in items if item.kind == "record"}.issuperset(spec.sources):
            return False
        texts = {str(m.id): _squeeze(text_of(m)) for m in [*self.model_input.messages, self.answer]}

        def is_held(source_id: str, message: AnyMessage) -> bool:
            # A message that isn't sent by itself is part of a message that joins several.
            candidates = [texts[source_id]] if source_id in texts else texts.values()
            return source_id in sent and any(_squeeze(text_of(message)) in candidate for candidate in candidates)

        return all(
            isinstance(message, SystemMessage) or is_held(source_id, message)
            for source_id, message in zip(spec.source_ids, spec.messages, strict=True)
        )


def request_in_place(last: LastInput, spec: FoldSpec) -> SummaryRequest | None:
    """Returns the last input followed by its answer and the instruction; None if the source must be quoted.

    Quoted are merges, and blocks with any text that the input doesn't contain whole.
    """
    style = spec.style
    if style == "merge" or (style == "plain" and spec.sources) or not last.holds(spec):
        return None
    sources = [message for message in spec.messages if not isinstance(message, SystemMessage)]
    asked = [message for message in sources if isinstance(message, HumanMessage)]
    if not sources:
        return None
    language = language_of(spec.messages, spec.language)
    aim_chars, most_chars = lengths_of(spec.asked_chars, style)
    ends_with_answer = spec.source_ids[-1] == str(last.answer.id)
    instruction = in_place_generator.get_prompt(
        style,
        aim_chars=aim_chars,
        most_chars=most_chars,
        turns=spec.turns,
        opening=text_of(sources[0]),
        closing="" if ends_with_answer or not asked else text_of(asked[-1]),
        language=language,
        has_previous=bool(spec.sources),
    )
    # Facts of the user only: the others are in the input above, and tokens of this list aren't cached.
    task = with_facts(instruction, asked, spec.full_chars, spec, shows_ledger=False)
    sent: list[BaseMessage] = [*last.model_input.messages, last.answer, HumanMessage(task)]
    return SummaryRequest(sent, aim_chars, most_chars, language, last.tools)


def price_in_place(last: LastInput, request: SummaryRequest) -> float:
    """Estimates the cost of a first draft in place, in tokens at full price; the last input is cached."""
    cached_tokens = last.model_input.sent_tokens
    return CACHED_PRICE * cached_tokens + _new_tokens(last, request)


def price_quoted(spec: FoldSpec, source_tokens: int) -> int:
    """Estimates the tokens read for a first draft of a quoted source."""
    requests = requests_for(spec, source_tokens)
    return sum(estimate_tokens(message.text) for request in requests for message in request.messages)


def input_tokens_in_place(last: LastInput, request: SummaryRequest) -> int:
    """Estimates the largest input of a request in place: request, draft (a token a character), repair prompt."""
    return last.model_input.sent_tokens + _new_tokens(last, request) + request.most_chars + _REPAIR_TOKENS


def _new_tokens(last: LastInput, request: SummaryRequest) -> int:
    return message_tokens(last.answer) + estimate_tokens(request.messages[-1].text)


def _squeeze(text: str) -> str:
    """Returns a text without white space: where messages are joined in one text, further lines are indented."""
    return "".join(text.split())
