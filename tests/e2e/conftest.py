"""Installations that tests start, and that end with them whatever happens."""

import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.e2e.running import Running


@contextlib.contextmanager
def an_installation(folder: Path) -> Iterator[Running]:
    running = Running(folder)
    try:
        yield running
    finally:
        if running.process is not None and running.process.poll() is None:
            running.process.kill()
            running.process.wait()


@pytest.fixture
def blank(tmp_path: Path) -> Iterator[Running]:
    """An installation that was never started."""
    with an_installation(tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
async def seeded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of an installation that was started once and stopped."""
    with an_installation(tmp_path_factory.mktemp("seeded")) as running:
        await running.start()
        assert running.stop() == 0, running.output
        return running.data


@pytest.fixture
async def running(seeded_folder: Path, tmp_path: Path) -> AsyncIterator[Running]:
    """An installation that runs, its first market open."""
    with an_installation(tmp_path) as running:
        shutil.copytree(seeded_folder, running.data)
        await running.start()
        yield running
