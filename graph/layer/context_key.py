"""The keys of the contexts that a model reads, in the order in which it reads them."""

from __future__ import annotations

from typing import Final

DEFAULT_SYSTEM_RULES: Final = "defaultSystemRules"
PROJECT_RULES: Final = "projectRules"
LAYER_SUMMARY: Final = "layerSummary"
PROJECT_MEMORY: Final = "projectMemory"
RECENT_EXECUTIONS: Final = "recentExecutions"

WORKING_DIRECTORY: Final = "workingDirectory"
PROJECT_ROOT: Final = "projectRoot"
CURRENT_FILE: Final = "currentFile"
CURRENT_FILE_RULES: Final = "currentFileRules"
SELECTION: Final = "selection"

EXECUTION_ID: Final = "executionId"
USER_MESSAGE: Final = "userMessage"

VOLATILE_KEYS: Final = (WORKING_DIRECTORY, PROJECT_ROOT, CURRENT_FILE, CURRENT_FILE_RULES, SELECTION)
