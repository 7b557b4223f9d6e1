"""The call of the exchange that settles one trade: the taker's order, the makers' orders, the amounts.

The gas is stated and not estimated: a node's estimate today, before the trades ahead of this one are
mined, means little, and a receiver that burns gas must not empty the operator's account. Unused gas
is not paid.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import OrderFill, encode_match_orders
from foretell.domain.contracts.packed_match import encode_match_packed
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.exchange.matching import Fill
from foretell.domain.values.hexadecimal import Address
from foretell.store.trading.orders import OrderRow
from foretell.store.trading.trades import TradeRow

MATCH_GAS: Final = 600_000
"""Gas of a call without its makers: the taker, and one split or merge for all of them.

At the neg-risk exchange these pass through the adapter, which wraps the collateral.
"""

MAKER_GAS: Final = 160_000
"""Most gas per maker: its calldata, its signature and the callbacks of its wallet."""


def match_gas(makers: int) -> int:
    """Return the gas limit of a call with this number of makers."""
    return MATCH_GAS + makers * MAKER_GAS


class Matched(NamedTuple):
    """A trade with the orders and the exchange that its call needs.

    `is_packed` if the exchange takes packed matches. Calls of an earlier version had the makers in the order of their
    fills: `is_sorted` is false for these.
    """

    row: TradeRow
    order_by_id: Mapping[str, OrderRow]
    exchange: Address
    is_packed: bool = False
    is_sorted: bool = True

    @property
    def taker(self) -> OrderRow:
        """The taker's order."""
        return self.order_by_id[self.row.trade.taker_order_id]

    def maker(self, fill: Fill) -> OrderRow:
        """Return the maker's order of a fill."""
        return self.order_by_id[fill.maker_order_id]


def match_call(matched: Matched, tx_id: str) -> OutgoingTx:
    """Return the transaction that settles a trade, without fees."""
    trade = matched.row.trade
    taker = OrderFill(matched.taker.signed, trade.taker_fill_units)
    # The exchange moves the assets of neighbours of one wallet together.
    fills = sorted(trade.fills, key=_by_wallet) if matched.is_sorted else trade.fills
    makers = [OrderFill(matched.maker(fill).signed, fill.making_units) for fill in fills]
    calldata = encode_match_packed(taker, makers) if matched.is_packed else None
    if calldata is None:
        calldata = encode_match_orders(taker, makers)
    return OutgoingTx(tx_id, matched.exchange, calldata, match_gas(len(makers)))


def _by_wallet(fill: Fill) -> tuple[Address, bool]:
    return fill.maker, fill.is_yes
