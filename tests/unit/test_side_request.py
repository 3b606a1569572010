from __future__ import annotations

import pytest

from graph.recognise.side_request import is_side_request
from graph.value.client import ClientMessage, ClientOptions, ClientRequest, ClientRole

SAID = "User: 서버를 옮기려고 해요\nAssistant: 어느 서버인가요?"
DIFF = "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-old\n+new"
ONLY_TITLE = "Output ONLY the title text, no explanations. Maximum 50 characters. No punctuation marks."

# What clients send for themselves: the system message, then the users'; shortened, but for how they ask.
GENERATORS: dict[str, tuple[str, ...]] = {
    "opencode": (
        (
            "You are a title generator. You output ONLY a thread title. Nothing else.\n\n<task>\nGenerate a brief "
            "title that would help the user find this conversation later.\n</task>\n- A single line\n- ≤50 "
            "characters\n- Never use tools"
        ),
        "Generate a title for this conversation:\n",
        "Why does my server answer with 500?",
    ),
    "Crush": (
        (
            "you will generate a short title based on the first message a user begins a conversation "
            "with\n\n<rules>\n- ensure it is not more than 50 characters long\n- do not use quotes or colons\n- the "
            "entire text you return will be used as the title\n</rules>"
        ),
        "Generate a concise title for the following content:\n\nadd a login page",
    ),
    "gptme": (
        "Generate concise conversation titles.",
        (
            "Your task: Create a 2-4 word title for this conversation.\n\nRules:\n- Respond with ONLY the title, "
            "nothing else\n- Maximum 4 words\n- NEVER explain, apologize, or return error "
            "messages\n\nConversation:\nUser: 서버를 옮기려고 해요\nAssistant: 어느 서버인가요?"
        ),
    ),
    "gptme, for a folder": (
        "Generate concise conversation titles.",
        (
            "Generate a descriptive name for this conversation.\n\nThe name should be 3-6 words, separated by "
            "dashes.\n\n- Output ONLY the name itself, nothing else\n\nConversation:\nUser: 서버를 옮기려고 해요"
            "\nAssistant: 어느 서버인가요?"
        ),
    ),
    "LobeChat": (
        (
            "You are a professional conversation summarizer. Generate a concise title that captures the essence. "
            "Output ONLY the title text, no explanations. Maximum 50 characters. No punctuation marks."
        ),
        "user: 서버를 옮기려고 해요\nassistant: 네",
    ),
    "LobeChat, older": (
        "你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题",
        "user: 你好\nassistant: 你好！\n\n请总结上述对话为10个字以内的标题，不需要包含标点符号",
    ),
    "Cherry Studio": (
        (
            "你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题，标题语言与用户的首要语言一致，不要使"
            "用标点符号和其他特殊符号"
        ),
        "怎么搬服务器",
    ),
    "Cherry Studio, several": (
        (
            "You are an assistant skilled in conversation. Summarize the user's conversation into a title within 10 "
            "words. Do not use punctuation or special symbols. Only return the title itself."
        ),
        "How do I move a server?",
        "And the data?",
    ),
    "Claude Code": (
        (
            "You are Claude Code, Anthropic's official CLI for Claude.\n\nAnalyze if this message indicates a new "
            "conversation topic. If it does, extract a 2-3 word title that captures the new topic. Format your "
            "response as a JSON object with two fields: 'isNewTopic' and 'title'. Only include these fields, no "
            "other text."
        ),
        "refactor the parser",
    ),
    "Claude Code, naming": (
        (
            "You are naming a coding session so the user can pick it out of a long list of sessions. The title is a "
            "name, not a sentence: a short noun phrase of two to five words. Return only the title. Do not answer "
            "the session."
        ),
        "<session>\nhi\n</session>\n\nWrite the title",
    ),
    "Claude Code, summary": (
        "Summarize this coding conversation in under 50 characters.\nCapture the main task and the key files.",
        (
            "Please write a 5-10 word title for the following conversation:\n\nUser: fix the test\n\nRespond with "
            "the title for the conversation and nothing else."
        ),
    ),
    "Goose": (
        (
            "Generate a short title (four words or less) for this conversation.\n\nReply with only the title, "
            "nothing else. Do not show your reasoning."
        ),
        "how do I reverse a list in python?",
    ),
    "Kimi and others": (
        (
            "You generate a concise session title from a conversation excerpt. Reply with ONLY the title text: "
            "written in the same language, without surrounding quotes, at most 60 characters."
        ),
        "User: 서버를 옮기려고 해요\nAssistant: 어느 서버인가요?",
    ),
    "Rust client": (
        "You generate concise session titles.",
        (
            "Summarize the following user message into a very short session title (at most 6 words, no punctuation, "
            "no explanation).\n\nMessage: How do I move a server?\n\nTitle:"
        ),
    ),
    "Chat page, Korean": (
        "당신은 대화의 제목을 만들어주는 도우미입니다. 간결한 한국어 제목을 만들어주세요.",
        (
            "다음 대화를 요약하여 5단어 이내의 간단한 한국어 제목을 만들어주세요.\n\n사용자 메시지: '서버를 옮기려고 "
            "해요'\n\n제목만 답변해주세요."
        ),
    ),
    "Cooking, Korean": (
        (
            "너는 요리 도우미 대화의 제목을 짓는 역할이다. 사용자의 질문을 한국어 한 줄 제목으로 요약한다. 출력은 제"
            "목만. 따옴표 없이 60자 이내로."
        ),
        "김치찌개 어떻게 끓여요?",
    ),
    "aider": (
        (
            "You are an expert software engineer that generates concise, one-line Git commit messages based on the "
            "provided diffs.\nReply only with the one-line commit message, without any additional text, "
            "explanations, or line breaks."
        ),
        (
            "# Diffs of what is staged\n\ndiff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 "
            "@@\n-old\n+new"
        ),
    ),
    "aider, older": (
        (
            "You are an expert software engineer.\nReview the provided context and diffs which are about to be "
            "committed to a git repo.\nGenerate a commit message for those changes.\nReply with JUST the commit "
            "message, without quotes, comments, questions, etc!"
        ),
        "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-old\n+new",
    ),
    "Cline": (
        (
            "You are a helpful assistant that generates informative git commit messages based on git diffs output. "
            "Skip preamble and remove all backticks surrounding the commit message."
        ),
        (
            "Based on the provided git diff, generate a concise commit message.\n\ndiff --git a/app.py b/app.py\n--- "
            "a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-old\n+new"
        ),
    ),
    "Zed, commit": (
        "",
        (
            "You are an expert at writing Git commits. Your job is to write a short clear commit message that "
            "summarizes the changes.\n\nOnly return the commit message in your response. Do not include any "
            "additional meta-commentary about the task.\n- Try to limit the subject line to 50 characters\n\nHere "
            "are the changes in this commit:\ndiff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 "
            "@@\n-old\n+new"
        ),
    ),
    "Roo, commit": (
        "",
        (
            "# Conventional Commit Message Generator\n## System Instructions\nYou are an expert Git commit message "
            "generator. Return ONLY the commit message in the conventional format, nothing else. Keep it to one "
            "line.\n## Changes\n```diff\ndiff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 "
            "@@\n-old\n+new\n```"
        ),
    ),
    "Commit, Korean": (
        "당신은 커밋 메시지를 작성하는 도구입니다. 메시지만 출력하고 설명은 하지 마세요. 50자 이내.",
        "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-old\n+new",
    ),
    "Roo, Kilo: a better prompt": (
        "",
        (
            "Generate an enhanced version of this prompt (reply with only the enhanced prompt - no conversation, "
            "explanations, lead-in, bullet points, placeholders, or surrounding quotes):\n\nmake me a todo app"
        ),
    ),
    "Open WebUI, title": (
        "You are a pirate.",
        (
            "### Task:\nGenerate a concise, 3-5 word title.\n### Chat History:\n<chat_history>\nUSER: 안녕"
            "\n</chat_history>"
        ),
    ),
    "Open WebUI, follow-ups": (
        "",
        "### Task:\nSuggest 3-5 relevant follow-up questions.\n<chat_history>\n</chat_history>",
    ),
    "Open WebUI, tags": (
        "",
        "### Task:\nGenerate 1-3 broad tags categorizing the main themes.\n<chat_history>\nUSER: hi\n</chat_history>",
    ),
    "Open WebUI, query": (
        "",
        (
            "### Task:\nAnalyze the chat history to determine the necessity of generating search queries.\n### Chat "
            "History:\n<chat_history>\nUSER: hi\n</chat_history>"
        ),
    ),
    "Open WebUI, autocomplete": (
        "",
        (
            "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n### "
            "Context:\n<chat_history>\nUSER: a\n</chat_history>\n<type>search query</type>\n<text>how "
            "to</text>\n#### Output:"
        ),
    ),
    "Open WebUI, emoji": (
        "",
        (
            "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret "
            "emotions from the message.\n\nMessage: ```hi```"
        ),
    ),
    "LibreChat": (
        "",
        (
            "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return "
            "the title itself.\n\nConversation:\nUser: Hi\nAI: Hello"
        ),
    ),
    "LibreChat, assistants": (
        "",
        (
            "Please generate a concise, 5-word-or-less title for the conversation, using its same language, with no "
            "punctuation. Apply title case conventions. Never directly mention the language name or the word "
            "'title'\n\n||>User: Hi\n||>Response: Hello"
        ),
    ),
    "LibreChat, structured": (
        "",
        (
            "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise "
            "title in the detected language (5 words or less, no punctuation or quotation)\n\nUser: Hi\nAI: Hello"
        ),
    ),
    "Continue": (
        "",
        (
            "Given the following... please reply with a title for the chat that is 3-4 words in length, all words "
            "used should be directly related to the content of the chat, no additional text or explanation, you "
            "don't need ending punctuation.\n\nA server moves in three steps."
        ),
    ),
    "Chatbox": (
        "",
        (
            "Based on the chat history, give this conversation a name.\nKeep it short - 10 characters max, no "
            "quotes.\nUse 한국어.\nJust provide the name, nothing else.\n\nHere's the conversation:\n\n```\n서버를 옮"
            "겨요\n```\n\nName this conversation in 10 characters or less.\nOnly give the name, nothing else.\n\nThe "
            "name is:"
        ),
    ),
    "Jan": (
        "",
        "Summarize in a 10-word Title. Give the title only. Here is the message: how do I move a server?\n",
    ),
    "RikkaHub": (
        "",
        (
            "你是一名擅长会话的助理，我会给你一些对话内容在content内，你需要将用户的会话总结为 10 个字以内的标题\n1. "
            "不要使用标点符号\n2. 直接回复标题即可\n\n<content>\nhi\n</content>"
        ),
    ),
    "Service, Korean": (
        "",
        (
            '다음 사용자의 질문이나 요청을 바탕으로 대화의 제목을 생성해주세요.\n\n사용자 메시지: "서버를 옮겨요'
            '"\n\n1. 50자 이내로 작성\n\n제목만 응답하고 다른 설명은 하지 마세요.'
        ),
    ),
    "Desktop, Korean": (
        "",
        (
            "아래 대화의 제목을 한국어 한 문장으로 만들어라.\n- 최대 28자\n- 불필요한 따옴표 금지\n- 제목만 출력\n\n["
            "사용자]\n안녕\n\n[어시스턴트]\n네"
        ),
    ),
    "Perplexica": (
        "",
        (
            "You are an AI question rephraser. You will be given a conversation and a follow-up question, rephrase "
            "the follow up so it is a standalone question. Return only the question, nothing "
            "else.\n\nConversation:\nhi\n\nFollow up question: why?\nStandalone question:"
        ),
    ),
    "Service": (
        "",
        (
            "Please create a concise, descriptive title for this conversation based on the following question. The "
            "title should be no more than 8 words.\n\nQuestion: how do I move a server?\n\nTitle: "
        ),
    ),
}
COMMIT_BOT = "You are a helpful assistant that writes commit messages."
COMMITS_ONLY = "You write commit messages. Reply only with the commit message, one line, no quotes."
TITLES_BOT = "You are a helpful assistant that suggests titles for conversations."
# What people say, and what stands before it in programs that are chats.
CHATS: tuple[tuple[str, ...], ...] = (
    ("", "Hi"),
    ("", "Write a title for my essay about how conversations end."),
    ("", "Write a title for this essay, at most five words, no quotes, nothing else:\n\nUser: once upon a time"),
    ("", "커밋 메시지 써 줘: 로그인 화면을 더했어"),
    ("", f"커밋 메시지 써 줘:\n\n{DIFF}"),
    ("", f"Write a commit message for this:\n\n{DIFF}"),
    ("", f"Write a commit message for this diff, just one line:\n\n{DIFF}"),
    ("", "대화의 제목을 지어 줘"),
    ("", "내 블로그 글의 제목을 지어 줘. 제목만, 따옴표 없이 20자 이내로:\n\n대화: 서버를 옮겼다"),
    ("", "이 채팅 앱의 이름과 태그를 세 개만 추천해 줘"),
    ("", "Suggest a name for our chat app, two words, no quotes."),
    ("", "Suggest three follow-up questions for my interview."),
    ("", "Give me a topic for a conversation with my grandmother."),
    ("", "Generate tags for this blog post, only the tags, no explanation, 5 words:\n\nMessage: servers move"),
    ("", "Can you generate a title for this conversation? Only the title, 5 words, no quotes.\nUser: Hi\nAI: Hello"),
    ("", "I need a title for this conversation, only the title, no punctuation:\n\nUser: Hi\nAI: Hello"),
    ("", "### Task: write a poem"),
    ("", "Provide a concise, 5-word-or-less title for the conversation that I paste below."),
    ("", "What does <chat_history> mean?"),
    ("", "Summarize this conversation:\n\nUser: Hi\nAI: Hello"),
    ("", "이 대화를 세 줄로 요약해 줘:\n\n사용자: 안녕\n어시스턴트: 네"),
    ("", "请给我的文章起一个标题"),
    ("", "What is a good title generator for conversations?"),
    ("", "Translate: You are a title generator. You output ONLY a thread title. Nothing else."),
    ("", "This is the prompt of opencode: You are a title generator. You output ONLY a thread title. Nothing else."),
    (COMMIT_BOT, "Hi"),
    (COMMIT_BOT, "I fixed the login bug"),
    (COMMIT_BOT, "What is a conventional commit?"),
    (COMMIT_BOT, f"Here is what I changed:\n\n{DIFF}"),
    (COMMITS_ONLY, "I fixed the login bug"),
    (COMMITS_ONLY, "Why one line only?"),
    (TITLES_BOT, "Hi"),
    (TITLES_BOT, "Give me a title of at most five words, no quotes, for a conversation about cats."),
    (
        "You are a YouTube title generator. Reply only with titles, at most 60 characters, no quotes.",
        "a video on chats",
    ),
    ("You are an SEO expert. Write a title and tags for the user's message. Only the title, no explanation.", "shoes"),
    (f"You are a helpful assistant. Answer in one line. Generate a title for the conversation. {ONLY_TITLE}", "Hi"),
    ("You are a tutor. Teach English, and suggest 3 follow-up questions in each chat. Only return the question.", "Hi"),
    (
        "You create tickets: write a title and tags from the user's message. Only JSON, no explanations.",
        "printer broken",
    ),
    ("Start each reply with a title for the conversation of at most 5 words, no quotes.", "Hi"),
    ("Always return JSON, only these fields:\n- title: of this conversation, no quotes\n- response: in Markdown", "Hi"),
    ("You are a travel planner. Give names of places in this chat. No explanations, at most 50 words.", "Seoul?"),
    ("You are a helpful assistant. Be short: at most 50 words, no explanations, no quotes.", "Name this chat."),
    ("당신은 친절한 도우미입니다. 질문에 답하고 후속 질문을 추천하세요. 설명 없이 50자 이내.", "안녕"),
    ("너는 유튜브 영상 제목을 짓는 도우미다. 제목만 출력하고 설명은 하지 마라.", "대화 예절"),
)


def request(*said: ClientMessage, system: str = "", **fields: object) -> ClientRequest:
    options = ClientOptions("editor", system=system, tools=fields.pop("tools", ()))  # type: ignore[arg-type]  # of a test
    return ClientRequest(said, options, **fields)  # type: ignore[arg-type]  # fields of the request


def messages(*texts: str, first: ClientRole = "user") -> tuple[ClientMessage, ...]:
    other: ClientRole = "assistant" if first == "user" else "user"
    return tuple(ClientMessage(other if index % 2 else first, text) for index, text in enumerate(texts))


def users(*texts: str) -> tuple[ClientMessage, ...]:
    return tuple(ClientMessage("user", text) for text in texts)


@pytest.mark.parametrize("name", GENERATORS)
def test_what_a_client_asks_for_itself_is_aside(name: str) -> None:
    system, *asked = GENERATORS[name]
    tool = {"type": "function", "function": {"name": "read", "parameters": {}}}

    assert is_side_request(request(*users(*asked), system=system))
    assert not is_side_request(request(*users(*asked), system=system, tools=(tool,)))
    assert not is_side_request(request(*users(*asked), system=system, previous="resp_1"))
    if len(asked) == 1:
        assert not is_side_request(request(*messages("Hi", "Hello", *asked), system=system))
        assert not is_side_request(request(*users(f"Explain: {system}\n\n{asked[0]}")))


def test_a_demand_behind_answers_of_a_chat_is_its_users() -> None:
    for said in (
        "Give this chat a title, please, only the title, five words, no quotes, nothing else.",
        "이 대화의 제목만 지어 줘. 따옴표 없이.",
    ):
        assert not is_side_request(request(*messages("Hi", "Hello", said)))


@pytest.mark.parametrize("chat", CHATS)
def test_what_a_person_says_is_a_chat(chat: tuple[str, ...]) -> None:
    system, *asked = chat
    assert not is_side_request(request(*users(*asked), system=system))
    assert not is_side_request(request(*messages("Hi", "Hello", *asked), system=system))


def test_request_that_says_so_is_aside_whatever_it_holds() -> None:
    assert is_side_request(request(*messages("Hi", "Hello", "more"), is_plain=True))
    assert is_side_request(request(*users("Hi"), task="title_generation"))
    assert not is_side_request(request(*users("Hi"), task="  "))


def test_huge_question_is_looked_at_once() -> None:
    for part in ("### Task:", "Generate a title ", "user:", "대화의 제목을 ", "<chat", "--- a", "only return "):
        assert not is_side_request(request(*users(part * 100_000), system=part * 600))
    asked = "Provide a concise, 5-word-or-less title for this essay", "\n\nConversation:\nUser:" * 100_000
    assert not is_side_request(request(*users("".join(asked))))
