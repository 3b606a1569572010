"""Reads an attached picture: scales it down, turns it upright and drops its metadata."""

from __future__ import annotations

import base64
import io
import itertools
import re
import threading
import warnings
from pathlib import PurePath
from typing import Final

from PIL import Image, ImageOps

from graph.core.attached import attachment_of
from graph.value.error import AttachmentError
from graph.value.view import NamedImage

MAX_IMAGES: Final = 8
MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
MAX_SIDE: Final = 2_048
_THUMB_SIDE: Final = 320
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")
_JPEGS: Final = ("JPEG", "MPO")  # the latter of some cameras, with a second picture behind the first
_SUFFIXES: Final = frozenset(
    {".avif", ".bmp", ".gif", ".heic", ".heif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
)
_MARKS: Final = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8")
_PNG_CHARS: Final = 2 * 1024 * 1024 * 4 // 3  # of Base64
_QUALITY: Final = 90
_ORIENTATION: Final = 0x0112  # of EXIF
_WIDE_MODES: Final = ("I;16", "I;16L", "I;16B", "I;16N")
# So none takes more than 250 MB: a pixel is held in four bytes, in WebP several times, and the samples of a JPEG that
# isn't decoded line by line in two bytes.
_MAX_PIXELS: Final = 40_000_000
_MAX_WEBP_PIXELS: Final = 13_000_000
_MAX_SAMPLES: Final = 90_000_000
_PIXELS_TOLD: Final = re.compile(r"\d+")  # first in Pillow's words
_TILE_SIDE: Final = 1_024
_AT_ONCE: Final = threading.BoundedSemaphore(1)


def is_image(name: str, data: bytes) -> bool:
    """Returns True if a file is a picture by its first bytes, or is called one."""
    is_webp = data.startswith(b"RIFF") and data[8:12] == b"WEBP"
    return is_webp or data.startswith(_MARKS) or PurePath(name).suffix.lower() in _SUFFIXES


def read_image(name: str, data: bytes) -> NamedImage:
    """Returns a picture as a `data:` URL, at most 2,048 px on its longer side; of an animation the first frame.

    Raises:
        AttachmentError: `bad_image`, `too_large` or `too_many_pixels`.
    """
    shown = attachment_of(name, "").name
    if len(data) > MAX_IMAGE_BYTES:
        raise AttachmentError("too_large", shown)
    try:
        return NamedImage(shown, _scaled(data, MAX_SIDE))
    except Image.DecompressionBombError as error:
        raise AttachmentError("too_many_pixels", shown, figure=int(_PIXELS_TOLD.findall(str(error))[0])) from None
    except Exception:  # noqa: BLE001  # Pillow raises nearly anything for a damaged file
        raise AttachmentError("bad_image", shown) from None


def thumbnail(url: str) -> str:
    """Returns a kept image as a small `data:` URL regenerated, "" if it can't be read."""
    return _drawn(url, _THUMB_SIDE)


def enlarged(url: str) -> str:
    """Returns a kept image as a `data:` URL regenerated, since a program may have sent anything; "" as `thumbnail`."""
    return _drawn(url, MAX_SIDE)


def _drawn(url: str, side: int) -> str:
    try:
        return _scaled(base64.b64decode(url.partition(",")[2]), side)
    except Exception:  # noqa: BLE001  # see `read_image`
        return ""


def _scaled(data: bytes, side: int) -> str:
    with _AT_ONCE, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
        with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            pixels, samples = opened.width * opened.height, _samples(opened, data)
            opened.draft("RGB", (side, side))  # decodes a JPEG at a fraction of its size
            most = _MAX_WEBP_PIXELS if opened.format == "WEBP" else _MAX_PIXELS
            if opened.width * opened.height > most or samples > _MAX_SAMPLES:
                raise Image.DecompressionBombError(str(pixels))
            upright = _scale(opened, side)
            is_jpeg = opened.format in _JPEGS or (opened.format == "WEBP" and upright.mode == "RGB")
    if is_jpeg:
        return _url(upright, "jpeg")
    if len(png := _url(upright, "png")) <= _PNG_CHARS:
        return png
    white = Image.new("RGBA", upright.size, "white")
    return _url(Image.alpha_composite(white, upright.convert("RGBA")).convert("RGB"), "jpeg")


def _samples(opened: Image.Image, data: bytes) -> float:
    """Returns the number of samples of a JPEG whose scans hold parts of its pixels alone; 0 of any other picture."""
    layers: list[tuple[int, int, int, int]] = getattr(opened, "layer", [])
    scans = (b"\xff\xda\0" + bytes((6 + 2 * count, count)) for count in range(1, len(layers)))
    if opened.format not in _JPEGS or not ("progressive" in opened.info or any(scan in data for scan in scans)):
        return 0
    shares = [across * down for _, across, down, _ in layers]
    return opened.width * opened.height * sum(shares) / max(shares)


def _scale(opened: Image.Image, side: int) -> Image.Image:
    turned = opened.getexif().get(_ORIENTATION)
    mode = "RGBA" if opened.has_transparency_data else "RGB"
    factor = max(1, max(opened.size) // side)
    if factor == 1:
        scaled = _plain(opened, mode)
    else:  # by tiles, or the picture is in memory several times
        width, height = opened.size
        scaled = Image.new(mode, (-(-width // factor), -(-height // factor)))
        step = max(_TILE_SIDE // factor, 1) * factor
        for left, top in itertools.product(range(0, width, step), range(0, height, step)):
            tile = opened.crop((left, top, min(left + step, width), min(top + step, height)))
            scaled.paste(_plain(tile, mode).reduce(factor), (left // factor, top // factor))
    scaled.thumbnail((side, side))
    scaled.info.clear()  # text, colour profile, EXIF
    if turned:
        scaled.getexif()[_ORIENTATION] = turned
        ImageOps.exif_transpose(scaled, in_place=True)
        scaled.info.clear()
    return scaled


def _plain(image: Image.Image, mode: str) -> Image.Image:
    grey = image.point(lambda value: value / 256).convert("L") if image.mode in _WIDE_MODES else image
    return grey.convert(mode)


def _url(image: Image.Image, kind: str) -> str:
    written = io.BytesIO()
    image.save(written, kind, quality=_QUALITY)
    return f"data:image/{kind};base64,{base64.b64encode(written.getvalue()).decode()}"
