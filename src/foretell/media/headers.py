"""Format and size of an image file, read from its header without decoding anything.

PNG, JPEG and WebP with one frame are accepted. A decoder is started only on a file whose size fits
the decoder's memory limit.
"""

import struct
from typing import Final, NamedTuple

from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.http import UnsupportedMedia

PIXELS_MAX: Final = 12_500_000
SIDE_PX_MAX: Final = 12_000
CHUNKS_MAX: Final = 512

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD8)})
_WEBP_ANIMATION: Final = 0x02
_WANTED: Final = "a PNG, JPEG or WebP image that does not move"


class ImageHeader(NamedTuple):
    """The format, by its name in Pillow, and the size."""

    kind: str
    width_px: int
    height_px: int


def read_header(field: str, raw: bytes) -> ImageHeader:
    """Return the header of an image, or refuse it."""
    try:
        header = _header(raw)
    except (IndexError, struct.error):
        header = None
    if header is None:
        raise UnsupportedMedia(field, _WANTED)
    width_px, height_px = header.width_px, header.height_px
    if not (0 < width_px <= SIDE_PX_MAX and 0 < height_px <= SIDE_PX_MAX):
        raise _refused(field, f"must have sides of 1 to {SIDE_PX_MAX} pixels")
    if width_px * height_px > PIXELS_MAX:
        raise _refused(field, f"must have at most {PIXELS_MAX} pixels")
    return header


def _refused(field: str, message: str) -> InvalidFields:
    return InvalidFields([FieldProblem(field, message)])


def _header(raw: bytes) -> ImageHeader | None:
    if raw.startswith(_PNG):
        return _png(raw)
    if raw.startswith(b"\xff\xd8\xff"):
        return _jpeg(raw)
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return _webp(raw)
    return None


def _png(raw: bytes) -> ImageHeader | None:
    """Return the header of a PNG; an animation has its control chunk before the picture."""
    length, kind, width_px, height_px = struct.unpack_from(">I4sII", raw, len(_PNG))
    if kind != b"IHDR":
        return None
    at = len(_PNG)
    for _ in range(CHUNKS_MAX):
        length, kind = struct.unpack_from(">I4s", raw, at)
        if kind == b"acTL":
            return None
        if kind == b"IDAT":
            return ImageHeader("PNG", width_px, height_px)
        at += 12 + length
    return None


def _jpeg(raw: bytes) -> ImageHeader | None:
    """Return the header of a JPEG, whose size is in its frame segment."""
    at = 2
    for _ in range(CHUNKS_MAX):
        while raw[at] == 0xFF and raw[at + 1] == 0xFF:  # noqa: PLR2004 - fill bytes
            at += 1
        if raw[at] != 0xFF:  # noqa: PLR2004 - the first byte of a marker
            return None
        marker = raw[at + 1]
        if marker in _JPEG_FRAMES:
            height_px, width_px = struct.unpack_from(">HH", raw, at + 5)
            return ImageHeader("JPEG", width_px, height_px)
        at += 2
        if marker not in _JPEG_BARE:
            at += struct.unpack_from(">H", raw, at)[0]
    return None


def _webp(raw: bytes) -> ImageHeader | None:
    kind = raw[12:16]
    if kind == b"VP8X":
        if raw[20] & _WEBP_ANIMATION:
            return None
        width_px = int.from_bytes(raw[24:27], "little") + 1
        height_px = int.from_bytes(raw[27:30], "little") + 1
        return ImageHeader("WEBP", width_px, height_px) if len(raw) >= 30 else None  # noqa: PLR2004
    if kind == b"VP8 ":
        width_px, height_px = struct.unpack_from("<HH", raw, 26)
        is_key_frame = raw[23:26] == b"\x9d\x01\x2a"
        return ImageHeader("WEBP", width_px & 0x3FFF, height_px & 0x3FFF) if is_key_frame else None
    if kind == b"VP8L" and raw[20] == 0x2F:  # noqa: PLR2004 - the signature of a lossless picture
        bits = struct.unpack_from("<I", raw, 21)[0]
        return ImageHeader("WEBP", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    return None
