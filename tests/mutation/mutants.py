"""The mutants: faults that a person might make, each a change of one line, and the test files that must see them.

A group is one product file with one list of test files for all of its mutants: as few as kill them all, unit tests
where they do. Of each change the first text stands once in the file, and the second one takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Area = Literal["core", "recognition", "review", "strategy", "store", "access", "token_guard", "host"]


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        line: A part of a line as it stands, once in the file.
        mutated: What takes its place.
        tests: The files of which at least one must fail.
    """

    area: Area
    path: str
    line: str
    mutated: str
    tests: tuple[str, ...]


def _group(area: Area, path: str, tests: str, *changes: tuple[str, str]) -> tuple[Mutant, ...]:
    files = tuple(f"tests/{name}.py" for name in tests.split())
    return tuple(Mutant(area, path, line, mutated, files) for line, mutated in changes)


_CORE: Final = (
    *_group(
        "core",
        "graph/fold/spec.py",
        "unit/test_schedule",
        ("turn_count > BLOCK_TURNS and", "turn_count > 0 and"),
        ("turn_count % BLOCK_TURNS == 1", "turn_count % BLOCK_TURNS == 0"),
        ("range(first, complete_turns + 1)", "range(first, complete_turns)"),
        ("first = turn + 1", "first = turn"),
        ("complete_turns + BLOCK_TURNS - complete_turns % BLOCK_TURNS", "complete_turns + BLOCK_TURNS"),
        ("MIN_RATE <= rounded", "MIN_RATE < rounded"),
        ("round(rate, 2)", "round(rate, 1)"),
        ("return int(original_chars", "return round(original_chars"),
    ),
    *_group(
        "core",
        "graph/core/turn.py",
        "unit/test_turn",
        ("isinstance(message, AIMessage) and not message.tool_calls", "isinstance(message, AIMessage)"),
        ("if n <= 0:", "if n < 0:"),
        ("[turn for turn in split_turns(messages) if is_complete(turn)]", "split_turns(messages)"),
        ("[] if not turns or is_complete(turns[-1]) else", "[] if not turns else"),
        ('if call["id"] not in answered', 'if call["id"] in answered'),
        ('block.get("type", "text") == "text"', '"text" in block'),
    ),
    *_group(
        "core",
        "graph/core/text.py",
        "unit/test_text",
        ('\\uac00-\\ud7a3]"), 0.811)', '\\uac00-\\ud7a3]"), 0.25)'),
        ("_GROUP_DIGITS: Final = 3", "_GROUP_DIGITS: Final = 4"),
        ("return max(1, round(", "return max(0, round("),
        ("for call in message.tool_calls:", "for call in message.tool_calls[1:]:"),
    ),
    *_group(
        "core",
        "graph/core/language.py",
        "unit/test_language",
        ("_OWN_SHARE: Final = 0.2", "_OWN_SHARE: Final = 0.6"),
        ("if count >= _MIN_OWN_WORDS", "if count > 0"),
        ('"ko" if script in (None, "ko") else', '"ko" if script == "ko" else'),
        ("< _MIN_WORDS:", "< 1:"),
        ("if not isinstance(message, HumanMessage):", "if message is None:"),
    ),
    *_group(
        "core",
        "graph/core/model_input.py",
        "unit/test_model_input unit/test_context_block unit/test_forged_label",
        ("if raw and not isinstance(raw[0], HumanMessage):", "if not raw:"),
        ("(self.front, self.client)", "(self.client, self.front)"),
        ("if system.volatile is not None and index < len(raw):", "if system.volatile is not None and index == 0:"),
        ('items.insert(0, InputItem("system"', 'items.insert(1, InputItem("system"'),
        ("_behind(system.volatile, words_of(raw[index]))", '_behind(system.volatile, "")'),
    ),
    *_group(
        "core",
        "graph/core/manifest.py",
        "unit/test_manifest",
        ("steps.append(first - last)", "steps.append(last - first)"),
        ("if position != len(base):", "if position > len(base):"),
        ("[name, tokens] if kind == _USUAL_KIND else", "[name, tokens] if kind else"),
        ("enumerate(texts[-1 - (length or 0) :])", "enumerate(texts[-(length or 1) :])"),
    ),
    *_group(
        "core",
        "graph/core/turn.py",
        "unit/test_turn",
        ('"" if is_archived(partial_text, open_turn) else partial_text', "partial_text"),
        ('"is_partial": bool(text)', '"is_partial": bool(partial_text)'),
        ("newest.strip().startswith(partial_text.strip())", "partial_text.strip().startswith(newest.strip())"),
        ("in enumerate(unanswered_calls(open_turn))", "in enumerate(unanswered_calls(open_turn)[1:])"),
        ('if isinstance(mark, dict) and "closed" in mark else None', "if isinstance(mark, dict) else None"),
    ),
    *_group(
        "core",
        "graph/core/language.py",
        "unit/test_casual",
        ("_ONLY_SOCIAL.fullmatch(words)) or not _asks", "_ONLY_SOCIAL.fullmatch(words)) or _asks"),
    ),
    *_group(
        "core",
        "graph/fold/shorten.py",
        "unit/test_shorten",
        ("(firm, must_fit), (asked, must_fit))", "(asked, must_fit), (firm, must_fit))"),
        ("stay = {*asked, *firm, *mentions}", "stay = {*firm, *mentions}"),
        ("stay = {*asked, *firm, *mentions}", "stay = {*asked, *firm}"),
        ("if kept.isdisjoint(found):", "if found:"),
        ("0.0 if key in seen else weigh_kinds(text)", "weigh_kinds(text)"),
        ("sorted(droppable, key=lambda index: losses[index])", "sorted(droppable)"),
        ("min(best[chars], candidate)", "max(best[chars], candidate)"),
        ("return is_rule(text) or any(", "return any("),
        ("(_DECISION, _HEADLINE)", "(_HEADLINE,)"),
        ("asked[-1] if asked", "asked[0] if asked"),
        ("key=lambda chars: is_enough(", "key=lambda chars: not is_enough("),
        ('if piece.turn != turn else "")', 'if not turn else "")'),
        ("_clauses(whole, max_chars // 2)", "_clauses(whole, max_chars * 9)"),
    ),
    *_group(
        "core",
        "graph/fold/spec.py",
        "unit/test_schedule unit/test_strategy_interval unit/test_strategy_rolling unit/test_merge unit/test_review",
        ("min(self.target_chars, MAX_TARGET_CHARS)", "self.target_chars"),
        ("needed_rate <= self.rate or self.target_chars", "self.target_chars"),
        ("min(MAX_RATE, round(needed_chars", "min(1.0, round(needed_chars"),
        ("VERBATIM_CHARS = 300", "VERBATIM_CHARS = 200"),
        ('self.kind == "interval" and self.source_chars', "self.source_chars"),
        ("to_position=new[-1].position if new", "to_position=new[0].position if new"),
        ("sum(record.original_chars for record in old)", "sum(record.summary_chars for record in old)"),
        ("source, model, prompt_version, *asked])", "source, prompt_version, *asked])"),
        ("covered_message_count for record in old) + len(new)", "covered_message_count for record in old)"),
        ("target_chars=target_chars, max_tokens=max_tokens, is_bound", "target_chars=target_chars, is_bound"),
    ),
    *_group(
        "core",
        "graph/fold/fact_find.py",
        "unit/test_fact unit/test_fact_find unit/test_fact_case",
        (
            'fact.kind == "vague" or fact.is_cell or (fact.kind in _INSTRUCTIONS and not is_users)',
            'fact.kind == "vague" or fact.is_cell',
        ),
        ("fact.is_cell or (fact.kind", "(fact.kind"),
        ("known.weight < weight", "known.weight > weight"),
        ("in filterfalse(is_repetition, messages)", "in messages"),
    ),
    *_group(
        "core",
        "graph/fold/fact_compare.py",
        "unit/test_fact unit/test_fact_find",
        ('is_negated=fact.kind == "negation"', "is_negated=False"),
        ("return fact.key in self._keys", "return fact.key.strip() in self._keys"),
    ),
    *_group(
        "core",
        "graph/fold/fact_rule.py",
        "unit/test_fact unit/test_fact_find unit/test_fact_case",
        ("if 2 * len(own) >= len(asked.words):", "if own:"),
        ("if is_negated and (clause.permits or not clause.is_negated):", "if is_negated and not clause.is_negated:"),
        ('"negation" if forbidden else "rule"', '"rule" if forbidden else "negation"'),
        ("and not _FIRST_PERSON.search(found.group())", ""),
    ),
    *_group(
        "core",
        "graph/fold/review.py",
        "unit/test_fact_asked",
        (" if not isinstance(message, SystemMessage)]", "]"),
        ("share >= _GONE_SHARE", "share >= 1"),
        ("own_lines(text_of(message), script)", "text_of(message)"),
        ("and not held.has(fact)", ""),
    ),
    *_group(
        "core",
        "graph/fold/fact_check.py",
        "unit/test_fact_check",
        ("min(int(spec.asked_chars * share),", "max(int(spec.asked_chars * share),"),
        (" | pasted_instructions(spec.messages, spec.language)", ""),
        ("if fact.is_of_user and fact.is_countable", "if fact.is_countable"),
        ("if fact.is_of_user and fact.is_countable", "if fact.is_of_user"),
        ("return whole if line and is_within(whole, spec) else text", "return text"),
    ),
    *_group(
        "core",
        "graph/fold/fact_carry.py",
        "unit/test_fact_carry",
        (
            "_FIRM_LINE_SHARE if fact.is_firm else _LINE_SHARE",
            "_LINE_SHARE if fact.is_firm else _FIRM_LINE_SHARE",
        ),
        ("not (record.kept_facts and is_instruction(fact))", "not is_instruction(fact)"),
        ("is_of_user=not record.kept_facts", "is_of_user=True"),
        ("is_of_user=not record.kept_facts", "is_of_user=False"),
    ),
    *_group(
        "core",
        "graph/core/pin.py",
        "unit/test_model_input",
        ("key=lambda pin: pin.position, reverse=True)", "key=lambda pin: pin.position)"),
        ("min(_MOST_TOKENS, input_tokens", "max(_MOST_TOKENS, input_tokens"),
        ("if pin.message_id not in sent)", "if pin.message_id in sent)"),
        ('<= entry["to_position"]', '< entry["to_position"]'),
    ),
    *_group(
        "core",
        "graph/core/snapshot.py",
        "unit/test_strategy_interval unit/test_strategy_rolling unit/test_strategy_compaction",
        ("min(used, input_tokens // LARGEST_SHARES[kind])", "used"),
        ("min(self.pin_tokens, budget_tokens(input_tokens))", "0"),
        ("input_tokens - front_tokens - pin_tokens", "input_tokens"),
        ("return record_tokens + sum(", "return sum("),
    ),
    *_group(
        "core",
        "graph/fold/request.py",
        "unit/test_in_place_request",
        (".issuperset(spec.sources):", ".isdisjoint(spec.sources):"),
        ("source_id in sent and any(", "any("),
    ),
)

_RECOGNITION: Final = (
    *_group(
        "recognition",
        "graph/recognise/decide.py",
        "integration/test_recognition",
        ("if case.request.session and not case.history:", "if case.request.session:"),
        ("row.is_live and now - row.created_at <= RETRIED_FOR", "row.is_live"),
        ("if row.is_live and now - row.created_at", "if now - row.created_at"),
        ('if row.status in {"failed", "stopped"}:', 'if row.status == "stopped":'),
        ("case.known.open_calls(session_id) & set(", "case.known.open_calls(session_id) | set("),
        ("if row is None or _has_twin(case, row, rows):", "if row is None:"),
        ('(row.status == "failed" or case.is_same_model(row.model))', "True"),
        ("return _fork(case, row, row.turn - 1)", "return _fork(case, row, row.turn)"),
        ("if match.turn >= head:", "if match.turn > head:"),
        ("if is_next_running and not rest and case.is_same_model(later[0].model):", "if is_next_running and not rest:"),
    ),
    *_group(
        "recognition",
        "graph/recognise/match.py",
        "integration/test_recognition",
        ('if links[index].role == "assistant"), -1)', "), -1)"),
        ('if self.request.session in ("", row.session_id)]', "]"),
        ("bool(self.chain.group) and row.group == self.chain.group", "row.group == self.chain.group"),
        ("is_replaced=not row.is_live)", "is_replaced=False)"),
        ("return best[0] if len(best) == 1 else None", "return best[0] if best else None"),
        ("is_enough(exchanges[len(exchanges) - aligned :]) or case.is_pinned(row)", "True"),
    ),
    *_group(
        "recognition",
        "graph/recognise/match.py",
        "integration/test_recognition",
        ("_FLOOR_PAIRS: Final = 2", "_FLOOR_PAIRS: Final = 1"),
        ("return turn.is_elsewhere or not turn.answer", "return not turn.answer"),
    ),
    *_group(
        "recognition",
        "graph/recognise/client_chain.py",
        "unit/test_client_chain",
        ('self.hash("scope", _bytes(owner), _bytes(request.user))', 'self.hash("scope", _bytes(request.user))'),
        ("_ROLES[role] + before + text.encode()", "before + text.encode()"),
        ('len(part).to_bytes(8, "big") + part for part', "part for part"),
        ('or (message.role == "assistant" and text):', 'or message.role == "assistant":'),
        ("return tuple(sorted(calls))", "return tuple(calls)"),
        ('if role == "assistant" and "<" in text:', 'if "<" in text:'),
        ("or hint.value.startswith(_TEMPORARY):", ":"),
        ('self.hash("calls", state, *map(_bytes, answered)) if answered else state', "state"),
    ),
    *_group(
        "recognition",
        "graph/fold/extract.py",
        "unit/test_listing",
        ("len(value) <= _LONG_CHARS", "len(value) <= 9 * _LONG_CHARS"),
        ('name if name not in row else f"{key}.{name}"', "name"),
    ),
    *_group(
        "recognition",
        "graph/recognise/decide.py",
        "unit/test_side_request",
        ("request.is_plain or request.task.strip()", "request.is_plain or request.task"),
        ('return is_hinted and roles == ["user"] and', 'return roles == ["user"] and'),
        (
            'is_hinted and roles == ["user"] and any(form.search(request.messages[0]',
            "is_hinted and any(form.search(request.messages[-1]",
        ),
    ),
    *_group(
        "recognition",
        "graph/recognise/client_turns.py",
        "unit/test_client_message",
        ("if (words := _words(each))", "if (words := _words(each)) is not None"),
        ("[IMAGE_MARK] * len(message.images)", "[IMAGE_MARK] * bool(message.images)"),
    ),
)

_REVIEW: Final = (
    *_group(
        "review",
        "graph/fold/review.py",
        "unit/test_review unit/test_review_copy unit/test_fact_check",
        ("(MAX_SHARE if is_within(text, spec) else _MAX_OVER_SHARE)", "_FIRM_SHARE"),
        ("(MAX_SHARE if is_within(text, spec) else _MAX_OVER_SHARE)", "MAX_SHARE"),
        ("(has_room and lack.missing)", "has_room"),
        ("(has_room and lack.missing)", "lack.missing"),
        ("_LEAST_SHARE: Final = 0.2", "_LEAST_SHARE: Final = 0.02"),
        ("        return 1\n", "        return spec.asked_chars * _LEAST_SHARE\n"),
        ("< SMALL_TARGET_CHARS and not spec.is_bound", "< SMALL_TARGET_CHARS"),
        ("if not spec.is_merge and is_copy(text, sources):", "if is_copy(text, sources):"),
        ("if not is_written_in(text, _scripts_of(spec)):", "if False:"),
        ("abs(math.log(", "-abs(math.log("),
        ("until_last_sentence(text) if draft.is_cut else text", "text"),
        ("is_bounded and _is_smaller(text, spec)", "is_bounded"),
        ("    labelled = spec.label + text", "    labelled = text"),
        ("len(shorter) <= most_chars and is_within(shorter, spec)", "is_within(shorter, spec)"),
        ("return text[: ends[-1]].rstrip()", "return text[: ends[0]].rstrip()"),
        ("shortened == best.text.strip() and not best.is_cut", "shortened == best.text.strip()"),
    ),
)

_STRATEGY: Final = (
    *_group(
        "strategy",
        "graph/strategy/interval.py",
        "unit/test_strategy_interval",
        (
            "due_blocks(snapshot.complete_turns, part[0].turn - 1)",
            "due_blocks(snapshot.complete_turns, part[0].turn)",
        ),
        ("(*ends, *texts) if earlier < position", "(*ends, *texts) if earlier <= position"),
        ('record.kind == "interval" and not record.edited', 'record.kind == "interval"'),
        ('record.kind == "interval" and not record.edited', "not record.edited"),
        ("_LEAST_ASKED_SHARE: Final = 1 / MAX_SHARE", "_LEAST_ASKED_SHARE: Final = 0.5"),
        ("over_chars -= less_chars", "over_chars -= 0"),
        (
            "record.summary_chars - min(record.target_chars, MAX_TARGET_CHARS)",
            "record.summary_chars - record.target_chars",
        ),
        ("is_due=block.last_turn <= snapshot.complete_turns", "is_due=block.last_turn < snapshot.complete_turns"),
        (
            "tuple(blocks) if merge is None else (*blocks, merge)",
            "tuple(blocks) if blocks or merge is None else (merge,)",
        ),
        ("snapshot.context_tokens - folded_tokens + int(folded_tokens * snapshot.rate)", "folded_tokens"),
    ),
    *_group(
        "strategy",
        "graph/strategy/merge.py",
        "unit/test_merge unit/test_strategy_interval unit/test_shrink",
        ("<= limits.records_budget_tokens:", "> limits.records_budget_tokens:"),
        ("len(active) - limits.newest_records", "len(active)"),
        ("if len(run) >= limits.merged_together)", "if len(run) > limits.merged_together)"),
        ("key=lambda run: run[0].level", "key=lambda run: -run[0].level"),
        ("(snapshot.active[:-1], snapshot.active)", "(snapshot.active,)"),
        ("max(record.level for record in sources) + 1", "max(record.level for record in sources)"),
        ("is_waited=False", "is_waited=True"),
        ("last.to_position < position < record.from_position", "last.to_position < position < last.to_position"),
    ),
    *_group(
        "strategy",
        "graph/strategy/rolling.py",
        "unit/test_strategy_rolling",
        ("for entry in raw) <= limits.app_context_threshold:", "for entry in raw) < limits.app_context_threshold:"),
        ("if entry.turn != raw[-1].turn]", "]"),
        ("isinstance(prior[cut], ToolMessage):", "isinstance(prior[cut], HumanMessage):"),
        ('old[-1].version + 1 if old and old[-1].kind == "rolling" else 1', "old[-1].version + 1 if old else 1"),
        ("(not placed and len(recent) <= 1)", "len(recent) <= 1"),
        ("text[: max_chars - 1]", "text[:max_chars]"),
        ('old, new, kind="rolling"', '(), new, kind="rolling"'),
    ),
    *_group(
        "strategy",
        "graph/strategy/compaction.py",
        "unit/test_strategy_compaction",
        (
            "snapshot.context_tokens * snapshot.correction >= threshold_of",
            "snapshot.context_tokens * snapshot.correction > threshold_of",
        ),
        ("snapshot.context_tokens * snapshot.correction >= threshold_of", "snapshot.context_tokens >= threshold_of"),
        ("<= limits.preserve_recent_messages + _SPARE_MESSAGES", "< limits.preserve_recent_messages + _SPARE_MESSAGES"),
        ("if not limits.enable_auto_compaction or not should_compact", "if not should_compact"),
        ("covered, preserved = raw[:cut], raw[cut:]", "covered, preserved = raw[: cut + 1], raw[cut + 1 :]"),
        ("if turn not in preserved_turns)", ")"),
    ),
    *_group(
        "strategy",
        "graph/strategy/shrink.py",
        "unit/test_shrink unit/test_fit",
        ("is_whole = len(unbroken(active, snapshot.raw)) == 1", "is_whole = bool(active)"),
        ("min(max_tokens, spec.source_tokens // 2)", "max(max_tokens, spec.source_tokens // 2)"),
        ("if is_complete(turn)]", "]"),
        ("reverse=True", "reverse=False"),
        ("excess_tokens -= tokens - estimate_tokens(shorter)", "excess_tokens -= 0"),
        ("left_out = max(0, count - len(history))", "left_out = count"),
        ("parts = [rest, *turns] if rest else turns", "parts = turns"),
        ("int(marks.get(WHOLE_CHARS, len(text)))", "len(text)"),
        ("if estimate_tokens(shorter) >= tokens:", "if not shorter:"),
    ),
    *_group(
        "strategy",
        "graph/strategy/fit.py",
        "unit/test_fit",
        ("self._excess(shown) + _SLACK_TOKENS", "self._excess(shown) - _SLACK_TOKENS"),
        ("self._without_pins, self._without_results", "self._without_results"),
        ("self._without_rounds, self._with_cut_blocks", "self._with_cut_blocks"),
        ("if self._excess(shown) > _MOST_FOLDED_INPUTS * self._allowed_tokens:", "if self._excess(shown) < 0:"),
        (
            "snapshot, history, messages = folded.snapshot, folded.history, folded.messages",
            "snapshot = folded.snapshot",
        ),
    ),
    *_group(
        "strategy",
        "graph/strategy/strategies.py",
        "unit/test_strategy_window",
        ("limits if is_enabled else replace(limits, window_turns=0)", "limits"),
        ("self.by_name.get(name, self.default)", "self.by_name.get(name or WindowStrategy.name, self.default)"),
    ),
    *_group(
        "strategy",
        "graph/strategy/strategies.py",
        "unit/test_strategy_window",
        ("*extract_current_turn(messages)]", "*messages[-1:]]"),
        ("return assemble(system, (), retained)", "return assemble(system, history, retained)"),
    ),
)

_STORE: Final = (
    *_group(
        "store",
        "graph/store/active.py",
        "integration/test_store_record integration/test_reset",
        ("and_(IS_ADOPTED, IS_IN_CONTEXT)", "and_(IS_ADOPTED)"),
        ("IS_ADOPTED = and_(IS_COMPLETED, _record.adopted_at.is_not(None), ", "IS_ADOPTED = and_(IS_COMPLETED, "),
        ("is_it = and_(_record.session_id == session_id, _record.id == record_id)", "is_it = _record.id == record_id"),
        ('older = [*row.sources, row.replaces or ""]', "older = [*row.sources]"),
        (
            "and_(_record.from_position <= row.to_position, _record.to_position >= row.from_position)",
            "and_(_record.from_position == row.from_position)",
        ),
        ("(last_id and not is_live(connection, session_id, last_id))", "False"),
        ("or connection.execute(is_in_the_way).first() is not None", ""),
        ("or _leaves_hole(connection, session_id, row.from_position)", ""),
        (
            "where(active, _record.id.in_(older)).values(superseded_by=record_id)",
            "where(active, _record.id.in_(older)).values(superseded_by=None)",
        ),
        ('if row.kind == "compaction":', 'if row.kind == "merge":'),
        ("while (row := connection", "if (row := connection"),
        ("_discard_unadopted(connection, session_id, position)", "reaches"),
        ("_discard_unadopted(connection, session_id, newest.from_position)", ""),
        ("values(superseded_by=SET_ASIDE)", "values(superseded_by=None)"),
        ("if not was_set_aside:", "if True:"),
        ("func.coalesce(_record.adopted_at, database_time())", "database_time()"),
        (
            "_record.superseded_by == record_id).values(superseded_by=None)",
            "_record.superseded_by == record_id).values(superseded_by=WITHDRAWN)",
        ),
    ),
    *_group(
        "store",
        "graph/store/database.py",
        "integration/test_store_lease",
        ('    lease_table.c.owner == bindparam("holder"),\n', ""),
        ('    lease_table.c.fence == bindparam("fence"),\n', ""),
    ),
    *_group(
        "store",
        "graph/store/turn.py",
        "integration/test_store_turn",
        ('            _lease.fence == bindparam("held_fence"),\n', ""),
    ),
    *_group(
        "store",
        "graph/store/database.py",
        "unit/test_outage",
        ("(DatabaseUnreachableError, DatabaseBusyError) as", "(DatabaseUnreachableError,) as"),
        ("(DatabaseUnreachableError, DatabaseBusyError) as", "Exception as"),
        ("give_up.is_set() or time", "time"),
        ("or time.monotonic() >= until", ""),
    ),
    *_group(
        "store",
        "graph/store/record.py",
        "integration/test_store_record",
        ("where(is_it, IS_ACTIVE)).first() is None:", "where(is_it)).first() is None:"),
        ("_relink(connection, session_id, record_id, None)", ""),
        ("isdisjoint(self.ids):", "issubset(self.ids):"),
        ("return was_undone and is_there", "return is_there"),
        ("max(row.version for row in self.versions) + 1", "max(row.version for row in self.versions)"),
        ('"replaces": self.versions[-1].id', '"replaces": self.versions[0].id'),
        ("_relink(connection, self.session_id, row.id, record_id)", "pass"),
        ("and_(IS_COMPLETED, _record.adopted_at.is_not(None))", "IS_COMPLETED"),
        (
            "_record.from_position <= last, _record.to_position >= first",
            "_record.from_position == first, _record.to_position == last",
        ),
        ("if first_of(row.id) == first_of(record_id)]", "]"),
    ),
)

_ACCESS: Final = (
    *_group(
        "access",
        "graph/service/access.py",
        "integration/test_session integration/test_owner",
        (
            "self.stores.sessions.get_admitted(session_id, self.owner, self.sign_in)",
            "self.stores.sessions.get(session_id, self.owner)",
        ),
        ("get_admitted(session_id, self.owner, ", 'get_admitted(session_id, "local", '),
        ("self.owner, self.sign_in)\n\n    def _check_end", "self.owner)\n\n    def _check_end"),
        ("self.sign_in.until <= self.clock()", "self.sign_in.until > self.clock()"),
        ("self.sign_ins.is_ended(self.owner, self.sign_in)", "False"),
        ("if self.owners.is_withdrawn(self.owner):", 'if self.owners.is_withdrawn(""):'),
        ("if self.is_busy(session_id):", "if self.is_running(session_id):"),
        ("session_id in self.compacting or self.is_running(session_id)", "self.is_running(session_id)"),
        ("self.stores.leases.release(lease)", "pass"),
        ("round_rate(options.compression_rate)", "options.compression_rate"),
        ("if options.strategy not in self.strategies.by_name:", "if not options.strategy:"),
    ),
)

_TOKEN_GUARD: Final = (
    *_group(
        "token_guard",
        "api/middleware.py",
        "unit/test_api_token_guard",
        ("if len(headers) == 1 and scheme", "if scheme"),
        ('if len(headers) == 1 and scheme.lower() == b"bearer" else', "if len(headers) == 1 else"),
        ('scheme.lower() == b"bearer"', 'scheme == b"Bearer"'),
        ("ApiClient(token.name, token.owner, token.tools)", "ApiClient(token.name, token.owner, None)"),
        ("ApiClient(token.name, token.owner, token.tools)", "ApiClient(token.owner, token.name, token.tools)"),
        ("bool(self._by_digest) or self._programs().are_let_in()", "bool(self._by_digest)"),
        ("self._listed(secret) or self._programs().find(secret)", "self._listed(secret)"),
        ("self._open[program] >= OPEN_ANSWERS", "self._open[program] > OPEN_ANSWERS"),
        ("self._open[program] -= 1", "self._open[program] -= 0"),
        (' and not path.endswith("/stop")', ""),
        ('return bool(path.endswith("/events"))', "return False"),
        ('BY_CODE["sign_in"] if self._clients.are_let_in() else _OFF', "_OFF"),
        ('BY_CODE["sign_in"] if self._clients.are_let_in() else _OFF', 'BY_CODE["sign_in"]'),
    ),
)

_HOST: Final = (
    *_group(
        "host",
        "api/middleware.py",
        "unit/test_api_host",
        ('scope["type"] in ("http", "websocket")', 'scope["type"] == "http"'),
        ("if self._is_for_oneself and is_reachable(", "if is_reachable("),
        ("if len(hosts) == 1 else None", "if hosts else None"),
        ("if host is None or not (is_loopback(host.name) or self._is_named(host)):", "if host is None:"),
        ("(is_loopback(host.name) or self._is_named(host))", "self._is_named(host)"),
        ("if is_for_programs(scope) and origins and", "if origins and"),
        ("origins = origins[1:]", "origins = []"),
        ("has_sign_in or self._settings.open_without_sign_in)", "has_sign_in)"),
        ('host.name in names or f"{host.name}:{host.port}" in names', "host.name in names"),
        ('.partition("/")[0] in _OF_PROGRAMS', ".startswith(_OF_PROGRAMS)"),
        ("_AUTHORITY.fullmatch(text)", "_AUTHORITY.match(text)"),
        ('value.decode("latin-1").lower()', 'value.decode("latin-1")'),
        ('match[1].removesuffix(".")', "match[1]"),
        ("page.name == host.name and (page.port or default) == (host.port or default)", "page.name == host.name"),
        ("page.name == host.name and (page.port", "(page.port"),
    ),
)

# The slow ones first, so that the jobs end together.
MUTANTS: Final = (*_ACCESS, *_STORE, *_RECOGNITION, *_STRATEGY, *_REVIEW, *_CORE, *_TOKEN_GUARD, *_HOST)
