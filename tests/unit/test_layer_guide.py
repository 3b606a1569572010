from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

import pytest

from graph.layer import context_key
from graph.layer.app_context import PersistentRefreshTrigger
from graph.layer.prompt_composer import LLMTaskType, PromptComposer
from graph.layer.scope import ContextScope
from graph.layer.tool_layer import layer_of_tools
from prompt.system.framing import Language
from prompt.tool.description import DESCRIPTIONS
from tests.fake.layer import DIRECTORY, AgreedRules, app_context, execution

DOCS: Final = Path(__file__).parents[2] / "docs"
GUIDES: Final[dict[Language, str]] = {"ko": "layers.ko.md", "en": "layers.md"}
KEYS: Final = [value for name, value in vars(context_key).items() if name.isupper() and isinstance(value, str)]
TOLD: Final[dict[Language, tuple[str, str, str]]] = {
    "ko": ("두 칸으로 들여 쓴다.", "모든 함수에 타입을 쓴다.", "ACTIVE TASK: 파서 (2026-11-20)"),
    "en": ("Indent by two spaces.", "Type every function.", "ACTIVE TASK: the parser (2026-11-20)"),
}


@pytest.mark.parametrize("language", get_args(Language))
def test_the_guides_example_is_what_a_model_reads(language: Language) -> None:
    rules, file_rules, memory = TOLD[language]
    root = DIRECTORY / "app"
    service = app_context(AgreedRules({str(root): rules}))
    service.ensure_volatile_server_working_directory(DIRECTORY, root)
    request = {"currentFile": "app/main.py", "selection": "def main():\n    return 1"}
    turn = execution(service.update_volatile_from_request(request), file_rules=file_rules)
    service.refresh_persistent_if_needed(PersistentRefreshTrigger(str(root), "digest"))
    composer = PromptComposer(language, layer_of_tools({"recall": DESCRIPTIONS[language].recall}))
    sent = composer.parts(LLMTaskType.CHAT, service, execution=turn, memory=[memory])
    guide = (DOCS / GUIDES[language]).read_text()
    assert f"```\n{sent.front}\n\n{sent.volatile}\n```" in guide


@pytest.mark.parametrize("name", GUIDES.values())
def test_the_guide_names_every_key_scope_and_task(name: str) -> None:
    guide = (DOCS / name).read_text()
    first_cells = [line.split("|")[1] for line in guide.splitlines() if line.startswith("| `")]
    for word in [*KEYS, *ContextScope.__members__, *LLMTaskType.__members__]:
        assert any(f"`{word}`" in cell for cell in first_cells), word


def test_both_guides_have_the_same_tables() -> None:
    tables = [
        [line.split("|")[1] for line in (DOCS / name).read_text().splitlines() if line.startswith("| `")]
        for name in GUIDES.values()
    ]
    assert tables[0] == tables[1]
