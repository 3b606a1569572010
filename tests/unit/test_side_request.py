from __future__ import annotations

from graph.recognise.decide import is_side_request
from graph.value.client import ClientMessage, ClientOptions, ClientRequest

# Shortened, but for the words by which they are known.
FORMS = {
    "Open WebUI, title": "### Task:\nGenerate a concise, 3-5 word title.\n### Chat History:\n<chat_history>\n"
    "USER: 안녕\n</chat_history>",
    "Open WebUI, follow-ups": "### Task:\nSuggest 3-5 relevant follow-up questions.\n<chat_history>\n</chat_history>",
    "LibreChat, title": "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. "
    "Only return the title itself.\n\nConversation:\nUser: Hi\nAI: Hello",
    "LibreChat, assistants": "Please generate a concise, 5-word-or-less title for the conversation, using its language",
    "LibreChat, structured": "Analyze this conversation and provide:\n1. The detected language of the conversation\n"
    "2. A concise title in the detected language (5 words or less, no punctuation or quotation)",
    "Continue": "Given the following... please reply with a title for the chat that is 3-4 words in length",
}


def request(*texts: str, **fields: object) -> ClientRequest:
    messages = tuple(ClientMessage("assistant" if index % 2 else "user", text) for index, text in enumerate(texts))
    return ClientRequest(messages, ClientOptions("editor"), **fields)  # type: ignore[arg-type]  # fields of the request


def test_known_form_alone_is_aside() -> None:
    for name, form in FORMS.items():
        assert is_side_request(request(form)), name
        assert not is_side_request(request("Hi", "Hello", form))
        assert not is_side_request(request(f"Explain: {form}"))


def test_what_a_user_says_is_no_aside() -> None:
    for text in (
        "Hi",
        "### Task: write a poem",
        "Provide a concise, 5-word-or-less title for the conversation that I paste below.",
        "What does <chat_history> mean?",
    ):
        assert not is_side_request(request(text))


def test_request_that_says_so_is_aside_whatever_it_holds() -> None:
    assert is_side_request(request("Hi", "Hello", "more", is_plain=True))
    assert is_side_request(request("Hi", task="title_generation"))
    assert not is_side_request(request("Hi", task="  "))


def test_huge_question_is_looked_at_once() -> None:
    assert not is_side_request(request("### Task:" * 100_000))
    parts = "Provide a concise, 5-word-or-less title for the conversation", "\n\nConversation:\nUser:" * 100_000
    assert not is_side_request(request("".join(parts)))
