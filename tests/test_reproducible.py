"""The package is built without a network, byte for byte the same, from dependencies that are pinned by hash."""

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest
from tests.test_audit import OFFLINE

ROOT: Final = Path(__file__).parents[1]
LOCKS: Final = sorted(path.name for path in (ROOT / "requirements").glob("*.txt"))
BUILT_FROM: Final = ("pyproject.toml", "README.md", "LICENSE")
BUILD: Final = (
    "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]))"
)
LONG_AGO_S: Final = 1_000_000_000


def built(tree: Path, at_s: int) -> bytes:
    """Return the wheel that a copy of the sources gives, whose files have another age and order."""
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, tree / name)
    for path in sorted(tree.rglob("*"), reverse=at_s == LONG_AGO_S):
        os.utime(path, (at_s, at_s))
    environment = {**os.environ, **OFFLINE, "SOURCE_DATE_EPOCH": str(LONG_AGO_S)}
    ran = subprocess.run(
        [sys.executable, "-c", BUILD, "."],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    return (tree / ran.stdout.split()[-1]).read_bytes()


@pytest.mark.case("J-05")
def test_two_builds_without_a_network_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "a longer name of another"
    wheel = built(one, LONG_AGO_S)
    assert wheel == built(other, 2 * LONG_AGO_S - 200_000_000)
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        names = files.namelist()
    assert "foretell/web/build/index.html" in names
    assert [name for name in names if "/build/assets/" in name]


@pytest.mark.case("J-05")
@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_one_version_and_a_hash(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text().replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    assert lines
    for line in lines:
        assert re.match(r"[A-Za-z0-9_.\[\],-]+==[^\s;]+ ", line), line
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line
