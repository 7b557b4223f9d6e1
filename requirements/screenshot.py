"""Copy the picture that the browser test took to the README's: FROM TO. It becomes smaller, and one of 256 colours."""

import sys

from PIL import Image

SIZE = (930, 810)


def main() -> int:
    """Write the smaller picture."""
    if len(sys.argv) != 3:
        sys.stderr.write("usage: requirements/screenshot.py FROM TO\n")
        return 2
    with Image.open(sys.argv[1]) as picture:
        small = picture.convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
        small.quantize(256).save(sys.argv[2], optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
