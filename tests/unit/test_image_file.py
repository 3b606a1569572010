from __future__ import annotations

import base64
import io
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from PIL import Image

from graph.attachment import enlarged, is_image, read_image, thumbnail
from graph.attachment.image import MAX_IMAGE_BYTES
from graph.value.error import AttachmentError
from tests.fake.picture import bomb, opened, picture

KINDS = ("PNG", "JPEG", "WEBP", "GIF")


def is_red(image: Image.Image, at: tuple[int, int]) -> bool:
    red, _, blue = image.convert("RGB").getpixel(at)  # type: ignore[misc]  # three bands
    return bool(red > blue)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_picture_is_scaled_down_and_a_small_one_keeps_its_size(kind: str) -> None:
    for size, scaled in (((3_000, 1_500), (2_048, 1_024)), ((10, 2_050), (10, 2_048)), ((40, 20), (40, 20))):
        read = read_image(f"/home/me/floor [1].{kind.lower()}", picture(kind, size))
        assert read.name == f"floor (1).{kind.lower()}"
        assert opened(read.url).size == scaled
    left, right = (is_red(opened(read.url), at) for at in ((5, 10), (35, 10)))
    assert (left, right) == (True, False)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_is_turned_upright_and_its_metadata_is_dropped(kind: str) -> None:
    told = {"Comment": "taken by Kim"} if kind == "PNG" else None
    shown = opened(read_image("a", picture(kind, turned=6, told=told)).url)
    assert shown.size == (20, 40)
    assert (is_red(shown, (10, 5)), is_red(shown, (10, 35))) == (True, False)
    assert not dict(shown.getexif())
    assert {"exif", "Comment", "comment", "icc_profile"}.isdisjoint(shown.info)


def test_a_jpegs_comment_is_in_no_copy_of_it() -> None:
    noise = io.BytesIO()
    Image.effect_noise((1_000, 1_000), 90).convert("RGB").save(noise, "JPEG", quality=95, comment="taken by Kim")
    assert b"taken by Kim" in noise.getvalue()
    url = read_image("a", noise.getvalue()).url
    assert url.startswith("data:image/jpeg;")  # too long as a PNG
    assert b"taken by Kim" not in base64.b64decode(url.partition(",")[2])


@pytest.mark.parametrize(("kind", "mode"), [("PNG", "P"), ("PNG", "L"), ("PNG", "1"), ("JPEG", "CMYK"), ("JPEG", "L")])
def test_pictures_of_every_mode_are_read(kind: str, mode: str) -> None:
    assert opened(read_image("a", picture(kind, (3_000, 1_500), mode=mode)).url).mode == "RGB"


def test_a_cameras_jpeg_with_a_second_picture_stays_a_jpeg() -> None:
    file, image = io.BytesIO(), Image.new("RGB", (8, 8))
    image.save(file, "MPO", save_all=True, append_images=[image])
    assert read_image("a.jpg", file.getvalue()).url.startswith("data:image/jpeg;")


def test_what_can_be_seen_through_stays_so_while_it_is_small() -> None:
    assert opened(read_image("a", picture("PNG", mode="RGBA")).url).mode == "RGBA"


def test_a_deep_grey_is_neither_white_nor_black() -> None:
    deep = Image.new("I;16", (8, 8), 0x8000)
    file = io.BytesIO()
    deep.save(file, "PNG")
    assert opened(read_image("a", file.getvalue()).url).getpixel((4, 4)) == (128, 128, 128)


def test_a_picture_that_would_be_long_as_a_png_goes_as_a_jpeg() -> None:
    noise = Image.effect_noise((1_400, 1_400), 100).convert("RGB")
    file = io.BytesIO()
    noise.save(file, "PNG")
    url = read_image("a.png", file.getvalue()).url
    assert url.startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("text.png", b"no picture", "bad_image"),
        ("photo.heic", b"\0\0\0 ftypheic", "bad_image"),
        ("cut.png", picture("PNG", (300, 300))[:-60], "bad_image"),
        ("cut.jpg", picture("JPEG", (300, 300))[:-300], "bad_image"),
        ("empty.gif", b"", "bad_image"),
        ("bomb.png", bomb(6_400), "too_many_pixels"),
        ("bomb.png", bomb(9_500), "too_many_pixels"),
        ("bomb.png", bomb(30_000), "too_many_pixels"),
        ("large.png", b"\x89PNG\r\n" + b"\0" * MAX_IMAGE_BYTES, "too_large"),
    ],
    ids=[
        "text",
        "heic",
        "cut png",
        "cut jpg",
        "empty",
        "over the limit",
        "over Pillow's limit",
        "over twice of it",
        "large",
    ],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_what_is_no_picture_or_too_large_is_refused(name: str, data: bytes, reason: str) -> None:
    assert is_image(name, data)
    with pytest.raises(AttachmentError) as caught:
        read_image(name, data)
    assert (caught.value.reason, caught.value.detail) == (reason, name)


@pytest.mark.parametrize(
    ("data", "pixels"), [(bomb(6_400), 40_960_000), (bomb(9_500), 90_250_000), (bomb(30_000), 900_000_000)]
)
def test_a_picture_of_too_many_pixels_is_refused_with_its_size(data: bytes, pixels: int) -> None:
    with pytest.raises(AttachmentError) as caught:
        read_image("a.png", data)
    assert caught.value.figure == pixels


# Reads a picture, and says by how much the process has grown at most.
_GROWN = """
import sys
from graph.attachment import read_image
from graph.value.error import AttachmentError
def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024
data = sys.stdin.buffer.read()
before = most()
try:
    read = len(read_image("a", data).url) > 100
except AttachmentError as error:
    read = error.reason == "too_many_pixels"
print(read, most() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mode", "size", "how"),
    [
        ("PNG", "RGB", (8_000, 5_000), {}),
        ("PNG", "RGBA", (8_000, 5_000), {}),
        ("PNG", "LA", (5_000, 8_000), {}),
        ("PNG", "P", (8_000, 5_000), {"transparency": 0}),
        ("PNG", "I;16", (8_000, 5_000), {}),
        ("PNG", "RGBA", (40_000_000 // 4, 4), {}),
        ("GIF", "P", (8_000, 5_000), {}),
        ("JPEG", "RGB", (12_000, 9_000), {}),
        ("JPEG", "RGB", (8_000, 5_000), {"progressive": True}),
        ("JPEG", "CMYK", (8_000, 5_000), {"progressive": True}),
        ("WEBP", "RGBA", (4_300, 3_000), {"lossless": True, "method": 0}),
        ("WEBP", "RGBA", (8_000, 5_000), {"lossless": True, "method": 0}),
    ],
)
def test_no_picture_takes_more_than_250_mb(kind: str, mode: str, size: tuple[int, int], how: Mapping[str, Any]) -> None:
    file = io.BytesIO()
    Image.new(mode, size).save(file, kind, **how)
    done = subprocess.run([sys.executable, "-c", _GROWN], input=file.getvalue(), capture_output=True, check=True)
    is_told, grown_mb = done.stdout.split()
    assert is_told == b"True"
    assert int(grown_mb) < 250


def test_a_cameras_jpeg_over_the_limit_is_read_at_a_fraction() -> None:
    file = io.BytesIO()
    Image.new("RGB", (8_200, 6_200), "red").save(file, "JPEG")
    assert opened(read_image("a.jpg", file.getvalue()).url).size == (2_048, 1_548)


def test_a_picture_is_known_by_its_bytes_or_by_its_name() -> None:
    assert all(is_image("clipboard", picture(kind)) for kind in KINDS)
    assert is_image("A.PNG", b"")
    assert not is_image("a.svg", b"<svg/>")
    assert not is_image("a.pdf", b"%PDF-")


def test_a_kept_image_is_drawn_anew_and_nothing_for_what_a_program_may_have_sent() -> None:
    url = read_image("a", picture("JPEG", (1_000, 500), turned=3)).url
    assert opened(thumbnail(url)).size == (320, 160)
    assert opened(enlarged(url)).size == (1_000, 500)
    for unread in ("", "https://example.org/a.png", "data:image/svg+xml,<svg/>", "data:image/png;base64,iVBORw0K"):
        assert thumbnail(unread) == enlarged(unread) == ""
