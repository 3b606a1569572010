"""Extracts the text of a PDF in a separate process: from standard input, as JSON to standard output.

Runs as a script with an empty environment and imports nothing of the product, so that a hostile file controls at most
this process.
"""

from __future__ import annotations

import io
import json
import resource
import sys


def main() -> None:
    cpu_seconds, memory_bytes, max_pages, max_chars = map(int, sys.argv[1:])
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    try:
        told = read(sys.stdin.buffer.read(), max_pages, max_chars)
    except (MemoryError, RecursionError):
        told = "too_heavy"
    sys.stdout.buffer.write(json.dumps(told).encode())


def read(data: bytes, max_pages: int, max_chars: int) -> list[str] | str:
    """Returns the text of each page, or the reason for refusing the file."""
    from pypdf import PasswordType, PdfReader  # noqa: PLC0415  # under the limits set above
    from pypdf.errors import DependencyError  # noqa: PLC0415  # see above

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            return "encrypted"
    except DependencyError:  # AES needs a package that is installed only for sign-in
        return "encrypted"
    if len(reader.pages) > max_pages:
        return "too_many_pages"
    pages: list[str] = []
    chars = 0
    for page in reader.pages:
        pages.append(page.extract_text())
        chars += len(pages[-1])
        if chars > max_chars:
            return "too_long"
    return pages


if __name__ == "__main__":
    main()
