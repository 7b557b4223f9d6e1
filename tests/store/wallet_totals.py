"""The totals and volumes of wallets, kept for rows of a rig as the indexer keeps them."""

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityRow
from foretell.store.index.traded_volumes import (
    UNLISTED,
    RunningVolume,
    VolumeChange,
    load_exchanges,
)
from foretell.store.index.trading_totals import (
    TradedMarket,
    TradingTotals,
    load_traded_markets,
    load_traded_volumes,
    load_trading_totals,
    record_traded_markets,
    record_traded_volumes,
    record_trading_totals,
)


async def add_trade(tx: Transaction, act: ActivityRow) -> None:
    """Add a trade, the only one of its block, to the totals and the volume of its wallet."""
    known = {each.wallet: each for each in await load_trading_totals(tx, [act.wallet])}
    was = known.get(act.wallet, TradingTotals(act.wallet, 0, 0, 0, 0))
    market = act.wallet, act.condition_id
    is_first = market not in await load_traded_markets(tx, [market])
    if is_first:
        await record_traded_markets(tx, [TradedMarket(act.block_number, 0, 0, *market)])
    counted = TradingTotals(
        act.wallet,
        was.trades + 1,
        was.markets + is_first,
        min(was.volume_units + act.cost_units, AMOUNT_UNITS_MAX),
        act.block_number,
    )
    await record_trading_totals(tx, [counted])
    exchanges = await load_exchanges(tx, [act.condition_id])
    key = act.wallet, exchanges.get(act.condition_id, UNLISTED)
    before = (await load_traded_volumes(tx, [key])).get(key, RunningVolume())
    volume = RunningVolume(before.units + act.cost_units, act.timestamp_s)
    await record_traded_volumes(tx, [VolumeChange(*key, act.block_number, volume)])
