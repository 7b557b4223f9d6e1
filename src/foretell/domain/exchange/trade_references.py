"""References of trades: the tokens and the orders that a trade names, and the trades that an order names."""

from typing import Final, NamedTuple

from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.trade import Trade
from foretell.domain.values.hexadecimal import Bytes32

TRADE_IDS_MAX: Final = 100
"""The most trades that an order names, the newest: an order may have any number, at the price of dust each."""


class TradeTokens(NamedTuple):
    """The token of a trade's taker, and those of its fills in their order."""

    taker: AssetId
    fills: tuple[AssetId, ...]


def trade_tokens(market: OpenMarket, trade: Trade) -> TradeTokens:
    """Return the tokens that a trade of this market names."""
    tokens = (market.token_no, market.token_yes)
    return TradeTokens(tokens[trade.is_yes], tuple([tokens[fill.is_yes] for fill in trade.fills]))


def trade_order_ids(trade: Trade) -> tuple[Bytes32, ...]:
    """Return the orders of a trade, the taker's first."""
    return (trade.taker_order_id, *[fill.maker_order_id for fill in trade.fills])


def newest_trade_ids(trade_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the trades that an order names, of all those that it has a part in, the oldest first."""
    return trade_ids[-TRADE_IDS_MAX:]


def trade_ids_with(trade_ids: tuple[str, ...], trade_id: str) -> tuple[str, ...]:
    """Return the trades that an order names after a new one."""
    return (*trade_ids, trade_id)[-TRADE_IDS_MAX:]


def trade_ids_after_split(
    trade_ids: tuple[str, ...], order_id: Bytes32, part: Trade, whole_id: str
) -> tuple[str, ...]:
    """Return the trades of an order once this part has left a trade.

    The taker has the part in addition; a maker of the part has it in place of the whole trade.
    """
    if order_id == part.taker_order_id:
        return trade_ids_with(trade_ids, part.trade_id)
    return tuple([part.trade_id if each == whole_id else each for each in trade_ids])
