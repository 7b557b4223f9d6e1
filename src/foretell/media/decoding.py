"""The child process that decodes one image of a stranger, with little memory and little time.

It reads the image from its input and writes a square WebP to its output. Whatever a decoder can be
tricked into ends with this process. The parent has read the header; the child checks it again.
"""

import contextlib
import io
import resource
import sys
from collections.abc import Sequence
from typing import BinaryIO, Final, TextIO

from PIL import Image, ImageOps

from foretell.media.headers import PIXELS_MAX

MEMORY_BYTES_MAX: Final = 384 * 1024 * 1024
CPU_S_MAX: Final = 5
QUALITIES: Final = (90, 80, 70, 60, 50, 40, 30, 20, 10, 1)
OPAQUE: Final = "RGB"
TRANSPARENT: Final = "RGBA"

REFUSED_CODE: Final = 3
"""How the process ends when the image cannot be decoded; the reason is on its error output."""


class Undecodable(Exception):
    """The bytes are not a picture that can be made into what is wanted."""


def normalize(raw: bytes, kind: str, side_px: int, bytes_max: int) -> bytes:
    """Return the middle square of the picture, scaled, as WebP without anything else in it.

    What it carries beside its pixels (positions, profiles, texts) is left behind; the picture is
    turned the way that it says it should be seen.
    """
    try:
        with Image.open(io.BytesIO(raw), formats=(kind,)) as image:
            if getattr(image, "n_frames", 1) != 1:
                raise Undecodable("the picture moves")
            if image.width * image.height > PIXELS_MAX:
                raise Undecodable("it is larger than its header says")
            image.draft(OPAQUE, (side_px * 2, side_px * 2))
            ImageOps.exif_transpose(image, in_place=True)
            square = ImageOps.fit(_plain(image), (side_px, side_px), Image.Resampling.LANCZOS)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise Undecodable(str(error)) from error
    for quality in QUALITIES:
        encoded = io.BytesIO()
        square.save(encoded, "WEBP", quality=quality, method=4)
        if encoded.tell() <= bytes_max:
            return encoded.getvalue()
    raise Undecodable(f"it does not fit into {bytes_max} bytes")


def _plain(image: Image.Image) -> Image.Image:
    """Return the picture in red, green, blue, and transparency if it has any, uncopied if it can be."""
    mode = TRANSPARENT if image.has_transparency_data else OPAQUE
    return image if image.mode == mode else image.convert(mode)


def _limit(what: int, most: int) -> None:
    """Lower a limit for good; not every system knows every limit, and the deadline is left then."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(what, (most, most))


def serve(arguments: Sequence[str], raw: bytes, made: BinaryIO, said: TextIO) -> int:
    """Decode one image and return the code to end with.

    The arguments are its format, the side of the square and the bound of its bytes.
    """
    kind, side_px, bytes_max = arguments
    try:
        made.write(normalize(raw, kind, int(side_px), int(bytes_max)))
    except (Undecodable, MemoryError) as error:
        said.write(str(error) or "it takes too much memory")
        return REFUSED_CODE
    return 0


def main() -> None:
    """Give up what is not needed, then decode the image that comes in."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CPU, CPU_S_MAX)
    _limit(resource.RLIMIT_AS, MEMORY_BYTES_MAX)
    sys.exit(serve(sys.argv[1:], sys.stdin.buffer.read(), sys.stdout.buffer, sys.stderr))


if __name__ == "__main__":
    main()
