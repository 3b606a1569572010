"""aider: a file in the chat that is edited by some of the answers, in a repository of its own."""

import os
import subprocess
from functools import cache
from pathlib import Path

from aider.coders import Coder
from aider.main import main
from lines import FILE, converse

ARGUMENTS = [
    *("--model", "openai/turnfold", "--weak-model", "openai/turnfold:plain"),
    *("--openai-api-base", os.environ["OPENAI_BASE_URL"], "--openai-api-key", os.environ["OPENAI_API_KEY"]),
    *("--yes-always", "--no-show-model-warnings", "--no-check-update", "--no-analytics", "--no-pretty"),
    *("--no-gitignore", "--map-tokens", "0", "budget.py"),
]


@cache
def coder() -> Coder:
    Path("budget.py").write_text(FILE)
    subprocess.run(["git", "init", "--quiet"], check=True)
    return main(ARGUMENTS, return_coder=True)


def ask(question: str) -> str:
    coder().run(question)
    return coder().partial_response_content


converse(ask)
