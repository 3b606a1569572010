"""A process that registers messages in a project and prints each one's id: `root speaker count`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AnyMessage

from graph.file.root_folder import RootFolders
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory


def no_summary(messages: Sequence[AnyMessage], target_chars: int) -> str:
    message = f"nothing asks for {len(messages)} messages in {target_chars}"
    raise AssertionError(message)


def main(root: str, speaker: str, count: str) -> None:
    context = ContextManager(ProjectMemory(RootFolders([Path(root).parent]), root), summarise=no_summary)
    for number in range(int(count)):
        text = f"{speaker} {number}: 서버를 도쿄로 옮기기로 했습니다. 언제 할지는 아직 정하지 않았습니다."
        made = context.register_message("user" if number % 2 == 0 else "assistant", text)
        sys.stdout.write(f"{made} {text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
