"""The words of the document and of the page that shows it, in English and Korean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


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
