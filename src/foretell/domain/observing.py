"""What the chain says, taken into the ledger: balances, allowances, and trades that settled.

All of one observation is true at one block. A trade found there stops pending in the same step in
which the balances that contain it arrive, so no unit is counted twice or missed in between.
"""

from typing import Final

from foretell.domain.commands import ObserveChain, TradeSeen
from foretell.domain.effects import CloseReason, Effect, TradeAdvanced
from foretell.domain.hexadecimal import Address
from foretell.domain.ledger import AssetId
from foretell.domain.state import State, UnsettledTrade
from foretell.domain.trade import TradeStatus, advance_trade, trade_path

_PENDING: Final = frozenset({TradeStatus.MATCHED, TradeStatus.RETRYING})
_FINAL: Final = frozenset({TradeStatus.CONFIRMED, TradeStatus.FAILED})


def observe_chain(state: State, command: ObserveChain) -> list[Effect]:
    """Return the trades that moved and the orders that the chain no longer covers."""
    touched: dict[tuple[Address, AssetId], None] = {}
    for balance in command.balances:
        state.ledger.account(balance.wallet, balance.asset).confirmed_units = balance.units
        touched[balance.wallet, balance.asset] = None
    for allowance in command.allowances:
        state.ledger.allow(
            allowance.wallet,
            allowance.exchange,
            allowance.units,
            of_collateral=allowance.is_collateral,
        )
        for asset in state.ledger.assets(allowance.wallet):
            touched[allowance.wallet, asset] = None
    effects: list[Effect] = []
    for seen in command.trades:
        trade = state.unsettled_trades.get(seen.trade_id)
        if trade is not None and (seen.status, seen.tx_hash) != (trade.status, trade.tx_hash):
            effects += _advance(state, trade, seen, command.at_ms)
            touched.update(dict.fromkeys((wallet, asset) for wallet, asset, _ in trade.moves))
    state.observed_block = command.block_number
    state.observed_hash = command.block_hash
    for wallet, asset in touched:
        effects += _cancel_uncovered(state, wallet, asset, command.at_ms)
    return [*effects, *state.book_changes(command.at_ms)]


def _advance(
    state: State, trade: UnsettledTrade, seen: TradeSeen, at_ms: int
) -> list[TradeAdvanced]:
    """Move a trade along its table; only what is neither on the chain nor given up still pends."""
    effects = []
    for trigger in trade_path(trade.status, seen.status):
        pended = trade.status in _PENDING
        trade.status = advance_trade(trade.status, trigger)
        trade.tx_hash = seen.tx_hash
        _pend(state, trade, before=pended, after=trade.status in _PENDING)
        effects.append(
            TradeAdvanced(seen.trade_id, trade.condition_id, trade.status, seen.tx_hash, at_ms)
        )
    if trade.status in _FINAL:
        del state.unsettled_trades[seen.trade_id]
    return effects


def _pend(state: State, trade: UnsettledTrade, *, before: bool, after: bool) -> None:
    if before == after:
        return
    change = state.ledger.pend if after else state.ledger.unpend
    for wallet, asset, units in trade.moves:
        change(wallet, asset, units)


def _cancel_uncovered(state: State, wallet: Address, asset: AssetId, at_ms: int) -> list[Effect]:
    """Close the newest orders of an account until the chain covers the rest.

    What one exchange may no longer move another still may, so each order is judged by its own.
    """
    account = state.ledger.look_up(wallet, asset)
    effects: list[Effect] = []
    for order in reversed(list(account.orders.values())):
        exchange = state.market_by_id[order.condition_id].opened.exchange
        if state.ledger.spendable_units(wallet, exchange, asset) < 0:
            effects.append(state.close(order, CloseReason.UNDERFUNDED, at_ms))
    return effects
