"""`make attack`: what one visitor, user or program can do to a server and to its others, each attack with its bounds.

    python -m bench.attack [--short] [--only NAME,NAME]

Servers run as their users run them, in a temporary folder and on free ports of loopback, before a scripted model; they
are the only ones that are attacked. An attack has a number of bytes, connections and seconds; a server that hangs, or
holds more than 900 MB over its start, is ended, and the row says so. Meanwhile another user asks one question after
another. Linux alone, as the figures are those of /proc.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.attack import around, capacity, text, tools
from bench.attack.run import HEAD, OUTAGE, SENT_BY_TOOLS, STRANGER, Attack, Kind, Row, attacked
from bench.attack.server import Target, model, target
from tests.fake.postgres import serve_postgres

_TURN_SECONDS = {True: 1.0, False: 3.0}
_SHORT, _FULL = (True,), (False,)
ATTACKS = (
    Attack("websocket-bombs", capacity.deflate_bombs, "sign-in", STRANGER),
    Attack("websocket-unfinished", capacity.unfinished_messages, "sign-in", STRANGER),
    Attack("websocket-fragments", capacity.empty_fragments, "sign-in", STRANGER),
    Attack("log", capacity.filled_log, "sign-in", STRANGER),
    Attack("websocket-visitor", capacity.unfinished_messages, forms=_FULL),
    Attack("secret-filter", text.secret_filter, sent="86 characters like a secret's name and value, in a project"),
    Attack("texts", text.all_texts, forms=_SHORT, seconds=60, sent="8 texts of 20,000 characters"),
    *(
        Attack(f"text-{name}", text.one_text(name), forms=_FULL, seconds=90, sent=f"199,000 characters of {name}")
        for name in text.TEXTS
    ),
    Attack("text-marks", text.all_marks, forms=_FULL, seconds=240),
    Attack("json-wide", capacity.wide_json),
    Attack("json-deep", capacity.deep_json),
    Attack("bodies-unfinished", capacity.unfinished_bodies),
    Attack("proxy-bodies", around.spooled_bodies),
    Attack("uploads", capacity.unfinished_uploads),
    Attack("all-turns", capacity.all_turns),
    Attack("floods", capacity.floods),
    Attack("tool-schemas", tools.quadratic_schemas, "tools", SENT_BY_TOOLS),
    Attack("tool-parts", tools.many_parts, "tools", SENT_BY_TOOLS, seconds=90),
    Attack("database-stall", around.stalled_database, "postgres", OUTAGE, forms=_FULL, seconds=120),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.attack")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="", help="names with commas between them")
    options = parser.parse_args()
    wanted = {name for name in options.only.split(",") if name}
    if unknown := wanted - {attack.name for attack in ATTACKS}:
        parser.error(f"there is no attack {', '.join(sorted(unknown))}")
    chosen = [
        attack for attack in ATTACKS if (attack.name in wanted if wanted else bool(options.short) in attack.forms)
    ]
    began = time.monotonic()
    rows = run_all(chosen, is_short=options.short)
    failed = [row.attack for row in rows if row.problems]
    words = f"NOT held: {', '.join(failed)}" if failed else "all held"
    print(f"\nverdict: {words} ({len(rows)} attacks, {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f})")
    return 1 if failed else 0


def run_all(attacks: Sequence[Attack], *, is_short: bool) -> list[Row]:
    """Does attacks one after another, and prints each as it ends.

    The short form has one server for all that need the same, until one doesn't stand it; otherwise each has its own.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384) if hard != resource.RLIM_INFINITY else 16_384, hard))
    rows = []
    servers: dict[Kind, Target] = {}
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n\n{HEAD}", flush=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-attack-")))
        endpoint = stack.enter_context(model(_TURN_SECONDS[is_short]))
        running = stack.enter_context(ExitStack())
        for number, attack in enumerate(attacks):
            try:
                if attack.kind not in servers:
                    database = running.enter_context(serve_postgres()) if attack.kind == "postgres" else None
                    has_sign_in = attack.kind == "sign-in"
                    servers_in = tools.servers_in if attack.kind == "tools" else None
                    server = target(
                        folder / str(number),
                        endpoint,
                        has_sign_in=has_sign_in,
                        database=database,
                        servers_in=servers_in,
                    )
                    servers[attack.kind] = running.enter_context(server)
            except LookupError as error:
                rows.append(Row(attack.name, attack.bounds, left_out=str(error)))
            else:
                rows.append(attacked(attack, servers[attack.kind], is_short=is_short))
            print(rows[-1].line(), flush=True)
            if not is_short or not servers[attack.kind].is_alive:
                running.close()
                servers.clear()
    return rows


if __name__ == "__main__":
    sys.exit(main())
