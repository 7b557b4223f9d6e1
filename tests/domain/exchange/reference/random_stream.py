"""Random commands for one engine, the same in every run and with every version of the engine.

The commands depend on the seed and on the outcomes of earlier commands alone, so two engines that
decide alike get the same commands. Orders of six wallets in three markets meet, rest, expire, are
canceled and settle; balances, allowances, nonces, ticks and allocations change in between.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    NOW_MS,
    a_signed_order,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_open_market,
    some_rules,
)

from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    CancelOrders,
    CancelSeen,
    ChangeTick,
    Command,
    ExpireOrders,
    JoinTreasury,
    NonceSeen,
    OpenMarket,
    PlaceOrder,
    ResolveMarket,
    ReturnAllocation,
    SplitTrade,
    TakeAllocations,
    TradeSeen,
)
from foretell.domain.exchange.effects import Effect, TickChanged, TradeMatched, TradeSplit
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import OrderTerms, OrderType, Side, has_budget
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.amounts import lot_units, reserve_units

NAMES: Final = ("alice", "bob", "carol", "dave", "erin", "frank")
SAFES: Final = ("erin", "frank")
"""People whose orders pay from another wallet than the one that signs."""
EXCHANGE_BY_MARKET: Final = {
    "market": EXCHANGE,
    "other": NEG_RISK_EXCHANGE,
    "third": EXCHANGE,
}
PLENTY: Final = 10**12
SIGNATURE: Final = bytes(64) + b"\x1b"
CHANGES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {},
    {"owner": "x"},
    {"order_type": OrderType.FAK},
)
TICKS: Final = (4, 10, 20, 100, 100, 1_000)
PRICES: Final = (0, 25, 33, 40, 45, 48, 50, 50, 52, 55, 60, 67, 75, 99)

T = TypeVar("T")


class Nature(NamedTuple):
    """The kind of a stream.

    `units` is what each wallet has of each asset; `is_joined` says whether collateral is allocated.
    In one that is calm most orders rest, until a large one takes many of them.
    """

    units: int
    lots_max: int
    is_joined: bool = False
    is_calm: bool = False


NATURES: Final = (
    Nature(PLENTY, 6),
    Nature(900, 6),
    Nature(4_000, 40, is_joined=True),
    Nature(PLENTY, 6, is_calm=True),
)


def wallet_of(name: str) -> Any:
    return an_address(f"safe of {name}" if name in SAFES else name)


class RandomStream:
    """The next command, given the effects of all those before."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._nature = NATURES[seed % len(NATURES)]
        self._at_ms = NOW_MS
        self._ticks: dict[str, int] = {}
        self._opened: dict[str, OpenMarket] = {}
        self._placed: list[PlaceOrder] = []
        self._trades: dict[str, Trade] = {}
        self._given: Counter[str] = Counter()

    def begin(self) -> Iterator[Command]:
        """Yield the commands that open the markets and fund the wallets."""
        for market, exchange in EXCHANGE_BY_MARKET.items():
            rules = some_rules(self._one_of(TICKS), size_units_min=1)
            self._opened[market] = an_open_market(market, rules=rules, exchange=exchange)
            self._ticks[self._opened[market].condition_id] = rules.ticks_per_one
            yield self._opened[market]
        if self._nature.is_joined:
            yield JoinTreasury(self._at_ms, "north")
            for name in NAMES:
                yield self._take(name)
        assets = [COLLATERAL] + [
            an_asset(is_yes=is_yes, market=market)
            for market in EXCHANGE_BY_MARKET
            for is_yes in (True, False)
        ]
        yield an_observation(
            [
                BalanceSeen(wallet_of(who), each, self._nature.units)
                for who in NAMES
                for each in assets
            ],
            [
                AllowanceSeen(wallet_of(who), exchange, is_collateral, PLENTY)
                for who in NAMES
                for exchange in (EXCHANGE, NEG_RISK_EXCHANGE)
                for is_collateral in (True, False)
            ],
        )

    def next(self) -> Command:
        """Return the next command."""
        self._at_ms += self._below(400) if self._below(20) else 0
        roll, seen = self._below(1_000), 0
        for weight, make in self._makers():
            seen += weight
            if roll < seen:
                return make()
        return self._place()

    def take(self, effects: Sequence[Effect]) -> None:
        """Take what a command did, so that later ones can refer to it."""
        for effect in effects:
            match effect:
                case TradeMatched():
                    self._trades[effect.trade.trade_id] = effect.trade
                case TradeSplit():
                    for trade in (effect.kept, *effect.parts):
                        self._trades[trade.trade_id] = trade
                case TickChanged():
                    self._ticks[effect.condition_id] = effect.ticks_per_one
                case _:
                    pass

    def _makers(self) -> Sequence[tuple[int, Callable[[], Command]]]:
        allocations = 12 if self._nature.is_joined else 0
        return (
            (150, self._cancel),
            (20, self._place_again),
            (25, lambda: ExpireOrders(self._at_ms)),
            (25, self._see_balance),
            (10, self._see_allowance),
            (90, self._see_trades),
            (8, self._see_cancel),
            (6, self._see_nonce),
            (20, self._split),
            (3, self._change_tick),
            (1, lambda: ResolveMarket(self._at_ms, a_word(self._one_of(("third", "unknown"))))),
            (allocations, lambda: self._take(self._one_of(NAMES))),
            (allocations, self._return),
        )

    def _below(self, count: int) -> int:
        """Return a number below another; only `random()` gives the same in all versions."""
        return int(self._random.random() * count)

    def _one_of(self, things: Sequence[T]) -> T:
        return things[self._below(len(things))]

    def _place(self) -> PlaceOrder:
        busiest = ("market",) * (9 if self._nature.is_calm else 0)
        market, who = self._one_of((*busiest, *EXCHANGE_BY_MARKET)), self._one_of(NAMES)
        opened, side = self._opened[market], self._one_of(tuple(Side))
        ticks_now = self._ticks[opened.condition_id]
        ticks_per_one = self._one_of((opened.rules.ticks_per_one, ticks_now))
        is_buy, is_yes = side is Side.BUY, self._below(2) == 0
        is_sweep = self._below(120 if self._nature.is_calm else 25) == 0
        is_far = self._nature.is_calm or self._below(2) == 0
        distance = -45 if is_sweep else 20 * is_far
        percent = self._one_of(PRICES) - (distance if is_buy else -distance)
        price_ticks = 1 + min(max(percent, 0), 99) * (ticks_per_one - 2) // 99
        lots = 1 + self._below(self._nature.lots_max * (4_000 if is_sweep else 1))
        size = lots * lot_units(price_ticks, ticks_per_one) + self._one_of((0, 0, 0, 1, 3, 50))
        cost = reserve_units(size, price_ticks, ticks_per_one)
        order_type = self._one_of((*OrderType, OrderType.GTC, OrderType.GTC, OrderType.GTC))
        is_budgeted = has_budget(side, order_type)
        is_dated = order_type is OrderType.GTD
        number = len(self._placed)
        order = a_signed_order(
            who,
            salt=str(number),
            maker=wallet_of(who),
            token_id=opened.token_yes if is_yes else opened.token_no,
            side=side,
            maker_amount=cost if is_buy else size,
            taker_amount=size if is_buy else cost,
            expiration_s=self._at_ms // 1000 + 58 + self._below(40) if is_dated else 0,
            nonce=self._one_of((0, 0, 0, 1)),
            signature=SIGNATURE,
        )
        self._placed.append(
            PlaceOrder(
                at_ms=self._at_ms,
                order_id=a_word(f"order {number}"),
                order=order,
                order_type=order_type,
                is_post_only=self._below(8) == 0,
                owner=f"key of {who}",
                condition_id=opened.condition_id if self._below(300) else a_word("unknown"),
                is_yes=is_yes,
                terms=OrderTerms(
                    price_ticks,
                    ticks_per_one,
                    None if is_budgeted else size,
                    cost if is_budgeted else None,
                ),
            )
        )
        return self._placed[-1]

    def _recent(self, count: int) -> Sequence[PlaceOrder]:
        return self._placed[-count:] or [self._place()]

    def _place_again(self) -> PlaceOrder:
        known = self._recent(self._one_of((80, 80, 1_000)))
        again = msgspec.structs.replace(self._one_of(known), at_ms=self._at_ms)
        return msgspec.structs.replace(again, **self._one_of(CHANGES))

    def _cancel(self) -> CancelOrders:
        recent, signer = self._recent(90), an_address(self._one_of(NAMES))
        mine = [each.order_id for each in recent if each.order.signer == signer]
        order_ids = [*mine[: self._one_of((1, 1, 1, 8))], self._one_of(recent).order_id]
        return CancelOrders(self._at_ms, signer, tuple(order_ids[: self._one_of((1, 9))]))

    def _see_balance(self) -> Command:
        market = self._one_of(tuple(EXCHANGE_BY_MARKET))
        token = an_asset(is_yes=self._below(2) == 0, market=market)
        asset = self._one_of((COLLATERAL, token))
        units = self._below(2 * self._nature.units)
        seen = BalanceSeen(wallet_of(self._one_of(NAMES)), asset, units)
        return self._observe(balances=(seen,))

    def _see_allowance(self) -> Command:
        wallet, exchange = (
            wallet_of(self._one_of(NAMES)),
            self._one_of((EXCHANGE, NEG_RISK_EXCHANGE)),
        )
        is_collateral = self._below(2) == 0
        units = self._one_of((0, 50, 900, PLENTY, PLENTY, PLENTY))
        return self._observe(allowances=(AllowanceSeen(wallet, exchange, is_collateral, units),))

    def _see_trades(self) -> Command:
        known = list(self._trades)[-12:]
        chosen = dict.fromkeys(self._one_of(known) for _ in known[:4])
        statuses = (*TradeStatus, TradeStatus.CONFIRMED, TradeStatus.MINED)
        trades = [
            TradeSeen(each, self._one_of(statuses), self._one_of(("0x1", "0x2"))) for each in chosen
        ]
        balances = [
            BalanceSeen(fill.maker, COLLATERAL, self._nature.units)
            for each in chosen
            for fill in self._trades[each].fills[:1]
        ]
        return self._observe(trades=tuple(trades), balances=tuple(balances))

    def _see_cancel(self) -> Command:
        order_id = a_word(f"order {max(0, len(self._placed) + 2 - self._below(12))}")
        exchange = self._one_of((EXCHANGE, NEG_RISK_EXCHANGE))
        return self._observe(cancels=(CancelSeen(exchange, order_id),))

    def _see_nonce(self) -> Command:
        wallet, exchange = (
            wallet_of(self._one_of(NAMES)),
            self._one_of((EXCHANGE, NEG_RISK_EXCHANGE)),
        )
        return self._observe(nonces=(NonceSeen(exchange, wallet, self._one_of((0, 0, 1, 2))),))

    def _observe(self, **lists: Any) -> Command:
        number = 1 + (self._at_ms - NOW_MS) // 1000
        seen = an_observation(at_ms=self._at_ms, block_number=number)
        return msgspec.structs.replace(seen, **lists)

    def _split(self) -> Command:
        if not self._trades:
            return self._place()
        many = [each for each in self._trades.values() if len(each.fills) > 1]
        trade = self._one_of((many or list(self._trades.values()))[-6:])
        order_ids = [fill.maker_order_id for fill in trade.fills]
        marks = {order_id: self._below(3) for order_id in order_ids}
        parts = tuple(tuple(each for each in order_ids if marks[each] == mark) for mark in (1, 2))
        return SplitTrade(self._at_ms, trade.trade_id, parts, parts[0])

    def _change_tick(self) -> Command:
        market = self._one_of((*EXCHANGE_BY_MARKET, "unknown"))
        ticks_per_one = self._one_of((3, 10, 100, 200, 400, 1_000, 10_000))
        return ChangeTick(self._at_ms, a_word(market), ticks_per_one)

    def _take(self, name: str) -> Command:
        wallet = wallet_of(name)
        self._given[wallet] += self._below(2 * self._nature.units)
        given = AllocationTotal(wallet, total_of(self._given[wallet]))
        return TakeAllocations(self._at_ms, "north", (given,))

    def _return(self) -> Command:
        wallet = wallet_of(self._one_of(NAMES))
        total = total_of(self._below(self._given[wallet] + 1))
        is_forced = self._below(3) == 0
        return ReturnAllocation(self._at_ms, "north", wallet, total, is_forced=is_forced)
