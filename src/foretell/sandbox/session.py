"""Clients of a running sandbox: its public APIs, its chain, and its public keys."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final, Self

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.chain.rpc import Rpc
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address
from foretell.sandbox.ready import Ready
from foretell.sdk import wallet_calls
from foretell.sdk.chain import ChainAccount
from foretell.sdk.contracts import Contracts
from foretell.sdk.http import HttpClient
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.oracles.optimistic import OptimisticResolver
from foretell.sdk.oracles.resolution import MarketResolver
from foretell.sdk.signing.signers import KeySigner

GAS_MONEY_WEI: Final = 10**18


@dataclass(kw_only=True)
class SandboxSession:
    """A sandbox as its users see it."""

    ready: Ready
    deployment: Deployment
    rpc: Rpc
    trading: HttpClient
    worker: HttpClient
    relayer: HttpClient
    data: HttpClient
    discovery: HttpClient

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, ready: Ready, deployment: Deployment, **fields: Any) -> AsyncIterator[Self]:
        """Give a session; its connections end with the block."""
        async with contextlib.AsyncExitStack() as stack:

            async def client(url: str) -> HttpClient:
                return await stack.enter_async_context(HttpClient(url))

            yield cls(
                ready=ready,
                deployment=deployment,
                rpc=await stack.enter_async_context(Rpc(ready.rpc)),
                trading=await client(ready.clob),
                worker=await client(ready.worker),
                relayer=await client(ready.relayer),
                data=await client(ready.data),
                discovery=await client(ready.discovery),
                **fields,
            )

    def now_s(self) -> int:
        """Return the time in seconds."""
        return now_ms() // 1000

    def caller(self, private_key: bytes) -> SetupCaller:
        """Return the sender of a key's transactions."""
        return SetupCaller(self.rpc, private_key, self.ready.chain_id)

    @contextlib.asynccontextmanager
    async def resolver(self, private_key: bytes) -> AsyncIterator[MarketResolver]:
        """Give a proposer of directly resolved markets."""
        async with JsonRpc(self.ready.rpc) as node:
            yield MarketResolver(
                self._chain_account(node, private_key), await Contracts.fetch(self.worker)
            )

    @contextlib.asynccontextmanager
    async def optimistic(self, private_key: bytes) -> AsyncIterator[OptimisticResolver]:
        """Give an account that proposes and disputes answers with bonds."""
        async with JsonRpc(self.ready.rpc) as node:
            yield OptimisticResolver(
                self._chain_account(node, private_key), await Contracts.fetch(self.worker)
            )

    def _chain_account(self, node: JsonRpc, private_key: bytes) -> ChainAccount:
        return ChainAccount(node, KeySigner(private_key), self.ready.chain_id)

    def new_salt(self) -> int:
        """Return a random number that distinguishes an order from every other."""
        return int.from_bytes(new_key()[:6], "big")

    def account(self, role: AccountRole) -> bytes:
        """Return the key of an account of the sandbox."""
        return self.ready.account(role).key

    async def new_account(self) -> bytes:
        """Return a new key, with money for gas at its address."""
        key = new_key()
        faucet = self.caller(self.account(AccountRole.FAUCET))
        await faucet.call_all([ContractCall(address_of_key(key), b"", 21_000, GAS_MONEY_WEI)])
        return key

    async def fund(self, wallet: Address, units: int) -> None:
        """Give a wallet collateral from the faucet."""
        faucet = self.caller(self.account(AccountRole.FAUCET))
        await faucet.call(self.deployment.collateral, Transfer(wallet, units).encode())


def approvals(deployment: Deployment) -> list[InnerCall]:
    """Return the calls that let exchanges and the contracts that split and merge move a wallet's assets."""
    return wallet_calls.approvals(Contracts.of(deployment))


def approval_calls(deployment: Deployment) -> list[ContractCall]:
    """Return the same calls for an account that sends its own transactions."""
    return [ContractCall(call.to, call.calldata) for call in approvals(deployment)]
