"""The lag of settlement, and the orders that are refused until it has caught up.

An order whose answer says `matched` fails on the chain if settlement reaches it after an expiration, its own or
that of an order that it meets. So the margin, which is fixed in the book, grows with the lag where orders arrive,
and past a bound nothing is matched: what may not settle in time is refused before anybody is promised anything.

Two wallets that trade with each other may match more than the chain settles, and settlement gives takers turns. So a
taker with more than a few waiting trades, a backlog, has a lag of its own. From a number
of them on, no more of its orders are taken that would match. Trades that it took are no lag for others, unless nothing
leaves those that wait. For an order that meets a resting one of such a wallet, expirations are compared with the
wallet's lag, since its trade may need what the others bring; so they are where a wallet has a trade that was tried and
waits for an earlier one of its own, of whichever exchange.

A trade that is `RETRYING`, since a try failed or the node refused it alone, is no sign of a lag, nor are the other
trades of its wallets, which settlement may keep behind it: else two wallets could keep everybody's orders out. Nor is
one that was tried and waits for an earlier one, maybe of another exchange, while any trade leaves those that wait.
While the node refuses everything, trades stay `MATCHED`, which is a lag. A trade of a halted market is no sign either.
Each exchange has a lag of its own: while one is paused, orders of the other go on, where settlement has no trade wait
for one that the pause or a halt stops.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import EngineBusy
from foretell.domain.errors.families import ForetellError, Unavailable
from foretell.domain.errors.open_orders import TooManyUnsettledTrades
from foretell.domain.exchange.arrivals.due_orders import WALKED_MAX, orders_met
from foretell.domain.exchange.book import is_bid
from foretell.domain.exchange.commands import PlaceOrder, ReleaseOrder
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, Side
from foretell.domain.exchange.place_order import check_order
from foretell.domain.exchange.state import Market, State, UnsettledTrade
from foretell.domain.exchange.trade import PENDING, TradeStatus
from foretell.domain.values.hexadecimal import Address
from foretell.engine.writer.engine import Engine

LAG_TOLERATED_S: Final = 20
"""A lag that the margin of every order covers."""
LAG_REFUSED_S: Final = 120
"""A lag past which no order is taken that would match, by default."""
LOOK_PAUSE_MS: Final = 1_000
"""Between two looks at the trades that wait: orders may arrive by the thousand."""
LOOKED_PER_MS: Final = 5
"""Trades for which the pause is a millisecond longer, so that looks take a bounded part of the loop."""
LOOK_PAUSE_MS_MAX: Final = 10_000
FEW_TRADES: Final = 5
"""Waiting trades up to which those of a taker show how long others have to wait."""
WAITING_TRADES_MAX: Final = 1_000
"""Trades of a taker at an exchange, as of the last look, from which on no more of its orders are matched there."""

BEHIND: Final = "settlement is behind, and this order would match, or it or one that it would meet may expire before it settles"

_MATCHED: Final = TradeStatus.MATCHED
_RETRYING: Final = TradeStatus.RETRYING


class Backlog(NamedTuple):
    """The waiting trades of a taker: how many, and the age of the oldest one that no failing maker holds up.

    `seconds` is without those that wait for an earlier one: a maker that has a backlog delays no other order of the
    taker's.
    """

    trades: int
    seconds: int


NO_BACKLOG: Final = Backlog(0, 0)


class Lag(NamedTuple):
    """What the waiting trades of an exchange say of how long the next one has to wait.

    `seconds` is the age of the oldest one without those beside a failing one, those of takers with a backlog, and those
    that wait for an earlier one; `taken_s` is with those of such takers, and `oldest_s` without those beside a failing
    one alone.
    """

    seconds: int
    taken_s: int
    oldest_s: int
    backlogs: Mapping[Address, Backlog]
    held_up: Mapping[Address, int]
    """Of each wallet with a trade that waits for an earlier one of its own at any exchange, the age of the oldest."""
    waiting: frozenset[str]
    """The ids of the trades."""

    @property
    def longest_s(self) -> int:
        """The longest lag of any order: that of all, or of a taker with a backlog."""
        own_s = (each.seconds for each in self.backlogs.values())
        return max([self.seconds, *own_s, *self.held_up.values()])

    def own_s(self, wallet: Address) -> int:
        """Return how long the trades of a wallet may wait for others of its own."""
        backlog = self.backlogs.get(wallet, NO_BACKLOG)
        return max(backlog.seconds, self.held_up.get(wallet, 0))

    @property
    def may_refuse(self) -> bool:
        """Whether there is an order that it refuses."""
        return self.longest_s > LAG_TOLERATED_S or any(
            each.trades >= WAITING_TRADES_MAX for each in self.backlogs.values()
        )


class Bounds(NamedTuple):
    """A lag that refuses orders, and the longest one of any order."""

    lag: Lag
    longest_s: int


class SettlementLag:
    """How long the trades of each exchange have waited to be in a block, without those beside a failing one."""

    def __init__(self, engine: Engine, lag_s_max: int = LAG_REFUSED_S) -> None:
        """Past `lag_s_max` nothing is matched; 0 is for any lag."""
        self._engine = engine
        self._lag_s_max = lag_s_max
        self._seen: Mapping[Address, Lag] = {}
        """The lags as of the last look."""
        self._bounds: Mapping[Address, Bounds] = {}
        """Those of them that refuse orders."""
        self._passed_at_ms: dict[Address, int] = {}
        """When a trade of an exchange was last seen to have left those that wait."""
        self._looked_at_ms = self._looks_at_ms = 0
        """When the trades were looked at, and are again, by this machine's clock."""

    def refusal_of(self, command: PlaceOrder) -> Unavailable | None:
        """Return why an order is not taken now: it, or one that it meets, may expire before settlement reaches them.

        An order that was placed before has its answer already, unless it is released now. Without a lag this is one
        comparison of times. A look is due as well when the clock was set back, which the engine's time does not follow.
        """
        now_ms = self._engine.clock_ms()
        at_ms = now_ms - self._engine.ahead_ms
        if not self._looked_at_ms <= at_ms < self._looks_at_ms:
            pause_ms = LOOK_PAUSE_MS + len(self._engine.state.unsettled_trades) // LOOKED_PER_MS
            self._looked_at_ms, self._looks_at_ms = at_ms, at_ms + min(pause_ms, LOOK_PAUSE_MS_MAX)
            self._seen = self._look(now_ms)
            self._bounds = {
                exchange: Bounds(lag, lag.longest_s)
                for exchange, lag in self._seen.items()
                if lag.may_refuse
            }
        if not self._bounds:
            return None
        return self._refusal(self._engine.state, command, now_ms // 1000)

    def refuses_release(self, command: ReleaseOrder) -> bool:
        """Return whether a delayed order may not match at its release, by the rules of one that arrives then."""
        return self.refusal_of(command) is not None

    def _look(self, now_ms: int) -> Mapping[Address, Lag]:
        """Return the lags.

        Trades of takers with a backlog are part of one while none leaves those that wait at the exchange, and those
        behind earlier ones, which may be of another exchange, while none leaves those that wait at any.
        """
        found, state = {}, self._engine.state
        known_takers = frozenset(taker for lag in self._seen.values() for taker in lag.backlogs)
        seen = lags_of(state, now_ms, behind=self._engine.trades_behind, with_backlog=known_takers)
        for exchange, known in self._seen.items():
            waiting = seen[exchange].waiting if exchange in seen else frozenset[str]()
            if _have_passed(state, known.waiting, waiting):
                self._passed_at_ms[exchange] = now_ms
        any_passed_at_ms = max(self._passed_at_ms.values(), default=0)
        for exchange, lag in seen.items():
            stalled_s = (now_ms - self._passed_at_ms.get(exchange, 0)) // 1000
            all_stalled_s = (now_ms - any_passed_at_ms) // 1000
            ages_s = lag.seconds, min(lag.taken_s, stalled_s), min(lag.oldest_s, all_stalled_s)
            found[exchange] = lag._replace(seconds=max(ages_s))
        return found

    def _refusal(self, state: State, command: PlaceOrder, now_s: int) -> Unavailable | None:
        market = state.market_by_id.get(command.condition_id)
        is_placed = command.order_id in state.placed and not isinstance(command, ReleaseOrder)
        if market is None or is_placed:
            return None
        bounds = self._bounds.get(market.opened.exchange)
        if bounds is None:
            return None
        lag, taker = bounds.lag, command.order.maker
        own = lag.backlogs.get(taker, NO_BACKLOG)
        if own.trades >= WAITING_TRADES_MAX and _would_match(market, command):
            return TooManyUnsettledTrades(taker, WAITING_TRADES_MAX)
        lag_s = max(lag.seconds, own.seconds)
        is_late = lag_s > LAG_TOLERATED_S and self._is_late(market, command, now_s, lag_s)
        if is_late or _may_expire(state, market, command, bounds, now_s):
            return EngineBusy(BEHIND)
        return None

    def _is_late(self, market: Market, command: PlaceOrder, now_s: int, lag_s: int) -> bool:
        is_past_bound = 0 < self._lag_s_max < lag_s
        return _expires_by(command, now_s + lag_s) or (
            is_past_bound and _would_match(market, command)
        )


def lags_of(
    state: State,
    now_ms: int,
    *,
    behind: Collection[str] = frozenset(),
    with_backlog: Collection[Address] = frozenset(),
) -> Mapping[Address, Lag]:
    """Return the lag of each exchange with waiting trades; those `behind` wait for earlier ones.

    The last trades of a backlog are old, so takers that were seen `with_backlog` have one until none of their trades
    waits. The trades are in the order of their matches, so the first that waits is the oldest. Trades of wallets
    that have a failing one may wait for that one alone.
    """
    waiting: dict[Address, list[UnsettledTrade]] = {}
    counts: Counter[Address] = Counter()
    for each in _waiting_trades(state):
        waiting.setdefault(each.opened.exchange, []).append(each)
        counts[each.trade.taker] += 1
    takers = {
        taker for taker, count in counts.items() if count > FEW_TRADES or taker in with_backlog
    }
    failing = _failing_wallets(state)
    held_up = _held_up(state, failing, now_ms, behind)
    return {
        exchange: Lag(
            seconds=_oldest_s(trades, failing, now_ms, takers, behind),
            taken_s=_oldest_s(trades, failing, now_ms, behind=behind),
            oldest_s=_oldest_s(trades, failing, now_ms),
            backlogs=_backlogs(trades, takers, failing, now_ms, behind),
            held_up=held_up,
            waiting=frozenset(each.trade.trade_id for each in trades),
        )
        for exchange, trades in waiting.items()
    }


def _waiting_trades(state: State) -> Iterator[UnsettledTrade]:
    """Yield the trades that could be in a block and are not, oldest first."""
    halted = state.halted_markets
    for each in state.unsettled_trades.values():
        if each.status is _MATCHED and each.trade.condition_id not in halted:
            yield each


def _failing_wallets(state: State) -> set[Address]:
    return {
        wallet
        for each in state.unsettled_trades.values()
        if each.status is _RETRYING
        for wallet in _wallets_of(each)
    }


def _oldest_s(
    trades: Sequence[UnsettledTrade],
    failing: set[Address],
    now_ms: int,
    takers: Collection[Address] = frozenset(),
    behind: Collection[str] = frozenset(),
) -> int:
    """Return the age of the oldest trade without those of failing wallets and of these takers, and those `behind`.

    It is 0 without any.
    """
    for each in trades:
        is_left_out = each.trade.taker in takers or each.trade.trade_id in behind
        if not is_left_out and failing.isdisjoint(_wallets_of(each)):
            return _age_s(each, now_ms)
    return 0


def _backlogs(
    trades: Sequence[UnsettledTrade],
    takers: set[Address],
    failing: set[Address],
    now_ms: int,
    behind: Collection[str],
) -> Mapping[Address, Backlog]:
    """Return the backlogs of takers at the exchange of these trades."""
    found: dict[Address, Backlog] = {}
    for each in trades:
        taker = each.trade.taker
        if taker in takers:
            known = found.get(taker, NO_BACKLOG)
            seconds = known.seconds
            is_left_out = seconds or each.trade.trade_id in behind
            if not is_left_out and failing.isdisjoint(fill.maker for fill in each.trade.fills):
                seconds = _age_s(each, now_ms)
            found[taker] = Backlog(known.trades + 1, seconds)
    return found


def _held_up(
    state: State, failing: set[Address], now_ms: int, behind: Collection[str]
) -> Mapping[Address, int]:
    """Return the age of the oldest trade of a wallet that waits for an earlier one of it, without failing wallets."""
    seen: set[Address] = set()
    found: dict[Address, int] = {}
    for each in _waiting_trades(state) if behind else ():
        wallets = _wallets_of(each)
        if each.trade.trade_id in behind and failing.isdisjoint(wallets):
            for wallet in seen.intersection(wallets):
                found.setdefault(wallet, _age_s(each, now_ms))
        seen.update(wallets)
    return found


def _age_s(unsettled: UnsettledTrade, now_ms: int) -> int:
    return (now_ms - unsettled.trade.matched_at_ms) // 1000


def _have_passed(state: State, before: frozenset[str], now: frozenset[str]) -> bool:
    """Return whether a trade that waited waits no longer, and was not deferred: it is in a block, or has ended."""
    for trade_id in before:
        if trade_id not in now:
            unsettled = state.unsettled_trades.get(trade_id)
            if unsettled is None or unsettled.status not in PENDING:
                return True
    return False


def _wallets_of(unsettled: UnsettledTrade) -> list[Address]:
    trade = unsettled.trade
    return [trade.taker, *(fill.maker for fill in trade.fills)]


def _would_match(market: Market, command: PlaceOrder) -> bool:
    """Return whether an order meets the best price of the other side, and takes it."""
    if command.is_post_only:
        return False
    book, terms = market.book, command.terms
    order_side = command.order.side
    side = book.bids if is_bid(order_side, is_yes=command.is_yes) else book.asks
    price_ticks = terms.price_ticks * (side.ticks_per_one // terms.ticks_per_one)
    rank = price_ticks if order_side is Side.BUY else side.ticks_per_one - price_ticks
    return rank + side.opposite.best_rank >= side.ticks_per_one


def _expires_by(command: PlaceOrder, time_s: int) -> bool:
    return 0 < command.order.expiration_s <= time_s + EXPIRATION_MARGIN_S


def _may_expire(
    state: State, market: Market, command: PlaceOrder, bounds: Bounds, now_s: int
) -> bool:
    """Return whether an order, or one that it would meet, may expire within a lag; one that is refused meets none.

    The lag is at least that of each wallet that it would meet, and its own. Without one, or an order that expires, no
    order is looked at. In a lag, an order that would meet more than one look walks is one that may: it would be refused
    for free.
    """
    if not _is_expiry_near(state, command, now_s + bounds.longest_s):
        return False
    try:
        check_order(state, command)
    except ForetellError:
        return False
    met = list(islice(orders_met(market, command), WALKED_MAX + 1))
    taker, lag = command.order.maker, bounds.lag
    others = [order for order in met if order.maker != taker]
    wallets = {taker, *(each.maker for each in others)}
    longest_s = max([lag.seconds, *map(lag.own_s, wallets)])
    if longest_s <= LAG_TOLERATED_S or not others:
        return False
    before_s = now_s + longest_s
    return (
        len(met) > WALKED_MAX
        or _expires_by(command, before_s)
        or any(each.leaves_at_s is not None and each.leaves_at_s <= before_s for each in others)
    )


def _is_expiry_near(state: State, command: PlaceOrder, time_s: int) -> bool:
    next_s = state.next_expiry_s()
    return _expires_by(command, time_s) or (next_s is not None and next_s <= time_s)
