"""What the scripts share: the texts that they add, and how they are asked.

Each line of standard input is a question, each line of output its answer, in JSON.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

SYSTEM = "You answer in the house style:\n\n\t* the result first,\n\t* then   the reason."
FILE = "def budget(month):\n\treturn   400 if month else 0\n"
TOWNS = ("Ulsan", "Daegu", "Jeju", "Mokpo")
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def budget_of(month: str) -> str:
    """Returns what the clients' tool returns."""
    return f"Budget of {month}: 417 euros"


def converse(ask: Callable[[Any], str]) -> None:
    """Answers until the input ends; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(ask(json.loads(line))), file=answers, flush=True)
