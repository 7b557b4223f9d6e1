"""Rounds of the loops of settlement and the relayer by a test's clock, and what must hold after them."""

import contextlib
import random
from collections.abc import Awaitable
from typing import Final

import sqlalchemy as sa
from tests.relayer.rig import RelayerRig
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.errors.families import ForetellError
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.outbox.transactions import TxTables

DRAINED_WITHIN_S: Final = 60
FURTHER: Final = 7
"""The number of the sandbox's account that settles beside the first one."""


async def attempt(*steps: Awaitable[object]) -> None:
    """Run steps as workers do: one that fails as a node makes it fail is repeated later."""
    for step in steps:
        with contextlib.suppress(ForetellError):
            await step


async def used_nonces(sandbox: Sandbox, address: Address) -> int:
    return int(await sandbox.rpc.call("eth_getTransactionCount", address, "latest"), 16)


async def check_nonces(
    sandbox: Sandbox, database: Database, tables: TxTables, account: Address, before: int
) -> None:
    """Check that each nonce of the account since then is that of one row, and none is left out."""
    after = await used_nonces(sandbox, account)
    query = sa.select(tables.txs.c.account_nonce).where(tables.txs.c.sender == account)
    async with database.reading() as tx:
        nonces = sorted(row.account_nonce for row in await tx.all(query))
    assert [nonce for nonce in nonces if nonce >= before] == list(range(before, after))


async def match(rng: random.Random, market: SandboxMarket, traders: list[Trader]) -> list[str]:
    """Match orders of two traders in one of the three ways, and return the ids of the trades."""
    maker, taker = rng.sample(traders, 2)
    kind = rng.choice(("sale", "mint", "merge"))
    if kind == "mint":
        placed = [await maker.buy(market, 40, 4 * UNIT)]
    else:
        placed = [await maker.sell(market, 40, 4 * UNIT)]
    for _ in range(rng.randint(1, 2)):
        if kind == "sale":
            placed.append(await taker.buy(market, 40, UNIT))
        elif kind == "mint":
            placed.append(await taker.buy(market, 60, UNIT, is_yes=False))
        else:
            placed.append(await taker.sell(market, 60, UNIT, is_yes=False))
    return [trade_id for placement in placed for trade_id in placement.trade_ids]


async def drain_trades(rig: SettlementRig) -> None:
    """Run settlement's loops, once a second, until no trade and no transaction is left."""
    operators = (rig.context.operator, *rig.context.further_operators)
    for _ in range(DRAINED_WITHIN_S):
        await attempt(rig.act())
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await attempt(rig.see())
        if not rig.engine.state.unsettled_trades:
            with contextlib.suppress(ForetellError):
                if not sum([await each.run_once() for each in operators]):
                    return
    raise AssertionError(rig.engine.state.unsettled_trades)


async def drain_requests(rig: RelayerRig) -> None:
    """Run the relayer's loops, once a second, until no request and no transaction is open."""
    for _ in range(DRAINED_WITHIN_S):
        open_count = 1
        with contextlib.suppress(ForetellError):
            open_count = await rig.context.sender.run_once() + await rig.run_once()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        if not open_count:
            return
    raise AssertionError("the queue of requests does not drain")
