"""Decisions of settlement: the next try of a trade, and the orders that keep it from settling.

Settlement loads a trade, simulates its call at a node, and records exactly what is decided here.
"""

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from foretell.domain.exchange.matching import Fill
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import Trade
from foretell.domain.values.amounts import exact_cost_units, lot_units
from foretell.domain.values.call_trace import FailedCall
from foretell.domain.values.hexadecimal import Address, Bytes32

FAILURE_CHARS_MAX: Final = 500
SINGLE_PREFIX: Final = "settle:"
BATCH_PREFIX: Final = "batch:"

PART_SHORT: Final = -1
"""An order that stays, too, in a trade that is given up because its wallet could not pay."""
PART_STAYING: Final = 0
PART_FIRST: Final = 1
PART_SECOND: Final = 2

WALLET_GAS_MIN: Final = 100_000
"""Gas with which any wallet can take tokens or check a signature."""

ENDED_REASONS: Final = frozenset({"OrderFilledOrCancelled", "InvalidNonce", "OrderExpired"})
"""Reverts of the exchange that are final for an order: no later block accepts it again."""


@dataclass(frozen=True, slots=True)
class SettlementOptions:
    """Limits and delays of settlement.

    A trade that the chain refuses is tried again, each time after twice the delay, until it was
    tried `attempts_max` times: about two minutes with these values.
    """

    in_flight_max: int = 32
    """How many transactions are on their way to the chain at once."""
    batch_trades_max: int = 20
    """How many trades one transaction settles; with 1 each trade has its own."""
    batch_gas_max: int = 16_500_000
    """Most gas of such a transaction: below 2**24, which no transaction may exceed (EIP-7825)."""
    batched_per_pass_max: int = 200
    """Most trades that one pass puts into batches."""
    attempts_max: int = 8
    retry_delay_ms: int = 1_000
    retry_delay_ms_max: int = 60_000
    wait_delay_ms: int = 500
    """Delay before the next try of a trade that waits for an earlier one."""
    refusal_delay_ms: int = 500
    """Delay after a node's first refusal of a trade; it doubles with each further refusal."""
    refusal_delay_ms_max: int = 30_000
    mined_reverts_max: int = 2
    """How often a trade of one fill may be mined in vain although every simulation passes.

    Each time costs the operator up to the whole gas limit of the call.
    """
    unsimulated_gas_per_day_max: int = 50_000_000
    """Gas of matches that failed in batches on a day of UTC from which on each batch is simulated."""
    unsimulated_lag_blocks_max: int = 32
    """Most blocks that the index may lack while batches are sent without a simulation."""
    unsimulated_expiry_ms: int = 30_000
    """Time that an order must have left on the chain for its trade to be sent without a simulation."""
    unknown_wait_ms: int = 600_000
    """Time after which unknown transactions of an account are replaced; 0 for never."""


class Settlement(NamedTuple):
    """The progress of a trade's settlement; without `tx_id` nothing was sent since it last failed.

    `refusals` counts how often in a row the node refused the transaction for reasons of its own.
    """

    trade_id: str
    tx_id: str | None = None
    attempts: int = 0
    retry_at_ms: int = 0
    failure: str | None = None
    is_given_up: bool = False
    refusals: int = 0


class RefusedOrder(NamedTuple):
    """An order of a trade that the chain refuses, and why.

    Orders of one `part` leave the trade together; those in `PART_STAYING` and `PART_SHORT` stay. An order
    that `is_blamed` would be refused in any trade, and the others of a failed trade go back to their books.
    """

    trade_id: str
    order_id: Bytes32
    part: int
    cause: str
    is_blamed: bool


class EarlierTrades(enum.Enum):
    """What is known of the earlier trades of a trade's wallets that are in no block yet."""

    NONE = enum.auto()
    """There are none."""
    MAY_PASS = enum.auto()
    """One of them is on its way, or is tried and no try of it has failed: it may bring what this trade gives."""
    FAIL = enum.auto()
    """Each of them has failed a try and is tried again, or is not tried while its exchange or its market stops.

    It may still bring what this trade gives, but nobody knows when, so this one does not wait.
    """


class FailingFill(NamedTuple):
    """A fill that reverts when the taker is tried with its maker alone.

    `is_ended` when the maker's order is over; `is_blamed` when the order would revert with any
    other taker too.
    """

    maker_order_id: Bytes32
    cause: str
    is_ended: bool
    is_blamed: bool


@dataclass(frozen=True, slots=True)
class FailureReport:
    """The refused orders of a trade that reverts, and the cause that ends the trade, if one does.

    After an empty report the whole trade is tried again.
    """

    refused: tuple[RefusedOrder, ...] = ()
    final_cause: str | None = None

    def without_blame(self) -> "FailureReport":
        """Return the report with blame only for orders that are over.

        While earlier trades fail or are not tried, a wallet may lack what these would have brought it.
        """
        refused = tuple(
            each._replace(is_blamed=each.is_blamed and each.cause in ENDED_REASONS)
            for each in self.refused
        )
        return FailureReport(refused, self.final_cause)

    @property
    def releases_fills(self) -> bool:
        """Whether fills leave the trade, which is then tried again without them."""
        return self.final_cause is None and bool(self.refused)


def named_settlement(settlement: Settlement) -> Settlement:
    """Return the settlement with the id of the transaction for its next try.

    The id is made of the trade and the number of the try, so after a crash the same transaction is
    found or sent, never a second one.
    """
    return settlement._replace(tx_id=tx_id_of(settlement.trade_id, settlement.attempts + 1))


def tx_id_of(trade_id: str, number: int) -> str:
    """Return the id of the transaction of a trade's try, counted from 1."""
    return f"{SINGLE_PREFIX}{trade_id}:{number}"


def batch_id_of(settlements: Sequence[Settlement], repeats: int = 0) -> str:
    """Return the id of the transaction that carries these trades together.

    No two batches have the same one: the first trade is in no other batch with this number, unless nothing
    of that one was stored or sent. `repeats` counts those that settled nothing and were no try of their trades.
    """
    first = settlements[0]
    return f"{BATCH_PREFIX}{first.trade_id}:{first.attempts + 1 + repeats}"


def is_batch(tx_id: str) -> bool:
    """Return whether a transaction carries several trades, by its id."""
    return tx_id.startswith(BATCH_PREFIX)


def settlement_after_batch(
    settlement: Settlement, cause: str, now_ms: int, options: SettlementOptions
) -> Settlement:
    """Return the settlement of a trade that failed within a batch: due at once, and alone."""
    failed = failed_settlement(settlement, cause, now_ms, options)
    return failed._replace(retry_at_ms=now_ms, is_given_up=False)


def failed_settlement(
    settlement: Settlement, cause: str, now_ms: int, options: SettlementOptions
) -> Settlement:
    """Return the settlement after a failed try: due after a delay that doubles, or given up."""
    return Settlement(
        trade_id=settlement.trade_id,
        attempts=settlement.attempts + 1,
        retry_at_ms=now_ms
        + doubled_ms(options.retry_delay_ms, settlement.attempts, options.retry_delay_ms_max),
        failure=cause[:FAILURE_CHARS_MAX],
        is_given_up=settlement.attempts + 1 >= options.attempts_max,
    )


def refused_settlement(
    settlement: Settlement, now_ms: int, options: SettlementOptions
) -> Settlement:
    """Return the settlement after a refusal by the node: due after a delay that doubles.

    No try is counted.
    """
    delay_ms = doubled_ms(
        options.refusal_delay_ms, settlement.refusals, options.refusal_delay_ms_max
    )
    return settlement._replace(
        tx_id=None, retry_at_ms=now_ms + delay_ms, refusals=settlement.refusals + 1
    )


def waiting_settlement(
    settlement: Settlement, now_ms: int, options: SettlementOptions
) -> Settlement:
    """Return the settlement of a trade that waits for an earlier one: due after a fixed delay.

    No try is counted.
    """
    return settlement._replace(tx_id=None, retry_at_ms=now_ms + options.wait_delay_ms, refusals=0)


def settlement_after_revert(
    settlement: Settlement,
    cause: str,
    report: FailureReport,
    now_ms: int,
    options: SettlementOptions,
) -> Settlement:
    """Return the settlement after a revert that no earlier trade explains.

    A trade with a final cause is given up. A trade that fills leave is due at once, and no try is
    counted: it is not sent before the engine has split it. In all other cases a try has failed.
    """
    if report.final_cause is not None:
        return failed_settlement(settlement, report.final_cause, now_ms, options)._replace(
            is_given_up=True
        )
    if report.releases_fills:
        return settlement._replace(tx_id=None, retry_at_ms=now_ms, refusals=0)
    return failed_settlement(settlement, cause, now_ms, options)


def settlement_after_mined_revert(
    settlement: Settlement,
    cause: str,
    report: FailureReport,
    now_ms: int,
    options: SettlementOptions,
) -> Settlement:
    """Return the settlement after a transaction that was mined in vain: a try has failed.

    A trade that fills leave is due at once, and one with a final cause is given up.
    """
    failed = failed_settlement(settlement, report.final_cause or cause, now_ms, options)
    if report.releases_fills:
        return failed._replace(retry_at_ms=now_ms, is_given_up=False)
    return failed._replace(is_given_up=failed.is_given_up or report.final_cause is not None)


def doubled_ms(delay_ms: int, times: int, delay_ms_max: int) -> int:
    """Return a delay after it doubled a number of times, at most the bound."""
    assert 0 < delay_ms <= delay_ms_max
    assert times >= 0
    return min(delay_ms << times, delay_ms_max)


def end_of(reason: str | None) -> str | None:
    """Return the reason of a revert if it ends the order, else None."""
    return reason if reason in ENDED_REASONS else None


def taker_ended(trade_id: str, taker_order_id: Bytes32, cause: str) -> FailureReport:
    """Return the report of a trade whose taker's order is over: nothing of it can settle."""
    taker = RefusedOrder(trade_id, taker_order_id, PART_STAYING, cause, is_blamed=True)
    return FailureReport((taker,), cause)


def reverting_wallet(failed: Sequence[FailedCall], wallets: Collection[Address]) -> Address | None:
    """Return the wallet that made a mined transaction fail, or None when none is proven to have.

    `failed` are the calls that failed because of each other, the outermost first. A wallet that was
    called with little gas proves nothing: another one may have burned what it needed.
    """
    call = next((each for each in failed if each.target in wallets), None)
    if call is None or call.gas < WALLET_GAS_MIN:
        return None
    return call.target


def report_of_reverting(trade: Trade, wallet: Address, cause: str) -> FailureReport:
    """Return the report of a trade that one wallet reverts when it is mined: it is blamed.

    The fills of a maker leave the trade. A taker ends it, and so does a maker of all its fills.
    """
    reverting = [fill for fill in trade.fills if fill.maker == wallet]
    makers = [fill.maker_order_id for fill in reverting]
    blamed = [trade.taker_order_id] if wallet == trade.taker else makers
    is_over = wallet == trade.taker or len(reverting) == len(trade.fills)
    part = PART_STAYING if is_over else PART_FIRST
    refused = [RefusedOrder(trade.trade_id, each, part, cause, is_blamed=True) for each in blamed]
    return FailureReport(tuple(refused), cause if is_over else None)


def taken_apart(trade_id: str, fills: Sequence[Fill], cause: str) -> FailureReport:
    """Return the report that makes a trade of each fill, so that each is mined by itself."""
    leaving = tuple(
        RefusedOrder(trade_id, fill.maker_order_id, part, cause, is_blamed=False)
        for part, fill in enumerate(fills[1:], PART_FIRST)
    )
    return FailureReport(leaving)


def report_of_failing(
    trade_id: str, failing: Sequence[FailingFill], *, has_passing: bool
) -> FailureReport:
    """Return which fills leave a trade of which some fills revert alone.

    Fills of ended orders leave together and fail at once. The others that revert leave as a second
    group, and are tried by themselves, only where another fill passes.
    """
    assert failing
    ended = [each for each in failing if each.is_ended]
    waiting = [each for each in failing if not each.is_ended]
    if has_passing:
        leaving = [
            *_refused(trade_id, ended, PART_FIRST),
            *_refused(trade_id, waiting, PART_SECOND),
        ]
        return FailureReport(tuple(leaving))
    if waiting:
        return FailureReport(_refused(trade_id, ended, PART_FIRST))
    return FailureReport(_refused(trade_id, ended, PART_STAYING), ended[0].cause)


def _refused(trade_id: str, failing: Sequence[FailingFill], part: int) -> tuple[RefusedOrder, ...]:
    return tuple(
        RefusedOrder(trade_id, each.maker_order_id, part, each.cause, each.is_blamed)
        for each in failing
    )


def report_of_sequential(
    trade_id: str, fills: Sequence[Fill], cause_by_order: dict[Bytes32, str]
) -> FailureReport:
    """Return which fills leave a trade of which each passes alone, but not all together.

    `cause_by_order` has the revert of each fill that does not pass after those kept before it. No
    maker is blamed. When nothing passes, not even the first fill, the whole trade is tried again.
    """
    leaving = tuple(
        RefusedOrder(
            trade_id,
            fill.maker_order_id,
            PART_FIRST,
            cause_by_order[fill.maker_order_id],
            is_blamed=False,
        )
        for fill in fills
        if fill.maker_order_id in cause_by_order
    )
    return FailureReport(leaving if len(leaving) < len(fills) else ())


def smallest_fill(fill: Fill, ticks_per_one: int) -> Fill:
    """Return the smallest fill of the same order at the same price.

    When even this reverts, the order would revert however little were taken of it.
    """
    size = lot_units(fill.price_ticks, ticks_per_one)
    cost = exact_cost_units(size, fill.price_ticks, ticks_per_one)
    making, taking = (cost, size) if fill.side is Side.BUY else (size, cost)
    return msgspec.structs.replace(fill, size_units=size, making_units=making, taking_units=taking)
