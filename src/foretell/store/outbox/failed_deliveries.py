"""Earlier trades that were to bring a wallet what it gives in a later one, and were mined in vain."""

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.failed_trades.short_orders import parts_of_orders
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.settlement import tx_id_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.tables import fills, settlement_txs, trades
from foretell.store.trading.trades import TradeRow, load_trades_by_id

BLOCKS_BACK_MAX: Final = 10
"""How many blocks before its own a trade may have been simulated."""
TRADES_MAX: Final = 200
"""Most earlier trades of the wallet that are looked at, the newest."""


async def has_failed_delivery(
    tx: Transaction, trade: TradeRow, wallet: Address, block_number: int, tries_max: int
) -> bool:
    """Return whether a wallet may have lacked in a block what an earlier trade failed to bring it."""
    parts = parts_of_orders(trade.trade, trade.token_id, trade.fill_tokens)
    given = {part.gives for part in parts if part.wallet == wallet}
    earlier = await _load_earlier_of(tx, trade, wallet)
    bringing = [row.trade.trade_id for row in earlier if _brings(row, wallet, given)]
    keys = [(tx_id_of(each, number),) for each in bringing for number in range(1, tries_max + 1)]
    rows = await load_rows(tx, settlement_txs, (settlement_txs.c.tx_id,), keys)
    blocks = range(block_number - BLOCKS_BACK_MAX, block_number + 1)
    return any(row.status == TxStatus.FAILED and row.block_number in blocks for row in rows)


def _brings(row: TradeRow, wallet: Address, assets: Collection[AssetId]) -> bool:
    parts = parts_of_orders(row.trade, row.token_id, row.fill_tokens)
    return any(part.wallet == wallet and part.gets in assets for part in parts)


async def _load_earlier_of(tx: Transaction, trade: TradeRow, wallet: Address) -> list[TradeRow]:
    """Return trades of the wallet before this one."""
    is_maker = sa.exists().where(fills.c.trade_id == trades.c.trade_id, fills.c.maker == wallet)
    is_earlier = sa.tuple_(trades.c.matched_at_ms, trades.c.sequence) < sa.tuple_(
        trade.trade.matched_at_ms, trade.sequence
    )
    newest = (
        sa.select(trades.c.trade_id)
        .where(is_earlier, sa.or_(trades.c.taker == wallet, is_maker))
        .order_by(trades.c.matched_at_ms.desc(), trades.c.sequence.desc())
        .limit(TRADES_MAX)
    )
    return list(await load_trades_by_id(tx, [row.trade_id for row in await tx.all(newest)]))
