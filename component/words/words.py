"""The texts of the page as a whole."""

from __future__ import annotations

from component.words import part
from component.words.reason import DETAILED_ERRORS, ERRORS, INPUT_REASONS, PATH_REASONS
from component.words.text import Both, Group, Language, table


class Words(Group):
    new_chat = Both("New chat", "새 대화")
    search_chats = Both("Search chats", "대화 검색")
    no_chats = Both("No chats yet.", "아직 대화가 없습니다.")
    no_match = Both("No results.", "검색 결과가 없습니다.")
    program = Both("Program: {name}", "프로그램: {name}")
    started_by_program = Both(
        "The program “{name}” began this chat. You can go on with it here, and so can the program.",
        "“{name}” 프로그램이 시작한 대화입니다. 여기서도, 그 프로그램에서도 이어갈 수 있습니다.")
    found_in_turn = Both("Turn {turn}: {text}", "{turn}턴: {text}")
    found_in_turns = Both("Turn {turn} and {others} more: {text}", "{turn}턴 외 {others}곳: {text}")
    skip_to_chat = Both("Skip to the chat", "대화로 건너뛰기")
    skip_to_field = Both("Skip to the message box", "메시지 입력란으로 건너뛰기")
    skip_to_panel = Both("Skip to the panel", "패널로 건너뛰기")
    find = Both("Find in this chat", "대화에서 찾기")
    find_close = Both("Close search", "찾기 닫기")
    find_previous = Both("Previous", "이전")
    find_next = Both("Next", "다음")
    days = table(("pinned", "Pinned", "고정됨"),
                 ("today", "Today", "오늘"),
                 ("yesterday", "Yesterday", "어제"),
                 ("last_week", "Last 7 days", "지난 7일"),
                 ("older", "Earlier", "이전"))
    more_chats = Both("Show more chats ({count})", "대화 {count}개 더 보기")
    chat_menu = Both("Options for {title}", "{title} 메뉴")
    untitled = Both("Untitled chat", "제목 없는 대화")
    rename = Both("Rename", "이름 바꾸기")
    rename_title = Both("Rename this chat", "대화 이름 바꾸기")
    title_label = Both("Name", "이름")
    title_missing = Both("Enter a name.", "이름을 입력해 주세요.")
    delete = Both("Delete", "삭제")
    undo = Both("Undo", "실행 취소")
    save = Both("Save", "저장")
    instructions = Both("Instructions", "지침")
    instructions_all = Both("My instructions, all chats", "내 지침 · 모든 대화")
    instructions_chat = Both("My instructions, this chat", "내 지침 · 이 대화")
    brought_instructions = Both("The file of this chat has instructions. They aren't sent unless you use them.",
                                "이 대화의 파일에 지침이 들어 있습니다. 사용을 누르기 전에는 보내지 않습니다.")
    use_brought = Both("Use", "사용")
    drop_brought = Both("Don't use", "사용 안 함")
    instructions_size = Both("{chars} / {most} characters", "{chars} / {most}자")
    instructions_unsaved = Both("Not saved. The draft stays when you close.", "저장 전입니다. 닫아도 초안은 남습니다.")
    instructions_saved = Both("Saved. Takes effect with your next message.",
                              "저장했습니다. 다음 메시지부터 적용됩니다.")
    instructions_help = Both(
        "Sent with every chat from your next message on, except in chats that a program began through the API.",
        "다음 메시지부터 모든 대화에 함께 보냅니다. 외부 프로그램이 API로 시작한 대화는 제외됩니다.")
    cancel = Both("Cancel", "취소")

    settings = Both("⚙️ Advanced settings", "⚙️ 고급 설정")
    rate = Both("Summary length", "요약 압축률")
    rate_help = Both("Lower makes summaries shorter, higher keeps more detail",
                     "낮을수록 짧게 요약, 높을수록 상세하게 요약")
    rate_scale = Both(("10% short", "30% balanced", "50% detailed"), ("0.1 짧게", "0.3 균형", "0.5 상세"))
    change_rate = Both("Change", "변경")
    rate_note = Both("A change applies from the next summary on.", "변경한 값은 다음 요약부터 적용됩니다.")
    rate_unused = Both("This strategy doesn't use this setting.", "이 전략은 압축률을 쓰지 않습니다.")
    rate_share = Both("{percent}% of the original", "원문의 {percent}% 길이")
    strategy = Both("Summary strategy", "요약 전략")
    strategies = table(("interval", "Every 3 turns", "3턴마다 요약"),
                       ("rolling", "One running summary", "요약 하나를 계속 갱신"),
                       ("compaction", "Compact when full", "가득 차면 압축"),
                       ("window", "Newest turns only", "최근 대화만 보내기"))
    strategy_notes = Both(
        {"interval": "Summarises every three turns; old summaries are merged.",
         "pays": ("Summarises six turns by one call. Until then they're sent in full, as long as there's room. "
                  "Old summaries are merged."),
         "rolling": "Keeps one running summary and sends it with the latest messages.",
         "compaction": "When the context fills up, all but the last messages become one structured summary.",
         "window": "Sends only the last {count} turns. Older ones stay visible, but the model doesn't see them."},
        {"interval": "세 턴마다 하나로 요약하고, 오래된 요약은 합칩니다.",
         "pays": ("여섯 턴을 한 번에 하나로 요약합니다. 그 전에는 자리가 있는 한 원문 그대로 보냅니다. "
                  "오래된 요약은 합칩니다."),
         "rolling": "요약 하나를 계속 갱신하고, 최근 메시지와 함께 보냅니다.",
         "compaction": "컨텍스트가 차면 마지막 메시지만 남기고 나머지를 구조화된 요약 하나로 바꿉니다.",
         "window": "최근 {count}턴만 보냅니다. 그 앞의 턴은 화면에 남지만 모델은 보지 못합니다."})
    fold_when = Both("When to summarise", "요약 시점")
    fold_times = table(("due", "As soon as due", "때가 되면 바로"), ("pays", "When it pays", "이득이 될 때"))
    compact_now = Both("Compact now", "지금 압축")
    compacting = Both("Compacting…", "압축하는 중…")
    compacted = Both("{before} → {after} messages, ≈{tokens_before} → ≈{tokens_after} tokens ({percent}% less)",
                     "메시지 {before}개 → {after}개, 토큰 ≈{tokens_before} → ≈{tokens_after} ({percent}% 감소)")
    reset_divider = Both("Context cleared: the model doesn't see the messages above. Your chat stays visible.",
                         "여기부터 모델은 앞의 대화를 모릅니다. 화면의 대화는 그대로입니다.")
    command_needs_chat = Both("Start a chat first.", "먼저 대화를 시작해 주세요.")
    restore_help = Both(("Undoes this compaction: what it replaced is sent again from the next turn on. "
                         "It isn't compacted again by itself until the chat has grown."),
                        ("이 압축을 취소하고, 바꾸기 전의 내용을 다음 턴부터 다시 보냅니다. "
                         "대화가 더 길어지기 전에는 저절로 다시 압축하지 않습니다."))
    commands = table(("compact", "Compact the chat now", "지금 대화를 압축합니다"),
                     ("reset",
                      "Clear the context: the chat stays visible, but the model no longer sees it",
                      "컨텍스트를 초기화합니다. 화면의 대화는 그대로입니다"),
                     ("help", "Show commands and shortcuts", "명령과 단축키를 보여 줍니다"))
    unknown_command = Both(
        "There is no command {command}. Did you mean {nearest}? Send again to send it as text.",
        "{command}: 없는 명령입니다. {nearest} 명령을 쓰려던 것인가요? 그대로 보내려면 다시 보내 주세요.")
    model = Both("Model", "모델")
    model_offline = Both("{name} · built in", "{name} · 내장")
    language_label = Both("Language", "언어")
    theme = Both("Theme", "테마")
    themes = table(("system", "System", "시스템 설정"), ("light", "Light", "라이트"), ("dark", "Dark", "다크"))
    no_model = Both("No model", "모델 없음")
    no_model_list = Both(
        "No list of models from `{address}`: {reason} Check `OPENAI_BASE_URL` in `.env` and restart the server.",
        ("`{address}`에서 모델 목록을 가져오지 못했습니다. {reason} "
         "`.env`의 `OPENAI_BASE_URL`을 확인하고 서버를 다시 시작해 주세요."))
    model_window = Both("Context window", "컨텍스트 창")
    model_tools = Both("Tools", "도구")
    model_images = Both("Images", "이미지")
    model_without_tools = Both("No: recall and clock are off", "미지원: 이전 대화 참조와 시계를 쓸 수 없습니다")
    is_supported = Both("Yes", "지원")
    is_unsupported = Both("No", "미지원")
    is_unknown = Both("Unknown", "확인되지 않음")
    offline_note = Both(
        ("This is the built-in trial model: it answers with what it finds in the chat. For a real AI, put "
         "`OPENAI_API_KEY` or `OPENAI_BASE_URL` into `.env` and restart the server."),
        ("지금은 체험용 내장 모델입니다. 대화에 나온 문장을 찾아 보여 줍니다. 실제 AI를 쓰려면 "
         "`.env`에 `OPENAI_API_KEY`나 `OPENAI_BASE_URL`을 넣고 서버를 다시 시작해 주세요."))
    shortcuts_label = Both("Commands and shortcuts", "명령과 단축키")
    shortcut_head = Both(("Shortcut", "Action"), ("단축키", "동작"))
    shortcuts = table(("Ctrl/⌘ + Shift + O", "New chat", "새 대화"),
                      ("/", "Go to the message box", "메시지 입력란으로 이동"),
                      ("Enter", "Send", "보내기"),
                      ("Shift + Enter", "New line", "줄 바꾸기"),
                      ("Esc", "Stop the answer", "답변 중지"),
                      ("Ctrl/⌘ + Shift + F", "Find in this chat", "대화에서 찾기"),
                      ("Ctrl/⌘ + K", "Search chats", "대화 검색"),
                      ("Ctrl/⌘ + Shift + S", "Open or close the panel", "패널 열기·닫기"),
                      ("Ctrl/⌘ + Shift + ;", "Copy the last answer", "마지막 답변 복사"),
                      ("Ctrl/⌘ + Shift + .", "Quote the selected text", "선택한 글 인용"),
                      ("Alt + ↑ / ↓", "Previous or next question", "이전·다음 질문으로 이동"))

    empty_title = Both("Long chats that keep their thread", "오래 이야기해도 흐름을 잃지 않는 대화")
    empty_intro = Both(
        "Every three turns are condensed into a summary that the model keeps. Your messages stay as they are.",
        "세 턴(질문과 답변 세 쌍)마다 하나로 요약해 기억합니다. 원문은 그대로 남습니다.")
    open_example = Both("Open an example chat", "예시 대화 열어 보기")
    suggestions = table(
        (":material/edit_note:", "Help me draft a report", "보고서 초안 쓰기를 도와줘"),
        (":material/event_note:", "Plan a project with me, step by step", "프로젝트 계획을 한 단계씩 같이 세우자"),
        (":material/code:", "Find a bug in my code with me", "내 코드의 버그를 같이 찾아 줘"),
    )
    suggestions_offline = table(
        (":material/event_note:", "Remember: we deploy on October 14", "기억해 줘: 배포는 10월 14일이야"),
        (":material/schedule:", "What time is it in Seoul?", "지금 서울은 몇 시야?"),
        (":material/unfold_less:", "When and how are summaries made?", "요약은 언제, 어떻게 만들어져?"),
    )
    earlier = Both("Show earlier turns ({count})", "이전 대화 더 보기 ({count}턴)")
    unprinted = Both(
        "Earlier turns not printed here: {count}. Export, in the chat's menu, saves the whole chat.",
        "이 앞의 {count}턴은 인쇄되지 않았습니다. 대화 메뉴의 ‘내보내기’로 대화 전체를 저장할 수 있습니다.")
    ask = Both("Write a message", "메시지를 입력하세요")
    stop = Both("Stop", "중지")
    disconnected = Both("Disconnected from the server. Reconnecting… (Is <code>make run</code> still running?)",
                        "서버와 연결이 끊겼습니다. 다시 연결하는 중… (<code>make run</code>이 켜져 있나요?)")
    stopping = Both("Stopping", "중지하는 중")
    retry = Both("Retry", "다시 시도")
    go_on = Both("Continue", "계속")
    regenerate = Both("Regenerate", "다시 생성")
    copy = Both("Copy answer", "답변 복사")
    answer_menu = Both("Options for this answer", "답변 메뉴")
    answer_tokens = Both("{input} in · {output} out tokens", "입력 {input} · 출력 {output} 토큰")
    date = Both("{weekday}, {day} {month} {year}", "{year}년 {month} {day}일 {weekday}")
    weekdays = Both(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
                    tuple(f"{name}요일" for name in "월화수목금토일"))
    months = Both((*("January", "February", "March", "April", "May", "June"),
                   *("July", "August", "September", "October", "November", "December")),
                  tuple(f"{number}월" for number in range(1, 13)))
    streamlit_names = table(("Sidebar", "Sidebar", "사이드바"),
                            ("Chat message from user", "Question", "질문"),
                            ("Chat message from assistant", "Answer", "답변"),
                            ("Collapse sidebar", "Collapse sidebar", "사이드바 닫기"),
                            ("Expand sidebar", "Expand sidebar", "사이드바 열기"),
                            ("Send message", "Send message", "메시지 보내기"),
                            ("Open", "Open", "펼치기"),
                            ("Close", "Close", "닫기"),
                            ("Copy to clipboard", "Copy code", "코드 복사"),
                            ("Show data", "Show data", "데이터 보기"),
                            ("Download as PNG", "Download as PNG", "PNG로 내려받기"),
                            ("Copy Vega-Lite spec", "Copy Vega-Lite spec", "Vega-Lite 명세 복사"),
                            ("Fullscreen", "Fullscreen", "전체 화면"),
                            ("Close fullscreen", "Close fullscreen", "전체 화면 닫기"),
                            ("Help for ", "Help: ", "도움말: "))
    to_end = Both("Go to the newest message", "최신 메시지로 이동")
    copied = Both("Copied", "복사했습니다")
    copy_failed = Both("Could not copy", "복사하지 못했습니다")
    footnotes = Both("Footnotes", "각주")
    phase_folding = Both("Summarising turns {turns}", "{turns}턴을 요약하는 중")
    thinking_level = Both("Thinking", "추론 수준")
    thinking_levels = table(
        ("", "Model default", "기본값"), ("off", "Off", "끔"), ("low", "Low", "낮음"), ("high", "High", "높음")
    )
    thinking = Both("Thinking …", "생각 중 …")
    thinking_unit = Both(" s", "초")
    thought = Both("Thought for {seconds} s", "{seconds}초 동안 생각함")
    phase_waiting = Both("Waiting", "기다리는 중")
    phase_attempt = Both("(attempt {attempt} of {most})", "({most}회 중 {attempt}번째)")
    phase_retry = Both("{reason} · trying again in {time} {attempt}",
                       "{reason} · {time} 뒤에 다시 시도합니다 {attempt}")
    retry_reasons = table(("rate_limit", "Rate limit of the model's server", "모델 서버의 요청 한도 초과"),
                          ("unreachable", "Can't reach the model's server", "모델 서버에 연결되지 않음"),
                          ("cut_stream", "The answer broke off", "답변이 중간에 끊김"),
                          ("empty_answer", "Empty answer", "빈 답변"),
                          ("provider", "Error of the model's server", "모델 서버 오류"))
    phase_reading = Both("Reading the conversation · {percent}%", "대화를 읽는 중 · {percent}%")
    phase_tool = Both("Using a tool", "도구 사용 중")
    phase_answering = Both("Answering…", "답변하는 중…")
    phase_closing = Both("Saving the answer…", "답변을 저장하는 중…")
    tool_used_once = Both("1 tool call", "도구 1회 사용")
    tools_used = Both("{count} tool calls", "도구 {count}회 사용")
    tools_failed = Both("{count} failed", "{count}회 실패")
    tools_declined = Both("{count} not allowed", "{count}회 거부")
    tool_earlier = Both("in an earlier attempt", "이전 시도에서 실행")
    tool_declined = Both("not allowed", "거부")
    tool_arguments = Both("Input", "입력")
    tool_result = Both("Result", "결과")
    tool_seconds = Both("{seconds} s", "{seconds}초")
    recalled_one = Both("Looked up turn {turns}", "이전 대화 참조: {turns}")
    recalled_some = Both("Looked up turns {turns}", "이전 대화 참조: {turns}")
    recalled_none = Both("Looked up: nothing found", "이전 대화 참조: 검색 결과 없음")
    recalled_turn = Both("{turn}", "{turn}턴")
    to_turn = Both("Go to turn {turn}", "{turn}턴으로 이동")
    fold_divider = Both("Turns {turns} are now sent as a summary · {original} → {summary} chars",
                        "위 {turns}턴은 요약으로 대체되었습니다(원문은 그대로) · {original}자 → {summary}자")
    fold_divider_past = Both("Turns {turns} summarised (not sent now) · {original} → {summary} chars",
                             "{turns}턴 요약(지금은 보내지 않음) · {original}자 → {summary}자")
    fold_divider_verbatim = Both("Turns {turns} kept verbatim · {original} chars",
                                 "{turns}턴 원문 그대로 · {original}자")
    fold_divider_compaction = Both("Context compacted · {change}", "컨텍스트 압축됨 · {change}")
    fold_text = Both("What the model sees instead of turns {turns}", "모델이 {turns}턴 대신 보는 내용")
    fold_text_verbatim = Both("Turns {turns} as the model sees them, verbatim", "모델이 그대로 보는 {turns}턴")
    fold_text_compaction = Both("What the model sees instead of what was compacted",
                                "모델이 압축한 대화 대신 보는 내용")
    fold_text_past = Both("Turns {turns}: this isn't sent to the model now",
                          "{turns}턴 · 지금은 모델에 보내지 않는 내용")
    nearly_full = Both(
        "The context is over 80% full. Type `/compact` to compact it, or `/reset` to clear it.",
        "컨텍스트가 80%를 넘었습니다. `/compact`로 압축하거나 `/reset`으로 컨텍스트를 초기화할 수 있습니다.")
    full = Both("The context is over its limit. Type `/compact` to compact it, or `/reset` to clear it.",
                "컨텍스트가 한도를 넘었습니다. `/compact`로 압축하거나 `/reset`으로 컨텍스트를 초기화해 주세요.")
    unsent = Both("Messages neither summarised yet nor sent to the model: {count}. They stay in the chat.",
                  "메시지 {count}개는 아직 요약되지 않았고 모델에 보내지도 않습니다. 기록에는 남아 있습니다.")
    fold_warning = Both(
        "No summary could be made {count} times in a row. From the next turn on, key sentences stand in for it.",
        "요약을 {count}번 연속 만들지 못했습니다. 다음 턴부터는 원문의 핵심 문장이 요약을 대신합니다.")
    failed_title = Both("Couldn't get an answer", "답변을 받지 못했습니다")
    failed_kept = Both("Your message is saved, so you can retry.",
                       "보낸 메시지는 저장되어 있으니 다시 시도할 수 있습니다.")
    stopped_partial = Both("Stopped. What had arrived so far is kept.", "중지했습니다. 여기까지의 답변을 저장했습니다.")
    stopped_empty = Both("Stopped before the answer began.", "답변이 시작되기 전에 중지했습니다.")
    client_tools = Both("Waiting for {client} to run these tools. Send a message to stop waiting.",
                        "{client}에서 이 도구들을 실행할 차례입니다. 새 메시지를 보내면 더 기다리지 않습니다.")
    answer_cut = Both("The answer stopped at the model's length limit.", "모델의 길이 한도에서 답변이 끊겼습니다.")
    answer_repeats = Both("The model began to repeat itself; the answer was stopped.",
                          "모델이 같은 말을 되풀이하기 시작해 답변을 중지했습니다.")

    panel = Both("Summary panel", "요약 패널")
    panel_edge = Both("Panel width", "패널 너비")
    close_panel = Both("Close panel", "패널 닫기")
    open_panel = Both("Summaries {count}", "요약 {count}")
    open_panel_first = Both("Summary in {count} turns", "첫 요약까지 {count}턴")
    open_panel_next = Both("Summary in 1 turn", "첫 요약까지 1턴")
    turns_left = Both("First summary in {count} turns", "첫 요약까지 {count}턴")
    turn_left = Both("First summary in 1 turn", "첫 요약까지 1턴")
    tab_summaries = Both("Summaries", "요약")
    tab_statistics = Both("Statistics", "통계")
    history = Both("📝 Summary history", "📝 대화 요약 히스토리")
    current_rate = Both("Summary length", "현재 압축률: {rate}")
    next_by_chars = Both("Next summary: {original} chars so far → about {summary}",
                         "다음 요약: 지금까지 {original}자 → 약 {summary}자")
    next_verbatim = Both("Next summary: {original} chars so far · kept verbatim if it stays this short",
                         "다음 요약: 지금까지 {original}자 · 너무 짧으면 요약하지 않고 원문 그대로 보냅니다")
    next_short = Both("Next summary: {original} chars · too short, so kept verbatim",
                      "다음 요약: {original}자 · 짧아서 요약하지 않고 원문 그대로 보냅니다")
    next_by_turn = Both("Next summary after turn {turn} · e.g. {original} → about {summary} chars",
                        "다음 요약: {turn}턴이 끝난 뒤 · 예: {original}자 → 약 {summary}자")
    next_example = Both("Example: {original} → about {summary} chars", "예: {original}자 → 약 {summary}자")
    next_together = Both(
        "Turns {first}-{last} are summarised together after turn {last}, sooner if room runs out.",
        "{first}-{last}턴은 {last}턴이 끝난 뒤 한 번에 요약합니다. 자리가 모자라면 더 일찍 요약합니다.")
    next_by_tokens = Both("Next summary: ≈{tokens} of {threshold} tokens so far",
                          "다음 요약: 지금까지 ≈{tokens} / {threshold}토큰")
    sample = Both("Example", "예시")
    sample_original = Both("What it was made of", "요약한 원문")
    # Questions and answers in turn, and the notes of them at the rates of `rate_scale`.
    sample_messages = Both(
        ("We're moving the booking server to the cloud. No downtime between 9 and 18. In what order?",
         "Copy the data, verify it, then switch the traffic. Copying can run by day; switch after 18:00.",
         "Good. We switch on October 14, Min-su is in charge, and we have $450 a month.",
         "Noted. $450 covers two 4-core servers and backups. Finish verifying by October 12.",
         "We will. If something breaks, we must be able to go back at once.",
         ("Keep the old server for 7 days: going back is then a change of address. Compare the error logs daily, "
          "and cancel it on October 21. Who will cancel it?")),
        (("사내 예약 서버를 클라우드로 옮기려고 해. 업무 시간인 9시부터 18시까지는 서비스를 멈추면 안 돼. "
          "순서를 어떻게 잡으면 좋을까?"),
         ("데이터를 먼저 복제하고, 검증이 끝난 뒤에 트래픽을 옮기는 순서를 권합니다. 복제는 업무 시간에도 할 수 "
          "있고, 트래픽은 18시 이후에 옮기면 서비스가 멈추지 않습니다."),
         "좋아, 그 순서로 하자. 전환일은 10월 14일이고 담당은 김민수 대리야. 예산은 월 45만 원까지 쓸 수 있어.",
         ("10월 14일 18시 이후 전환, 담당 김민수 대리로 정리했습니다. 월 45만 원이면 4코어 서버 2대와 백업까지 "
          "쓸 수 있습니다. 검증은 10월 12일까지 끝내는 것이 안전합니다."),
         "그날까지 끝낼게. 그리고 문제가 생기면 바로 되돌릴 수 있어야 해.",
         ("기존 서버를 7일 동안 그대로 두면 주소만 바꿔 바로 되돌릴 수 있습니다. 매일 오류 기록을 비교하고 "
          "이상이 없으면 백업을 한 번 더 받고 10월 21일에 해지하면 됩니다. 해지 신청은 누가 할까요?")))
    sample_notes = Both(
        ("Rule: no downtime 9-18\n(turn 2) October 14, Min-su",
         ("Rule: no downtime 9-18\n(turn 1) copy → verify → switch after 18:00\n"
          "(turn 2) October 14, Min-su, $450 a month\n(turn 3) old server kept 7 days"),
         ("Rule: no downtime 9-18\n"
          "(turn 1) booking server to cloud: copy by day → verify → switch after 18:00\n"
          "(turn 2) October 14, Min-su, $450 a month; verified by October 12\n"
          "(turn 3) must go back at once: old server 7 days, cancelled October 21\n"
          "Question: who cancels?")),
        ("규칙: 9~18시 중단 금지\n(2턴) 전환 10월 14일, 김민수 대리",
         ("규칙: 9~18시 중단 금지\n(1턴) 복제 → 검증 → 트래픽 전환(18시 이후)\n"
          "(2턴) 순서 채택. 전환 10월 14일, 김민수 대리, 월 45만 원\n(3턴) 기존 서버 7일 유지"),
         ("규칙: 9~18시 중단 금지\n"
          "(1턴) 예약 서버 클라우드 이전: 복제(업무 시간 가능) → 검증 → 트래픽 전환(18시 이후)\n"
          "(2턴) 순서 채택. 전환 10월 14일, 김민수 대리, 월 45만 원(4코어 2대, 백업). 검증 10월 12일까지\n"
          "(3턴) 바로 되돌릴 것. 기존 서버 7일 유지, 10월 21일 해지\n질문: 해지 신청은 누가?")))
    fold_making = Both("Summarising…", "요약을 만들고 있습니다.")
    fold_held = Both("Summaries are behind: they're made when you pause for a moment.",
                     "요약이 밀렸습니다. 잠시 쉬면 만듭니다.")
    fold_waiting = Both("The summary will be made with your next message.", "다음 메시지를 보낼 때 요약합니다.")
    fold_retry = Both("The summary couldn't be made. It's tried again after the next answer.",
                      "요약을 만들지 못했습니다. 다음 답변 뒤에 다시 시도합니다.")
    no_records = Both("No summary yet.", "아직 요약이 없습니다.")
    no_records_since_reset = Both("No summary since the context was cleared.",
                                  "컨텍스트를 초기화한 뒤로는 아직 요약이 없습니다.")
    no_record_notes = Both(
        {"rolling": "Once more than {threshold} tokens aren't summarised, one is made after an answer.",
         "compaction": "At {threshold} tokens of context, all but the last messages become one."},
        {"rolling": "요약하지 않은 대화가 {threshold}토큰을 넘으면 답변 뒤에 요약 하나를 만듭니다.",
         "compaction": "컨텍스트가 {threshold}토큰에 이르면 마지막 메시지 몇 개만 남기고 요약 하나로 줄입니다."})
    compact_by_hand = Both("Automatic compaction is off. Type `/compact` to compact.",
                           "자동 압축이 꺼져 있습니다. `/compact`를 입력하면 압축합니다.")
    window_turns = Both("This strategy makes and sends no summaries. Only the newest turns are sent: {count} at most.",
                        "이 전략은 요약을 만들거나 보내지 않습니다. 최근 {count}턴만 보냅니다.")
    window_alone = Both("This strategy makes and sends no summaries. Only the message itself is sent.",
                        "이 전략은 요약을 만들거나 보내지 않습니다. 현재 메시지만 보냅니다.")
    details = Both("Details", "자세히")
    card_title = Both("[Turns {turns}]", "[{turns}턴 요약]")
    card_verbatim = Both("[Turns {turns}, verbatim]", "[{turns}턴 원문]")
    fold_ready = Both("The new summary is used from your next message.", "방금 만든 요약은 다음 메시지부터 적용됩니다.")
    card_rate = Both("target {rate:.0%}", "압축률 {rate:g}")
    card_chars = Both("{original} → {summary} chars ({percent}% of the original length)",
                      "{original}자 → {summary}자 (원문의 {percent}% 길이)")
    card_row = Both("[Turns {turns}] {original} → {summary} chars", "[{turns}턴] {original}자 → {summary}자")
    card_chars_verbatim = Both("{original} chars · verbatim", "{original}자 · 원문 그대로")
    card_row_verbatim = Both("[Turns {turns}] {original} chars · verbatim", "[{turns}턴] {original}자 · 원문 그대로")
    card_compaction = Both("[Turns {turns} compacted]", "[{turns}턴 압축]")
    card_merged = Both("{count} summaries merged into one", "요약 {count}개를 하나로 합침")
    summarisers = table(("extractive", "key sentences", "문장 추출"),
                        ("example", "prepared for this example", "예시용으로 작성한 요약"))
    to_turns = Both("Go to these turns", "이 턴으로 이동")
    card_cost = Both("{input} in · {output} out tokens · {seconds} s · {model}",
                     "입력 {input} · 출력 {output} 토큰 · {seconds}초 · {model}")
    card_free = Both("0 tokens · {model}", "토큰 0 · {model}")
    short_verbatim = Both("So short that a summary would cost more than it saves: sent verbatim.",
                          "짧아서 요약하면 아끼는 것보다 비용이 더 들기 때문에 원문 그대로 보냅니다.")
    kept_verbatim = Both("No summary came out shorter: sent verbatim.",
                         "요약이 원문보다 짧지 않아 원문 그대로 보냅니다.")
    was_shortened = Both("Longer than asked: the least important sentences were left out.",
                         "목표보다 길어 덜 중요한 문장을 제외했습니다.")
    was_picked = Both("No summary could be made in time: key sentences of the original are used.",
                      "제시간에 요약을 만들지 못해 원문의 핵심 문장을 넣었습니다.")
    was_weak = Both("The model's summary lost too much or wasn't one: key sentences of the original are used.",
                    "모델의 요약에서 내용이 너무 많이 빠졌거나 요약이 아니어서 원문의 핵심 문장을 넣었습니다.")
    facts_kept = Both("{kept} of {all} key facts kept", "핵심 내용 {all}개 중 {kept}개 유지")
    fact_classes = table(("rule", "rules", "규칙"),
                         ("decision", "decisions", "결정"),
                         ("preference", "preferences", "선호"),
                         ("number", "numbers", "숫자"),
                         ("date", "dates", "날짜"),
                         ("name", "names", "이름"),
                         ("path", "paths and links", "경로·링크"))
    facts_missing = Both("Missing", "빠진 내용")
    facts_present = Both("Kept", "유지된 내용")
    facts_add = Both("Add to the summary", "요약에 추가")
    facts_invented = Both("Not in the conversation: {facts}. Check the summary and edit it.",
                          "대화에 없는 값: {facts}. 요약을 확인하고 편집해 주세요.")
    show_more = Both("Show more", "더 보기")
    show_less = Both("Show less", "줄이기")
    unsent_records = Both("Summaries that aren't sent now: {count}", "지금은 보내지 않는 요약 {count}개")
    older_records = Both("Older summaries: {count}", "이전 요약 {count}개")
    more_records = Both("Show {count} more", "{count}개 더 보기")
    earlier_compactions = Both("Earlier compactions: {count}", "앞선 압축 {count}개")
    statistics = Both("📊 Summary statistics", "📊 요약 통계")
    stat_count = Both("{count} summaries of {turns} turns", "총 요약: {count}개 ({turns}턴 압축)")
    stat_count_one = Both("1 summary of {turns} turns", "총 요약: 1개 ({turns}턴 압축)")
    stat_chars = Both("Original: {original} → summary: {summary} chars", "원본: {original}자 → 요약: {summary}자")
    stat_saved = Both("Text shortened by {percent}% (to {length_percent}% of the original length)",
                      "전체 압축률: {percent}% 절감 (원문의 {length_percent}% 길이)")
    stat_grown = Both("Text lengthened by {percent}% (to {length_percent}% of the original length)",
                      "전체 압축률: {percent}% 증가 (원문의 {length_percent}% 길이)")
    stat_facts = Both("Kept of what was said: {counts}", "말한 것 가운데 남은 것: {counts}")
    stat_unsent = Both("Input tokens saved: {tokens}", "절약한 입력 토큰: {tokens}")
    stat_fold_cost = Both("Tokens spent on summaries: {tokens}", "요약에 쓴 토큰: {tokens}")
    stat_less = Both(
        "This chat's input is {percent}% smaller ({tokens} tokens; {net}% with the {spent} spent on summaries)",
        "이 대화에서 입력을 {percent}% 줄였습니다({tokens}토큰, 요약에 쓴 {spent}토큰 포함 시 {net}%)")
    stat_less_free = Both("This chat's input is {percent}% smaller ({tokens} tokens)",
                          "이 대화에서 입력을 {percent}% 줄였습니다({tokens}토큰)")
    stat_unpaid = Both(
        "Not paid back yet: {tokens} tokens went into summaries; at this pace they pay from about turn {turn}",
        "아직 투자 단계: 요약에 {tokens}토큰을 썼고, 이 속도면 약 {turn}턴부터 이득입니다")
    stat_never_paid = Both(
        "Not paid back: {tokens} tokens went into summaries; at this pace they won't pay within {count} turns",
        "아직 투자 단계: 요약에 {tokens}토큰을 썼고, 이 속도로는 앞으로 {count}턴 안에 이득이 되지 않습니다")
    stat_none_made = Both("Not paid back yet: {tokens} tokens went into summaries, none of which is in use",
                          "아직 투자 단계: 요약에 {tokens}토큰을 썼지만 쓰이는 요약이 아직 없습니다")
    stat_broken_off = Both("broken off: {count}", "{count}번 중단됨")
    stat_net = Both("Net savings: {tokens} tokens", "순 절감: {tokens} 토큰")
    stat_net_more = Both("Net increase: {tokens} tokens", "순 증가: {tokens} 토큰")
    prepared = Both("Prepared for this example: nothing was sent to a model.",
                    "예시용으로 준비한 대화입니다. 모델에 보내지 않았습니다.")
    stat_cached = Both(", {tokens} of them at the cached price", " (그중 캐시 값으로 {tokens})")
    stat_net_note = Both(("In input tokens at full price: cached ones count a tenth, output four times. "
                          "≈ is Turnfold's estimate. Numbers without it were reported by the model provider."),
                         ("정가의 입력 토큰으로 셉니다. 캐시된 것은 10분의 1, 출력은 4배입니다. "
                          "≈는 Turnfold가 추정한 값이고, ≈가 없는 수는 모델 제공자가 보고한 사용량입니다."))
    stat_nothing = Both("No summary yet. Once turns are summarised or left out, this shows what it saves.",
                        "아직 요약이 없습니다. 요약하거나 보내지 않는 턴이 생기면 얼마나 아꼈는지 나타납니다.")
    stat_past = Both("Before the reset", "초기화 전")
    chart_title = Both("Tokens sent per turn", "턴마다 보낸 토큰")
    chart_turn = Both("Turn", "턴")
    chart_tokens = Both("Tokens (≈)", "토큰 (≈)")
    chart_sent = Both("Sent", "보낸 토큰")
    chart_full = Both("Full history", "전체 기록")
    chart_fold = Both("Summary", "새 요약")
    chart_empty = Both("The chart appears after the next answer.", "다음 답변이 끝나면 그래프가 나타납니다.")
    chart_alt = Both(
        "Tokens sent and tokens of the full history per turn (estimates). Turn {turn}: sent {sent}, full {full}.",
        "턴마다 보낸 토큰과 전체 기록의 토큰(추정). {turn}턴: 보낸 토큰 {sent}, 전체 기록 {full}.")
    gauge = Both("Context", "컨텍스트")
    gauge_help_estimate = Both("≈ is Turnfold's estimate of the next input.",
                               "≈는 다음에 보낼 입력을 Turnfold가 추정한 값입니다.")
    gauge_help_usage = Both("{tokens}: the model provider reported this usage for the last input.",
                            "{tokens}: 마지막 입력에 대해 모델 제공자가 보고한 사용량입니다.")
    window_guess = Both(" (guess)", " (추정)")
    window_guess_help = Both("The model's context window isn't known, so this is a guess. MODEL_WINDOW_TOKENS sets it.",
                             "모델의 컨텍스트 창을 알 수 없어 추정한 값입니다. MODEL_WINDOW_TOKENS로 정합니다.")

    errors = ERRORS
    detailed_errors = DETAILED_ERRORS
    input_reasons = INPUT_REASONS
    path_reasons = PATH_REASONS

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self.cost = part.CostWords(language)
        self.project = part.ProjectWords(language)
        self.attachment = part.AttachmentWords(language)
        self.code = part.CodeWords(language)
        self.queue = part.QueueWords(language)
        self.input = part.InputWords(language)
        self.presets = part.PresetWords(language)
        self.programs = part.ProgramWords(language)
        self.sessions = part.SessionWords(language)
        self.sign_in = part.SignInWords(language)
        self.steering = part.SteeringWords(language)
        self.ledger = part.LedgerWords(language)
        self.tools = part.ToolWords(language)
