"""Barred wallets, and the gas that failed settlements of wallets cost; written by settlement."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.wallets.wallet_bars import WalletBar
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.outbox.settlements import TOPIC
from foretell.store.tables import barred_wallets, fills, trades, wallet_gas

_IS_BARRED = barred_wallets.c.is_barred.is_(sa.true())


async def record_bar(tx: Transaction, bar: WalletBar) -> None:
    """Store a bar in the place of what was stored of its wallet."""
    await tx.execute(barred_wallets.delete().where(barred_wallets.c.wallet == bar.wallet))
    await tx.execute(barred_wallets.insert(), [bar._asdict()])
    await tx.announce(TOPIC)


async def load_bar(tx: Transaction, wallet: Address) -> WalletBar | None:
    """Return what is stored of a wallet's bar."""
    row = await tx.first(sa.select(barred_wallets).where(barred_wallets.c.wallet == wallet))
    return None if row is None else WalletBar._make(row)


async def load_barred(tx: Transaction) -> Sequence[WalletBar]:
    """Return all bars that have not ended, the oldest first."""
    return await _load(tx, _IS_BARRED)


async def load_bars_of(tx: Transaction, wallets: Collection[Address]) -> Sequence[WalletBar]:
    """Return what is stored of these wallets' bars, ended ones included."""
    return await _load(tx, barred_wallets.c.wallet.in_(sorted(wallets)))


async def load_bars_in_trades(tx: Transaction, trade_ids: Collection[str]) -> Sequence[WalletBar]:
    """Return the bars of wallets of these trades that settlement set, and that have not ended."""
    taken = sa.select(trades.c.taker).where(trades.c.trade_id.in_(trade_ids))
    made = sa.select(fills.c.maker).where(fills.c.trade_id.in_(trade_ids))
    is_of_them = barred_wallets.c.wallet.in_(sa.union(taken, made).scalar_subquery())
    return await _load(tx, _IS_BARRED, barred_wallets.c.probe_at_ms.is_not(None), is_of_them)


async def load_probes(tx: Transaction, now_ms: int, limit: int) -> Sequence[WalletBar]:
    """Return the bars with a probe that is due, or that is on its way."""
    is_due = barred_wallets.c.probe_at_ms <= now_ms
    is_sent = barred_wallets.c.probe_tx_id.is_not(None)
    return await _load(tx, sa.or_(is_sent, sa.and_(_IS_BARRED, is_due)), limit=limit)


async def add_gas(tx: Transaction, wallet: Address, day: int, gas: int) -> int:
    """Add the gas of a failed settlement, and return all of the wallet's on that day; old days are forgotten."""
    await forget_old_gas(tx, day)
    known = wallet_gas.c.wallet == wallet, wallet_gas.c.day == day
    before = await tx.scalar(sa.select(wallet_gas.c.gas).where(*known))
    total = gas + int(before or 0)
    await tx.execute(wallet_gas.delete().where(*known))
    await tx.execute(wallet_gas.insert(), [{"wallet": wallet, "day": day, "gas": total}])
    return total


async def forget_old_gas(tx: Transaction, day: int) -> None:
    """Delete what is stored of the days before yesterday, which decide nothing any more."""
    await tx.execute(wallet_gas.delete().where(wallet_gas.c.day < day - 1))


class WalletGas(NamedTuple):
    """The gas that failed settlements of a wallet cost on a day of UTC, counted from 1970.

    The zero address has that of matches that failed in batches.
    """

    day: int
    wallet: Address
    gas: int


async def load_gas(tx: Transaction) -> Sequence[WalletGas]:
    """Return the gas of all wallets that is known, the last day first and of that the most first."""
    columns = wallet_gas.c
    query = sa.select(columns.day, columns.wallet, columns.gas).where(columns.gas > 0)
    ordered = query.order_by(columns.day.desc(), columns.gas.desc(), columns.wallet)
    return [WalletGas._make(row) for row in await tx.all(ordered)]


async def _load(
    tx: Transaction, *where: sa.ColumnElement[bool], limit: int | None = None
) -> Sequence[WalletBar]:
    query: sa.Select[Any] = sa.select(barred_wallets).where(*where)
    ordered = query.order_by(barred_wallets.c.barred_at_ms, barred_wallets.c.wallet).limit(limit)
    return [WalletBar._make(row) for row in await tx.all(ordered)]
