"""llm: a conversation whose first question has a file in front of it."""

import json
import os

import llm
from lines import FILE, SYSTEM, converse

MODEL = {"model_id": "turnfold", "model_name": "turnfold", "api_base": os.environ["OPENAI_BASE_URL"]}

(llm.user_dir() / "extra-openai-models.yaml").write_text(json.dumps([{**MODEL, "api_key_name": "turnfold"}]))
(llm.user_dir() / "keys.json").write_text(json.dumps({"turnfold": os.environ["OPENAI_API_KEY"]}))
conversation = llm.get_model("turnfold").conversation()


def ask(question: str) -> str:
    files = [] if conversation.responses else [FILE]
    return conversation.prompt(question, fragments=files, system=SYSTEM).text()


converse(ask)
