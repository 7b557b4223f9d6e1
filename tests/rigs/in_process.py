"""Installations and commands in this process, without any setting but those of a test."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog

from foretell.app.installation import Installation
from foretell.app.roles import ALL_ROLES, Role
from foretell.bench.rigs.ports import free_port
from foretell.cli.main import run
from foretell.settings import Settings


class Called(NamedTuple):
    """The exit code and the output of a command."""

    code: int | str | None
    out: str
    err: str


Call = Callable[..., Called]


def forget_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Isolate the settings from the developer's environment and file."""
    for name in [name for name in os.environ if name.startswith("FORETELL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(folder)


def sandbox_settings(folder: Path, **given: Any) -> Settings:
    """Return the settings of `foretell up`, on ports that nothing listens on."""
    ports = {"port": free_port(), "chain_port": free_port()}
    return Settings(**{"data": folder / "data", **ports, **given})


@contextlib.asynccontextmanager
async def installed(
    settings: Settings, roles: Collection[Role] = ALL_ROLES, **options: Any
) -> AsyncIterator[Installation]:
    """Give an installation that answers, and stop it at the end of the block."""
    installation = Installation(settings, roles, **options)
    await installation.start()
    try:
        yield installation
    finally:
        await installation.stop()


@pytest.fixture(autouse=True)
def defaults_of_the_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the logs that a command set up, whose standard error is closed after its test; no logger keeps them."""
    configure = structlog.configure

    def configure_once(**given: Any) -> None:
        configure(**given | {"cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", configure_once)
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
        umask = os.umask(0o022)
        try:
            with pytest.raises(SystemExit) as ended:
                run()
        finally:
            os.umask(umask)
        return Called(ended.value.code, *capsys.readouterr())

    return call


def unmeasured() -> dict[str, str]:
    """Return the environment for a process whose imports or files are tested: coverage adds its own."""
    return {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE")}
