"""`foretell serve`: chosen roles, against a node and a database of the operator's."""

from collections.abc import Sequence

from rich.console import Console

from foretell.app.installation import ALL_ROLES, Installation, Role
from foretell.cli.running import run_until_stopped, set_up_logs
from foretell.domain.command_errors import MissingSetting, UnknownRole
from foretell.settings import Settings


def run_serve(settings: Settings, names: Sequence[str], console: Console) -> None:
    """Run the roles until a signal comes."""
    set_up_logs(settings)
    if settings.is_sandbox:
        raise MissingSetting("rpc_url", "serve works with a node of yours; see also: foretell up")
    roles = [_role(name) for name in names] or sorted(ALL_ROLES)
    if settings.is_embedded and set(roles) != ALL_ROLES:
        raise MissingSetting(
            "database_url", "roles in processes of their own meet in PostgreSQL, not in a file"
        )

    async def greet() -> None:
        console.print(f"serving {', '.join(roles)} at {settings.base_url}")

    run_until_stopped(Installation(settings, roles), greet, lambda: None)


def _role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise UnknownRole(name, sorted(ALL_ROLES)) from None
