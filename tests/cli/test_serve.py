import io
import signal
from pathlib import Path

import pytest
from pydantic import SecretStr
from rich.console import Console
from tests.rigs.in_process import sandbox_settings
from tests.rigs.postgres import PostgresServer
from tests.rigs.values import a_key
from typing_extensions import override

from foretell.app.installation import ParentProcess
from foretell.app.roles import ALL_ROLES, Role
from foretell.bench.rigs.ports import is_free
from foretell.bench.rigs.world import make_world
from foretell.chain.deploy import store_deployment
from foretell.cli import serve
from foretell.cli.serve import ProcessRole, run_fleet, run_serve
from foretell.domain.errors.command import (
    InvalidWorkerRoles,
    MissingKey,
    MissingSetting,
    UnknownRole,
)
from foretell.domain.errors.sources import UnknownShard
from foretell.runtime.child_processes import REFUSED_CODE
from foretell.settings import Settings

KEYS = ("master_key", "operator_key", "registrar_key", "relayer_key", "storage_key")


class Stopping(Console):
    """A console that stops the program as soon as something is printed."""

    @override
    def print(self, *objects: object, **_: object) -> None:
        super().print(*objects)
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def logs_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loggers cannot be set up twice in one process; test_running does it in another."""
    monkeypatch.setattr(serve, "set_up_logs", lambda _: None)


@pytest.fixture
def production(tmp_path: Path, postgres: PostgresServer) -> Settings:
    """Settings of an operator with a node that does not answer now."""
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
    """Serve until the roles are printed, and return what is printed."""
    console = Stopping(file=io.StringIO(), width=200)
    run_serve(settings, names, ProcessRole(), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_named_roles_are_served_until_a_signal_comes(production: Settings) -> None:
    printed = served(production, "data", "discovery")
    assert printed == f"serving data, discovery at {production.base_url}\n"
    assert is_free(production.port)


def test_all_roles_are_served_when_none_is_named(production: Settings) -> None:
    assert (
        served(production) == f"serving {', '.join(sorted(ALL_ROLES))} at {production.base_url}\n"
    )


@pytest.mark.parametrize("role", Role)
def test_every_role_runs_by_itself(production: Settings, role: Role) -> None:
    shards = 1 if role in {Role.ENGINE, Role.TREASURY} else 0
    settings = production.model_copy(update={"shards": shards})
    assert served(settings, role).startswith(f"serving {role} at ")


def test_an_unknown_role_is_refused_with_the_known_ones(
    production: Settings,
) -> None:
    with pytest.raises(UnknownRole) as refused:
        run_serve(production, ["data", "sales"], ProcessRole(), Console(quiet=True))
    assert refused.value.message == (
        "sales is not a role; roles are creation, data, discovery, engine, indexer, relayer,"
        " settlement, trading, treasury, web"
    )


def test_a_sandbox_is_refused(settings: Settings) -> None:
    with pytest.raises(MissingSetting, match="for the sandbox run: foretell up"):
        run_serve(settings, ["data"], ProcessRole(), Console(quiet=True))
    assert not settings.data.exists()


def test_roles_in_separate_processes_need_a_database_server(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, rpc_url=SecretStr("http://127.0.0.1:1"))
    with pytest.raises(MissingSetting, match="need PostgreSQL"):
        run_serve(settings, ["data", "indexer"], ProcessRole(), Console(quiet=True))


@pytest.mark.parametrize("role", [Role.ENGINE, Role.TREASURY])
def test_attack_m4_an_engine_of_its_own_process_needs_the_number_of_engines(
    production: Settings, role: Role
) -> None:
    """It would look for its markets among none, and failed at the first one."""
    with pytest.raises(MissingSetting, match="FORETELL_SHARDS is not set"):
        run_serve(production, [role], ProcessRole(), Console(quiet=True))
    assert list(production.data.glob("journal*")) == []


def test_attack_m4_an_engine_with_a_number_that_no_shard_has_is_refused(
    production: Settings,
) -> None:
    settings = production.model_copy(update={"shards": 2})
    with pytest.raises(UnknownShard, match="--shard 2 is no engine of 2; their numbers are 0 to 1"):
        run_serve(settings, [Role.ENGINE], ProcessRole(shard=2), Console(quiet=True))
    assert list(settings.data.glob("journal*")) == []


@pytest.mark.parametrize("names", [[], ["data"], ["trading", "data"]])
def test_workers_serve_trading_alone(production: Settings, names: list[str]) -> None:
    with pytest.raises(InvalidWorkerRoles, match="--workers needs the one role trading"):
        run_fleet(production, names, 2, Console(quiet=True))


def test_a_child_that_refuses_to_run_ends_with_a_code_of_its_own(
    production: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = production.model_copy(update={"master_key": None})
    with pytest.raises(SystemExit) as ended:
        run_serve(settings, ["trading"], ProcessRole(parent=ParentProcess()), Console(quiet=True))
    assert ended.value.code == REFUSED_CODE
    assert capfd.readouterr().err == "error: FORETELL_MASTER_KEY is not set\n"
    with pytest.raises(MissingKey):
        run_serve(settings, ["trading"], ProcessRole(), Console(quiet=True))
