import io
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.rigs.pictures import a_moving_picture, a_picture

from foretell.domain.errors.families import InvalidFields
from foretell.domain.errors.http import UnsupportedMedia
from foretell.media.headers import CHUNKS_MAX, PIXELS_MAX, SIDE_PX_MAX, ImageHeader, read_header

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def a_chunk(kind: bytes, content: bytes = b"") -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum


def a_png_header(width_px: int, height_px: int) -> bytes:
    size = struct.pack(">IIBBBBB", width_px, height_px, 8, 2, 0, 0, 0)
    return PNG_SIGNATURE + a_chunk(b"IHDR", size) + a_chunk(b"IDAT")


def a_jpeg_header(width_px: int, height_px: int, before: bytes = b"") -> bytes:
    frame = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height_px, width_px) + b"\x03" * 10
    return b"\xff\xd8\xff\xe0\x00\x04ab" + before + frame


@pytest.mark.spec(30)
@pytest.mark.parametrize(
    ("kind", "mode", "options"),
    [
        ("PNG", "RGB", {}),
        ("PNG", "RGBA", {}),
        ("PNG", "P", {}),
        ("PNG", "1", {}),
        ("JPEG", "RGB", {}),
        ("JPEG", "L", {}),
        ("JPEG", "CMYK", {}),
        ("JPEG", "RGB", {"progressive": True}),
        ("JPEG", "RGB", {"exif": Image.Exif()}),
        ("WEBP", "RGB", {}),
        ("WEBP", "RGBA", {}),
        ("WEBP", "RGB", {"lossless": True}),
        ("WEBP", "RGBA", {"lossless": True}),
        ("WEBP", "RGB", {"icc_profile": b"profile"}),
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (40, 30), (300, 1000)])
def test_the_size_of_each_format_is_read(
    kind: str, mode: str, options: dict[str, Any], size: tuple[int, int]
) -> None:
    raw = a_picture(kind, size, mode, **options)

    assert read_header("eventImage", raw) == ImageHeader(kind, *size)


@pytest.mark.case("F-01")
@pytest.mark.spec(30)
@pytest.mark.parametrize(
    "raw",
    [
        a_picture("GIF", mode="P"),
        a_picture("BMP"),
        a_picture("TIFF"),
        a_picture("PPM"),
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"<?xml version='1.0'?><svg/>",
        b"%PDF-1.4",
        b"",
        a_moving_picture("PNG"),
        a_moving_picture("WEBP"),
        a_moving_picture("GIF"),
        b"GIF89a" + a_picture("PNG"),
    ],
    ids=[
        "gif",
        "bmp",
        "tiff",
        "ppm",
        "svg",
        "svg with a prologue",
        "pdf",
        "nothing",
        "moving png",
        "moving webp",
        "moving gif",
        "png behind a gif's name",
    ],
)
def test_other_formats_and_animations_are_refused(raw: bytes) -> None:
    with pytest.raises(UnsupportedMedia, match="eventImage must be a PNG, JPEG or WebP image"):
        read_header("eventImage", raw)


@pytest.mark.parametrize(
    ("size", "is_refused"),
    [
        ((5000, 2500), False),
        ((5000, 2501), True),
        ((SIDE_PX_MAX, 1), False),
        ((SIDE_PX_MAX + 1, 1), True),
        ((1, SIDE_PX_MAX + 1), True),
        ((0, 10), True),
        ((10, 0), True),
        ((2**31, 2**31), True),
    ],
)
def test_a_png_is_refused_by_the_size_in_its_header(
    size: tuple[int, int], *, is_refused: bool
) -> None:
    assert PIXELS_MAX == 12_500_000
    assert is_refused == is_refused_size(a_png_header(*size))


def is_refused_size(raw: bytes) -> bool:
    try:
        read_header("eventImage", raw)
    except InvalidFields:
        return True
    return False


def test_a_jpeg_and_a_webp_are_refused_by_the_size_in_their_header() -> None:
    webp = b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00" + b"\x00" * 4 + b"\xff\xff\xff" * 2
    lossless = b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f\xff\xff\xff\xff"

    assert is_refused_size(a_jpeg_header(65535, 65535))
    assert is_refused_size(webp)
    assert is_refused_size(lossless)


def test_segments_without_content_and_fill_bytes_are_skipped() -> None:
    raw = a_jpeg_header(30, 20, before=b"\xff\x01\xff\xff\xff\xd0\xff\xff\xe1\x00\x02")

    assert read_header("eventImage", raw) == ImageHeader("JPEG", 30, 20)


@pytest.mark.parametrize(
    "raw",
    [
        PNG_SIGNATURE + a_chunk(b"IDAT", b"\x00" * 13),
        a_png_header(10, 10)[:-12],
        a_png_header(10, 10)[:-12] + a_chunk(b"tEXt") * CHUNKS_MAX,
        a_jpeg_header(10, 10, before=b"\x00\x00"),
        a_jpeg_header(10, 10)[:-12],
        b"\xff\xd8" + b"\xff\xe0\x00\x02" * (CHUNKS_MAX + 1),
        b"\xff\xd8\xff" + b"\xff" * 100,
        a_picture("WEBP")[:25],
        b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00",
        b"RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00abc\x01\x00\x01\x00",
        b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x00\xff\xff\xff\xff",
        b"RIFF\x00\x00\x00\x00WEBPANIM\x00\x00\x00\x00",
    ],
)
def test_a_short_or_unknown_header_is_refused(raw: bytes) -> None:
    with pytest.raises(UnsupportedMedia):
        read_header("eventImage", raw)


STARTS = [PNG_SIGNATURE, b"\xff\xd8\xff", b"RIFF\x00\x00\x00\x00WEBPVP8", a_png_header(9, 9)[:-12]]


@pytest.mark.case("F-01")
@given(st.sampled_from(STARTS), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(start: bytes, rest: bytes) -> None:
    try:
        header = read_header("eventImage", start + rest)
    except (InvalidFields, UnsupportedMedia):
        return
    assert header.width_px * header.height_px <= PIXELS_MAX


def test_the_frames_of_a_picture_are_not_needed_to_read_its_header() -> None:
    raw = a_picture("PNG", (600, 600))
    header = io.BytesIO(raw).read(raw.index(b"IDAT") + 4)

    assert read_header("eventImage", header) == ImageHeader("PNG", 600, 600)
