"""All trading clients at once in one book of a running installation, and what the chain says afterwards.

Each of them rests an order that another client takes, and takes an order that another one rested.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, NamedTuple

import pytest
from tests.ecosystem.clients import (
    KUEST_V2,
    NAMES,
    POLYMARKET_V2,
    PROXY_CHAIN,
    RELAYER_CLIENTS,
    RELAYER_DRIVER,
    Client,
    Family,
    a_client,
)
from tests.rigs.installation import Running

from foretell.chain.reader import Reader
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import TRADER_UNITS, AccountRole
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.session import approvals

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

POLYMARKET: Final = "@polymarket/clob-client"
TRADING_CLIENTS: Final = (*NAMES, POLYMARKET_V2, KUEST_V2, POLYMARKET, f"{POLYMARKET}-v2")
FOR_PROXY_WALLETS: Final = (NAMES[0], f"{POLYMARKET}-v2")
"""The clients, one of each version of the order struct, that trade for a proxy wallet besides."""
FUND_UNITS: Final = 100 * UNITS_PER_TOKEN
SETTLED_WITHIN_S: Final = 600.0
POLLS_MAX: Final = 400
POLL_MS: Final = 1_000
POLL_S: Final = 0.2


class Party(NamedTuple):
    """A client, and the wallet that it trades for."""

    client: Client
    wallet: Address
    is_in_typescript: bool

    async def place(self, token_id: str, side: str, price: float, size: float) -> str:
        """Return the status of an order that the client signs and posts."""
        if self.is_in_typescript:
            order = {"tokenID": token_id, "price": price, "size": size, "side": side}
            answer = await self.client.call("createAndPostOrder", order)
        else:
            order = {"token_id": token_id, "price": price, "size": size, "side": side}
            args = {"__type": "OrderArgs"} | order
            answer = await self.client.call("create_and_post_order", args)
        return str(answer["status"])


class Holdings(NamedTuple):
    """The base units of a wallet on the chain, or their change."""

    collateral: int
    yes: int
    no: int

    @classmethod
    def of(cls, collateral: float, yes: float, no: float) -> "Holdings":
        return cls(*(round(each * UNITS_PER_TOKEN) for each in (collateral, yes, no)))


def login_of(name: str) -> str:
    if name.startswith("@"):
        return "createOrDeriveApiKey"
    return "create_or_derive_api_key" if name == POLYMARKET_V2 else "create_or_derive_api_creds"


@contextlib.asynccontextmanager
async def a_relayer_client(
    session: DemoSession, name: str, key: bytes, client: Client, **fields: Any
) -> AsyncIterator[Family]:
    """Give a client of relayers of a key, with the credentials of its trading client."""
    family = Family(name, RELAYER_DRIVER)
    await family.start()
    try:
        await family.ask(
            make=True,
            url=session.ready.relayer,
            rpc=session.ready.rpc,
            key="0x" + key.hex(),
            credentials=credentials_of(client),
            **fields,
        )
        yield family
    finally:
        await family.stop()


def credentials_of(client: Client) -> dict[str, str]:
    """Return the credentials that a trading client created, by the names of the clients of relayers."""
    created = client.credentials
    if "secret" in created:  # as the clients in TypeScript name them
        return {name: created[name] for name in ("key", "secret", "passphrase")}
    return {name: created[f"api_{name}"] for name in ("key", "secret", "passphrase")}


async def make_proxy_wallet(session: DemoSession, key: bytes, client: Client) -> None:
    """Have Polymarket's client of relayers approve the exchanges from a key's proxy wallet, which makes it."""
    async with a_relayer_client(
        session, RELAYER_CLIENTS[0], key, client, proxy_chain=PROXY_CHAIN
    ) as family:
        own = checksum_address(session.deployment.proxy_wallet_of(client.address))
        assert await family.ask(call="get_expected_proxy_wallet", args=[]) == own
        assert await family.ask(call="get_deployed", args=[own, "PROXY"]) is False
        await execute_from_proxy(family, approvals(session.deployment))
        assert await family.ask(call="get_deployed", args=[own, "PROXY"]) is True


async def execute_from_proxy(family: Family, calls: Sequence[InnerCall]) -> None:
    """Have a client of relayers make calls from its proxy wallet, and wait until they are final."""
    sent = [
        {
            "__type": "Transaction",
            "to": checksum_address(call.to),
            "data": "0x" + call.calldata.hex(),
            "value": "0",
        }
        for call in calls
    ]
    await mined(family, await family.ask(call="execute", args=[sent, "calls"]))


async def make_deposit_wallet(session: DemoSession, key: bytes, client: Client) -> None:
    """Have kuest's client of relayers create a key's deposit wallet, which then approves the exchanges."""
    async with a_relayer_client(session, RELAYER_CLIENTS[1], key, client) as family:
        wallet = session.deployment.deposit_wallets_of(client.address)[0]
        sent = await family.ask(call="deploy_deposit_wallet", args=[])
        await mined(family, sent)
        calls = [
            {
                "target": checksum_address(call.to),
                "value": "0",
                "data": "0x" + call.calldata.hex(),
            }
            for call in approvals(session.deployment)
        ]
        args = [checksum_address(wallet), str(int(time.time()) + 600)]
        batch = await family.ask(call="execute_deposit_wallet_batch", args=args, calls=calls)
        await mined(family, batch)


async def mined(family: Family, transaction_id: str) -> None:
    """Wait as a program does: the client asks until the transaction is final."""
    states = ["STATE_CONFIRMED"], "STATE_FAILED", POLLS_MAX, POLL_MS
    record = await family.ask(call="poll_until_state", args=[transaction_id, *states])
    assert record["state"] == "STATE_CONFIRMED"


@contextlib.asynccontextmanager
async def parties(session: DemoSession) -> AsyncIterator[list[Party]]:
    """Give a party of each client, with collateral that the exchanges may move."""
    keys = [each.key for each in session.ready.accounts if each.role == AccountRole.TRADER]
    async with AsyncExitStack() as stack:
        kinds = {KUEST_V2: 3}
        wanted = [(name, kinds.get(name, 0)) for name in TRADING_CLIENTS]
        wanted += [(name, 1) for name in FOR_PROXY_WALLETS]
        yield [
            await a_party(session, stack, name, key, kind)
            for (name, kind), key in zip(wanted, keys, strict=True)
        ]


async def a_party(
    session: DemoSession, stack: AsyncExitStack, name: str, key: bytes, kind: int
) -> Party:
    """Return a party that trades with a signature type: for its address, proxy or deposit wallet."""
    family, host = Family(name), session.ready.clob.removeprefix("http://")
    stack.push_async_callback(family.stop)
    address, deployment = address_of_key(key), session.deployment
    wallets = {
        0: address,
        1: deployment.proxy_wallet_of(address),
        3: deployment.deposit_wallets_of(address)[0],
    }
    wallet = wallets[kind]
    funder = wallet if kind else None
    client = await stack.enter_async_context(a_client(family, host, key, kind, funder))
    await client.log_in(login_of(name))
    if kind:
        make = {1: make_proxy_wallet, 3: make_deposit_wallet}[kind]
        await make(session, key, client)
        await session.fund(wallet, FUND_UNITS)
    return Party(client, wallet, name.startswith("@"))


async def holdings(session: DemoSession, wallet: Address) -> Holdings:
    """Return what a wallet has, read from the chain."""
    reader, market = Reader(session.rpc, session.deployment), session.ready.market
    tokens = [(wallet, market.token_yes), (wallet, market.token_no)]
    return Holdings(await reader.collateral_units(wallet), *await reader.token_units(tokens))


async def until_held(session: DemoSession, changes: dict[Address, Holdings]) -> None:
    """Wait until the chain has exactly these changes since the start; fail with those that it has."""
    found: dict[Address, Holdings] = {}
    deadline_s = time.monotonic() + SETTLED_WITHIN_S
    while found != changes:
        assert time.monotonic() < deadline_s, (found, changes)
        await asyncio.sleep(POLL_S)
        found = {}
        for wallet in changes:
            now = await holdings(session, wallet)
            is_own = wallet in {each.address.lower() for each in session.ready.accounts}
            start = TRADER_UNITS if is_own else FUND_UNITS
            found[wallet] = now._replace(collateral=now.collateral - start)


async def placed(party: Party, order: tuple[Any, ...], status: str) -> None:
    """Place an order until it is accepted: the engine sees the chain's balances a block later."""
    deadline_s = time.monotonic() + SETTLED_WITHIN_S
    while True:
        try:
            assert await party.place(*order) == status
        except Exception as error:
            if "balance" not in str(error) or time.monotonic() > deadline_s:
                raise
            await asyncio.sleep(POLL_S)
        else:
            return


async def test_all_clients_trade_in_one_book_and_the_chain_agrees(running: Running) -> None:
    async with running.session() as session, parties(session) as everybody:
        yes, no = session.ready.market.token_yes, session.ready.market.token_no
        first, second = everybody[::2], everybody[1::2]
        # Two bids make new tokens of their collateral.
        for one, other in zip(first, second, strict=True):
            await placed(one, (yes, "BUY", 0.4, 10), "live")
            await placed(other, (no, "BUY", 0.6, 10), "matched")
        bought = {each.wallet: Holdings.of(-4, 10, 0) for each in first}
        await until_held(session, bought | {each.wallet: Holdings.of(-6, 0, 10) for each in second})
        # Each of the first sells to a client that it has not met.
        for one, other in zip(first, [*second[1:], second[0]], strict=True):
            await placed(one, (yes, "SELL", 0.5, 5), "live")
            await placed(other, (yes, "BUY", 0.5, 5), "matched")
        sold = {each.wallet: Holdings.of(-1.5, 5, 0) for each in first}
        ends = sold | {each.wallet: Holdings.of(-8.5, 5, 10) for each in second}
        await until_held(session, ends)
    assert running.stop() == 0, running.output
