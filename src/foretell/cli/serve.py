"""`foretell serve`: chosen roles, against a node and a database of the operator's."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from foretell.app.engine_processes import NO_LISTENER
from foretell.app.installation import Installation, ParentProcess
from foretell.app.roles import ALL_ROLES, Role
from foretell.app.running import run_until_stopped, set_up_logs
from foretell.app.worker_processes import Fleet
from foretell.domain.errors.command import MissingSetting, UnknownRole
from foretell.runtime.garbage_collection import settle_memory
from foretell.settings import Settings


@dataclass(frozen=True, slots=True)
class ProcessRole:
    """Of an installation in several processes, the one that this process is."""

    shard: int = 0
    member: int | None = None
    """Of a fleet: the file number of the port's socket, or NO_LISTENER; None for who is on its own."""


def run_serve(
    settings: Settings, names: Sequence[str], part: ProcessRole, console: Console
) -> None:
    """Run the roles until a signal comes."""
    set_up_logs(settings)
    roles = [_role(name) for name in names] or sorted(ALL_ROLES)
    _check_apart(settings, is_whole=set(roles) == ALL_ROLES)

    async def greet() -> None:
        settle_memory()
        if part.member is None:
            console.print(f"serving {', '.join(roles)} at {settings.base_url}")

    membership = None
    if part.member is not None:
        membership = ParentProcess(None if part.member == NO_LISTENER else part.member)
    installation = Installation(settings, roles, shard=part.shard, membership=membership)
    run_until_stopped(installation, greet, lambda: None, is_tied=membership is not None)


def run_fleet(settings: Settings, names: Sequence[str], workers: int, console: Console) -> None:
    """Serve trading in several processes until a signal comes."""
    set_up_logs(settings)
    if list(names) != [Role.TRADING]:
        raise MissingSetting("workers", "only trading is served by several processes")
    _check_apart(settings, is_whole=False)

    async def greet() -> None:
        console.print(
            f"serving trading at {settings.base_url} by {workers} processes,"
            f" with {settings.shards} engines"
        )

    run_until_stopped(Fleet(settings, workers), greet, lambda: None)


def _check_apart(settings: Settings, *, is_whole: bool) -> None:
    if settings.is_sandbox:
        raise MissingSetting("rpc_url", "serve works with a node of yours; see also: foretell up")
    if settings.is_embedded and not (is_whole and settings.shards == 0):
        raise MissingSetting(
            "database_url", "roles in processes of their own meet in PostgreSQL, not in a file"
        )


def _role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise UnknownRole(name, sorted(ALL_ROLES)) from None
