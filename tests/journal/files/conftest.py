"""Fixtures of journals that each version of the product wrote."""

import shutil
from pathlib import Path

import pytest
from tests.journal.files.rig import WRITERS


@pytest.fixture(scope="session", params=WRITERS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of several segments that was closed."""
    folder = tmp_path_factory.mktemp("original")
    WRITERS[request.param](folder)
    return folder


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))
