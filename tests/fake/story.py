"""People who chat at the same time, each with an honest program of his own, and what each of them may be shown.

What only one person says, sends or is answered bears his mark. Everything else is small talk, which all of them share.
A story is a list of steps; whatever happens in it, no mark of one person may stand in what the model is sent for
another, or in what another is answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol

from graph.store.turn import TurnEnd
from graph.value.client import ClientMessage, ClientOptions, ClientRequest, Hint
from graph.value.event import ClientCall
from tests.fake.program import tool

Identity = Literal["none", "hint", "session", "previous", "user", "personal"]
Form = Literal["whole", "window", "first", "compact", "half", "summary"]
System = Literal["none", "shop", "dated", "private"]
Act = Literal["ask", "again", "retry", "results", "finish", "edit", "rewrite", "elsewhere", "begun", "delete", "same"]
Ending = Literal["finished", "calls", "running", "stopped", "failed", "lost"]
Change = Literal["", "system", "model", "format", "tools", "key"]
Key = Literal["", "own", "same"]
Picture = Literal["", "shared", "private"]

NAMES: Final = ("ann", "bob", "eve")
_MARK: Final = re.compile(r"secret-of-([a-z]+)")
_MARKED: Final = re.compile(r".{0,60}secret-of-[a-z]+.{0,30}")
_LONG: Final = "We are open from nine to six on weekdays, and from ten to two on Saturdays, but not on holidays. " * 3
# What everybody may say, with what everybody may be answered.
TALK: Final = (
    ("Show me today's orders, please.", "There are no open orders today."),
    ("Show me the open invoices, please.", "There are no open invoices."),
    ("Thanks", "You are welcome!"),
    ("What are your opening hours?", _LONG),
    ("Yes please", "Done."),
    ("Continue", "Ok."),
    ("안녕하세요", "안녕하세요! 무엇을 도와드릴까요? 궁금한 점이 있으면 편하게 말씀해 주세요."),
)
PRIVATE: Final = -1
NEXT: Final = -2
FITTING: Final = -2
_SYSTEMS: Final[Mapping[System, str]] = {
    "none": "",
    "shop": "You serve the shop.",
    "dated": "You serve the shop. Today is {day} November.",
    "private": "You serve the shop. The customer is {mark}.",
}
_REQUESTS_A_DAY: Final = 4
_CALL_IDS: Final = ("call_0", "functions.book:0")
_PICTURE: Final = "data:image/png;base64,iVBORw0KGgo={mark}"
_SHARED_PICTURE: Final = "data:image/png;base64,iVBORw0KGgo="


def mark_of(name: str) -> str:
    return f"secret-of-{name}"


def marks_in(texts: Iterable[str]) -> set[str]:
    """The names of those whose marks stand in the texts."""
    return {name for text in texts for name in _MARK.findall(text)}


def parts_of(request: ClientRequest) -> list[str]:
    """All that a request says."""
    said = [part for message in request.messages for part in (message.text, *message.images, *map(str, message.calls))]
    return [*said, request.options.system or "", str(request.options.tools)]


@dataclass(frozen=True)
class Step:
    """What a person does next.

    Attributes:
        who, chat: Which person, in which of his chats.
        does: "same" is what was done before, whoever did it.
        question: An index into `TALK`, `PRIVATE`, or `NEXT` of the story's script.
        answer: The same; `FITTING` is the question's own answer. It is private only where the model knows whom it
            talks to.
        form, size: What the program sends of its history; the size is how many of its exchanges. None for its habit.
        keeps: What a program does with what it has of an ended answer, and of calls that it won't answer.
        told: What a summary, a result, an edited answer or a picture says is private.
        system: Its system message; None for its habit.
        leaves_out: Rounds of tools and pictures are left out of the history, as many programs do.
        is_retry: The program's library says that it tries again: the first try never came.
        key: The Idempotency-Key: none, one of this request's own, or one that others send, too.
    """

    who: int = 0
    does: Act = "ask"
    question: int = NEXT
    answer: int = FITTING
    ending: Ending = "finished"
    form: Form | None = None
    size: int = 1
    keeps: bool = True
    told: bool = True
    chat: int = 0
    system: System | None = None
    leaves_out: bool = False
    is_retry: bool = False
    key: Key = ""
    change: Change = ""
    picture: Picture = ""


class Said(NamedTuple):
    text: str
    calls: tuple[ClientCall, ...] = ()


@dataclass(frozen=True)
class Reply:
    """How the model answers whom it knows, by his mark, and whom it doesn't know."""

    status: TurnEnd | None
    to_known: Said
    to_unknown: Said

    def given(self, name: str, seen: Iterable[str]) -> Said:
        return self.to_known if name in marks_in(seen) else self.to_unknown


@dataclass(frozen=True)
class Sent:
    """What came of a request.

    Attributes:
        texts: What the model saw and the program was answered.
        status: Of the turn; None if it runs, "refused" without one.
        running: Names the running turn.
    """

    decision: str
    status: TurnEnd | Literal["refused"] | None
    text: str = ""
    calls: tuple[ClientCall, ...] = ()
    session: str = ""
    response: str = ""
    texts: Sequence[str] = ()
    running: Any = None


class Server(Protocol):
    """Who answers the requests of a story."""

    def send(self, request: ClientRequest, reply: Reply, name: str) -> Sent: ...

    def end(self, running: Any, status: TurnEnd) -> str:  # noqa: ANN401  # the server's own
        """Ends a running turn, and returns all that it said."""
        ...

    def delete(self, session_id: str) -> None:
        """Deletes a session on the page."""
        ...


@dataclass
class Chat:
    """What a program has of one chat.

    Attributes:
        messages: All that was said, oldest first.
        asked: How many of them were there when the newest answer came.
        request: The newest one.
        responses: How many messages there were, and the id of the response that was the last of them.
        waiting: The newest answer's calls without results.
        running: The answer that is being read.
    """

    name: str
    messages: list[ClientMessage] = field(default_factory=list)
    asked: int = 0
    request: ClientRequest | None = None
    session: str = ""
    responses: list[tuple[int, str]] = field(default_factory=list)
    waiting: tuple[ClientCall, ...] = ()
    running: Sent | None = None
    question_count: int = 0

    def cut(self, length: int) -> None:
        del self.messages[length:]
        self.responses = [each for each in self.responses if each[0] <= length]
        self.waiting = ()

    @property
    def starts(self) -> list[int]:
        """Where the exchanges begin."""
        return starts_of(self.messages)

    def drop_unanswered(self) -> None:
        """Forgets the question, and with it the calls, that no answer came to."""
        if self.messages and (self.waiting or self.messages[-1].role != "assistant"):
            self.cut(self.starts[-1])
            self.asked = 0


def starts_of(messages: Sequence[ClientMessage]) -> list[int]:
    roles = [message.role for message in messages]
    return [at for at, role in enumerate(roles) if role == "user" and (at == 0 or roles[at - 1] != "user")]


@dataclass(frozen=True)
class Person:
    """A person, and how a program of his says whose request it is.

    Attributes:
        identity: "personal" has a token of his own, with the owner of the shared one.
        has_cache_key: His program sends the `prompt_cache_key` that it sends for everybody.
        form, size, system: Its habits.
    """

    name: str
    identity: Identity = "none"
    has_cache_key: bool = False
    form: Form = "whole"
    size: int = 2
    system: System = "none"

    @property
    def mark(self) -> str:
        return mark_of(self.name)


class Story:
    """Plays steps, and checks each of them.

    Attributes:
        log: What came of each request, for whoever reads a failure.
    """

    def __init__(self, server: Server, people: Sequence[Person], script: Sequence[int]) -> None:
        self._server = server
        self._people = people
        self._script = script
        self._chats: dict[tuple[str, int], Chat] = {}
        self._count = 0
        self.log: list[str] = []

    def play(self, steps: Iterable[Step]) -> None:
        try:
            before = Step()
            for each in steps:
                step = before = replace(before, who=each.who) if each.does == "same" else each
                person = self._people[step.who % len(self._people)]
                chat = self._chats.setdefault((person.name, step.chat), Chat(f"{person.name}-{step.chat}"))
                getattr(self, f"_{step.does}")(person, chat, step)
        finally:
            for chat in self._chats.values():
                if chat.running is not None:
                    self._server.end(chat.running.running, "stopped")

    def _ask(self, person: Person, chat: Chat, step: Step) -> None:
        if chat.running is not None:
            # Another question of the same chat at the same time; its answer goes elsewhere.
            before = chat.starts[-1]
            messages = [*chat.messages[:before], self._question(person, chat, step)]
            self._send(person, chat, self._request(person, chat, step, messages, before), step)
            return
        if chat.waiting and step.keeps:
            chat.messages += self._returned(person, chat, step)
        elif chat.waiting or not step.keeps:
            chat.drop_unanswered()
        self._go_on(person, chat, step, self._question(person, chat, step))

    def _again(self, person: Person, chat: Chat, step: Step) -> None:
        if not chat.asked:
            self._ask(person, chat, step)
        elif chat.running is not None:
            self._send(person, chat, self._request(person, chat, step, chat.messages, chat.starts[-1]), step)
        else:
            chat.cut(chat.asked)
            self._go_on(person, chat, step)

    def _retry(self, person: Person, chat: Chat, step: Step) -> None:
        if chat.request is None or not chat.asked:
            self._ask(person, chat, replace(step, is_retry=True))
            return
        request = replace(_changed(chat.request, step, self._system(person, step)), is_retry=True)
        if chat.running is not None:
            self._send(person, chat, request, step)
            return
        chat.cut(chat.asked)
        self._take(chat, self._send(person, chat, request, step), step)

    def _results(self, person: Person, chat: Chat, step: Step) -> None:
        if chat.waiting and chat.running is None:
            self._go_on(person, chat, step, *self._returned(person, chat, step))
        else:
            self._ask(person, chat, step)

    def _returned(self, person: Person, chat: Chat, step: Step) -> list[ClientMessage]:
        text = f"The calendar of {person.mark}." if step.told else "The calendar is empty."
        return [ClientMessage("tool", text, call_id=call.id) for call in chat.waiting]

    def _finish(self, person: Person, chat: Chat, step: Step) -> None:
        if chat.running is None:
            self._ask(person, chat, step)
            return
        running, chat.running = chat.running, None
        status: TurnEnd = "stopped" if step.ending == "stopped" else "finished"
        text = self._server.end(running.running, status)
        self._take(chat, replace(running, status=status, text=text, running=None), step)

    def _edit(self, person: Person, chat: Chat, step: Step) -> None:
        if chat.messages and chat.running is None:
            chat.cut(chat.starts[step.size % len(chat.starts)])
        self._ask(person, chat, step)

    def _rewrite(self, person: Person, chat: Chat, step: Step) -> None:
        answers = [at for at, each in enumerate(chat.messages) if each.role == "assistant" and not each.calls]
        if answers and chat.running is None:
            text = f"It was {person.mark} who said so." if step.told else TALK[0][1]
            chat.messages[answers[step.size % len(answers)]] = ClientMessage("assistant", text)
        self._ask(person, chat, step)

    def _elsewhere(self, person: Person, chat: Chat, step: Step) -> None:
        """An exchange with another server, with a round of tools or without."""
        if chat.running is None:
            self._call_elsewhere(person, chat, step)
            chat.messages += self._returned(person, chat, step)
            chat.messages.append(ClientMessage("assistant", self._answer(person, chat, step)))
            chat.waiting, chat.asked = (), 0

    def _begun(self, person: Person, chat: Chat, step: Step) -> None:
        """Calls that another server made, whose results come here."""
        if chat.running is None:
            self._call_elsewhere(person, chat, replace(step, ending="calls"))
            self._results(person, chat, step)

    def _call_elsewhere(self, person: Person, chat: Chat, step: Step) -> None:
        chat.drop_unanswered()
        chat.messages.append(self._question(person, chat, step))
        if step.ending == "calls":
            chat.waiting = self._calls(person, step)
            chat.messages.append(ClientMessage("assistant", "", calls=chat.waiting))

    def _delete(self, person: Person, chat: Chat, step: Step) -> None:  # noqa: ARG002  # as the others
        if chat.session and chat.running is None:
            self._server.delete(chat.session)
            chat.session, chat.responses = "", []

    def _go_on(self, person: Person, chat: Chat, step: Step, *added: ClientMessage) -> None:
        known = len(chat.messages) if added else chat.starts[-1]
        chat.messages += added
        request = self._request(person, chat, step, chat.messages, known)
        self._take(chat, self._send(person, chat, request, step), step)

    def _request(
        self, person: Person, chat: Chat, step: Step, messages: Sequence[ClientMessage], known: int
    ) -> ClientRequest:
        """Returns the request that sends these; a response may be named that at most `known` of them stand before."""
        self._count += 1
        name = f"token of {person.name}" if person.identity == "personal" else "editor"
        keys = {"": "", "own": f"{person.name}-{self._count}", "same": "key"}
        request = ClientRequest(
            tuple(_shaped(messages, person, step)),
            ClientOptions(name, system=self._system(person, step), tools=(tool("book", day={"type": "string"}),)),
            hint=Hint("prompt_cache_key", "support-v1") if person.has_cache_key else None,
            is_retry=step.is_retry,
            idempotency_key=keys[step.key],
        )
        match person.identity:
            case "hint":
                return replace(request, hint=Hint("x-session-id", chat.name))
            case "user":
                return replace(request, user=person.name)
            case "personal":
                return replace(request, is_personal=True)
            case "session" if chat.session:
                return replace(request, session=chat.session)
            case "previous":
                at, previous = next((each for each in reversed(chat.responses) if each[0] <= known), (0, ""))
                return replace(request, previous=previous, messages=tuple(messages[at:])) if previous else request
            case _:
                return request

    def _system(self, person: Person, step: Step) -> str:
        day = 27 + len(self.log) // _REQUESTS_A_DAY
        return _SYSTEMS[step.system or person.system].format(mark=person.mark, day=day)

    def _send(self, person: Person, chat: Chat, request: ClientRequest, step: Step) -> Sent:
        chat.request = request if chat.running is None else chat.request
        assert marks_in(parts_of(request)) <= {person.name}, "the story itself isn't honest"
        statuses: Mapping[Ending, TurnEnd | None] = {
            "calls": "requires_action",
            "running": None if chat.running is None else "finished",
            "stopped": "stopped",
            "failed": "failed",
        }
        status = statuses.get(step.ending, "finished")
        known, unknown = (self._said(person, chat, each, status) for each in (step, replace(step, told=False)))
        sent = self._server.send(request, Reply(status, known, unknown), person.name)
        self.log.append(f"{person.name}: {[_shown(message) for message in request.messages]} -> {sent.decision}")
        texts = [*sent.texts, sent.text, *map(str, sent.calls)]
        if others := marks_in(texts) - {person.name}:
            parts = [part for text in texts for part in _MARKED.findall(text) if marks_in([part]) & others]
            raise AssertionError("\n".join([*self.log, f"{person.name} is shown what is another's: {parts}"]))
        return sent

    def _said(self, person: Person, chat: Chat, step: Step, status: TurnEnd | None) -> Said:
        if status == "failed":
            return Said("")
        return Said(self._answer(person, chat, step), self._calls(person, step) if status == "requires_action" else ())

    def _take(self, chat: Chat, sent: Sent, step: Step) -> None:
        """Has the program keep what it is answered."""
        chat.asked, chat.waiting = len(chat.messages), ()
        chat.session = sent.session
        if sent.status == "refused":
            chat.session, chat.responses = "", []
        elif sent.status is None:
            chat.running = sent
            return
        elif step.ending == "lost" or sent.status == "failed" or (sent.status == "stopped" and not step.keeps):
            return
        if sent.status == "stopped" and step.told:
            sent = replace(sent, text=sent.text[: len(sent.text) // 2 + 1])
        if sent.status != "refused" and (sent.text or sent.calls):
            chat.messages.append(ClientMessage("assistant", sent.text, calls=sent.calls))
            chat.responses.append((len(chat.messages), sent.response))
            chat.waiting = sent.calls
        elif not sent.text:
            chat.drop_unanswered()

    def _question(self, person: Person, chat: Chat, step: Step) -> ClientMessage:
        number = step.question
        if number == NEXT:
            number = self._script[chat.question_count % len(self._script)]
            chat.question_count += 1
        self._count += 1
        text = f"I am {person.mark}, and this is my wish {self._count}." if number == PRIVATE else TALK[number][0]
        pictures = {"": (), "shared": (_SHARED_PICTURE,), "private": (_PICTURE.format(mark=person.mark),)}
        return ClientMessage("user", text, pictures[step.picture])

    def _answer(self, person: Person, chat: Chat, step: Step) -> str:
        asked = next((each.text for each in reversed(chat.messages) if each.role == "user"), "")
        fitting = next((text for question, text in TALK if question == asked), "")
        number = step.answer
        if number == FITTING and fitting:
            return fitting
        if number < 0:
            return f"I keep the wish of {person.mark} in mind, as always." if step.told else "I keep it in mind."
        return TALK[number][1]

    def _calls(self, person: Person, step: Step) -> tuple[ClientCall, ...]:
        arguments = f'{{"day": "{person.mark if step.told else "Monday"}"}}'
        return tuple(ClientCall(name, "book", arguments) for name in _CALL_IDS[: 1 + (step.size > 1)])


def _shown(message: ClientMessage) -> str:
    beside = [f"+{what}" for what, has in (("calls", message.calls), ("picture", message.images)) if has]
    return "".join([message.role[0], ": ", message.text[:40], *beside])


def _changed(request: ClientRequest, step: Step, system: str) -> ClientRequest:
    """Returns what another request has otherwise that has the same words."""
    match step.change:
        case "system":
            return replace(request, options=replace(request.options, system=system))
        case "model":
            return replace(request, model="other-model")
        case "format":
            sampling = {"response_format": {"type": "json_object"}}
            return replace(request, options=replace(request.options, sampling=sampling))
        case "tools":
            return replace(request, options=replace(request.options, tools=()))
        case "key":
            return replace(request, idempotency_key="")
        case _:
            return request


def _shaped(messages: Sequence[ClientMessage], person: Person, step: Step) -> list[ClientMessage]:
    """Returns what a program sends of its messages, whose last exchange is the one that is being asked."""
    starts = starts_of(messages)
    exchanges = [[*messages[first:end]] for first, end in zip(starts, [*starts[1:], len(messages)], strict=True)]
    asked = exchanges.pop()
    if step.leaves_out:
        exchanges = [[_bare(each) for each in said if each.role != "tool" and not each.calls] for said in exchanges]
    summary = ClientMessage("user", f"Summary: {person.mark} sells nails." if step.told else "Summary: nothing yet.")
    last = exchanges[-(step.size if step.form else person.size) :]
    rest = [message for said in last for message in said]
    front: list[ClientMessage] = []
    match step.form or person.form:
        case "whole":
            rest = [message for said in exchanges for message in said]
        case "first":
            front = exchanges[0] if len(exchanges) > len(last) else []
        case "compact":
            front = [summary, ClientMessage("assistant", "Understood.")]
        case "half":
            rest = _behind_question(rest)
        case "summary":
            front, rest = [summary], _behind_question(rest)
        case _:
            pass
    return [*front, *rest, *asked]


def _behind_question(messages: list[ClientMessage]) -> list[ClientMessage]:
    first = next((at for at, message in enumerate(messages) if message.role != "user"), len(messages))
    return messages[first:]


def _bare(message: ClientMessage) -> ClientMessage:
    return replace(message, images=())
