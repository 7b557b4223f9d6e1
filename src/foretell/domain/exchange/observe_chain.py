"""Application of an observation of the chain: balances, allowances and settled trades.

All of an observation is true at one block. A trade in that block stops pending in the same step
that sets the balances which contain it, so no unit is counted twice or missed. The parts of a large
observation are applied together, with the last one.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foretell.domain.exchange.arrivals.chain_cancels import remember_cancel
from foretell.domain.exchange.commands import (
    CancelSeen,
    NonceSeen,
    ObserveChain,
    ReturnedOrder,
    StopSeen,
    TradeSeen,
)
from foretell.domain.exchange.delays.delayed_orders import close_delayed, delayed_of
from foretell.domain.exchange.effects import CloseReason, Effect, TradeAdvanced, TradeFailed
from foretell.domain.exchange.failed_trades.return_orders import return_order
from foretell.domain.exchange.ledger import COLLATERAL, Account, AssetId, LiveOrder, Move
from foretell.domain.exchange.move_allocations import settle_allocations
from foretell.domain.exchange.signing.stops import is_stopped
from foretell.domain.exchange.state import State, UnsettledTrade
from foretell.domain.exchange.trade import PENDING, Trade, TradeStatus, trade_steps
from foretell.domain.exchange.waiting.delays import DelayedOrder
from foretell.domain.values.hexadecimal import Address

_SETTLED: Final = (TradeStatus.MINED, TradeStatus.CONFIRMED)
_FINAL: Final = (TradeStatus.CONFIRMED, TradeStatus.FAILED)


OBSERVED_PER_COMMAND_MAX: Final = 10_000
"""The most entries of one command, so that it fits into a record of any journal."""

# A part may end in the middle of any list. So splitting and joining treat an observation as one
# sequence of entries, each with the name of its list, instead of six lists with six remainders.
_LISTS: Final = ("balances", "allowances", "trades", "cancels", "nonces", "stops")


def split_observation(whole: ObserveChain, entries_max: int) -> list[ObserveChain]:
    """Return the observation in parts of at most `entries_max` entries, numbered from 1."""
    assert entries_max > 0
    entries = [(name, entry) for name in _LISTS for entry in getattr(whole, name)]
    starts = range(0, max(len(entries), 1), entries_max)
    return [
        msgspec.structs.replace(
            whole,
            **_by_list(entries[start : start + entries_max]),
            part=part,
            parts=len(starts),
        )
        for part, start in enumerate(starts, 1)
    ]


def _by_list(entries: Sequence[tuple[str, object]]) -> dict[str, tuple[Any, ...]]:
    """Return the entries by the names of their lists, empty lists included."""
    return {name: tuple(entry for named, entry in entries if named == name) for name in _LISTS}


def observe_chain(state: State, command: ObserveChain) -> list[Effect]:
    """Return the trades that advanced and the orders that the chain no longer covers.

    Parts before the last only wait. A first part replaces parts that wait: the reader before it
    stopped halfway, and this one starts again.
    """
    assert 1 <= command.part <= command.parts
    if command.part == 1:
        state.observed_parts.clear()
    assert len(state.observed_parts) == command.part - 1, "parts arrive in order"
    state.observed_parts.append(command)
    if command.part < command.parts:
        return []
    parts, state.observed_parts = state.observed_parts, []
    return _observe(state, _joined(parts))


def _joined(parts: list[ObserveChain]) -> ObserveChain:
    """Return the whole observation of these parts, at the time of the last one."""
    entries = [(name, each) for part in parts for name in _LISTS for each in getattr(part, name)]
    return msgspec.structs.replace(parts[-1], **_by_list(entries))


def _observe(state: State, command: ObserveChain) -> list[Effect]:
    touched = _set_balances(state, command)
    effects: list[Effect] = []
    returned: list[tuple[Trade, ReturnedOrder]] = []
    for seen in command.trades:
        trade = state.unsettled_trades.get(seen.trade_id)
        if trade is not None and (seen.status, seen.tx_hash) != (trade.status, trade.tx_hash):
            moves = trade.moves
            returned += [(trade.trade, each) for each in seen.returned]
            effects += _advance(state, trade, moves, seen, command.at_ms)
            touched.update([((wallet, asset), None) for wallet, asset, _ in moves])
    for canceled in command.cancels:
        effects += _cancel(state, canceled, command.at_ms)
    for raised in command.nonces:
        effects += _raise_nonce(state, raised, command.at_ms)
    for stop in command.stops:
        effects += _stop(state, stop, command.at_ms)
    state.observed_block = command.block_number
    state.observed_hash = command.block_hash
    for wallet, asset in touched:
        effects += _cancel_uncovered(state, wallet, asset, command.at_ms)
    for failed, order in returned:
        effect = return_order(state, failed, order, command.at_ms)
        effects += [] if effect is None else [effect]
    return [*effects, *state.book_changes(command.at_ms)]


def _set_balances(state: State, command: ObserveChain) -> dict[tuple[Address, AssetId], None]:
    """Set balances and allowances in the ledger, and return the accounts that they concern."""
    touched: dict[tuple[Address, AssetId], None] = {}
    for balance in command.balances:
        assert balance.units >= 0
        if balance.asset == COLLATERAL and state.allocations.is_joined:
            continue
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
    return touched


def _advance(
    state: State, trade: UnsettledTrade, moves: Sequence[Move], seen: TradeSeen, at_ms: int
) -> list[Effect]:
    """Advance a trade along its transitions; it pends until it is on the chain or has failed."""
    effects: list[Effect] = []
    is_joined, condition_id = state.allocations.is_joined, trade.trade.condition_id
    for status in trade_steps(trade.status, seen.status):
        pended, settled = trade.status in PENDING, trade.status in _SETTLED
        trade.status = status
        trade.tx_hash = seen.tx_hash
        _pend(state, moves, before=pended, after=status in PENDING)
        if is_joined:
            sign = (status in _SETTLED) - settled
            effects += settle_allocations(state, moves, sign, at_ms) if sign else []
        if status is TradeStatus.FAILED and seen.cause:
            effects.append(TradeFailed(seen.trade_id, condition_id, seen.cause))
        effects.append(TradeAdvanced(seen.trade_id, condition_id, status, seen.tx_hash, at_ms))
    assert not effects or trade.status is seen.status, "a path ends at its target"
    if trade.status in _FINAL:
        del state.unsettled_trades[seen.trade_id]
    return effects


def _pend(state: State, moves: Sequence[Move], *, before: bool, after: bool) -> None:
    if before == after:
        return
    if after:
        state.ledger.pend(moves)
    else:
        state.ledger.unpend(moves)


def _cancel(state: State, canceled: CancelSeen, at_ms: int) -> list[Effect]:
    """Close an order that was canceled at its exchange; remember the cancel of an unknown order."""
    order = state.live_orders.get(canceled.order_id)
    delayed = state.delays.orders.get(canceled.order_id)
    if delayed is not None:
        if _delayed_at(state, delayed) != canceled.exchange:
            return []
        return [close_delayed(state, delayed, CloseReason.CANCELED_ON_CHAIN, at_ms)]
    if order is None:
        if canceled.order_id not in state.placed:
            remember_cancel(state, canceled)
        return []
    if _exchange_of(state, order) != canceled.exchange:
        return []
    return [state.close(order, CloseReason.CANCELED_ON_CHAIN, at_ms)]


def _raise_nonce(state: State, raised: NonceSeen, at_ms: int) -> list[Effect]:
    """Set a maker's nonce, and close its orders at that exchange with a lower one.

    A reorg may lower the nonce: orders signed with it are accepted again.
    """
    state.maker_nonces[raised.exchange, raised.maker] = raised.nonce
    delayed: list[Effect] = [
        close_delayed(state, order, CloseReason.NONCE_RAISED, at_ms)
        for order in delayed_of(state, raised.maker)
        if order.nonce < raised.nonce and _delayed_at(state, order) == raised.exchange
    ]
    return delayed + [
        state.close(order, CloseReason.NONCE_RAISED, at_ms)
        for asset in state.ledger.assets(raised.maker)
        for order in reversed(state.ledger.look_up(raised.maker, asset).orders())
        if order.nonce < raised.nonce and _exchange_of(state, order) == raised.exchange
    ]


def _stop(state: State, stop: StopSeen, at_ms: int) -> list[Effect]:
    """Set a maker's stop, and close its orders at that exchange that it ends.

    A stop without a value, after a reorg or a Safe's change of mind, accepts orders again.
    """
    key = (stop.exchange, stop.maker, stop.kind)
    if stop.value == 0:
        state.maker_stops.pop(key, None)
        return []
    state.maker_stops[key] = stop.value
    delayed: list[Effect] = [
        close_delayed(state, order, CloseReason.CANCELED_ON_CHAIN, at_ms)
        for order in delayed_of(state, stop.maker)
        if _delayed_at(state, order) == stop.exchange
        and is_stopped(
            order.nonce, stop.kind, stop.value, signer=order.command.order.signer, maker=stop.maker
        )
    ]
    return delayed + [
        state.close(order, CloseReason.CANCELED_ON_CHAIN, at_ms)
        for asset in state.ledger.assets(stop.maker)
        for order in reversed(state.ledger.look_up(stop.maker, asset).orders())
        if _exchange_of(state, order) == stop.exchange
        and is_stopped(order.nonce, stop.kind, stop.value, signer=order.signer, maker=stop.maker)
    ]


def _delayed_at(state: State, order: DelayedOrder) -> Address:
    """Return the exchange of a delayed order."""
    return state.market_by_id[order.command.condition_id].opened.exchange


def _exchange_of(state: State, order: LiveOrder) -> Address:
    return state.market_by_id[order.condition_id].opened.exchange


def _cancel_uncovered(state: State, wallet: Address, asset: AssetId, at_ms: int) -> list[Effect]:
    """Close the delayed and then the newest orders of an account until the chain covers the rest.

    Allowances differ by exchange, so each order is checked against the allowance of its own.
    """
    account = state.ledger.look_up(wallet, asset)
    effects: list[Effect] = []
    short = _short_exchanges(state, asset, account)
    for delayed in delayed_of(state, wallet, asset) if short else ():
        if _delayed_at(state, delayed) in short:
            effects.append(close_delayed(state, delayed, CloseReason.UNDERFUNDED, at_ms))
            short = _short_exchanges(state, asset, account)
    for order in account.orders() if short else ():
        if _exchange_of(state, order) in short:
            effects.append(state.close(order, CloseReason.UNDERFUNDED, at_ms))
            short = _short_exchanges(state, asset, account)
    return effects


def _short_exchanges(state: State, asset: AssetId, account: Account) -> list[Address]:
    """Return the exchanges that may not move all that the account has pending and reserved."""
    used_units = account.debit_units + account.reserved_units
    if used_units == 0:
        return []
    is_uncovered = account.confirmed_units + account.credit_units < used_units
    allowances = account.wallet.allowances(of_collateral=asset == COLLATERAL)
    return [
        exchange
        for exchange in state.exchanges
        if is_uncovered or allowances.get(exchange, 0) < used_units
    ]
