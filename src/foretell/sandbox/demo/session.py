"""The session of a demo: the clients of a sandbox, and the console that the demo prints on."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from typing_extensions import override

from foretell.domain.values.hexadecimal import Address
from foretell.sandbox.session import SandboxSession


@dataclass(kw_only=True)
class DemoSession(SandboxSession):
    """A sandbox, a console, and what every wallet was given."""

    console: Console
    paid_in_units: dict[Address, int] = field(default_factory=dict)

    def chapter(self, title: str) -> None:
        """Print the title of a part of the demo."""
        self.console.print(f"\n[bold cyan]{escape(title)}[/]")

    def state(self, text: str) -> None:
        """Print a fact."""
        self.console.print(f"  [green]✓[/] {escape(text)}")

    @contextlib.contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show that something takes a moment."""
        with self.console.status(f"  {escape(text)} …", spinner="dots"):
            yield

    @override
    async def fund(self, wallet: Address, units: int) -> None:
        """Give a wallet collateral from the faucet, and count it."""
        await super().fund(wallet, units)
        self.paid_in_units[wallet] = self.paid_in_units.get(wallet, 0) + units
