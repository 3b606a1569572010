"""Writes the OpenAPI document of the routes for programs, from the table and the types that serve them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from api.route_table import EVENTS, Operation, adapter_of


@dataclass(frozen=True)
class DocsWords:
    """All words in one language.

    Attributes:
        operations: What each operation does, by its name.
        statuses: What each status of an error means.
        other: The name of the other language, in that language.
    """

    language: str
    other: str
    title: str
    lead: str
    token: str
    document: str
    contents: str
    takes: str
    field: str
    place: str
    kind: str
    required: str
    yes: str
    no: str
    body: str
    answer: str
    errors: str
    no_body: str
    values: str
    operations: Mapping[str, str]
    statuses: Mapping[int, str]


ENGLISH: Final = DocsWords(
    language="en",
    other="한국어",
    title="Turnfold for programs",
    lead="Chats with a memory that stays affordable: an OpenAI-compatible address, a chat with events, and sessions.",
    token="Send the token as Authorization: Bearer <token>. An error is told as OpenAI's are: error.code names it.",  # noqa: S106  # no secret
    document="The whole as an OpenAPI document",
    contents="Operations",
    takes="Parameters",
    field="Name",
    place="In",
    kind="Type",
    required="Required",
    yes="yes",
    no="no",
    body="Body",
    answer="Answer",
    errors="Errors",
    no_body="no content",
    values="Values",
    operations={
        "listModels": "Lists the models, each with and without memory.",
        "getModel": "Returns one model.",
        "createChatCompletion": "Answers a chat as OpenAI does, with the folded memory behind it; see the guide.",
        "sendMessage": "Sends a message and streams the turn as events, which goes on if the client leaves.",
        "followEvents": "Streams the newest turn from where the client was; 204 if it has all of it.",
        "updateContext": "Takes over what the user is at: currentFile, selection, projectRoot.",
        "listSessions": "Lists the sessions, newest first, all or those that a search finds.",
        "getSession": "Returns a session's settings and state.",
        "changeSession": "Changes a session's title and settings: all that is sent, or nothing.",
        "deleteSession": "Stops the running turn and deletes everything that is stored of the session.",
        "listTurns": "Returns the newest turns with questions, answers and tool steps, or those before a number.",
        "listRecords": "Returns the summaries in force, each with what it covers, keeps and cost.",
        "getStatistics": "Returns what folding saved and cost, what is folded next, and how full the window is.",
        "getInput": "Returns what each model call of a turn was sent, block by block, checked by its hash.",
        "stopTurn": "Stops the running turn or compaction; what was said is kept. Without one it does nothing.",
        "retryTurn": "Runs a failed or stopped last turn again.",
        "regenerateTurn": "Answers the last turn again; the old answer stays in the archive.",
        "compactSession": "Replaces all but the newest messages by one summary, and waits for it.",
        "restoreContext": "Undoes a compaction and every later one; without record_id, the last reset.",
        "resetContext": "Empties the context: nothing said so far is sent again. The transcript stays.",
        "exportSession": "Returns the session as JSON Lines, as the operator's export has them.",
        "summarize": "Summarises messages or a text to a rate or a length, with its figures. Nothing is stored.",
        "getDocument": "Returns this document.",
        "getDocs": "Shows this document as a page.",
    },
    statuses={
        400: "The request is wrong; error.param names the field.",
        401: "There is no token, or an unknown one.",
        403: "The server doesn't answer under this name, or to this page.",
        404: "There is no such session, turn, record or address.",
        408: "The body wasn't sent in time.",
        409: "The session is busy: x-should-retry is false, Retry-After says when to try again.",
        413: "The body is too large, or has too many values.",
        415: "The body is compressed.",
        429: "Too much at once, or too many turns in a minute; see Retry-After.",
        502: "The model's server answered with what can't be used.",
        503: "The model or the storage can't be reached, or the server is full, at the moment; see Retry-After.",
    },
)

KOREAN: Final = DocsWords(
    language="ko",
    other="English",
    title="프로그램을 위한 Turnfold",
    lead="값싸게 유지되는 기억을 가진 대화: OpenAI 호환 주소, 이벤트가 있는 채팅, 세션.",
    token="토큰은 Authorization: Bearer <token>으로 보냅니다. 오류는 OpenAI와 같은 모양이며 error.code가 이름입니다.",  # noqa: S106  # no secret
    document="전체를 OpenAPI 문서로",
    contents="작업",
    takes="매개변수",
    field="이름",
    place="위치",
    kind="형식",
    required="필수",
    yes="예",
    no="아니요",
    body="본문",
    answer="응답",
    errors="오류",
    no_body="내용 없음",
    values="값",
    operations={
        "listModels": "모델 목록을, 기억이 있는 것과 없는 것 모두 돌려줍니다.",
        "getModel": "모델 하나를 돌려줍니다.",
        "createChatCompletion": "OpenAI처럼 대화에 답하되 뒤에 접힌 기억이 있습니다. 안내서를 보세요.",
        "sendMessage": "메시지를 보내고 턴을 이벤트로 흘려보냅니다. 클라이언트가 떠나도 턴은 계속됩니다.",
        "followEvents": "최근 턴을 클라이언트가 있던 곳부터 흘려보냅니다. 모두 받았으면 204입니다.",
        "updateContext": "사용자가 보고 있는 것을 넘겨받습니다: currentFile, selection, projectRoot.",
        "listSessions": "세션을 최신순으로, 전부 또는 검색된 것만 보여 줍니다.",
        "getSession": "세션의 설정과 상태를 돌려줍니다.",
        "changeSession": "세션의 제목과 설정을 바꿉니다. 보낸 것이 모두 바뀌거나 하나도 바뀌지 않습니다.",
        "deleteSession": "진행 중인 턴을 멈추고 세션에 저장된 모든 것을 지웁니다.",
        "listTurns": "최근 턴 또는 어떤 번호 앞의 턴을 질문, 답변, 도구 단계와 함께 돌려줍니다.",
        "listRecords": "쓰이고 있는 요약을, 무엇을 담고 얼마가 들었는지와 함께 돌려줍니다.",
        "getStatistics": "접어서 아낀 것과 든 것, 다음에 접을 것, 컨텍스트가 찬 정도를 돌려줍니다.",
        "getInput": "한 턴의 모델 호출마다 보낸 것을 블록별로 돌려주고 해시로 확인합니다.",
        "stopTurn": "진행 중인 턴이나 압축을 멈춥니다. 나온 말은 남습니다. 진행 중인 것이 없으면 아무 일도 없습니다.",
        "retryTurn": "실패했거나 멈춘 마지막 턴을 다시 실행합니다.",
        "regenerateTurn": "마지막 턴에 다시 답합니다. 이전 답은 보관됩니다.",
        "compactSession": "최근 메시지를 뺀 모두를 요약 하나로 바꾸고, 끝날 때까지 기다립니다.",
        "restoreContext": "압축 하나와 그 뒤의 압축을 되돌립니다. record_id가 없으면 마지막 초기화를 되돌립니다.",
        "resetContext": "컨텍스트를 비웁니다. 지금까지의 말은 더 보내지 않으며 기록은 남습니다.",
        "exportSession": "세션을 운영자의 내보내기와 같은 JSON Lines로 돌려줍니다.",
        "summarize": "메시지나 글을 비율이나 길이에 맞춰 요약하고 수치를 함께 돌려줍니다. 아무것도 저장하지 않습니다.",
        "getDocument": "이 문서를 돌려줍니다.",
        "getDocs": "이 문서를 페이지로 보여 줍니다.",
    },
    statuses={
        400: "요청이 잘못되었습니다. error.param이 그 항목입니다.",
        401: "토큰이 없거나 모르는 토큰입니다.",
        403: "서버가 이 이름으로, 또는 이 페이지에는 답하지 않습니다.",
        404: "그런 세션, 턴, 요약, 주소가 없습니다.",
        408: "본문이 제때 오지 않았습니다.",
        409: "세션이 사용 중입니다. x-should-retry는 false이고 Retry-After가 다시 시도할 때를 알려 줍니다.",
        413: "본문이 너무 크거나 값이 너무 많습니다.",
        415: "본문이 압축되어 있습니다.",
        429: "한꺼번에 너무 많거나 1분 안의 턴이 너무 많습니다. Retry-After를 보세요.",
        502: "모델 서버의 응답을 쓸 수 없습니다.",
        503: "지금은 모델이나 저장소에 닿을 수 없거나 서버가 가득 찼습니다. Retry-After를 보세요.",
    },
)

LANGUAGES: Final = {words.language: words for words in (ENGLISH, KOREAN)}


_REF: Final = "#/components/schemas/{model}"
_IN_BRACES: Final = re.compile(r"\{(\w+)\}")
Schemas = dict[tuple[str, str], dict[str, Any]]


class ErrorDetail(BaseModel):
    """Why a request has no answer: a sentence for people, and a code for programs."""

    message: str
    type: str
    param: str | None = Field(description="The field that is wrong, if it is one.")
    code: str


class ErrorAnswer(BaseModel):
    """What every error is answered with."""

    error: ErrorDetail


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Returns the document, as JSON values."""
    operations = tuple(operations)
    schemas, definitions = _schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Turnfold", "version": "1", "description": ENGLISH.lead},
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(operations: Iterable[Operation]) -> tuple[Schemas, dict[str, Any]]:
    """Returns the schema of each body and answer, and those that they refer to."""
    wanted: list[tuple[tuple[str, str], Literal["validation", "serialization"], TypeAdapter[Any]]] = [
        (("", "error"), "serialization", adapter_of(ErrorAnswer))
    ]
    for operation in operations:
        if operation.body is not None:
            wanted.append(((operation.name, "body"), "validation", adapter_of(operation.body)))
        if operation.answer is not None:
            wanted.append(((operation.name, "answer"), "serialization", adapter_of(operation.answer)))
    found, rest = TypeAdapter.json_schemas(wanted, ref_template=_REF)
    schemas = {key: _public(schema) for (key, _), schema in found.items()}
    return schemas, {name.lstrip("_"): _public(schema) for name, schema in rest.get("$defs", {}).items()}


def _public(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape, returned in its shape
    """Returns a schema without the mark of a module's own types: to a reader they are types as any other."""
    if isinstance(value, dict):
        return {name: _public(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_public(item) for item in value]
    return value.replace("/schemas/_", "/schemas/") if isinstance(value, str) else value


def _described(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": operation.name,
        "summary": ENGLISH.operations[operation.name],
        "parameters": [*map(_in_path, _IN_BRACES.findall(operation.path)), *_in_query(operation.query)],
        "responses": {
            str(operation.status): _answered(operation, schemas),
            **({"204": {"description": HTTPStatus.NO_CONTENT.phrase}} if operation.may_be_empty else {}),
            **{str(status): _refused(status, schemas) for status in operation.statuses},
        },
        "security": [{"token": []}] if operation.needs_token else [],
    }
    if operation.body is not None:
        schema = schemas[operation.name, "body"]
        told["requestBody"] = {"content": {"application/json": {"schema": schema}}, "required": _needs_body(operation)}
    return told


def _needs_body(operation: Operation) -> bool:
    """Whether a request without a body is refused; elsewhere it is read as one without fields."""
    try:
        adapter_of(operation.body).validate_python({})
    except ValidationError:
        return True
    return operation.call is None


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _in_query(query: type[BaseModel] | None) -> list[dict[str, Any]]:
    if query is None:
        return []
    schema = query.model_json_schema()
    needed = schema.get("required", ())
    return [
        {
            "name": name,
            "in": "query",
            "required": name in needed,
            "schema": {key: value for key, value in taken.items() if key not in ("title", "description")},
            "description": taken.get("description", ""),
        }
        for name, taken in schema["properties"].items()
    ]


def _answered(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    told: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.answer is not None:
        schema = schemas[operation.name, "answer"]
        # No schema has a word for a stream of events.
        told["content"] = {kind: {} if kind == EVENTS else {"schema": schema} for kind in operation.media_types}
    return told


def _refused(status: int, schemas: Schemas) -> dict[str, Any]:
    content = {"application/json": {"schema": schemas["", "error"]}}
    return {"description": ENGLISH.statuses[status], "content": content}


_STYLE: Final = """
:root { color-scheme: light dark; --line: light-dark(#c8ccd2, #464b53); --soft: light-dark(#f2f4f6, #23262b); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.5rem;
  background: light-dark(#fff, #17191c); color: light-dark(#1c2024, #e6e8eb); overflow-wrap: anywhere; }
a { color: light-dark(#0b57a4, #8ab8f0); } a:focus-visible { outline: 2px solid; outline-offset: 2px; }
code { font: .92em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: 4px; }
article { border-top: 1px solid var(--line); padding-block: 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; } h3, h4 { font-size: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: start; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
nav ul { padding-inline-start: 1.2rem; }
"""


def chosen_language(asked: str, accepted: str) -> str:
    """Returns the language of the page.

    Args:
        asked: What `?lang=` says, "" for nothing; another language than ours counts as nothing.
        accepted: The header `Accept-Language`.
    """
    if asked in LANGUAGES:
        return asked
    ranked = []
    for place, part in enumerate(accepted.split(",")):
        name, _, weight = part.strip().partition(";q=")
        language = name.strip().lower().partition("-")[0]
        try:
            quality = float(weight or 1)
        except ValueError:
            quality = 0.0
        if language in LANGUAGES and quality > 0:
            ranked.append((-quality, place, language))
    return min(ranked)[2] if ranked else ENGLISH.language


def render(document: Mapping[str, Any], language: str) -> str:
    """Returns the page in one of `LANGUAGES`."""
    words = LANGUAGES[language]
    other = next(name for name in LANGUAGES if name != language)
    operations = [
        (path, method, told) for path, described in document["paths"].items() for method, told in described.items()
    ]
    schemas: Mapping[str, Any] = document["components"]["schemas"]
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(words.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f'<p><a href="?lang={other}" lang="{other}" hreflang="{other}">{escape(words.other)}</a></p>',
            f"<h1>{escape(words.title)}</h1>\n<p>{escape(words.lead)}</p>\n<p>{escape(words.token)}</p>",
            f'<p><a href="/openapi.json">{escape(words.document)}</a></p>',
            f"<nav>\n<h2>{escape(words.contents)}</h2>\n<ul>",
            *(_link(path, method, told) for path, method, told in operations),
            "</ul>\n</nav>",
            *(_operation(path, method, told, words) for path, method, told in operations),
            f"<h2>{escape(words.values)}</h2>",
            *(_schema(name, schema, words) for name, schema in sorted(schemas.items())),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _link(path: str, method: str, told: Mapping[str, Any]) -> str:
    return f'<li><a href="#{escape(told["operationId"])}"><code>{method.upper()} {escape(path)}</code></a></li>'


def _operation(path: str, method: str, told: Mapping[str, Any], words: DocsWords) -> str:
    name = told["operationId"]
    parts = [
        f'<article id="{escape(name)}">\n<h3><code>{method.upper()} {escape(path)}</code></h3>',
        f"<p>{escape(words.operations[name])}</p>",
    ]
    if told["parameters"]:
        rows = [
            (_code(taken["name"]), escape(taken["in"]), _type(taken["schema"]), _yes(taken["required"], words))
            for taken in told["parameters"]
        ]
        parts.append(_table(words.takes, (words.field, words.place, words.kind, words.required), rows))
    if "requestBody" in told:
        parts.append(f"<h4>{escape(words.body)}</h4>\n<p>{_contents(told['requestBody'], words)}</p>")
    answers = {status: answer for status, answer in told["responses"].items() if status < "400"}
    for status, answer in answers.items():
        parts.append(f"<h4>{escape(words.answer)} {status}</h4>\n<p>{_contents(answer, words)}</p>")
    errors = [(status, escape(words.statuses[int(status)])) for status in told["responses"] if status not in answers]
    return "\n".join([*parts, _table(words.errors, (), errors), "</article>"])


def _schema(name: str, schema: Mapping[str, Any], words: DocsWords) -> str:
    needed = schema.get("required", ())
    rows = [
        (_code(field), _type(kind), _yes(field in needed, words))
        for field, kind in schema.get("properties", {}).items()
    ]
    table = _table("", (words.field, words.kind, words.required), rows)
    return f'<article id="value-{escape(name)}">\n<h3>{_code(name)}</h3>\n{table}\n</article>'


def _contents(told: Mapping[str, Any], words: DocsWords) -> str:
    contents = told.get("content")
    if not contents:
        return escape(words.no_body)
    return ", ".join(
        _code(kind) + (f": {_type(content['schema'])}" if content else "") for kind, content in contents.items()
    )


def _type(schema: Mapping[str, Any]) -> str:
    """Renders a schema in one line; another value of the document is a link."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#value-{name}">{name}</a>'
    if "enum" in schema:
        return " | ".join(_code(str(value)) for value in schema["enum"])
    if "const" in schema:
        return _code(str(schema["const"]))
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"{_type(schema.get('items', {}))}[]"
    bounds = [
        f"≥ {schema['minimum']}" if "minimum" in schema else "",
        f"≤ {schema['maximum']}" if "maximum" in schema else "",
    ]
    return escape(" ".join(filter(None, (schema.get("format") or schema.get("type", "…"), *bounds))))


def _table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    title = f"<h4>{escape(caption)}</h4>\n" if caption else ""
    return f"{title}<table>\n" + (f"<tr>{head}</tr>\n" if head else "") + "\n".join(lines) + "\n</table>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _yes(value: bool, words: DocsWords) -> str:  # noqa: FBT001  # the value that is shown
    return escape(words.yes if value else words.no)
