"""Orders that keep a trade from settling because of their wallet's funds.

A trade that is given up fails for what a wallet lacks: the balance or the allowance of what it gives. The chain
shows it at a block, so the honest sides of the trade get back what it took of their orders. What a wallet lacks
may be what an earlier trade failed to bring it. Its order cannot be paid for all the same, so it leaves the book
as underfunded; nothing is held against the wallet.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.settlement import PART_SHORT, PART_STAYING, RefusedOrder
from foretell.domain.exchange.trade import Trade
from foretell.domain.values.hexadecimal import Address, Bytes32

BALANCE_CAUSE: Final = "InsufficientBalance"
ALLOWANCE_CAUSE: Final = "InsufficientAllowance"

Holding = tuple[Address, AssetId]


class OrderPart(NamedTuple):
    """What an order of a trade gives and gets there."""

    order_id: Bytes32
    wallet: Address
    gives: AssetId
    given_units: int
    gets: AssetId
    got_units: int

    @property
    def holding(self) -> Holding:
        """The holding that pays for it."""
        return self.wallet, self.gives


class HeldFunds(NamedTuple):
    """What a wallet holds of an asset at a block, and what it allows the exchange to move of it."""

    held_units: int
    allowed_units: int


def parts_of_orders(
    trade: Trade, taker_token: AssetId, fill_tokens: Sequence[AssetId]
) -> list[OrderPart]:
    """Return what each order of a trade gives and gets, the taker's first."""
    cost, size = trade.cost_units, trade.size_units
    is_buy = trade.side is Side.BUY
    given, got = (cost, size) if is_buy else (size, cost)
    parts = [_part(trade.taker_order_id, trade.taker, trade.side, taker_token, given, got)]
    parts += [
        _part(
            each.maker_order_id, each.maker, each.side, token, each.making_units, each.taking_units
        )
        for each, token in zip(trade.fills, fill_tokens, strict=True)
    ]
    return parts


def _part(
    order_id: Bytes32, wallet: Address, side: Side, token: AssetId, given_units: int, got_units: int
) -> OrderPart:
    gives, gets = (COLLATERAL, token) if side is Side.BUY else (token, COLLATERAL)
    return OrderPart(order_id, wallet, gives, given_units, gets, got_units)


def short_orders(
    trade_id: str, parts: Collection[OrderPart], funds: Mapping[Holding, HeldFunds]
) -> list[RefusedOrder]:
    """Return the orders whose wallet could not pay for all that it gives in the trade.

    What the trade itself brings a wallet counts as held: one order of it may pay for another one.
    """
    given, got = Counter[Holding](), Counter[Holding]()
    for part in parts:
        given[part.holding] += part.given_units
        got[part.wallet, part.gets] += part.got_units
    causes = {
        holding: cause
        for holding, units in given.items()
        if (cause := _shortage(funds[holding], units, got[holding])) is not None
    }
    return [
        RefusedOrder(trade_id, each.order_id, PART_SHORT, causes[each.holding], is_blamed=True)
        for each in parts
        if each.holding in causes
    ]


def _shortage(funds: HeldFunds, given_units: int, got_units: int) -> str | None:
    if funds.held_units + got_units < given_units:
        return BALANCE_CAUSE
    return ALLOWANCE_CAUSE if funds.allowed_units < given_units else None


def refused_orders(trade_id: str, causes: Mapping[Bytes32, str]) -> list[RefusedOrder]:
    """Return the orders that the exchange refuses whatever they meet, by the cause of each."""
    return [
        RefusedOrder(trade_id, order_id, PART_STAYING, cause, is_blamed=True)
        for order_id, cause in causes.items()
    ]


def orders_of(trade: Trade, wallet: Address, cause: str) -> list[RefusedOrder]:
    """Return the orders of a wallet because of which a trade's transactions were mined in vain."""
    makers = [each.maker_order_id for each in trade.fills if each.maker == wallet]
    order_ids = [trade.taker_order_id] if wallet == trade.taker else makers
    return refused_orders(trade.trade_id, dict.fromkeys(order_ids, cause))
