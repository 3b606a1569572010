"""Plays a chat with folds whose model overshoots, and counts what the folds save and cost.

    python -m tests.fake.saving_chat

Prints the figures of both languages, without a provider's cache and with one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from graph.core.cost import CACHED_PRICE
from graph.core.language import split_sentences
from graph.core.model_input import lost_tokens, system_part
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens
from graph.core.turn import text_of
from graph.fold.record import begin_record, end_record
from graph.fold.request import (
    LastInput,
    SummaryRequest,
    messages_behind,
    price_in_place,
    price_quoted,
    request_in_place,
    requests_for,
)
from graph.fold.review import SummaryDraft, flaw_of
from graph.fold.spec import FoldSpec
from graph.strategy.base import Limits
from graph.strategy.interval import IntervalStrategy
from graph.value.record import Record, to_entry
from prompt.system.framing import Language
from tests.fake.snapshot import NOON, archived

TURNS: Final = 60
RATE: Final = 0.3
OUTPUT_PRICE: Final = 4
# What careful models were seen to write, as shares of the target.
SHARES: Final = (1.04, 1.39, 1.24, 1.44, 1.3, 1.42, 1.6, 1.59, 1.49, 1.41)
_SOURCE_TOKENS: Final = 100_000
_ANSWER_CHARS: Final = (600, 1_000)

_TOLD_KO: Final = (
    "{person} 과장님이 {month}월 {day}일까지 {place} 견적을 {money}만 원 안으로 받아 달라고 하셨어요.",
    "계약 번호는 {code}이고 담당자 전화는 010-{phone}예요.",
    "{place} 공사는 {day}일 오전 {hour}시에 시작해요.",
    "{month}월 {day}일 회의는 {place}에서 {people}명이 모입니다.",
    "{place} 쪽 작업은 주말에 절대 하지 말아 주세요.",
)
_TOLD_EN: Final = (
    "{person} saw {code} fail at {hour:02}:{minute:02} UTC on {place}, error ORA-{number}.",
    "The queue on {place} holds {money},{number} jobs since 2026-{month:02}-{day:02}.",
    "Ticket INC-{number} belongs to {person}, the deadline is {month}/{day} at {hour}:30.",
    "We are on v3.{month}.{day} and flag ENABLE_{number} is off.",
    "Never restart {place} before {person} approves it.",
)
_ASKED_KO: Final = "이 건은 어떤 순서로 준비하면 좋을까요?"
_ASKED_EN: Final = "In which order should I prepare this?"
_SAID_KO: Final = (
    "먼저 {place} 쪽 범위를 나누고 각 단계를 맡을 사람을 정해 두는 편이 안전합니다.",
    "일정이 겹치면 되돌리기 어려운 일부터 처리하고 나머지는 다음 주로 미루는 것이 좋습니다.",
    "견적을 받을 때는 항목을 같은 순서로 적어 달라고 해야 업체끼리 비교하기 쉽습니다.",
    "{person} 님께는 결정이 필요한 것과 알려만 드릴 것을 나누어 보내는 편이 낫습니다.",
    "문제가 다시 생기면 기록을 모아 두었다가 원인을 하나씩 지워 나가면 됩니다.",
    "안내문은 짧게 쓰고 바뀌는 날짜와 연락할 곳만 분명히 적어 두면 충분합니다.",
    "비용이 {money}만 원을 넘으면 따로 승인을 받아야 하니 여유를 두고 신청하세요.",
    "비슷한 일을 한 팀의 이야기를 들어 보면 준비 기간이 결과를 거의 결정했습니다.",
)
_SAID_EN: Final = (
    "Look at `kubectl logs {place} --since={minute}m` first, because the pod wrote {number} lines within a minute.",
    "If the lag stays above {number}, pause the consumer and let the partition drain before you go on.",
    "The index on orders.{code} is missing, so each of the {people} workers scans the whole table.",
    "Ask {person} whether the retry budget of {people} attempts was ever meant for a batch of this size.",
    "Rolling back is cheap while the migration hasn't run; afterwards it takes {minute} minutes of downtime.",
    "Keep the status page short: what fails, since {hour:02}:{minute:02}, and when the next update comes.",
    "A timeout of {number} ms hides the real error, which stands two lines further up in the trace.",
    "Set max_poll_records to {people} and watch whether the rebalances stop, then raise it step by step.",
)
_PEOPLE: Final = {
    "ko": ("김민수", "이서연", "박지훈", "최유진", "정하늘"),
    "en": ("Alice Moore", "Ben Carter", "Chloe Diaz", "Erin Walsh", "Frank Osei"),
}
_PLACES: Final = {
    "ko": ("본관 창고", "3층 회의실", "전산실", "고객 센터", "물류 부두"),
    "en": ("kafka-3", "label-writer-7d9f", "db-replica-2", "edge-proxy-11", "void-runner-4"),
}


@dataclass
class Played:
    """What a chat's folds saved and cost, in input tokens.

    Attributes:
        net: Saved less spent so far, at the end of each turn.
        calls: Of the summary model.
        targets: Of the adopted blocks, in characters.
        achieved: Lengths of their summaries.
    """

    net: list[float] = field(default_factory=list)
    calls: int = 0
    targets: list[int] = field(default_factory=list)
    achieved: list[int] = field(default_factory=list)

    @property
    def positive_from(self) -> int:
        """The turn from which on the folds have saved more than they cost, for good."""
        return max((turn for turn, net in enumerate(self.net, start=1) if net <= 0), default=0) + 1


def scripted_turns(language: Language, turns: int = TURNS) -> list[list[AnyMessage]]:
    """Returns turns with three or four facts in the question and answers of 600 to 1,000 characters."""
    dice = random.Random(language)  # noqa: S311  # the same chat each time
    told, asked = (_TOLD_KO, _ASKED_KO) if language == "ko" else (_TOLD_EN, _ASKED_EN)
    said = _SAID_KO if language == "ko" else _SAID_EN

    def filled(text: str) -> str:
        return text.format(
            person=dice.choice(_PEOPLE[language]),
            place=dice.choice(_PLACES[language]),
            month=dice.randrange(1, 13),
            day=dice.randrange(1, 29),
            hour=dice.randrange(7, 12),
            minute=dice.randrange(10, 60),
            number=dice.randrange(1_000, 9_999),
            money=dice.randrange(20, 900),
            people=dice.randrange(3, 40),
            code=f"{dice.choice('ABCDEF')}{dice.choice('KLMNP')}-{dice.randrange(1_000, 9_999)}",
            phone=f"{dice.randrange(1_000, 9_999)}-{dice.randrange(1_000, 9_999)}",
        )

    script: list[list[AnyMessage]] = []
    for number in range(1, turns + 1):
        question = " ".join([*map(filled, dice.sample(told, 2)), asked])
        answer, chars = [filled(dice.choice(said))], dice.randrange(*_ANSWER_CHARS)
        while sum(map(len, answer)) + len(answer) < chars:
            answer.append(filled(dice.choice(said)))
        answer[-1] += f" ({number})"
        script.append([HumanMessage(question, id=f"u{number}"), AIMessage(" ".join(answer), id=f"a{number}")])
    return script


def draft_of_chars(spec: FoldSpec, chars: int) -> str:
    """Writes what the user said, then sentences of the answers, until the draft has about so many characters."""
    parts = {turn: [f"({turn}턴)" if spec.language == "ko" else f"(turn {turn})"] for turn in spec.turns}
    by_speaker = sorted(zip(spec.message_turns, spec.messages, strict=True), key=lambda each: each[1].type != "human")
    text = ""
    for turn, message in by_speaker:
        for sentence in split_sentences(text_of(message)):
            parts[turn].append(sentence)
            text = " ".join(" ".join(each) for each in parts.values())
            if len(text) >= chars:
                # Between words: half a number would be one that nobody said.
                return text if len(text) == chars else text[:chars].rsplit(" ", 1)[0].rstrip(",") + "."
    return text


def play(
    language: Language, shares: Sequence[float] = SHARES, *, is_cached: bool = False, turns: int = TURNS
) -> Played:
    """Plays a chat in which each first draft has the next of `shares` of what is asked, and a repair what is allowed.

    A fold is asked for in place where a cache makes that cheaper, and quoted elsewhere.
    """
    strategy, system = IntervalStrategy(Limits()), system_part(language, can_recall=True)
    script = scripted_turns(language, turns)
    entries = archived(script)
    played, active, before = Played(), list[Record](), None
    input_price = CACHED_PRICE if is_cached else 1.0
    net = 0.0
    last: LastInput | None = None
    for number in range(1, turns + 1):
        covered = active[-1].to_position if active else 0
        snapshot = SessionSnapshot(
            number - 1, tuple(active), entries[covered : 2 * number - 2], RATE, language=language
        )
        for spec in strategy.due_folds(snapshot):
            share = shares[len(played.targets) % len(shares)]
            record, cost = _fold(spec, share, last if is_cached else None, played, is_cached=is_cached)
            net -= cost
            if record is not None:
                played.targets.append(record.target_chars)
                played.achieved.append(record.summary_chars)
                active.append(record)
        covered = active[-1].to_position if active else 0
        raw = [entry.message for entry in entries[covered : 2 * number - 1]]
        sent = strategy.assemble(system, [to_entry(record) for record in active], raw)
        whole = strategy.assemble(system, [], [entry.message for entry in entries[: 2 * number - 1]])
        net += input_price * (whole.sent_tokens - sent.sent_tokens)
        manifest = tuple((item.kind, item.id, item.version, item.tokens) for item in sent.items)
        if is_cached and before is not None:
            net -= (1 - CACHED_PRICE) * lost_tokens(before, manifest)
        before = manifest
        answer = script[number - 1][-1]
        assert isinstance(answer, AIMessage)
        last = LastInput("m", sent, (), answer)
        played.net.append(net)
    return played


def _fold(
    spec: FoldSpec, share: float, last: LastInput | None, played: Played, *, is_cached: bool
) -> tuple[Record | None, float]:
    """Returns the record of a fold, None if no draft was taken, and what its one or two calls cost."""
    request, read_tokens = _request(spec, last)
    drafts: list[SummaryDraft] = []
    cost, flaw = 0.0, None
    for _ in range(2):
        chars = int(spec.asked_chars * share)
        if flaw is not None:
            behind = messages_behind(request, 0, drafts[-1], flaw)
            again = _tokens(request.messages) * (CACHED_PRICE if is_cached else 1)
            read_tokens, chars = again + _tokens(behind), request.most_chars
        text = draft_of_chars(spec, chars)
        cost += read_tokens + OUTPUT_PRICE * estimate_tokens(text)
        played.calls += 1
        drafts.append(SummaryDraft(text, 0, 0, is_usage=True))
        flaw = flaw_of(drafts[-1], spec)
        if flaw is None:
            break
    started = begin_record("s", spec, model="m", source_key=f"{spec.from_position}", created_at=NOON)
    done = end_record(started.with_changes(id=f"r{spec.from_position}"), spec, drafts, "", seconds=0.0)
    return (done if done.status == "COMPLETED" else None), cost


def _tokens(messages: Sequence[BaseMessage]) -> int:
    return sum(estimate_tokens(message.text) for message in messages)


def _request(spec: FoldSpec, last: LastInput | None) -> tuple[SummaryRequest, float]:
    """Returns the request of a fold as the product chooses it, and what reading it costs."""
    quoted = price_quoted(spec, _SOURCE_TOKENS)
    if last is not None and (request := request_in_place(last, spec)) is not None:
        in_place = price_in_place(last, request)
        if in_place < quoted:
            return request, in_place
    return next(iter(requests_for(spec, _SOURCE_TOKENS))), quoted


def main() -> None:
    """Prints the figures."""
    for language in ("ko", "en"):
        for is_cached in (False, True):
            played = play(language, is_cached=is_cached)
            blocks = len(played.targets)
            shares = [sum(played.achieved[:count]) / sum(played.targets[:count]) for count in (5, blocks)]
            print(  # noqa: T201  # a command
                f"{language} {'with a cache' if is_cached else 'no cache':12}",
                f"net at 13/16/36/{TURNS}: {' '.join(f'{played.net[turn - 1]:,.0f}' for turn in (13, 16, 36, TURNS))};",
                f"positive from turn {played.positive_from}; {played.calls / blocks:.2f} calls a block;",
                f"achieved / target after 5 and {blocks} blocks: {shares[0]:.2f} {shares[1]:.2f}",
            )


if __name__ == "__main__":
    main()
