"""Execution of a match: fills in trades, and what makers and taker will give and receive.

Nothing moves on the chain yet. So what each order gives stops being reserved and counts as debited,
what it receives counts as credited, until the trade settles or fails.
"""

from collections.abc import Sequence
from typing import Final

from foretell.domain.exchange.commands import OpenMarket, PlaceOrder
from foretell.domain.exchange.ledger import COLLATERAL, LiveOrder
from foretell.domain.exchange.matching import Fill, MatchType
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.state import Market, State, UnsettledTrade
from foretell.domain.exchange.trade import (
    FILLS_PER_TRADE_MAX,
    Trade,
    TradeStatus,
    taker_fill_units,
    trade_id_of,
)
from foretell.domain.exchange.trade_references import trade_ids_with

_BUY: Final = Side.BUY
_SELL: Final = Side.SELL
_MATCHED: Final = TradeStatus.MATCHED
_COMPLEMENTARY: Final = MatchType.COMPLEMENTARY
_MINT: Final = MatchType.MINT
_MERGE: Final = MatchType.MERGE


def execute_match(
    state: State,
    market: Market,
    command: PlaceOrder,
    arrival: LiveOrder,
    fills: list[tuple[LiveOrder, int]],
) -> tuple[Sequence[Trade], int, int]:
    """Return the fills in trades that one transaction each can settle, and their size and cost."""
    if not fills:
        return (), 0, 0
    if len(fills) <= FILLS_PER_TRADE_MAX:
        trade = _trade(state, market, command, 0, fills)
        trades, size_units, cost_units = [trade], trade.size_units, trade.cost_units
    else:
        trades = [
            _trade(state, market, command, index, fills[start : start + FILLS_PER_TRADE_MAX])
            for index, start in enumerate(range(0, len(fills), FILLS_PER_TRADE_MAX))
        ]
        size_units = sum([trade.size_units for trade in trades])
        cost_units = sum([trade.cost_units for trade in trades])
    _pend_taker(market.opened, arrival, size_units, cost_units)
    last = fills[-1][0].level
    market.last_price_ticks = last.yes_price_ticks
    market.last_side = _SELL if last.side.is_bid else _BUY
    return trades, size_units, cost_units


def _trade(
    state: State, market: Market, command: PlaceOrder, index: int, part: list[tuple[LiveOrder, int]]
) -> Trade:
    """Fill the makers' orders, and keep the trade until it is settled."""
    signed, opened, ticks_per_one = command.order, market.opened, market.book.ticks_per_one
    trade_id, taker_side = trade_id_of(command.order_id, index), signed.side
    fills, signers, size_units, rank_cost_units = [], [signed.signer], 0, 0
    for order, units in part:
        cost_units, rest = divmod(units * order.level.rank, ticks_per_one)
        assert rest == 0, "nothing is rounded"
        size_units += units
        rank_cost_units += cost_units
        fills.append(_fill(opened, order, units, cost_units, taker_side))
        signers.append(order.signer)
        if order.remaining_units:
            order.trade_ids = trade_ids_with(order.trade_ids, trade_id)
        else:
            order.account.release(order, 0)
            del state.live_orders[order.order_id]
    # The rank of a maker counts the token that it wants, and the taker wants the other one.
    taker_cost_units = size_units - rank_cost_units if taker_side is _BUY else rank_cost_units
    has_budget = command.terms.size_units is None
    trade = Trade(
        trade_id,
        opened.condition_id,
        command.order_id,
        signed.maker,
        command.owner,
        taker_side,
        command.is_yes,
        size_units,
        taker_cost_units,
        taker_fill_units(signed, size_units, taker_cost_units, has_budget=has_budget),
        command.at_ms,
        tuple(fills),
        ticks_per_one,
        index,
    )
    state.unsettled_trades[trade_id] = UnsettledTrade(
        opened, trade, signed, has_budget, _MATCHED, "", tuple(signers)
    )
    return trade


def _fill(
    opened: OpenMarket, order: LiveOrder, units: int, rank_cost_units: int, taker_side: Side
) -> Fill:
    """Pend what a maker gives and receives, and return the fill.

    A buyer pays its rank for each token; a seller's rank is the price of the other token.
    """
    level, account, side = order.level, order.account, order.side
    if side is _BUY:
        price_ticks, making_units, taking_units = level.rank, rank_cost_units, units
        received = opened.token_yes if level.side.is_bid else opened.token_no
        match_type = _MINT if taker_side is _BUY else _COMPLEMENTARY
    else:
        price_ticks, making_units = level.side.ticks_per_one - level.rank, units
        taking_units = units - rank_cost_units
        received = COLLATERAL
        match_type = _COMPLEMENTARY if taker_side is _BUY else _MERGE
    account.reserved_units -= making_units
    account.debit_units += making_units
    wallet = account.wallet
    wallet.account(received).credit_units += taking_units
    return Fill(
        order.order_id,
        wallet.address,
        order.owner,
        side,
        level.side.is_bid is (side is _BUY),
        price_ticks,
        units,
        making_units,
        taking_units,
        match_type,
    )


def _pend_taker(opened: OpenMarket, arrival: LiveOrder, size_units: int, cost_units: int) -> None:
    """Pend what the taker gives and receives, for all its trades."""
    account, level = arrival.account, arrival.level
    ticks_per_one = level.side.ticks_per_one
    if arrival.side is _BUY:
        assert cost_units * ticks_per_one <= size_units * level.rank, "no worse than the limit"
        received = opened.token_yes if arrival.is_yes else opened.token_no
        account.debit_units += cost_units
        account.wallet.account(received).credit_units += size_units
    else:
        limit_ticks = ticks_per_one - level.rank
        assert cost_units * ticks_per_one >= size_units * limit_ticks, "no worse than the limit"
        account.debit_units += size_units
        account.wallet.account(COLLATERAL).credit_units += cost_units
    used_units = account.reserved_units + account.debit_units
    assert used_units <= account.confirmed_units + account.credit_units, "funds were checked"
