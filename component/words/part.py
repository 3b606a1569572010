"""The texts of the page's parts, a group each."""

from __future__ import annotations

from component.words.reason import ATTACHMENT_REASONS
from component.words.text import Both, Group, table


class AttachmentWords(Group):
    attach = Both("Attach files", "파일 첨부")
    drop = Both("Drop files to attach them to your next message", "파일을 놓으면 다음 메시지에 첨부합니다")
    reading = Both("Reading the files…", "파일을 읽는 중…")
    remove = Both("Remove {name}", "{name} 제거")
    chip = Both("{name} · {chars} chars", "{name} · {chars}자")
    size = Both("{chars} chars", "{chars}자")
    beginning = Both("only the beginning is sent ({lines} lines), the rest is looked up",
                     "앞부분 {lines}줄만 보냄, 나머지는 찾아봄")
    over = Both("{name} is too large: the message takes {sent} of this model's {window} tokens.",
                "파일이 너무 큽니다: {name}. 이 모델의 창은 {window}토큰인데 {sent}토큰을 보내게 됩니다.")
    left_out = Both("not read: images or objects ({count})", "읽지 않은 이미지·개체 {count}개")
    partial = Both("⚠️ not all of it could be read", "⚠️ 일부는 읽지 못했습니다")
    enlarge = Both("Enlarge {name}", "{name} 크게 보기")
    picture = Both("Image", "이미지")
    picture_gone = Both("This image is no longer stored, or can't be shown.",
                        "더는 저장되어 있지 않거나 보여 줄 수 없는 이미지입니다.")
    cut = Both("Only the beginning is shown. The model is sent all {chars} characters.",
               "앞부분만 보입니다. 모델에는 {chars}자를 모두 보냅니다.")
    reasons = ATTACHMENT_REASONS


class QueueWords(Group):
    name = Both("Messages to send", "보낼 메시지")
    waits = Both("Sent when the answer is done", "답변이 끝나면 보냅니다")
    held = Both("Not sent: the answer before it failed", "앞의 답변이 실패해 보내지 않았습니다")
    send = Both("Send now", "지금 보내기")
    edit = Both("Edit message", "메시지 편집")
    back = Both("Move back to the message box", "입력란으로 가져오기")


class CodeWords(Group):
    wrap_text = Both("Wrap lines", "줄 바꿈")
    preview = Both("Preview without scripts", "미리 보기(스크립트 제외)")
    download = Both("Download code", "코드 내려받기")
    quote = Both("Quote", "인용")
    quote_help = Both("Quote in the message box (Ctrl/⌘ + Shift + .)", "메시지 입력란에 인용 (Ctrl/⌘ + Shift + .)")


class CostWords(Group):
    title = Both("💰 Cost", "💰 비용")
    of_session = Both("This chat: {amount}", "이 대화: {amount}")
    of_summaries = Both("Its summaries alone: {amount}", "그중 요약: {amount}")
    of_all = Both("All chats: {amount}", "모든 대화: {amount}")
    unpriced = Both("+ calls without a price: {count}", "+ 가격이 없는 호출 {count}회")
    estimate = Both(
        "≈ is our estimate: the model provider didn't report all tokens, or summaries are counted without its cache.",
        "≈는 추정치입니다. 제공자가 보고하지 않은 토큰은 추정하고, 요약은 캐시를 쓰지 않은 것으로 계산합니다.")
    less = Both("Cost down by {amount}", "비용 {amount} 감소")
    more = Both("Cost up by {amount}", "비용 {amount} 증가")
    saved_note = Both(
        "If the provider has a cache, unsent tokens count at its price: nearly all of them would have been read there.",
        "제공자가 캐시를 지원하면 보내지 않은 토큰은 캐시 단가로 계산합니다. 대부분 캐시에서 읽혔을 것입니다.")


class InputWords(Group):
    tab = Both("Model input", "모델 입력")
    nothing = Both("After the first answer, this shows what the model was sent, block by block.",
                   "첫 답변이 끝나면 모델에 보낸 내용을 블록별로 보여 줍니다.")
    not_called = Both("No model was called in this turn, so there is nothing to show.",
                      "이 턴에서는 모델을 호출하지 않아 보여 줄 내용이 없습니다.")
    newest = Both("Latest request", "최근 요청")
    call = Both("Call {number} of {count}", "호출 {number}/{count}")
    call_again = Both("Attempt {attempt}, call {number}", "시도 {attempt} · 호출 {number}")
    call_by_tool = Both("{call} · by the tool `reasoning`", "{call} · `reasoning` 도구가 호출")
    call_failed = Both("{call} · failed", "{call} · 실패")
    sent = Both("Sent in turn {turn}", "{turn}턴의 입력")
    bar = Both("Sent: about {sent} tokens. The full history: about {full}. {blocks}.",
               "보낸 양 약 {sent}토큰, 전체 기록 약 {full}토큰. {blocks}.")
    cacheable = Both("≈{tokens} cacheable ({percent}%)", "캐시 가능 ≈{tokens} ({percent}%)")
    cacheable_help = Both("Unchanged since the previous request, so the provider can cache it.",
                          "이전 요청과 처음부터 같아 제공자가 캐시에서 읽을 수 있는 부분입니다.")
    saved = Both("{percent}% less than the full history", "전체 기록보다 {percent}% 적음")
    grown = Both("{percent}% more than the full history", "전체 기록보다 {percent}% 많음")
    reported = Both("The provider reported {tokens} tokens", "제공자가 보고한 사용량 {tokens}토큰")
    reported_cached = Both("The provider reported {tokens} tokens, {cached} of them from its cache",
                           "제공자가 보고한 사용량 {tokens}토큰 (그중 캐시 {cached})")
    verified = Both("Verified: exactly what was sent.", "실제로 보낸 내용과 같습니다(해시 확인).")
    unverified = Both("This couldn't be rebuilt as it was sent: the stored hash differs. What is known is shown.",
                      "보낸 그대로 복원하지 못했습니다. 저장된 해시와 다릅니다. 확인된 내용만 보여 줍니다.")
    groups = table(("system", "System prompt", "시스템 프롬프트"),
                   ("own", "My instructions", "내 지침"),
                   ("layers", "Standing context", "상시 컨텍스트"),
                   ("records", "Summaries: {count}", "요약 {count}개"),
                   ("pins", "Pinned messages: {count}", "고정한 메시지 {count}개"),
                   ("ledger", "The user's own words, from {count} turns", "사용자가 말한 그대로, {count}개 턴에서"),
                   ("tools", "Tool descriptions", "도구 설명"),
                   ("note", "Section headings", "구획 제목"),
                   ("raw", "Verbatim turns: {count}", "원문 턴 {count}개"),
                   ("volatile", "Context of this turn", "이번 턴의 컨텍스트"),
                   ("current", "Current turn {turn}", "현재 {turn}턴"),
                   ("call", "Tool's question", "도구의 질문"))
    roles = table(
        ("user", "User", "사용자"), ("assistant", "Assistant", "모델"), ("tool", "Tool", "도구"), ("", "Text", "글")
    )
    contexts = table(("front", "Project and rules", "프로젝트와 규칙"),
                     ("client", "Instructions of the program", "프로그램의 지시"),
                     ("volatile", "Context", "컨텍스트"),
                     ("before", "Messages of the program", "프로그램이 보낸 메시지"))
    turn = Both("Turn {turn}", "{turn}턴")
    gone = Both("Its text is no longer stored.", "더 이상 저장되어 있지 않은 내용입니다.")
    no_schema = Both(
        "Only their size is known: they aren't this version's, or a program brought its own.",
        "이 버전의 도구가 아니거나 프로그램이 가져온 도구가 있어 보여 줄 수 없습니다. 크기만 저장되어 있습니다.")
    same_words = Both("These words are always the same. Only their size is stored.",
                      "늘 같은 문구라서 크기만 저장합니다.")
    tools = Both("Tools: {count}", "도구 설명 {count}개")
    request_gone = Both("Too little of this request is stored to rebuild it.",
                        "저장된 정보가 부족해 복원할 수 없습니다.")
    request_of_program = Both(
        "A program asked here. The tools and parameters that it added aren't stored and are missing.",
        "프로그램이 보낸 요청입니다. 프로그램이 더한 도구와 매개변수는 저장하지 않아 빠져 있습니다.")
    request_without_tools = Both("The tools are missing: they aren't those of this version.",
                                 "이 버전의 도구가 아니어서 도구 설명이 빠져 있습니다.")
    request_rest = Both(
        "The rest reflects the current settings. The key isn't shown; it goes in a header of the request.",
        "나머지는 지금 설정을 따릅니다. 키는 요청의 헤더에 담기므로 여기에 나오지 않습니다.")
    request_embedded = Both("The embedded model ran on this server; nothing was sent over a network.",
                            "내장 모델이 이 서버에서 처리했습니다. 네트워크로는 아무것도 보내지 않았습니다.")
    request_cut = Both("The file has all of it; this is the beginning.", "앞부분만 보입니다. 전체는 파일에 있습니다.")
    request_file = Both("Save as JSON", "JSON으로 저장")
    lost = Both("Cache invalidated by summaries: {tokens}", "요약으로 무효화된 캐시: {tokens}")
    history = Both("Full history, turn by turn", "전체 기록을 턴별로 보기")
    history_more = Both("Show earlier turns", "앞선 턴 더 보기")
    ways = table(("record", "as a summary", "요약으로 보냄"),
                 ("raw", "verbatim", "원문 그대로 보냄"),
                 ("current", "current turn", "현재 턴"),
                 ("none", "not sent", "보내지 않음"))


class PresetWords(Group):
    title = Both("Presets", "프리셋")
    note = Both("Instructions kept by a name, to be chosen for a chat.",
                "이름을 붙여 둔 지침입니다. 대화마다 선택해 쓸 수 있습니다.")
    load = Both("Put a preset into the field above", "위 칸에 프리셋 불러오기")
    choose = Both("Choose a preset", "프리셋 선택")
    use = Both("Put in", "불러오기")
    name = Both("Keep the text above as a preset", "위 칸의 내용을 프리셋으로 저장")
    hint = Both("Name", "이름")
    keep = Both("Keep", "프리셋 저장")


class ProgramWords(Group):
    title = Both("API access", "API 연결")
    note = Both("Give a program its token as the API key: it can then read your chats and continue them.",
                "외부 프로그램에 이 토큰을 API 키로 넣으면, 내 대화를 읽고 이어갈 수 있습니다.")
    address = Both("Its base URL is `{address}`.", "기본 주소(base URL)는 `{address}`입니다.")
    unused = Both("Created on {made} · not used yet", "{made}에 만듦 · 아직 쓰지 않음")
    used = Both("Created on {made} · last used on {used}", "{made}에 만듦 · 마지막 사용 {used}")
    without_tools = Both("without tools", "도구 없음")
    some_tools = Both("tools: {tools}", "도구: {tools}")
    shared = Both("shared by several people", "여럿이 함께 씀")
    withdraw = Both("Revoke", "토큰 폐기")
    withdraw_question = Both(
        "“{name}” is refused from its next request on. Its chats stay here.",
        "‘{name}’의 토큰을 폐기하면 다음 요청부터 거절됩니다. 이 프로그램이 시작한 대화는 남습니다.")
    new = Both("New program", "새 토큰")
    tools = Both("Allow server tools", "서버의 도구 사용 허용")
    personal = Both("Used by one person", "한 사람만 사용")
    personal_note = Both(
        ("Its chats are then found again even if the program trims or changes their history. Clear this if several "
         "people share the token."),
        "켜 두면 프로그램이 기록을 줄이거나 바꿔 보내도 하던 대화를 찾아 잇습니다. 여럿이 함께 쓰면 꺼 주세요.")
    make = Both("Create a token", "토큰 만들기")
    made = Both("The token of “{name}”. Copy it now: it can't be shown again.",
                "‘{name}’의 토큰입니다. 다시 볼 수 없으니 지금 복사해 주세요.")
    copy = Both("Copy the token", "토큰 복사")


class ProjectWords(Group):
    none = Both("No project", "프로젝트 없음")
    below = Both("Subfolder", "하위 폴더")
    below_hint = Both("this folder", "이 폴더")
    choice_note = Both("A new chat in a project starts with its plan, its decisions and its open files.",
                       "프로젝트에서 시작한 새 대화는 그 계획과 결정, 열어 둔 파일을 알고 시작합니다.")
    without_memory = Both("Start without memory", "메모리 없이 시작")

    tab = Both("Project", "프로젝트")
    not_chosen = Both("No project selected. Choose one:", "선택한 프로젝트가 없습니다. 하나를 선택해 주세요.")
    forget = Both("Forget", "메모리에서 삭제")
    primed = Both("A new chat knows ≈{tokens} tokens of this.", "새 대화는 이 가운데 ≈{tokens}토큰을 알고 시작합니다.")
    primed_nothing = Both(
        "Nothing is noted yet. Plans, tasks and decisions can be added here, or by the model in a chat.",
        "아직 적어 둔 것이 없습니다. 계획과 할 일, 결정은 여기서 넣거나 대화에서 모델이 적습니다.")

    plan = Both("Plan", "계획")
    no_plan = Both("No plan is active.", "진행 중인 계획이 없습니다.")
    new_plan = Both("New plan", "새 계획")
    plan_title = Both("Title", "제목")
    plan_description = Both("What it is about", "무엇을 하려는 계획인가요?")
    plan_done = Both("Complete the plan", "계획 완료")
    forget_plan_question = Both("Forget the plan “{text}” and all its tasks? This can't be undone.",
                                "‘{text}’ 계획을 할 일까지 모두 메모리에서 삭제할까요? 되돌릴 수 없습니다.")
    other_plans = Both("Other plans: {count}", "다른 계획 {count}개")
    switch = Both("Switch", "이 계획으로 전환")
    switch_note = Both("After a switch, the running summary starts over from the plan's description.",
                       "계획을 전환하면 진행 요약은 그 계획의 설명에서 새로 시작합니다.")
    is_done = Both("done", "완료")
    is_active = Both("in progress", "진행 중")
    tasks = Both("Tasks", "할 일")
    no_tasks = Both("No tasks are open.", "남은 할 일이 없습니다.")
    new_task = Both("New task", "새 할 일")
    start_task = Both("Start", "시작")
    complete = Both("Complete", "완료")
    complete_of = Both("Complete: {text}", "완료: {text}")
    done_tasks = Both("Completed tasks: {count}", "완료한 할 일 {count}개")
    reopen = Both("Reopen", "다시 열기")

    decisions = Both("Decisions", "결정")
    no_decisions = Both("No decisions yet.", "아직 결정이 없습니다.")
    new_decision = Both("New decision", "새 결정")
    edit_decision_note = Both("The new text replaces this decision. The old one is kept below.",
                              "새 내용이 이 결정을 대체합니다. 이전 결정은 아래에 보관됩니다.")
    replaced_decisions = Both("Replaced decisions: {count}", "대체된 결정 {count}개")

    files = Both("Open files", "열어 둔 파일")
    no_files = Both("No open files.", "열어 둔 파일이 없습니다.")
    gone = Both("no longer there", "지금은 없음")
    new_file = Both("Add a file", "파일 추가")
    file_path = Both("Path in the project", "프로젝트 안의 경로")
    close_file_of = Both("Close: {text}", "닫기: {text}")

    summary = Both("Running summary", "진행 요약")
    no_summary = Both("No summary yet. One is made once the conversation gets long.",
                      "아직 요약이 없습니다. 대화가 길어지면 만듭니다.")
    summary_limit = Both("{count} characters at most", "최대 {count}자")

    snapshots = Both("Snapshots: {count}", "스냅샷 {count}개")
    no_snapshots = Both("No snapshots yet. One is taken every 30 minutes while something changes.",
                        "아직 스냅샷이 없습니다. 변경이 있으면 30분마다 저장합니다.")
    restore = Both("Restore", "복원")
    restore_question = Both("Restore {time}? The current state is saved as a snapshot first.",
                            "{time}의 상태로 복원할까요? 지금 상태도 먼저 스냅샷으로 저장합니다.")
    damaged = Both("{file} of the project's memory is damaged, so nothing is read from it or written to it.",
                   "프로젝트 메모리의 {file} 파일이 손상되어 읽지도 쓰지도 않습니다.")
    damaged_offer = Both(
        "Restore the newest snapshot or start over. The damaged file is kept under another name.",
        "가장 최근 스냅샷으로 복원하거나 새로 시작할 수 있습니다. 손상된 파일은 다른 이름으로 보관합니다.")
    damaged_no_snapshot = Both("There is no snapshot to restore. Repair the file or start over.",
                               "복원할 스냅샷이 없습니다. 파일을 고치거나 새로 시작할 수 있습니다.")
    start_over = Both("Start over", "새로 시작")
    start_over_question = Both("Start with an empty memory? Both files stay in `.ai-brain`, as `damaged-…`.",
                               "빈 메모리로 새로 시작할까요? 두 파일은 `.ai-brain`에 `damaged-…`로 보관합니다.")
    vanished = Both("Already deleted.", "이미 삭제되었습니다.")

    rules = Both("Rules", "규칙")
    no_rules = Both("There are no rules files in this folder, such as `AGENTS.md`.",
                    "이 폴더에는 `AGENTS.md` 같은 규칙 파일이 없습니다.")
    rules_new = Both("These rules aren't used until you approve them.", "동의하기 전에는 이 규칙을 쓰지 않습니다.")
    rules_changed = Both("The rules have changed. The old ones are used until you approve these.",
                         "규칙이 바뀌었습니다. 동의하기 전에는 예전 규칙을 씁니다.")
    rules_agreed = Both("In use, as approved on {date}.", "{date}에 동의한 규칙을 쓰고 있습니다.")
    use_rules = Both("Use these rules", "이 규칙 사용")
    difference = Both("What has changed", "변경된 부분")
    rule_size = Both("{size} · {sent} sent", "{size} · {sent} 보냄")
    rule_unsent = Both("{size} · not sent", "{size} · 보내지 않음")
    rule_cut = Both("{left} of {size} left out: there is no room for more.",
                    "{size} 가운데 {left}는 공간이 없어 제외했습니다.")
    rule_comments = Both("Comments left out: {count}", "제외한 주석 {count}개")
    rule_invisible = Both("Invisible characters left out: {count}", "제외한 보이지 않는 문자 {count}개")
    rule_bad = Both("Places that aren't text: {count}", "텍스트가 아닌 곳 {count}군데")
    rule_imports = Both("Imports not followed: {count}", "따라가지 않은 가져오기 {count}개")
    rule_kinds = table(("always", "always", "항상"),
                       ("globs", "for matching files", "맞는 파일에서만"),
                       ("described", "when the model looks it up", "모델이 찾아 읽을 때"),
                       ("listed", "not automatic", "자동으로 쓰지 않음"))
    rule_problems = Both({"not_closed": "Not applied: the front matter isn't closed by `---`.",
                          "not_a_line": "Not applied: a line of the front matter isn't a name and a value.",
                          "twice": "Not applied: a name occurs twice in the front matter.",
                          "bad_description": "Not applied: `description` has to be one line.",
                          "bad_globs": "Not applied: `globs` can't be read, or there are more than 128 of them.",
                          "bad_always_apply": "Not applied: `alwaysApply` has to be `true` or `false`."},
                         {"not_closed": "쓰지 않음: 머리말이 `---`로 닫히지 않았습니다.",
                          "not_a_line": "쓰지 않음: 머리말에 이름과 값으로 되어 있지 않은 줄이 있습니다.",
                          "twice": "쓰지 않음: 머리말에 같은 이름이 두 번 나옵니다.",
                          "bad_description": "쓰지 않음: `description`은 한 줄이어야 합니다.",
                          "bad_globs": "쓰지 않음: `globs`를 읽을 수 없거나 128개를 넘습니다.",
                          "bad_always_apply": "쓰지 않음: `alwaysApply`는 `true`나 `false`여야 합니다."})
    rule_refused = Both("Not read: {reason}", "읽지 않음: {reason}")
    rule_limits = Both({"files": "There are more than 64 rules files. The others aren't read.",
                        "folders": "There are more than 200 folders of rules. The others aren't looked into."},
                       {"files": "규칙 파일이 64개를 넘어 나머지는 읽지 않습니다.",
                        "folders": "규칙 폴더가 200개를 넘어 나머지는 살펴보지 않습니다."})

    suggestions = Both(("What is the task now?", "What was decided last?"),
                       ("지금 할 일이 뭐야?", "마지막으로 정한 것이 뭐야?"))
    card_title = Both("This chat starts knowing the following", "이 대화는 다음을 알고 시작합니다")
    card_origin = Both("This chat started knowing the following", "이 대화는 다음을 알고 시작했습니다")
    card_note = Both("It may be out of date. What you type now takes precedence.",
                     "지금과 다를 수 있습니다. 새로 입력한 내용이 우선합니다.")
    card_rules = Both("Rules wait for your approval in the Project tab.", "프로젝트 탭에 확인할 규칙이 있습니다.")
    card_fresh = Both("This chat starts without the project's memory.", "이 대화는 프로젝트 메모리 없이 시작합니다.")
    card_was_fresh = Both("This chat started without the project's memory.",
                          "이 대화는 프로젝트 메모리 없이 시작했습니다.")
    card_as_sent = Both("As sent to the model", "모델에 보낸 내용 그대로")
    card_nothing = Both("Nothing of it was sent with the newest turn.", "마지막 턴에는 보낸 것이 없습니다.")
    problem = Both("The project's memory or its rules weren't used in full.",
                   "프로젝트의 메모리나 규칙을 다 쓰지 못했습니다.")
    with_memory = Both("Start with memory", "메모리와 함께 시작")
    age_today = Both("today", "오늘")
    age_yesterday = Both("yesterday", "어제")
    age_days = Both("{days} days ago", "{days}일 전")
    undated = Both("no date", "날짜 없음")
    is_old = Both("old", "오래됨")
    older_decisions = Both("Older decisions that aren't listed: {count}", "여기 없는 더 오래된 결정 {count}개")
    forget_dialog = Both("Forget the last exchange", "마지막 대화 삭제")
    primed_kinds = table(("project", "Project", "프로젝트"),
                         ("plan", "Plan", "계획"),
                         ("task", "Task", "할 일"),
                         ("decision", "Decision", "결정"),
                         ("file", "Open file", "열어 둔 파일"),
                         ("summary", "Summary", "요약"),
                         ("message", "Last exchange", "마지막 대화"),
                         ("user", "You", "나"),
                         ("assistant", "Answer", "답변"))


class SessionWords(Group):
    regenerate = Both("Regenerate in a branch", "분기해서 다시 생성")
    edit = Both("Edit this question", "질문 편집")
    question = Both("Your question", "질문")
    edit_note = Both("It's asked in a new branch. This chat stays as it is.",
                     "편집한 질문은 새 분기에서 묻습니다. 지금 대화는 그대로 남습니다.")
    ask_in_branch = Both("Ask in a branch", "분기해서 질문")
    edit_answer = Both("Edit this answer", "답변 편집")
    edit_answer_note = Both("The model reads your text from the next message on. The answer stays as another version.",
                            "다음 메시지부터 모델은 고친 글을 읽습니다. 원래 답변은 다른 버전으로 남습니다.")
    edit_answer_branch = Both("It's saved in a new branch that ends here. This chat stays as it is.",
                              "고친 답변은 여기에서 끝나는 새 분기에 저장합니다. 지금 대화는 그대로 남습니다.")
    answer_edited = Both("Edited by you", "직접 고친 답변")
    previous_answer = Both("Previous answer", "이전 답변")
    next_answer = Both("Next answer", "다음 답변")
    use_answer = Both("Use this answer", "이 답변 사용")
    use_answer_hint = Both("Use this answer from your next message on", "이 답변 사용(다음 메시지부터 적용)")
    previous_question = Both("Question in the previous branch", "이전 분기의 질문")
    next_question = Both("Question in the next branch", "다음 분기의 질문")
    branch_of = Both("Branch of “{title}”, the same up to turn {turn}.",
                     "‘{title}’에서 {turn}턴까지 이어받은 분기입니다.")
    branch_of_all = Both("Branch of “{title}”, from its first turn on.",
                         "‘{title}’ 대화를 첫 턴부터 다시 시작한 분기입니다.")
    to_origin = Both("Open the original chat", "원래 대화 열기")

    pin = Both("Pin", "고정")
    unpin = Both("Unpin", "고정 해제")
    fork = Both("Branch into a new chat", "새 대화로 분기")

    select = Both("Select", "선택")
    delete_ticked = Both("Delete ({count})", "{count}개 삭제")
    deleted_one = Both("“{title}” deleted", "‘{title}’ 대화를 삭제했습니다.")
    deleted = Both("{count} chats deleted", "대화 {count}개를 삭제했습니다.")

    export = Both("Export", "내보내기")
    export_title = Both("Export this chat", "대화 내보내기")
    as_markdown = Both("Markdown (for reading)", "Markdown · 읽기용")
    as_json = Both("JSON Lines (complete, can be re-imported)", "JSON Lines · 전체(다시 가져올 수 있음)")
    open_file = Both("Import a chat", "대화 가져오기")
    open_file_note = Both("Opens chats from a JSON Lines file, as “Export” in a chat's menu saves it.",
                          "대화 메뉴의 ‘내보내기’로 저장한 JSON Lines 파일에서 대화를 불러옵니다.")
    choose_file = Both("Choose a file", "파일 선택")
    opened_one = Both("1 chat imported", "대화 1개를 가져왔습니다.")
    opened = Both("{count} chats imported", "대화 {count}개를 가져왔습니다.")
    json_note = Both("JSON Lines holds every answer and summary, and can be re-imported here.",
                     "JSON Lines 파일에는 모든 답변과 요약이 들어 있고, 여기서 다시 가져올 수 있습니다.")
    json_too_large = Both(
        ("This JSON Lines file has {size}. More than {limit} can't be re-imported here; the server's operator can "
         "read it with `python -m graph.admin import FILE`."),
        ("이 JSON Lines 파일은 {size}입니다. {limit}가 넘으면 여기서 다시 가져올 수 없습니다. "
         "서버 운영자는 `python -m graph.admin import 파일`로 읽을 수 있습니다."))
    without_images = Both("JSON Lines without images: {without} instead of {whole}",
                          "JSON Lines에서 이미지 제외: {whole} 대신 {without}")
    without_long_texts = Both("JSON Lines without the whole of long results and files: {without} instead of {whole}",
                              "JSON Lines에서 긴 도구 결과와 파일의 전문 제외: {whole} 대신 {without}")


class SignInWords(Group):
    title = Both("Sign in to Turnfold", "Turnfold에 로그인")
    needed = Both("Your chats are yours alone. Sign in to see them.",
                  "대화는 본인만 볼 수 있습니다. 로그인하면 이어서 볼 수 있습니다.")
    ended = Both("Your session has ended. Sign in again to go on; everything you wrote is kept.",
                 "로그인이 끝났습니다. 다시 로그인하면 이어집니다. 쓴 글은 모두 남아 있습니다.")
    withdrawn = Both("This account no longer has access. Ask whoever runs this server.",
                     "이 계정은 더 이상 쓸 수 없습니다. 이유는 서버 관리자에게 문의해 주세요.")
    too_large = Both(
        ("You can't be signed in: your account has so many groups or other details that the sign-in takes {size} "
         "KB, and {most} KB is the most that can be kept. Ask whoever runs your sign-in to send fewer of them."),
        ("로그인할 수 없습니다. 계정에 딸린 그룹이나 정보가 많아 로그인 정보가 {size}KB인데, {most}KB까지만 저장할 "
         "수 있습니다. 로그인 서비스 관리자에게 Turnfold로 보내는 그룹을 줄여 달라고 요청해 주세요."))
    sign_in = Both("Sign in", "로그인")
    elsewhere = Both("Signing in works at this page's own address.",
                     "로그인은 이 페이지의 정식 주소에서만 할 수 있습니다.")
    go_there = Both("Go there", "정식 주소로 가기")
    signed_in = Both("Signed in", "로그인됨")
    sign_out = Both("Sign out", "로그아웃")
    more = Both("More ways to sign out", "다른 로그아웃 방법")
    everywhere = Both("Sign out everywhere", "모든 기기에서 로그아웃")
    everywhere_title = Both("Sign out everywhere?", "모든 기기에서 로그아웃할까요?")
    everywhere_question = Both(
        "You will be signed out in every browser and on every device where you are signed in, this one included.",
        "이 브라우저를 포함해, 로그인한 모든 브라우저와 기기에서 로그아웃됩니다.")
    everywhere_note = Both(
        ("Answers under way are finished. Programs keep working with their tokens; revoke those under “API access” "
         "in the advanced settings."),
        ("작성 중인 답변은 끝까지 작성합니다. 프로그램은 토큰으로 계속 접속할 수 있습니다. "
         "막으려면 고급 설정의 ‘API 연결’에서 토큰을 폐기해 주세요."))


class LedgerWords(Group):
    title = Both("In your words: {count} · ≈{used} of {budget} tokens",
                 "내가 한 말 그대로 {count}개 · ≈{used} / {budget}토큰")
    note = Both(
        "Rules, choices, preferences and people of summarised turns, sent word for word whatever a summary says.",
        "요약된 턴에서 나온 규칙, 선택, 선호, 사람입니다. 요약과 별개로 말한 그대로 보냅니다.")
    over = Both("No room beside the summaries for {count} of your own sentences: the summaries have them instead.",
                "내가 한 말 중 {count}개는 따로 보낼 자리가 없어 요약 안에만 있습니다.")
    kinds = table(("negation", "never", "금지"),
                  ("rule", "rule", "규칙"),
                  ("preference", "preference", "선호"),
                  ("choice", "choice", "선택"),
                  ("person", "person", "사람"))
    states = table(("no_room", "in its summary", "요약 안에"),
                   ("struck", "struck out", "지움"),
                   ("taken_back", "taken back later", "뒤에 거둠"))
    strike = Both("Strike out", "지우기")
    restore = Both("Restore", "되살리기")


class SteeringWords(Group):
    menu = Both("Options for the summary of turns {turns}", "{turns}턴 요약 메뉴")
    edited = Both("edited", "편집됨")
    in_force = Both("in use", "사용 중")
    from_next_turn = Both("Takes effect with your next message. The chat and all earlier versions are kept.",
                          "다음 메시지부터 적용됩니다. 대화 원문과 이전 버전은 모두 남습니다.")

    edit = Both("Edit", "편집")
    edit_title = Both("Edit this summary", "요약 편집")
    summary = Both("Summary of turns {turns}", "{turns}턴 요약")
    edit_done = Both("The summary of turns {turns} was edited.", "{turns}턴 요약을 편집했습니다.")

    remake = Both("Regenerate…", "다시 요약…")
    remake_title = Both("Regenerate this summary", "다시 요약")
    instruction = Both("What to keep (optional)", "꼭 남길 내용(선택 사항)")
    instruction_hint = Both("For example: keep the prices", "예: 가격은 빠짐없이 남겨 줘")
    left_out = Both("At this length there is probably no room for: {facts}",
                    "이 길이에는 다음이 빠질 수 있습니다: {facts}")
    left_out_none = Both("There is room for all that it keeps now.", "지금 남은 것이 모두 들어갈 길이입니다.")
    left_out_more = Both("{facts} and {count} more", "{facts} 외 {count}개")
    make = Both("Regenerate", "다시 요약")
    making = Both("Summarising turns {turns}…", "{turns}턴을 요약하는 중…")
    remake_done = Both("The summary of turns {turns} was regenerated: {before} → {after} chars.",
                       "{turns}턴을 다시 요약했습니다: {before}자 → {after}자.")
    still_making = Both("A summary is being made. Please try again when it's done.",
                        "요약을 만드는 중입니다. 끝난 뒤 다시 시도해 주세요.")

    source = Both("Compare with the original", "원문과 비교")
    source_text = Both("Original", "원문")
    source_steps = Both("Tool results aren't shown here.", "도구 결과는 여기에 보이지 않습니다.")
    has_fact = Both("In the summary", "요약에 남음")
    lacks_fact = Both("Missing from the summary", "요약에서 빠짐")
    versions = Both("Versions", "버전 비교")
    versions_title = Both("Versions of this summary", "요약 버전")
    other_version = Both("Compare with the one in use", "사용 중인 버전과 비교")
    version = Both("v{version} · {about} · {summary} chars", "v{version} · {about} · {summary}자")
    version_verbatim = Both("verbatim", "원문 그대로")
    only_here = Both("Only here: ", "여기에만: ")
    change_ends = Both(" (end) ", " (끝) ")
    same_text = Both("The texts are the same.", "두 내용이 같습니다.")
    not_compared = Both("What differs isn't marked: comparing texts that repeat themselves this often takes too long.",
                        "다른 곳을 표시하지 않았습니다. 같은 말이 너무 많이 되풀이되어 비교하는 데 오래 걸립니다.")
    only_version = Both(
        "There is no other version yet. Edit or regenerate this one to compare and restore versions here.",
        "아직 다른 버전이 없습니다. 편집하거나 다시 요약하면 여기서 비교하고 복원할 수 있습니다.")
    close = Both("Close", "닫기")
    use = Both("Use v{version}", "v{version} 사용")
    use_done = Both("Version {version} of the summary of turns {turns} is in use.",
                    "{turns}턴 요약을 다른 버전으로 바꿨습니다: v{version}.")

    undo_fold = Both("Send in full", "원문으로 되돌리기")
    undo_fold_done = Both("Turns {turns} are sent in full again.", "다음 메시지부터 {turns}턴을 원문 그대로 보냅니다.")
    unmerged = Both("The summary of turns {turns} was split back into the {count} summaries it came from.",
                    "{turns}턴의 요약을 합치기 전의 요약 {count}개로 되돌렸습니다.")
    undone = Both("Sent in full again.", "원문으로 되돌려 그대로 보냅니다.")
    fold_again = Both("Send as summary", "다시 요약으로 보내기")
    fold_again_done = Both("Turns {turns} are sent as a summary again.",
                           "다음 메시지부터 {turns}턴을 다시 요약으로 보냅니다.")
    summarise = Both("Summarise", "요약하기")
    summarise_done = Both("Turns {turns} are summarised.", "{turns}턴을 요약했습니다.")
    fact_added = Both("Added to the summary of turns {turns}.", "{turns}턴 요약에 빠진 내용을 넣었습니다.")

    pin = Both("Pin this message", "이 메시지 고정")
    pin_hint = Both("Always send this message verbatim", "이 메시지를 항상 원문 그대로 보내기")
    pins = Both("Pinned messages: {count} · ≈{used} of {budget} tokens",
                "고정한 메시지 {count}개 · ≈{used} / {budget}토큰")
    pins_unsent = Both("The chosen strategy sends only the newest turns, so pins aren't sent beside them.",
                       "지금 전략은 최근 턴만 보내므로 고정한 메시지를 따로 보내지 않습니다.")
    pins_over = Both("Not sent, as this model's window has no room: {count} of the pinned messages.",
                     "고정한 메시지 중 {count}개는 이 모델의 창에 들어가지 않아 보내지 않습니다.")
    pin_unsent = Both("not sent", "보내지 않음")
    pin_tokens = Both("≈{tokens} tokens", "≈{tokens}토큰")

    rates = Both("target {target:.0%} → achieved {achieved:.0%}", "목표 {target:g} → 실제 {achieved:g}")
    dense_rates = Both("{target:.0%} asked, {needed:.0%} needed: many key facts → achieved {achieved:.0%}",
                       "목표 {target:g}, 핵심 내용이 많아 {needed:g} 필요 → 실제 {achieved:g}")
    note_rates = Both("target {target:.0%}, {needed:.0%} asked: notes need less → achieved {achieved:.0%}",
                      "목표 {target:g}, 메모에는 {needed:g}이면 충분 → 실제 {achieved:g}")
    tokens = Both("≈{before} → ≈{after} tokens", "토큰 ≈{before} → ≈{after}")


class ToolWords(Group):
    menu = Both("Tools", "도구")
    menu_on = Both("Tools {count}", "도구 {count}")
    none = Both("Open a server to choose which of its tools the model may use in this chat.",
                "서버를 펼치면 이 대화에서 모델이 쓸 도구를 선택할 수 있습니다.")
    sum = Both("{count} on · ≈{tokens} tokens in each request. A change applies from your next message on.",
               "{count}개 사용 · 요청마다 ≈{tokens}토큰. 바꾸면 다음 메시지부터 적용됩니다.")
    too_much = Both(
        "More than 40 tools, or more than 8% of the context window. A model often picks the wrong one of so many.",
        "도구가 40개를 넘거나 설명이 컨텍스트 창의 8%를 넘습니다. 모델이 엉뚱한 도구를 선택하기 쉽습니다.")
    starting = Both("Starting…", "시작하는 중…")
    failed = Both("Not available.", "사용할 수 없습니다.")
    failures = table(("ended", "The server has ended.", "서버가 종료되었습니다."),
                     ("not_installed", "{about} isn't installed.", "{about}: 설치되어 있지 않습니다."),
                     ("protocol",
                      "Its answer breaks the protocol at {about}.",
                      "서버의 답이 규격에 맞지 않습니다({about})."),
                     ("silent", "No answer within {about} s.", "{about}초 안에 답이 없습니다."),
                     ("too_large",
                      "It sent too much at once: over {about} MB, or too many values.",
                      "한 번에 {about}MB나 너무 많은 값을 보냈습니다."))
    none_offered = Both("This server has no tools.", "이 서버가 제공하는 도구가 없습니다.")
    unusable = Both("Unavailable: {tools}", "사용할 수 없는 도구: {tools}")
    reasons = table(
        ("name", "its name is too long, or has signs that aren't seen", "이름이 너무 길거나 보이지 않는 문자가 있음"),
        ("twice", "another tool has this name", "이름이 같은 도구가 또 있음"),
        ("many", "the server has too many tools, or too long ones", "서버의 도구가 너무 많거나 너무 김"),
        ("large", "its schema is longer than 50,000 characters", "스키마가 50,000자를 넘음"),
        ("schema", "models' servers would refuse its schema at {about}", "모델 서버가 받지 않는 스키마: {about}"),
        (
            "parameter",
            "models' servers refuse parameters named {about}",
            "모델 서버가 받지 않는 매개변수 이름: {about}",
        ),
    )
    all = Both("All tools", "모든 도구")
    reading = Both("Only those that read", "읽기 전용만 사용")
    asks = Both("asks first", "실행 전 확인")
    allowed = Both("always allowed in this chat", "이 대화에서 항상 허용됨")
    ask_again = Both("Ask again", "다시 묻기")
    asks_not = Both("runs automatically", "자동 실행")
    changed = Both("changed since you chose it: choose it again", "선택한 뒤에 바뀌었습니다. 다시 선택해 주세요")

    is_repeated = Both("An earlier attempt has already made this call.",
                       "이 질문의 이전 시도에서 이미 실행한 호출입니다.")
    wants = Both("**{server}** wants to run **{tool}**{title}",
                 "**{server}** 서버의 **{tool}**{title} 도구를 실행하려고 합니다")
    words = table(("once", "Allow once", "이번만 허용"),
                  ("always", "Always in this chat", "이 대화에서 항상 허용"),
                  ("no", "Don't allow", "거부"))
    waits = Both("waiting for your permission", "허용을 기다리는 중")
