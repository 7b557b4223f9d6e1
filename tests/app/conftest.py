"""Settings of an installation that does not disturb others."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rigs.in_process import forget_environment, sandbox_settings
from tests.rigs.trading import database_file  # noqa: F401 - a fixture

from foretell.settings import Settings


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path)


@pytest.fixture(autouse=True)
def interval_of_the_threads() -> Iterator[None]:
    """Restore the interval that a run of an installation sets for its whole process."""
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return sandbox_settings(tmp_path)
