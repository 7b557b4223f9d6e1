import asyncio
import io
import os
import stat
import sys
from pathlib import Path

import pytest
from PIL import Image
from tests.rigs.pictures import a_moving_picture, a_picture, some_noise

from foretell.domain.errors.families import InvalidFields
from foretell.domain.errors.http import UnsupportedMedia, UploadTooLarge
from foretell.domain.errors.storage import StorageUnavailable
from foretell.media.headers import read_header
from foretell.media.images import CHILDREN_MAX, ImageNormalizer, ImagePolicy

pytestmark = pytest.mark.anyio

WITHIN_S = 120.0
"""For a child on a machine that is busy with other things."""


@pytest.fixture
def normalizer() -> ImageNormalizer:
    return ImageNormalizer(ImagePolicy(), deadline_s=WITHIN_S)


@pytest.mark.spec(30, 34)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
async def test_an_upload_of_each_format_is_normalized_within_the_policy(
    normalizer: ImageNormalizer, kind: str
) -> None:
    encoded = io.BytesIO()
    some_noise((500, 400)).save(encoded, kind)

    normalized = await normalizer.normalize("eventImage", encoded.getvalue())

    header = read_header("eventImage", normalized)
    policy = normalizer.policy
    assert (header.kind, header.width_px, header.height_px) == (
        "WEBP",
        policy.side_px,
        policy.side_px,
    )
    assert len(normalized) <= policy.bytes_max


async def test_the_same_upload_always_gives_the_same_bytes(normalizer: ImageNormalizer) -> None:
    raw = a_picture("JPEG", (333, 222))

    first = await normalizer.normalize("eventImage", raw)

    assert await normalizer.normalize("eventImage", raw) == first


async def test_an_upload_larger_than_the_policy_is_refused() -> None:
    normalizer = ImageNormalizer(ImagePolicy(upload_bytes_max=100))
    raw = a_picture("PNG")

    assert len(raw) > 100
    with pytest.raises(UploadTooLarge, match="eventImage is larger than 100 bytes"):
        await normalizer.normalize("eventImage", raw)


@pytest.mark.spec(30)
@pytest.mark.parametrize(
    "raw",
    [a_picture("GIF", mode="P"), b"<svg/>", a_moving_picture("WEBP"), a_moving_picture("PNG")],
    ids=["gif", "svg", "moving webp", "moving png"],
)
async def test_another_format_starts_no_child(normalizer: ImageNormalizer, raw: bytes) -> None:
    with pytest.raises(UnsupportedMedia):
        await normalizer.normalize("eventImage", raw)


@pytest.mark.spec(70)
@pytest.mark.parametrize(
    "raw",
    [
        a_picture("PNG", (300, 300))[:-40],
        a_picture("PNG")[:45] + b"\xff" * 100,
        a_picture("JPEG", (300, 300))[:400],
        a_picture("WEBP", (300, 300))[:60],
    ],
    ids=["cut png", "broken png", "cut jpeg", "cut webp"],
)
async def test_an_undecodable_image_is_refused_with_its_field(
    normalizer: ImageNormalizer, raw: bytes
) -> None:
    with pytest.raises((InvalidFields, UnsupportedMedia)) as refused:
        await normalizer.normalize("eventImage", raw)

    assert "eventImage must be" in refused.value.message


@pytest.mark.case("F-01")
async def test_a_decompression_bomb_is_refused_before_it_is_decoded(
    normalizer: ImageNormalizer,
) -> None:
    encoded = io.BytesIO()
    Image.new("1", (12_000, 12_000)).save(encoded, "PNG")

    assert len(encoded.getvalue()) < 100_000
    with pytest.raises(InvalidFields, match="at most 12500000 pixels"):
        await normalizer.normalize("eventImage", encoded.getvalue())


async def test_the_largest_picture_fits_into_the_child(normalizer: ImageNormalizer) -> None:
    encoded = io.BytesIO()
    Image.new("RGBA", (5000, 2500), (1, 2, 3, 4)).save(encoded, "WEBP")

    assert await normalizer.normalize("eventImage", encoded.getvalue())


async def test_concurrent_uploads_are_all_normalized(normalizer: ImageNormalizer) -> None:
    raw = a_picture("PNG", (100, 100))

    normalized = await asyncio.gather(
        *(normalizer.normalize(f"optionImage:{n}", raw) for n in range(3 * CHILDREN_MAX))
    )

    assert len(set(normalized)) == 1


def a_python(folder: Path, program: str) -> str:
    """Return a program to run in place of the children's interpreter."""
    return str(an_executable(folder, f"#!{sys.executable}\n{program}\n"))


def an_executable(folder: Path, text: str) -> Path:
    path = folder / "python"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.case("F-01")
async def test_a_child_that_hangs_is_killed_and_does_not_blame_the_picture(tmp_path: Path) -> None:
    """A finding: on a busy machine a good picture was refused, as if it took too much time and memory."""
    pid_file = tmp_path / "pid"
    hanging = an_executable(tmp_path, f"#!/bin/sh\necho $$ > '{pid_file}'\nexec sleep 60\n")
    normalizer = ImageNormalizer(ImagePolicy(), python=str(hanging), deadline_s=2.0)

    with pytest.raises(StorageUnavailable, match="was not decoded within 2 s; send it again later"):
        await normalizer.normalize("eventImage", a_picture())

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.parametrize(
    "program", ["import sys; sys.exit(1)", "import os; os.kill(os.getpid(), 11)", ""]
)
async def test_a_child_that_crashes_or_writes_nothing_refuses_the_picture(
    tmp_path: Path, program: str
) -> None:
    python = a_python(tmp_path, program)
    normalizer = ImageNormalizer(ImagePolicy(), python=python, deadline_s=WITHIN_S)

    with pytest.raises(InvalidFields, match="with little time and memory"):
        await normalizer.normalize("eventImage", a_picture())


async def test_a_child_that_cannot_be_started_does_not_blame_the_picture(tmp_path: Path) -> None:
    normalizer = ImageNormalizer(ImagePolicy(), python=str(tmp_path / "missing"))

    with pytest.raises(StorageUnavailable, match="no process could be started to decode the image"):
        await normalizer.normalize("eventImage", a_picture())
