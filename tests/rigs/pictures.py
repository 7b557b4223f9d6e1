"""Pictures of every kind that clients may upload."""

import io
from typing import Any

from PIL import Image


def a_picture(
    kind: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", **options: Any
) -> bytes:
    """Return a picture in a format that Pillow writes; the left half is red, the right one blue."""
    image = Image.new("RGB", size, (0, 0, 255))
    image.paste((255, 0, 0), (0, 0, size[0] // 2, size[1]))
    encoded = io.BytesIO()
    image.convert(mode).save(encoded, kind, **options)
    return encoded.getvalue()


def a_moving_picture(kind: str) -> bytes:
    """Return a picture of two frames."""
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    encoded = io.BytesIO()
    frames[0].save(encoded, kind, save_all=True, append_images=frames[1:], duration=100)
    return encoded.getvalue()


def some_noise(size: tuple[int, int]) -> Image.Image:
    """Return a picture that no format compresses well."""
    return Image.effect_noise(size, 100).convert("RGB")
