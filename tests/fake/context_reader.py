"""Reads a composed context back as somebody would who knows only its two headings and `key: value`."""

from __future__ import annotations

from typing import Final

INDENT: Final = "    "


def read_blocks(text: str) -> dict[str, dict[str, str]]:
    """Returns the values by heading and key; a line ends wherever Unicode has it end."""
    blocks: dict[str, dict[str, str]] = {}
    heading = key = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line
            assert heading not in blocks
            blocks[heading] = {}
        elif line.startswith(INDENT):
            entries = blocks[heading]
            entries[key] = entries[key] + "\n" + line[len(INDENT) :] if key in entries else line[len(INDENT) :]
        elif line:
            key, colon, value = line.partition(":")
            assert colon
            assert key not in blocks[heading]
            if value:
                blocks[heading][key] = value.removeprefix(" ")
    return blocks
