"""One trade as one call of the exchange: the taker's order, its makers', and what each gives.

The gas is stated, not asked for: what a node reckons today, before the trades ahead of this one are
mined, says little, and a receiver that burns gas must not empty the operator. What a call does not
use is not paid.
"""

from collections.abc import Mapping
from typing import Final

from foretell.domain.calldata import OrderFill, encode_match_orders
from foretell.domain.hexadecimal import Address
from foretell.domain.transactions import OutgoingTx
from foretell.store.orders import OrderRow
from foretell.store.trades import TradeRow

MATCH_GAS: Final = 350_000
"""What a call takes besides its makers: the taker, and one split or merge for all of them."""

MAKER_GAS: Final = 160_000
"""What each maker adds at most, its calldata, its signature and a wallet's callbacks included."""


def match_gas(makers: int) -> int:
    """Return the gas that a call with so many makers may take."""
    return MATCH_GAS + makers * MAKER_GAS


def match_call(
    trade: TradeRow, order_by_id: Mapping[str, OrderRow], exchange: Address, tx_id: str
) -> OutgoingTx:
    """Return the transaction that settles a trade; trades here bear no fees."""
    fills = trade.trade.fills
    taker = OrderFill(order_by_id[trade.trade.taker_order_id].signed, trade.trade.taker_fill_units)
    makers = [
        OrderFill(order_by_id[fill.maker_order_id].signed, fill.making_units) for fill in fills
    ]
    calldata = encode_match_orders(taker, makers)
    return OutgoingTx(tx_id, exchange, calldata, match_gas(len(makers)))
