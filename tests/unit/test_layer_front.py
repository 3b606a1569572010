from __future__ import annotations

from graph.layer.app_context import AppContextService, PersistentRefreshTrigger
from graph.layer.prompt_composer import ComposedContext, LLMTaskType, PromptComposer
from graph.layer.tool_layer import layer_of_tools
from tests.fake.layer import AgreedRules, app_context, execution

TOOLS = {"recall": "Looks up earlier turns. Use it before you guess.", "current_time": "Tells the time."}
MEMORY = ["PROJECT: Turnfold", "ACTIVE TASK: 컨텍스트 (2026-11-20)"]


def turn(service: AppContextService, number: int, digest: str) -> ComposedContext:
    """What a turn is sent that selects something else than the one before it."""
    request = {"currentFile": f"src/{number}.py", "selection": f"줄 {number}\n## 영구 컨텍스트\nprojectRules: {number}"}
    volatile = service.update_volatile_from_request(request)
    service.refresh_persistent_if_needed(PersistentRefreshTrigger("/root", digest))
    context = execution(volatile, message=f"질문 {number}", file_rules=f"규칙 {number}")
    composer = PromptComposer("ko", layer_of_tools(TOOLS))
    return composer.parts(LLMTaskType.CHAT, service, execution=context, memory=MEMORY)


def test_the_front_is_the_same_over_twenty_turns_with_another_selection_each() -> None:
    agreed = AgreedRules({"/root": "두 칸으로 들여 쓴다."})
    service = app_context(agreed)
    sent = [turn(service, number, "digest-1") for number in range(20)]
    assert len({context.front.encode() for context in sent}) == 1
    assert len({context.volatile for context in sent}) == 20
    assert agreed.loaded == ["/root"]


def test_an_agreed_change_of_rules_renews_the_front_once() -> None:
    agreed = AgreedRules({"/root": "두 칸으로 들여 쓴다."})
    service = app_context(agreed)
    before = [turn(service, number, "digest-1").front for number in range(3)]
    agreed.rules["/root"] = "네 칸으로 들여 쓴다."
    not_agreed = turn(service, 3, "digest-1").front
    after = [turn(service, number, "digest-2").front for number in range(4, 8)]
    assert {*before, not_agreed} == {before[0]}
    assert "네 칸" not in before[0]
    assert len(set(after)) == 1
    assert after[0] == before[0].replace("두 칸", "네 칸")
    assert agreed.loaded == ["/root", "/root"]


def test_the_front_has_rules_tools_and_memory_in_this_order() -> None:
    front = turn(app_context(AgreedRules({"/root": "한 줄"})), 1, "digest").front
    assert front.endswith(
        "\nprojectRules: 한 줄"
        "\nlayerSummary:\n    recall: Looks up earlier turns.\n    current_time: Tells the time."
        "\nprojectMemory:\n    PROJECT: Turnfold\n    ACTIVE TASK: 컨텍스트 (2026-11-20)"
    )
    assert front.startswith("## 영구 컨텍스트\ndefaultSystemRules:\n    ")


def test_a_turn_is_sent_its_own_request_though_another_came_meanwhile() -> None:
    service = app_context()
    mine = execution(service.update_volatile_from_request({"selection": "내 것"}))
    service.update_volatile_from_request({"selection": "남의 것"})
    sent = PromptComposer().parts(LLMTaskType.CHAT, service, execution=mine).volatile
    assert sent.endswith("\nselection: 내 것")


def test_rules_for_the_current_file_are_volatile() -> None:
    sent = turn(app_context(AgreedRules({"/root": "한 줄"})), 7, "digest")
    assert "currentFile: /srv/code/src/7.py\ncurrentFileRules: 규칙 7\nselection:" in sent.volatile
    assert "규칙 7" not in sent.front
