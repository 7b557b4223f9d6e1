import io
import signal
from pathlib import Path

import pytest
from pydantic import SecretStr
from rich.console import Console
from tests.app.rig import is_free, sandbox_settings
from tests.rigs.postgres import PostgresServer
from tests.rigs.values import a_key
from typing_extensions import override

from foretell.app.roles import ALL_ROLES, Role
from foretell.bench.rigs.world import make_world
from foretell.chain.deploy import store_deployment
from foretell.cli import serve
from foretell.cli.serve import ProcessRole, run_serve
from foretell.domain.errors.command import MissingSetting, UnknownRole
from foretell.settings import Settings

KEYS = ("master_key", "operator_key", "registrar_key", "relayer_key", "storage_key")


class Stopping(Console):
    """A console whose reader stops the program as soon as it has said something."""

    @override
    def print(self, *objects: object, **_: object) -> None:
        super().print(*objects)
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def logs_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loggers are set up for good, which is for a process of its own; see test_running."""
    monkeypatch.setattr(serve, "set_up_logs", lambda _: None)


@pytest.fixture
def production(tmp_path: Path, postgres: PostgresServer) -> Settings:
    """Settings of an operator whose node does not answer just now."""
    postgres.empty_database()
    keys = {name: SecretStr(a_key(name).hex()) for name in KEYS}
    settings = sandbox_settings(
        tmp_path,
        rpc_url=SecretStr("http://127.0.0.1:1"),
        database_url=SecretStr(postgres.database_url),
        **keys,
    )
    store_deployment(settings.deployment_file, make_world(a_key("serve")).deployment)
    return settings


def served(settings: Settings, *names: str) -> str:
    """Serve until it says what it serves, and return what it says."""
    console = Stopping(file=io.StringIO(), width=200)
    run_serve(settings, names, ProcessRole(), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_roles_that_are_named_are_served_until_a_signal_comes(production: Settings) -> None:
    told = served(production, "data", "discovery")
    assert told == f"serving data, discovery at {production.base_url}\n"
    assert is_free(production.port)


def test_no_role_named_is_every_role(production: Settings) -> None:
    assert (
        served(production) == f"serving {', '.join(sorted(ALL_ROLES))} at {production.base_url}\n"
    )


@pytest.mark.parametrize("role", Role)
def test_every_role_runs_by_itself(production: Settings, role: Role) -> None:
    assert served(production, role).startswith(f"serving {role} at ")


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are(
    production: Settings,
) -> None:
    with pytest.raises(UnknownRole) as refused:
        run_serve(production, ["data", "sales"], ProcessRole(), Console(quiet=True))
    assert refused.value.message == (
        "sales is not a role; roles are creation, data, discovery, indexer, relayer, settlement,"
        " trading"
    )


def test_the_sandbox_is_not_served(settings: Settings) -> None:
    with pytest.raises(MissingSetting, match="see also: foretell up"):
        run_serve(settings, ["data"], ProcessRole(), Console(quiet=True))
    assert not settings.data.exists()


def test_roles_in_processes_of_their_own_need_a_server(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, rpc_url=SecretStr("http://127.0.0.1:1"))
    with pytest.raises(MissingSetting, match="meet in PostgreSQL"):
        run_serve(settings, ["data", "indexer"], ProcessRole(), Console(quiet=True))
