"""Earlier trades that were to bring a wallet what it gives in a later one, and had not done so."""

from collections.abc import Collection
from typing import Final

from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.failed_trades.short_orders import parts_of_orders
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.settlement import tx_id_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.outbox.settlements import load_settlement_outcomes
from foretell.store.tables import settlement_txs
from foretell.store.trading.trades import TradeRow
from foretell.store.trading.wallet_trades import load_trades_before

BLOCKS_BACK_MAX: Final = 10
"""How many blocks before its own a trade may have been simulated."""
TRADES_MAX: Final = 200
"""Most earlier trades of the wallet that are looked at, the newest."""


async def has_failed_delivery(
    tx: Transaction, trade: TradeRow, wallet: Address, block_number: int, tries_max: int
) -> bool:
    """Return whether a wallet may have lacked in a block what an earlier trade failed to bring it.

    That is one that is tried still and was in no block up to that one: it may have failed within a batch, whose
    transaction does not fail. Or it is one whose own transaction was mined in vain there or shortly before.
    """
    parts = parts_of_orders(trade.trade, trade.token_id, trade.fill_tokens)
    given = {part.gives for part in parts if part.wallet == wallet}
    earlier = await load_trades_before(tx, wallet, trade, TRADES_MAX)
    bringing = [row.trade.trade_id for row in earlier if _brings(row, wallet, given)]
    for outcome in await load_settlement_outcomes(tx, bringing):
        landed_in = outcome.block_number
        if not outcome.is_given_up if landed_in is None else landed_in > block_number:
            return True
    keys = [(tx_id_of(each, number),) for each in bringing for number in range(1, tries_max + 1)]
    rows = await load_rows(tx, settlement_txs, (settlement_txs.c.tx_id,), keys)
    blocks = range(block_number - BLOCKS_BACK_MAX, block_number + 1)
    return any(row.status == TxStatus.FAILED and row.block_number in blocks for row in rows)


def _brings(row: TradeRow, wallet: Address, assets: Collection[AssetId]) -> bool:
    parts = parts_of_orders(row.trade, row.token_id, row.fill_tokens)
    return any(part.wallet == wallet and part.gets in assets for part in parts)
