"""One trade as one call of the exchange: the taker's order, its makers', and what each gives.

The gas is stated, not asked for: what a node reckons today, before the trades ahead of this one are
mined, says little, and a receiver that burns gas must not empty the operator. What a call does not
use is not paid.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import OrderFill, encode_match_orders
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.exchange.matching import Fill
from foretell.domain.values.hexadecimal import Address
from foretell.store.trading.orders import OrderRow
from foretell.store.trading.trades import TradeRow

MATCH_GAS: Final = 600_000
"""What a call takes besides its makers: the taker, and one split or merge for all of them.

At the neg-risk exchange those go through the adapter and the wrapping of the collateral.
"""

MAKER_GAS: Final = 160_000
"""What each maker adds at most, its calldata, its signature and a wallet's callbacks included."""


def match_gas(makers: int) -> int:
    """Return the gas that a call with so many makers may take."""
    return MATCH_GAS + makers * MAKER_GAS


class Matched(NamedTuple):
    """A trade with everything that its settlement takes."""

    row: TradeRow
    order_by_id: Mapping[str, OrderRow]
    exchange: Address

    @property
    def taker(self) -> OrderRow:
        """The order that took."""
        return self.order_by_id[self.row.trade.taker_order_id]

    def maker(self, fill: Fill) -> OrderRow:
        """Return the order that a fill is of."""
        return self.order_by_id[fill.maker_order_id]


def match_call(matched: Matched, tx_id: str) -> OutgoingTx:
    """Return the transaction that settles a trade; trades here bear no fees."""
    trade = matched.row.trade
    taker = OrderFill(matched.taker.signed, trade.taker_fill_units)
    makers = [OrderFill(matched.maker(fill).signed, fill.making_units) for fill in trade.fills]
    calldata = encode_match_orders(taker, makers)
    return OutgoingTx(tx_id, matched.exchange, calldata, match_gas(len(makers)))
