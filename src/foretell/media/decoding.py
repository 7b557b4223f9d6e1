"""The child process that decodes one untrusted image, with limits on memory and time.

It reads the image from its input and writes a square WebP to its output, so that an exploit of a
decoder ends with this process. The parent has checked the header; the child checks it again.
"""

import contextlib
import io
import resource
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final, TextIO

from PIL import Image, ImageOps

from foretell.media.headers import PIXELS_MAX

MEMORY_BYTES_MAX: Final = 384 * 1024 * 1024
CPU_S_MAX: Final = 5
QUALITIES: Final = (90, 80, 70, 60, 50, 40, 30, 20, 10, 1)
OPAQUE: Final = "RGB"
TRANSPARENT: Final = "RGBA"

Decode = Callable[[bytes, str, int, int], bytes]

REFUSED_CODE: Final = 3
"""The exit code when the image cannot be decoded; the reason is on the error output."""


class UndecodableImage(Exception):
    """The bytes cannot be decoded, or do not fit after encoding."""


def normalize(raw: bytes, kind: str, side_px: int, bytes_max: int) -> bytes:
    """Return the middle square of the picture, scaled, as WebP.

    The orientation of its metadata is applied; the metadata itself (positions, profiles, texts) is
    dropped.
    """
    try:
        with Image.open(io.BytesIO(raw), formats=(kind,)) as image:
            if getattr(image, "n_frames", 1) != 1:
                raise UndecodableImage("the picture moves")
            if image.width * image.height > PIXELS_MAX:
                raise UndecodableImage("it is larger than its header says")
            image.draft(OPAQUE, (side_px * 2, side_px * 2))
            ImageOps.exif_transpose(image, in_place=True)
            square = ImageOps.fit(_plain(image), (side_px, side_px), Image.Resampling.LANCZOS)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise UndecodableImage("its bytes are damaged or incomplete") from error
    for quality in QUALITIES:
        encoded = io.BytesIO()
        square.save(encoded, "WEBP", quality=quality, method=4)
        if encoded.tell() <= bytes_max:
            return encoded.getvalue()
    raise UndecodableImage(f"it does not fit into {bytes_max} bytes")


def _plain(image: Image.Image) -> Image.Image:
    """Return the picture as RGB, or as RGBA if it has transparency; without a copy if possible."""
    mode = TRANSPARENT if image.has_transparency_data else OPAQUE
    return image if image.mode == mode else image.convert(mode)


def limit(resource_id: int, most: int) -> None:
    """Lower a limit permanently; where the system lacks it, only the parent's deadline remains."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource_id, (most, most))


def serve(
    arguments: Sequence[str],
    raw: bytes,
    output: BinaryIO,
    errors: TextIO,
    decode: Decode = normalize,
) -> int:
    """Decode one image, and return the exit code.

    The arguments are the image's format, the side of the square and the limit of its bytes.
    """
    kind, side_px, bytes_max = arguments
    try:
        output.write(decode(raw, kind, int(side_px), int(bytes_max)))
    except (UndecodableImage, MemoryError) as error:
        errors.write(str(error) or "it takes too much memory")
        return REFUSED_CODE
    return 0


def main(decode: Decode = normalize, *, cpu_s_max: int = CPU_S_MAX) -> None:
    """Set the limits, then decode the image on standard input."""
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CPU, cpu_s_max)
    limit(resource.RLIMIT_AS, MEMORY_BYTES_MAX)
    raw = sys.stdin.buffer.read()
    sys.exit(serve(sys.argv[1:], raw, sys.stdout.buffer, sys.stderr, decode))


if __name__ == "__main__":
    main()
