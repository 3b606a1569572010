from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
from api.connection import room_for_connections
soft, hard = (int(word) for word in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
room = room_for_connections()
print(room, *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "room"), [(256, 4_096, 3_840), (4_096, 4_096, 3_840), (300, 300, 150)], ids=str
)
def test_connections_take_what_the_system_allows_but_leave_room_for_files(soft: int, hard: int, room: int) -> None:
    words = [sys.executable, "-c", SCRIPT, str(soft), str(hard)]
    told = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    assert told.split() == [str(room), str(hard), str(hard)]
