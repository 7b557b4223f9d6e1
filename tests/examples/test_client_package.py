"""The package `foretell-client` trades in a bare environment that has what it names, and no server."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.examples.conftest import EXAMPLES, ROOT, WITHIN_S, run_program

pytestmark = pytest.mark.xdist_group("examples")

SERVER = ("litestar", "sqlalchemy", "uvicorn", "typer", "PIL")
"""Packages of the server that the client must do without."""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    line = [sys.executable, str(ROOT / "requirements" / "client.py"), str(tmp_path / "build")]
    built = subprocess.run(line, capture_output=True, text=True, check=True, timeout=WITHIN_S)
    return Path(built.stdout.strip())


def requirements_of(metadata: str) -> list[str]:
    """Return the names of the packages that a wheel's description requires."""
    lines = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    return [Requirement(line.removeprefix("Requires-Dist: ")).name for line in lines]


def with_everything_required(names: list[str]) -> dict[str, Any]:
    """Return the installed packages of names, and of all that they require in turn."""
    found: dict[str, Any] = {}
    while names:
        name = names.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # of another Python or another system
        for text in found[name].requires or []:
            required = Requirement(text)
            if required.marker is None or required.marker.evaluate({"extra": ""}):
                names.append(required.name)
    return found


@pytest.fixture
def bare(wheel: Path, tmp_path: Path) -> Path:
    """Give the Python of an environment with the wheel and links to what it requires."""
    venv.create(tmp_path / "bare", with_pip=False)
    paths = {"base": str(tmp_path / "bare"), "platbase": str(tmp_path / "bare")}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
        metadata = archive.read(
            next(name for name in archive.namelist() if name.endswith("METADATA"))
        ).decode()
    for each in with_everything_required(requirements_of(metadata)).values():
        for top in {file.parts[0] for file in each.files} - {".."}:
            link = packages / top
            if not link.exists():
                link.symlink_to(each.locate_file(top))
    return tmp_path / "bare" / "bin" / "python"


def test_the_client_alone_makes_a_first_trade(
    bare: Path, environment: dict[str, str], folder: Path
) -> None:
    for name in SERVER:
        missing = subprocess.run(
            [bare, "-c", f"import {name}"], capture_output=True, check=False, timeout=WITHIN_S
        )
        assert b"ModuleNotFoundError" in missing.stderr
    printed = run_program([str(bare), str(EXAMPLES / "first_trade.py")], folder, environment)
    assert "the trade is CONFIRMED" in printed
