"""Extracts the text of a PDF in a separate process: from standard input, as JSON to standard output.

Runs as a script with an empty environment and imports nothing of the product, so that a hostile file controls at most
this process.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

# Encodings of Korean text in PDFs of older programs; all are CP949 or a part of it.
_KOREAN: Final = [f"/{name}-{direction}" for name in ("KSC-EUC", "KSCms-UHC", "KSCms-UHC-HW") for direction in "HV"]


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
        result = read(sys.stdin.buffer.read(), max_pages, max_chars)
    except (MemoryError, RecursionError):
        result = "too_heavy"
    sys.stdout.buffer.write(json.dumps(result).encode())


def read(data: bytes, max_pages: int, max_chars: int) -> list[str | None] | str:
    """Returns the text of each page, None for a page that can't be read, or the reason for refusing the file."""
    from pypdf import PasswordType, PdfReader, _cmap  # noqa: PLC0415  # under the limits set above
    from pypdf.errors import DependencyError  # noqa: PLC0415  # see above

    _cmap._predefined_cmap.update(dict.fromkeys(_KOREAN, "cp949"))  # noqa: SLF001  # pypdf has the Chinese and Japanese ones
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            return "encrypted"
    except DependencyError:  # AES needs a package that is installed only for sign-in
        return "encrypted"
    if len(reader.pages) > max_pages:
        return "too_many_pages"
    pages: list[str | None] = []
    chars = 0
    for page in reader.pages:
        try:
            text = "\n".join([page.extract_text(), *_annotations(page)])
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  # one page costs itself alone, whatever is wrong with it
            pages.append(None)
            continue
        pages.append(text)
        chars += len(text)
        if chars > max_chars:
            return "too_long"
    return "damaged" if all(page is None for page in pages) else pages


def _annotations(page: Mapping[str, Any]) -> Iterator[str]:
    """Yields a page's filled form fields as `name: value`, and its notes."""
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        if annotation.get("/Subtype") != "/Widget":
            note = annotation.get("/Contents")
            if isinstance(note, str) and note.strip():
                yield note
            continue
        name = annotation.get("/T")
        value = annotation.get("/V")
        parent = annotation.get("/Parent")
        if parent is not None:  # of several widgets, or of a group
            parent = parent.get_object()
            name = ".".join(str(part) for part in (parent.get("/T"), name) if part is not None)
            value = parent.get("/V") if value is None else value
        if isinstance(value, str) and value.strip() and value != "/Off":
            yield f"{name}: {value.removeprefix('/')}" if name else value


if __name__ == "__main__":
    main()
