"""Commands called in this process, without any setting but those of a test."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog
from tests.app.rig import forget_environment, sandbox_settings

from foretell.cli.main import run
from foretell.settings import Settings


class Called(NamedTuple):
    """The exit code and the output of a command."""

    code: int | str | None
    out: str
    err: str


Call = Callable[..., Called]


@pytest.fixture(autouse=True)
def defaults_of_the_logs() -> Iterator[None]:
    """Reset the logs that a command set up: its standard error is closed after its test."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return sandbox_settings(tmp_path)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `foretell` with arguments, as the installed command does."""

    def call(*arguments: str) -> Called:
        monkeypatch.setattr(sys, "argv", ["foretell", *arguments])
        with pytest.raises(SystemExit) as ended:
            run()
        return Called(ended.value.code, *capsys.readouterr())

    return call
