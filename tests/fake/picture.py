"""Pictures made by hand, and bytes that only look like one."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Mapping
from typing import Final

from PIL import Image

_ORIENTATION: Final = 0x0112
_RED, _BLUE = (200, 40, 40), (40, 40, 200)


def picture(
    kind: str,
    size: tuple[int, int] = (40, 20),
    *,
    mode: str = "RGB",
    turned: int = 1,
    told: Mapping[str, str] | None = None,
) -> bytes:
    """Returns a picture whose left half is red and whose right half is blue.

    Args:
        kind: The format, as Pillow names it.
        turned: The orientation in its EXIF data.
        told: Texts in its metadata, of a PNG; a JPEG has a comment always.
    """
    image = Image.new("RGB", size, _RED)
    image.paste(_BLUE, (size[0] // 2, 0, *size))
    exif = Image.Exif()
    exif[_ORIENTATION] = turned
    exif[0x010E] = "taken at home"
    written = io.BytesIO()
    if kind == "PNG":
        from PIL.PngImagePlugin import PngInfo  # noqa: PLC0415  # of this format alone

        info = PngInfo()
        for name, text in (told or {}).items():
            info.add_text(name, text)
        image.convert(mode).save(written, kind, exif=exif, pnginfo=info)
    elif kind == "GIF":
        image.convert(mode).save(written, kind)
    else:
        image.convert(mode).save(written, kind, exif=exif, comment="taken by Kim")
    return written.getvalue()


def opened(url: str) -> Image.Image:
    """Returns the picture of a `data:` URL, read to its end."""
    image = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    image.load()
    return image


def bomb(side: int) -> bytes:
    """Returns the beginning of a PNG that says it is that wide and high, in some bytes."""
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(b"\0")) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
