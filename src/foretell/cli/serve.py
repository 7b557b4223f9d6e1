"""`foretell serve`: chosen roles, on a node and a database of the operator."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.console import Console

from foretell.app.installation import Installation, ParentProcess
from foretell.app.lasting_refusals import LASTING_REFUSALS
from foretell.app.roles import ALL_ROLES, Role
from foretell.app.running import run_until_stopped, set_up_logs
from foretell.app.worker_processes import Fleet
from foretell.cli.failure import fail
from foretell.domain.errors.command import InvalidWorkerRoles, MissingSetting, UnknownRole
from foretell.domain.errors.sources import UnknownShard
from foretell.domain.values.sharding import shard_numbers
from foretell.runtime.child_processes import REFUSED_CODE
from foretell.runtime.garbage_collection import settle_memory
from foretell.settings import Settings


@dataclass(frozen=True, slots=True)
class ProcessRole:
    """The place of a process in an installation of several."""

    shard: int = 0
    parent: ParentProcess | None = None
    """The process that keeps this one running, if there is one."""


def run_serve(
    settings: Settings, names: Sequence[str], place: ProcessRole, console: Console
) -> None:
    """Run the roles until a signal comes.

    A child process with settings or data that do not let it run ends with a code of its own, so that its
    parent does not start it again.
    """
    if place.parent is None:
        _run_roles(settings, names, place, console)
        return
    try:
        _run_roles(settings, names, place, Console(quiet=True))
    except LASTING_REFUSALS as refusal:
        fail(refusal.message, REFUSED_CODE)


def _run_roles(
    settings: Settings, names: Sequence[str], place: ProcessRole, console: Console
) -> None:
    set_up_logs(settings)
    roles = [_role(name) for name in names] or sorted(ALL_ROLES)
    _check_database(settings, is_whole=set(roles) == ALL_ROLES)
    _check_shard(settings, roles, place.shard)

    async def greet() -> None:
        settle_memory()
        console.print(f"serving {', '.join(roles)} at {settings.base_url}")

    parent = place.parent
    installation = Installation(settings, roles, shard=place.shard, parent=parent)
    run_until_stopped(
        installation,
        greet,
        lambda: None,
        on_hangup=installation.reload_limits,
        ends_with_parent=parent is not None,
    )


def run_fleet(settings: Settings, names: Sequence[str], workers: int, console: Console) -> None:
    """Serve trading in several processes until a signal comes."""
    set_up_logs(settings)
    if list(names) != [Role.TRADING]:
        raise InvalidWorkerRoles(list(names))
    _check_database(settings, is_whole=False)

    async def greet() -> None:
        console.print(
            f"serving trading at {settings.base_url} by {workers} processes,"
            f" with {settings.shards} engines"
        )

    fleet = Fleet(settings, workers)
    run_until_stopped(fleet, greet, lambda: None, on_hangup=fleet.reload_limits)


def _check_database(settings: Settings, *, is_whole: bool) -> None:
    """Refuse settings without a node, and a database in a file for several processes."""
    if settings.is_sandbox:
        raise MissingSetting(
            "rpc_url", "foretell serve needs your node; for the sandbox run: foretell up"
        )
    if settings.is_embedded and not (is_whole and settings.shards == 0):
        raise MissingSetting("database_url", "roles in separate processes need PostgreSQL")


def _check_shard(settings: Settings, roles: Collection[Role], shard: int) -> None:
    """Refuse an engine of its own process without a number of shards, or with a number that none has."""
    if not {Role.ENGINE, Role.TREASURY} & set(roles):
        return
    if settings.shards == 0:
        raise MissingSetting("shards", "set it, or --shards, to the number of all engines")
    if shard not in shard_numbers(settings.shards):
        raise UnknownShard(shard, settings.shards)


def _role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise UnknownRole(name, sorted(Role)) from None
