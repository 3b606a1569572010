"""Why input, a path or a sign-in is refused; the page has a sentence for each."""

from __future__ import annotations

from typing import Literal

InputReason = Literal[
    "bad_context",
    "bad_image",
    "bad_program_name",
    "bad_rate",
    "bad_strategy",
    "before_reset",
    "compact_failed",
    "compact_stopped",
    "context_not_kept",
    "empty",
    "import_too_large",
    "no_effect",
    "no_reset",
    "not_a_compaction",
    "not_active",
    "not_an_export",
    "not_last",
    "not_shorter",
    "nothing_to_compact",
    "over_window",
    "pin_budget",
    "project_full",
    "remake_failed",
    "rules_changed",
    "secret",
    "stands_verbatim",
    "token_name_taken",
    "too_long",
    "too_many_tokens",
    "unanswered_call",
    "unknown_call",
]

PathReason = Literal[
    "binary",
    "not_a_folder",
    "not_allowed",
    "not_regular",
    "outside",
    "symlink_outside",
    "too_large",
    "too_slow",
    "unreadable",
    "vanished",
]

SignInReason = Literal["ended", "needed", "withdrawn"]
