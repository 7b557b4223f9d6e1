"""Debts of wallets from unsettled trades, and the wallets whose settlements failed lately.

Written and read by settlement. The rows of `wallet_gas` of a day name the wallets of settlements that failed on it. The row of the zero
address has the gas of matches that failed in batches, of which no wallet is proved to be to blame.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.outbox.settlements import UNSETTLED
from foretell.store.outbox.wallet_bars import add_gas, forget_old_gas
from foretell.store.tables import barred_wallets, fills, trades, wallet_gas

NOBODY: Final = ZERO_ADDRESS
"""The wallet whose row has the gas of failures without a proved cause."""


async def load_owed(tx: Transaction) -> Mapping[tuple[Address, AssetId], int]:
    """Return what all unsettled trades take of each wallet and asset, in base units."""
    is_unsettled = trades.c.status.in_(UNSETTLED)
    taken = sa.select(
        trades.c.taker.label("wallet"),
        _asset(trades.c.side, trades.c.token_id),
        trades.c.taker_fill_units.label("units"),
    ).where(is_unsettled)
    made = (
        sa.select(fills.c.maker, _asset(fills.c.side, fills.c.token_id), fills.c.making_units)
        .join(trades, trades.c.trade_id == fills.c.trade_id)
        .where(is_unsettled)
    )
    given = sa.union_all(taken, made).subquery()
    owed = sa.func.sum(given.c.units).label("units")
    rows = await tx.all(
        sa.select(given.c.wallet, given.c.asset, owed).group_by(given.c.wallet, given.c.asset)
    )
    return {(Address(row.wallet), AssetId(row.asset)): int(row.units) for row in rows}


def _asset(side: sa.Column[str], token_id: sa.Column[str]) -> sa.Label[str]:
    """Return what an order of this side gives: collateral, or the token."""
    is_buy = side == Side.BUY.name
    return sa.case((is_buy, sa.literal(COLLATERAL)), else_=token_id).label("asset")


async def load_troubled(
    tx: Transaction, wallets: Collection[Address], since_day: int
) -> frozenset[Address]:
    """Return which of these wallets are barred, or were in a settlement that failed since a day of UTC."""
    keys = [(wallet,) for wallet in wallets]
    gas = await load_rows(tx, wallet_gas, (wallet_gas.c.wallet,), keys)
    bars = await load_rows(tx, barred_wallets, (barred_wallets.c.wallet,), keys)
    troubled = {Address(row.wallet) for row in gas if row.day >= since_day}
    return frozenset(troubled | {Address(row.wallet) for row in bars if row.is_barred})


async def load_gas_of_failures(tx: Transaction, day: int) -> int:
    """Return the gas of matches that failed in batches on a day."""
    is_known = wallet_gas.c.wallet == NOBODY, wallet_gas.c.day == day
    return int(await tx.scalar(sa.select(wallet_gas.c.gas).where(*is_known)) or 0)


async def record_failures(
    tx: Transaction, trade_ids: Sequence[str], day: int, batch_gas: int
) -> None:
    """Store that settlements failed on a day: the wallets of these trades, and the gas within batches.

    Old days are forgotten.
    """
    await forget_old_gas(tx, day)
    taken = sa.select(trades.c.taker.label("wallet")).where(trades.c.trade_id.in_(trade_ids))
    made = sa.select(fills.c.maker).where(fills.c.trade_id.in_(trade_ids))
    for row in await tx.all(sa.union(taken, made)):
        await tx.insert_new(wallet_gas, wallet=row.wallet, day=day, gas=0)
    if batch_gas:
        await add_gas(tx, NOBODY, day, batch_gas)
