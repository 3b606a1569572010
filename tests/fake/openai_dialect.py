"""How servers of several kinds refuse, and how they tell their windows: replies and pages for the scripted server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.fake.openai_reply import Body, Reply, failure
from tests.fake.openai_responder import answer_body
from tests.fake.openai_script import Responder

# What a server says to a request with tools, by its kind.
NO_TOOLS: Final[Mapping[str, Reply]] = {
    "ollama": failure(400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    "vllm": failure(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "llama.cpp": failure(500, "tools param requires --jinja flag"),
    "openrouter": failure(404, "No endpoints found that support tool use. To learn more, visit the documentation."),
    "lm studio": Reply(400, error={"error": 'Error rendering prompt with jinja template: "Unknown test: sequence".'}),
    "lmdeploy": failure(400, "Please launch the api_server with --tool-call-parser if you want to use tool."),
    "gemini": failure(400, "Tool use with function calling is unsupported by the model."),
    "vertex": failure(400, "Unable to submit request because the model does not support function calling."),
    "novita": failure(400, "model features function calling not support"),
    "bedrock": failure(400, "This model doesn't support tool use in streaming mode."),
    "deepseek": failure(400, "deepseek-reasoner does not support Function Calling"),
    "groq": failure(400, "`tool calling` is not supported with this model"),
    "functions": failure(400, "functions are not supported"),
    "korean": failure(400, "도구 호출을 지원하지 않는 모델입니다"),
    "chinese": failure(400, "该模型不支持工具调用"),
    "old llama.cpp": failure(500, "Unsupported param: tools"),
    "in words of its own": failure(400, "Remove the tools from this request: the model was not trained for them"),
    "plain": failure(422, "tools is not supported in this model"),
    "strict": Reply(
        422, error={"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted", "type": "extra"}]}
    ),
}


def takes_no_tools(kind: str) -> Responder:
    """Answers as a server of this kind whose model takes no tools."""
    return lambda body: NO_TOOLS[kind] if body.get("tools") else answer_body(body)


def refuses(parameter: str, reply: Reply) -> Responder:
    """Answers as a server that refuses a parameter in these words, and answers whatever comes without it."""
    return lambda body: reply if parameter in body else answer_body(body)


def pages_of(kind: str, window_tokens: int, *, model: str = "scripted-model", slots: int = 1) -> Mapping[str, object]:
    """What a server of this kind says of its model's window, by path, beside its list of models."""

    def show(asked: Body) -> Body:
        return {
            "model_info": {"gemma3.context_length": 131_072},
            "parameters": f'num_ctx                        {window_tokens}\nstop "<end>"',
            "capabilities": ["completion"] if asked["model"] == model else [],
        }

    of_kind: dict[str, Mapping[str, object]] = {
        "llama.cpp": {
            "/props": {"default_generation_settings": {"n_ctx": window_tokens, "n_predict": -1}, "total_slots": slots}
        },
        "lm studio": {
            "/api/v0/models": {
                "data": [{"id": model, "loaded_context_length": window_tokens, "max_context_length": 131_072}]
            }
        },
        "ollama": {
            "/api/ps": {"models": [{"name": model, "model": model, "context_length": window_tokens}]},
            "/api/show": show,
        },
        "ollama, not loaded": {"/api/ps": {"models": []}, "/api/show": show},
    }
    return of_kind[kind]
