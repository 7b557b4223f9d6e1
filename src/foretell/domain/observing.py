"""What the chain says, taken into the ledger: balances, allowances, and trades that settled.

All of one observation is true at one block. A trade found there stops pending in the same step in
which the balances that contain it arrive, so no unit is counted twice or missed in between. That
holds for an observation of many parts too: all of them are taken in with the last one.
"""

from itertools import chain
from typing import Final, TypeVar

import msgspec

from foretell.domain.commands import ObserveChain, TradeSeen
from foretell.domain.effects import CloseReason, Effect, TradeAdvanced
from foretell.domain.hexadecimal import Address
from foretell.domain.ledger import COLLATERAL, AssetId
from foretell.domain.slicing import settle_slices
from foretell.domain.state import State, UnsettledTrade
from foretell.domain.trade import TradeStatus, advance_trade, trade_path

_PENDING: Final = frozenset({TradeStatus.MATCHED, TradeStatus.RETRYING})
_SETTLED: Final = frozenset({TradeStatus.MINED, TradeStatus.CONFIRMED})
_FINAL: Final = frozenset({TradeStatus.CONFIRMED, TradeStatus.FAILED})


OBSERVED_PER_COMMAND_MAX: Final = 10_000
"""How many balances, allowances and trades one command may hold, so that any journal takes it."""

Entry = TypeVar("Entry")


def split_observation(whole: ObserveChain, entries_max: int) -> list[ObserveChain]:
    """Return the observation in parts of so many entries, or as it is when it has no more."""
    balances, allowances = len(whole.balances), len(whole.allowances)
    entries = balances + allowances + len(whole.trades)
    starts = range(0, max(entries, 1), entries_max)
    return [
        msgspec.structs.replace(
            whole,
            balances=_cut(whole.balances, start, entries_max),
            allowances=_cut(whole.allowances, start - balances, entries_max),
            trades=_cut(whole.trades, start - balances - allowances, entries_max),
            part=part,
            parts=len(starts),
        )
        for part, start in enumerate(starts, 1)
    ]


def _cut(entries: tuple[Entry, ...], start: int, count: int) -> tuple[Entry, ...]:
    """Return the entries from `start` on, which may lie before the first or behind the last."""
    return entries[max(start, 0) : max(start + count, 0)]


def observe_chain(state: State, command: ObserveChain) -> list[Effect]:
    """Return the trades that moved and the orders that the chain no longer covers.

    Nothing moves before the last part. A first part means that whoever looked before has stopped
    halfway, and looks anew.
    """
    if command.part == 1:
        state.observed_parts.clear()
    assert len(state.observed_parts) == command.part - 1, "parts come in their order"
    state.observed_parts.append(command)
    if command.part < command.parts:
        return []
    parts, state.observed_parts = state.observed_parts, []
    return _take_in(state, _joined(parts))


def _joined(parts: list[ObserveChain]) -> ObserveChain:
    """Return the observation that these are the parts of, at the time of the last one."""
    return msgspec.structs.replace(
        parts[-1],
        balances=tuple(chain.from_iterable(part.balances for part in parts)),
        allowances=tuple(chain.from_iterable(part.allowances for part in parts)),
        trades=tuple(chain.from_iterable(part.trades for part in parts)),
    )


def _take_in(state: State, command: ObserveChain) -> list[Effect]:
    touched: dict[tuple[Address, AssetId], None] = {}
    for balance in command.balances:
        if balance.asset == COLLATERAL and state.slices.is_joined:
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


def _advance(state: State, trade: UnsettledTrade, seen: TradeSeen, at_ms: int) -> list[Effect]:
    """Move a trade along its table; only what is neither on the chain nor given up still pends."""
    effects: list[Effect] = []
    for trigger in trade_path(trade.status, seen.status):
        pended, settled = trade.status in _PENDING, trade.status in _SETTLED
        trade.status = advance_trade(trade.status, trigger)
        trade.tx_hash = seen.tx_hash
        _pend(state, trade, before=pended, after=trade.status in _PENDING)
        if state.slices.is_joined:
            sign = (trade.status in _SETTLED) - settled
            effects += settle_slices(state, trade, sign, at_ms) if sign else []
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
