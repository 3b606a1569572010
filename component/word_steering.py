"""The page's texts on steering summaries and pins, with English defaults; `word_steering_ko` has the Korean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SteeringWords:
    """Texts in one language. Names in braces are placeholders that the caller fills in."""

    menu: str = "Options for the summary of turns {turns}"
    edited: str = "edited"
    in_force: str = "in use"
    from_next_turn: str = "It counts from the next turn on. The chat itself and every earlier version stay."

    edit: str = "Edit"
    edit_title: str = "Edit this summary"
    summary: str = "Summary of turns {turns}"
    edit_done: str = "The summary of turns {turns} was edited."

    remake: str = "Make anew…"
    remake_title: str = "Make this summary anew"
    wish: str = "What it should keep (optional)"
    wish_hint: str = "For example: keep the prices"
    make: str = "Make"
    making: str = "Making the summary of turns {turns} anew…"
    remake_done: str = "The summary of turns {turns} was made anew: {before} → {after} chars."
    still_making: str = "A summary is being made. Please try again when it's done."

    versions: str = "Versions"
    versions_title: str = "Versions of this summary"
    other_version: str = "Compare with the one in use"
    version: str = "v{version} · {about} · {summary} chars"
    version_rate: str = "rate {rate}"
    version_verbatim: str = "word for word"
    only_here: str = "Only here: "
    change_ends: str = " (end) "
    same_text: str = "The texts are the same."
    not_compared: str = "What differs isn't marked: comparing texts that repeat themselves this often takes too long."
    only_version: str = "There is no other version yet. Edited or made anew, this one can be compared and brought back."
    close: str = "Close"
    use: str = "Use this one"
    use_done: str = "Version {version} of the summary of turns {turns} is in use."

    undo_fold: str = "Undo fold"
    undo_fold_done: str = "Turns {turns} are sent word for word again."
    unmerged: str = "The summary of turns {turns} gave way to the {count} summaries that it was merged from."
    undone: str = "The fold was undone: sent word for word."
    fold_again: str = "Fold again"
    fold_again_done: str = "Turns {turns} are folded again."
    take_back: str = "Undo"

    pin: str = "Pin this message"
    pin_hint: str = "Always send this message word for word"
    unpin: str = "Unpin"
    pins: str = "Pinned messages: {count} · ≈{used} of {budget} tokens"
    pins_unsent: str = "The chosen strategy sends only the newest turns, so pins aren't sent beside them."
    pins_over: str = "Not sent, as this model's window has no room: {count} of the pinned messages."
    pin_unsent: str = "not sent"
    pin_turn: str = "Turn {turn}"
    pin_tokens: str = "≈{tokens} tokens"

    rates: str = "target {target} → achieved {achieved}"
    tokens: str = "≈{before} → ≈{after} tokens"
