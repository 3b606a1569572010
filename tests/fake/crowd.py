"""Several processes that do the same thing at the same moment; to be run in a process without other threads."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable


def run_crowd(count: int, work: Callable[[int], None]) -> None:
    """Forks `count` processes, lets them all start `work` at once, and exits with how many of them failed."""
    gate_out, gate_in = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            os.close(gate_in)
            os.read(gate_out, 1)
            work_and_exit(work, number)
        children.append(child)
    os.close(gate_in)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(sum(code != 0 for code in codes))


def work_and_exit(work: Callable[[int], None], number: int) -> None:
    code = 1
    try:
        work(number)
        code = 0
    except BaseException:  # noqa: BLE001  # whatever it was is shown, and then the process ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
