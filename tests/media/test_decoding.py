import io
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from tests.rigs.pictures import a_moving_picture, a_picture, some_noise

from foretell.media.decoding import (
    MEMORY_BYTES_MAX,
    REFUSED_CODE,
    UndecodableImage,
    limit,
    normalize,
    serve,
)

SIDE = 64
BYTES_MAX = 20_000


def opened(raw: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(raw))
    image.load()
    return image


def colour_at(image: Image.Image, x: int, y: int) -> tuple[bool, bool, bool]:
    """Return whether a pixel has much red, green and blue."""
    red, green, blue = image.convert("RGB").getpixel((x, y))  # type: ignore[misc]  # of three bands
    return red > 128, green > 128, blue > 128


@pytest.mark.spec(34)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("size", [(1, 1), (200, 100), (64, 64), (10, 300)])
def test_a_picture_becomes_a_square_webp_of_the_wanted_side(
    kind: str, size: tuple[int, int]
) -> None:
    image = opened(normalize(a_picture(kind, size), kind, SIDE, BYTES_MAX))

    assert (image.format, image.size) == ("WEBP", (SIDE, SIDE))


def test_the_middle_is_kept() -> None:
    wide = Image.new("RGB", (300, 100), "blue")
    wide.paste((255, 0, 0), (100, 0, 200, 100))
    encoded = io.BytesIO()
    wide.save(encoded, "PNG")

    image = opened(normalize(encoded.getvalue(), "PNG", SIDE, BYTES_MAX))

    assert {colour_at(image, x, 32) for x in (2, 32, 61)} == {(True, False, False)}


@pytest.mark.parametrize(
    ("mode", "kind"), [("CMYK", "JPEG"), ("L", "JPEG"), ("P", "PNG"), ("1", "PNG"), ("I;16", "PNG")]
)
def test_every_colour_mode_is_read(mode: str, kind: str) -> None:
    image = opened(normalize(a_picture(kind, (80, 80), mode), kind, SIDE, BYTES_MAX))

    assert image.mode == "RGB"


def test_transparency_is_kept() -> None:
    encoded = io.BytesIO()
    Image.new("RGBA", (80, 80), (255, 0, 0, 0)).save(encoded, "PNG")

    image = opened(normalize(encoded.getvalue(), "PNG", SIDE, BYTES_MAX))

    assert image.mode == "RGBA"
    assert image.getchannel("A").getextrema() == (0, 0)


@pytest.mark.case("F-01")
def test_metadata_is_dropped_and_its_orientation_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "where it was taken"
    raw = a_picture("JPEG", (100, 100), exif=exif, icc_profile=b"a profile of colours")

    normalized = normalize(raw, "JPEG", SIDE, BYTES_MAX)

    image = opened(normalized)
    assert b"where it was taken" not in normalized
    assert b"a profile of colours" not in normalized
    assert not image.getexif()
    assert colour_at(image, 32, 5) == (True, False, False)
    assert colour_at(image, 32, 58) == (False, False, True)


@pytest.mark.case("F-01")
def test_bytes_after_the_picture_are_dropped() -> None:
    raw = a_picture("PNG") + b"<script>alert(1)</script>"

    assert b"script" not in normalize(raw, "PNG", SIDE, BYTES_MAX)


@pytest.mark.spec(34)
def test_quality_is_lowered_until_the_bytes_fit() -> None:
    encoded = io.BytesIO()
    some_noise((256, 256)).save(encoded, "PNG")
    raw = encoded.getvalue()

    best = normalize(raw, "PNG", 256, 10**6)
    small = normalize(raw, "PNG", 256, 20_000)

    assert len(small) <= 20_000 < len(best)
    with pytest.raises(UndecodableImage, match="does not fit into 100 bytes"):
        normalize(raw, "PNG", 256, 100)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (a_picture("PNG")[:60], "PNG"),
        (a_picture("JPEG", (200, 200))[:200], "JPEG"),
        (a_picture("WEBP", (200, 200))[:60], "WEBP"),
        (a_picture("PNG"), "JPEG"),
        (a_moving_picture("PNG"), "PNG"),
        (a_moving_picture("WEBP"), "WEBP"),
        (b"", "PNG"),
    ],
    ids=["cut png", "cut jpeg", "cut webp", "other kind", "moving png", "moving webp", "nothing"],
)
def test_bytes_that_are_not_a_picture_of_the_format_are_refused(raw: bytes, kind: str) -> None:
    with pytest.raises(UndecodableImage):
        normalize(raw, kind, SIDE, BYTES_MAX)


def test_a_picture_larger_than_its_header_is_refused() -> None:
    encoded = io.BytesIO()
    Image.new("1", (5001, 2500)).save(encoded, "PNG")

    with pytest.raises(UndecodableImage, match="larger than its header says"):
        normalize(encoded.getvalue(), "PNG", SIDE, BYTES_MAX)


def test_a_decoded_picture_is_written_to_the_output() -> None:
    output, errors = io.BytesIO(), io.StringIO()

    code = serve(["PNG", "64", "20000"], a_picture(), output, errors)

    assert (code, errors.getvalue()) == (0, "")
    assert opened(output.getvalue()).size == (64, 64)


def test_a_refusal_is_written_to_the_error_output_alone() -> None:
    output, errors = io.BytesIO(), io.StringIO()

    code = serve(["PNG", "64", "20000"], b"junk", output, errors)

    assert (code, output.getvalue()) == (REFUSED_CODE, b"")
    assert errors.getvalue() == "its bytes are damaged or incomplete"


def run_child(
    raw: bytes, *arguments: str, setup: str = "", call: str = "main()"
) -> subprocess.CompletedProcess[bytes]:
    program = f"from foretell.media.decoding import main\n{setup}\n{call}"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, input=raw, capture_output=True, check=False, env={})


def test_the_child_reads_a_picture_and_writes_a_picture() -> None:
    child = run_child(a_picture(), "PNG", "64", "20000")

    assert (child.returncode, child.stderr) == (0, b"")
    assert opened(child.stdout).size == (64, 64)


def test_the_child_reports_its_reason() -> None:
    child = run_child(b"junk", "PNG", "64", "20000")

    assert (child.returncode, child.stdout) == (REFUSED_CODE, b"")
    assert b"damaged or incomplete" in child.stderr


@pytest.mark.case("F-01")
def test_the_child_ends_at_its_memory_limit() -> None:
    call = f"main(lambda *_: bytes({MEMORY_BYTES_MAX}))"
    child = run_child(a_picture(), "PNG", "64", "20000", call=call)

    assert (child.returncode, child.stdout) == (REFUSED_CODE, b"")
    assert child.stderr == b"it takes too much memory"


@pytest.mark.case("F-01")
def test_the_child_ends_at_its_cpu_limit() -> None:
    setup = "def endless(*_):\n    while True: pass"
    call = "main(endless, cpu_s_max=1)"
    child = run_child(a_picture(), "PNG", "64", "20000", setup=setup, call=call)

    assert child.returncode < 0


def test_the_child_writes_no_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    call = f"main(lambda *_: Path({str(target)!r}).write_bytes(b'x' * 100))"
    setup = "from pathlib import Path"
    child = run_child(a_picture(), "PNG", "64", "20000", setup=setup, call=call)

    assert child.returncode != 0
    assert target.read_bytes() == b""


def test_a_limit_that_the_system_lacks_is_ignored() -> None:
    limit(2**20, 1)
