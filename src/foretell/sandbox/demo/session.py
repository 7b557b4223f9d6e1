"""What the story plays on: a running installation, its clients, and a console to tell it."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Final, Self

from rich.console import Console
from rich.markup import escape

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.chain.rpc import Rpc
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address
from foretell.sandbox.ready import Ready
from foretell.sdk.http import HttpClient

GAS_MONEY_WEI: Final = 10**18


@dataclass(slots=True)
class DemoSession:
    """An installation as its users see it."""

    ready: Ready
    deployment: Deployment
    console: Console
    rpc: Rpc
    trading: HttpClient
    worker: HttpClient
    relayer: HttpClient
    data: HttpClient
    discovery: HttpClient
    paid_in_units: dict[Address, int] = field(default_factory=dict)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, ready: Ready, deployment: Deployment, console: Console
    ) -> AsyncIterator[Self]:
        """Give a stage whose connections end with the block."""
        async with contextlib.AsyncExitStack() as stack:

            async def client(url: str) -> HttpClient:
                return await stack.enter_async_context(HttpClient(url))

            yield cls(
                ready=ready,
                deployment=deployment,
                console=console,
                rpc=await stack.enter_async_context(Rpc(ready.rpc)),
                trading=await client(ready.clob),
                worker=await client(ready.worker),
                relayer=await client(ready.relayer),
                data=await client(ready.data),
                discovery=await client(ready.discovery),
            )

    def now_s(self) -> int:
        """Return the time in seconds."""
        return now_ms() // 1000

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self.console.print(f"\n[bold cyan]{escape(title)}[/]")

    def tell(self, text: str) -> None:
        """Tell something that is so."""
        self.console.print(f"  [green]✓[/] {escape(text)}")

    @contextlib.contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show that something takes a moment."""
        with self.console.status(f"  {escape(text)} …", spinner="dots"):
            yield

    def caller(self, private_key: bytes) -> SetupCaller:
        """Return the hand of a key on the chain."""
        return SetupCaller(self.rpc, private_key, self.ready.chain_id)

    def new_salt(self) -> int:
        """Return a number that makes an order unlike any other."""
        return int.from_bytes(new_key()[:6], "big")

    def account(self, role: AccountRole) -> bytes:
        """Return the key of an account of the sandbox."""
        return self.ready.account(role).key

    async def new_account(self) -> bytes:
        """Return a new key whose address has money for gas."""
        key = new_key()
        faucet = self.caller(self.account(AccountRole.FAUCET))
        await faucet.call_all([ContractCall(address_of_key(key), b"", 21_000, GAS_MONEY_WEI)])
        return key

    async def fund(self, wallet: Address, units: int) -> None:
        """Give a wallet collateral from the faucet."""
        faucet = self.caller(self.account(AccountRole.FAUCET))
        await faucet.call(self.deployment.collateral, Transfer(wallet, units).encode())
        self.paid_in_units[wallet] = self.paid_in_units.get(wallet, 0) + units
