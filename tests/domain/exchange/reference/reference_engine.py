"""A slow and obvious engine, the reference of the fast one.

It keeps lists and searches all of them for every command. Prices are fractions. Orders trade one lot
after another, each lot with the best order at that moment. Reservations and pending moves are summed
each time from the resting orders and the unsettled trades.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from foretell.domain.exchange.commands import (
    BarWallet,
    CancelOrders,
    ChangeTick,
    Command,
    DelayMarket,
    ExpireOrders,
    HaltMarket,
    ObserveChain,
    OpenMarket,
    PlaceOrder,
    ReleaseOrder,
    ResolveMarket,
    ReturnedOrder,
    SplitTrade,
)
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.exchange.trade import TradeStatus, part_id_of, trade_id_of
from foretell.domain.values.hexadecimal import Bytes32

COLLATERAL = "0"
FILLS_PER_TRADE = 20
SECONDS_BEFORE_EXPIRATION = 60
PENDING = {TradeStatus.MATCHED, TradeStatus.RETRYING}
KNOWN_TICKS = {10, 100, 200, 400, 1_000, 10_000}
ENDED = {TradeStatus.CONFIRMED, TradeStatus.FAILED}

Move = tuple[str, str, int]


class Refused(Exception):
    """The command is refused; the text is the name of the refusal."""


@dataclass
class Offer:
    """A resting or arriving order."""

    command: PlaceOrder
    market: OpenMarket
    price: Fraction
    left: int
    rested_as: int = 0

    def __post_init__(self) -> None:
        order = self.command.order
        self.order_id: str = self.command.order_id
        self.wallet: str = order.maker
        self.is_yes = self.command.is_yes
        self.is_buy = order.side is Side.BUY
        token: str = self.market.token_yes if self.is_yes else self.market.token_no
        self.pays_with = COLLATERAL if self.is_buy else token
        self.is_paid_in = token if self.is_buy else COLLATERAL

    @property
    def is_bid(self) -> bool:
        """Whether the order buys yes or sells no."""
        return self.is_buy == self.is_yes

    @property
    def price_in_yes(self) -> Fraction:
        return self.price if self.is_yes else 1 - self.price

    @property
    def reserved(self) -> int:
        return math.ceil(self.left * self.price) if self.is_buy else self.left

    def price_for(self, taker: "Offer") -> Fraction | None:
        """Return the price of a token for the taker, None if the two do not cross."""
        is_one_token = self.is_yes == taker.is_yes
        if self.market is not taker.market or is_one_token == (self.is_buy == taker.is_buy):
            return None
        price = self.price if is_one_token else 1 - self.price
        fits = price <= taker.price if taker.is_buy else price >= taker.price
        return price if fits else None

    def moves(self, units: int, price: Fraction) -> list[Move]:
        """Return the moves of the wallet in a trade at this price."""
        cost = units * price
        assert cost.denominator == 1, "no fill is ever rounded"
        given, taken = (int(cost), units) if self.is_buy else (units, int(cost))
        return [(self.wallet, self.pays_with, -given), (self.wallet, self.is_paid_in, taken)]


@dataclass
class Meeting:
    """The match of a taker: units by maker, and the taker's own crossed orders."""

    deals: dict[str, tuple[Offer, Fraction, int]] = field(default_factory=dict)
    own: list[Offer] = field(default_factory=list)
    is_done: bool = False


@dataclass
class Report:
    """The outcome of a command: its answer, the trades, and the closed orders with reasons."""

    answer: Any = None
    trades: list[Any] = field(default_factory=list)
    closed: list[tuple[str, str]] = field(default_factory=list)
    returned: list[tuple[str, int]] = field(default_factory=list)


class ReferenceEngine:
    def __init__(self, answers_kept_max: int) -> None:
        self.markets: dict[str, OpenMarket] = {}
        self.ticks: dict[str, int] = {}
        self.resolved: set[str] = set()
        self.resting: list[Offer] = []
        self.delays: Counter[str] = Counter()
        self.delayed: list[tuple[Offer, int]] = []
        self.balances: Counter[tuple[str, str]] = Counter()
        self.allowances: Counter[tuple[str, str, bool]] = Counter()
        self.trades: dict[str, tuple[TradeStatus, str, list[Move]]] = {}
        self.moves_by_fill: dict[str, dict[str, list[Move]]] = {}
        self.answers: dict[str, tuple[Any, Any]] = {}
        self.ended: set[tuple[str, str]] = set()
        self.nonces: Counter[tuple[str, str]] = Counter()
        self.spent: set[str] = set()
        self.barred: dict[str, str] = {}
        self.halted: set[str] = set()
        self.offers: dict[str, Offer] = {}
        self.units_by_fill: dict[str, dict[str, int]] = {}
        self.taker_by_trade: dict[str, str] = {}
        self.rests = itertools.count(1)
        self.latest_ms = 0
        self.answers_kept_max = answers_kept_max

    def apply(self, command: Any) -> Report:
        handlers: dict[type[Command], Any] = {
            OpenMarket: self._open,
            ChangeTick: self._change_tick,
            ResolveMarket: self._resolve,
            PlaceOrder: self._place,
            CancelOrders: self._cancel,
            ExpireOrders: self._expire,
            ObserveChain: self._observe,
            SplitTrade: self._split,
            BarWallet: self._bar,
            HaltMarket: self._halt,
            DelayMarket: self._set_delay,
            ReleaseOrder: self._release,
        }
        report = Report()
        handlers[type(command)](command, report)
        return report

    def reserved(self, wallet: str, asset: str) -> int:
        mine = [each for each in self.resting if (each.wallet, each.pays_with) == (wallet, asset)]
        waiting = [
            need for each, need in self.delayed if (each.wallet, each.pays_with) == (wallet, asset)
        ]
        return sum(offer.reserved for offer in mine) + sum(waiting)

    @property
    def open_offers(self) -> list[Offer]:
        """Return all orders that rest or wait."""
        return [*self.resting, *(each for each, _ in self.delayed)]

    def coming(self, wallet: str, asset: str) -> list[int]:
        """Return the amounts that unsettled trades will credit or debit."""
        on_their_way = [each for each in self.trades.values() if each[0] in PENDING]
        moves = [move for _, _, moves in on_their_way for move in moves]
        return [units for who, what, units in moves if (who, what) == (wallet, asset)]

    def spendable(self, wallet: str, exchange: str, asset: str) -> int:
        coming = self.coming(wallet, asset)
        held = self.balances[wallet, asset] + sum(coming)
        allowed = self.allowances[wallet, exchange, asset == COLLATERAL]
        going = sum(units for units in coming if units < 0)
        return min(held, allowed + going) - self.reserved(wallet, asset)

    def _open(self, command: OpenMarket, _: Report) -> None:
        self.markets.setdefault(command.condition_id, command)
        self.ticks.setdefault(command.condition_id, command.rules.ticks_per_one)

    def _change_tick(self, command: ChangeTick, _: Report) -> None:
        """Set the tick; prices are fractions here, so nothing else changes."""
        now, wanted = self.ticks.get(command.condition_id), command.ticks_per_one
        if now is None or command.condition_id in self.resolved or now == wanted:
            return
        refuse_if("TickNotFiner", wanted not in KNOWN_TICKS or wanted % now != 0)
        self.ticks[command.condition_id] = wanted

    def _resolve(self, command: ResolveMarket, report: Report) -> None:
        self.resolved |= {command.condition_id} & set(self.markets)
        self._close(
            [each for each in self.open_offers if each.market.condition_id == command.condition_id],
            "market_resolved",
            report,
        )

    def _cancel(self, command: CancelOrders, report: Report) -> None:
        mine = [each for each in self.open_offers if each.command.order.signer == command.signer]
        gone = [each for each in mine if each.order_id in command.order_ids]
        self._close(gone, "canceled", report)
        names = {offer.order_id for offer in gone}
        report.answer = (names, set(command.order_ids) - names)

    def _expire(self, command: ExpireOrders, report: Report) -> None:
        second = command.at_ms // 1000 + SECONDS_BEFORE_EXPIRATION
        dated = [each for each in self.resting if each.command.order.expiration_s]
        due = [each for each in dated if each.command.order.expiration_s <= second]
        self._close(due, "expired", report)

    def _close(self, offers: Iterable[Offer], reason: str, report: Report) -> None:
        for offer in list(offers):
            self.resting = [each for each in self.resting if each is not offer]
            self.delayed = [each for each in self.delayed if each[0] is not offer]
            report.closed.append((offer.order_id, reason))

    def _place(self, command: PlaceOrder, report: Report) -> None:
        if command.order_id in self.answers:
            asked, report.answer = self.answers[command.order_id]
            refuse_if("OrderDuplicated", (command.owner, command.order_type) != asked)
            return
        refuse_if("UnknownMarket", command.condition_id not in self.markets)
        refuse_if("MarketClosed", command.condition_id in self.resolved)
        second = max(self.latest_ms, command.at_ms) // 1000 + SECONDS_BEFORE_EXPIRATION
        refuse_if("InvalidExpiration", 0 < command.order.expiration_s <= second)
        refuse_if("OrderPlacedBefore", command.order_id in self.spent)
        terms, market = command.terms, self.markets[command.condition_id]
        refuse_if("OrderCanceledOnChain", (market.exchange, command.order_id) in self.ended)
        nonce = self.nonces[market.exchange, command.order.maker]
        refuse_if("InvalidOrderNonce", command.order.nonce < nonce)
        refuse_if("WalletBarred", command.order.maker in self.barred)
        refuse_if("MarketHalted", command.condition_id in self.halted)
        price = Fraction(terms.price_ticks, terms.ticks_per_one)
        taker = Offer(command, market, price, terms.size_units or 0)
        need = taker.reserved if terms.budget_units is None else terms.budget_units
        self._check_funds(taker, need)
        if self._waits(taker):
            self.delayed.append((taker, need))
            self._answer(command, ("DELAYED", 0, 0, ()), report)
            return
        meeting = self._meet(taker, terms.budget_units)
        crosses, is_killed = bool(meeting.deals or meeting.own), not meeting.deals
        refuse_if("PostOnlyWouldCross", command.is_post_only and crosses)
        is_part = is_killed or not meeting.is_done
        refuse_if("FillOrKillUnfilled", command.order_type is OrderType.FOK and is_part)
        refuse_if("FillAndKillUnmatched", command.order_type is OrderType.FAK and is_killed)
        self._carry_out(taker, meeting, report)

    def _waits(self, taker: Offer) -> bool:
        """Return whether an order crosses the book of a market with a delay."""
        command = taker.command
        if isinstance(command, ReleaseOrder) or command.is_post_only:
            return False
        crosses = any(each.price_for(taker) is not None for each in self.resting)
        return crosses and self.delays[command.condition_id] > 0

    def _set_delay(self, command: DelayMarket, _: Report) -> None:
        self.delays[command.condition_id] = command.delay_ms

    def _release(self, command: ReleaseOrder, report: Report) -> None:
        """Place an order that waited as if it arrived now; a refusal ends it."""
        waiting = [each for each, _ in self.delayed if each.order_id == command.order_id]
        if not waiting:
            return
        self.delayed = [each for each in self.delayed if each[0] is not waiting[0]]
        self.answers.pop(command.order_id, None)
        self.spent.discard(command.order_id)
        try:
            self._place(command, report)
        except Refused:
            self._answer(command, ("CANCELED", 0, 0, ()), report)

    def _answer(self, command: PlaceOrder, answer: Any, report: Report) -> None:
        report.answer = answer
        self.answers[command.order_id] = ((command.owner, command.order_type), answer)
        while len(self.answers) > self.answers_kept_max:
            oldest = next(iter(self.answers))
            self.spent.add(oldest)
            del self.answers[oldest]

    def _check_funds(self, taker: Offer, need: int) -> None:
        wallet, exchange, asset = taker.wallet, taker.market.exchange, taker.pays_with
        if self.spendable(wallet, exchange, asset) >= need:
            return
        coming = self.coming(wallet, asset)
        allowed = self.allowances[wallet, exchange, asset == COLLATERAL]
        going = sum(units for units in coming if units < 0)
        refuse_if("InsufficientBalance", self.balances[wallet, asset] + sum(coming) < need)
        refuse_if("InsufficientAllowance", allowed + going < need)
        raise Refused("ReservedByOpenOrders")

    def _meet(self, taker: Offer, budget: int | None) -> Meeting:
        """Return the match, lot by lot with the best remaining order, without changing orders."""
        meeting, left = Meeting(), {offer.order_id: offer.left for offer in self.resting}
        wanted = Fraction(taker.left if budget is None else budget)
        while (best := self._best(taker, left)) is not None:
            maker, price = best
            lot = price.denominator
            lot_takes = Fraction(lot) if budget is None else lot * price
            if wanted < lot_takes:
                meeting.is_done = True
                break
            if maker.wallet == taker.wallet:
                meeting.own.append(maker)
                left[maker.order_id] = 0
                continue
            wanted -= lot_takes
            left[maker.order_id] -= lot
            units = meeting.deals.get(maker.order_id, (maker, price, 0))[2] + lot
            meeting.deals[maker.order_id] = (maker, price, units)
            meeting.is_done = wanted < lot_takes
        return meeting

    def _best(self, taker: Offer, left: dict[str, int]) -> tuple[Offer, Fraction] | None:
        """Return the order for the taker's next lot: the best price, then the oldest."""
        best: tuple[Offer, Fraction] | None = None
        for offer in self.resting:
            price = offer.price_for(taker)
            if price is None or left[offer.order_id] < price.denominator:
                continue
            is_better = best is None or (price < best[1] if taker.is_buy else price > best[1])
            best = (offer, price) if is_better else best
        return best

    def _carry_out(self, taker: Offer, meeting: Meeting, report: Report) -> None:
        self._close(meeting.own, "self_trade", report)
        deals = list(meeting.deals.values())
        for first in range(0, len(deals), FILLS_PER_TRADE):
            self._trade(taker, deals[first : first + FILLS_PER_TRADE], report)
        self.resting = [offer for offer in self.resting if offer.left]
        too_little = [offer for offer in self.resting if offer.left < offer.price.denominator]
        self._close(too_little, "dust", report)
        taken, paid = sum(units for _, _, units in deals), sum(p * u for _, p, u in deals)
        taker.left -= taken
        left_is_dust = meeting.is_done or taker.left < taker.price.denominator
        may_rest = taker.command.order_type in {OrderType.GTC, OrderType.GTD}
        rests = may_rest and not left_is_dust
        self.offers[taker.order_id] = taker
        if rests:
            taker.rested_as = next(self.rests)
            self.resting.append(taker)
        amounts = (int(paid), taken) if taker.is_buy else (taken, int(paid))
        ids = tuple(trade[0] for trade in report.trades)
        answer = ("LIVE" if rests else "MATCHED", *amounts, ids)
        self._answer(taker.command, answer, report)

    def _trade(
        self, taker: Offer, deals: list[tuple[Offer, Fraction, int]], report: Report
    ) -> None:
        trade_id = trade_id_of(taker.command.order_id, len(report.trades))
        moves_by_fill, fills = {}, []
        for maker, price, units in deals:
            maker.left -= units
            moves = maker.moves(units, maker.price) + taker.moves(units, price)
            moves_by_fill[maker.order_id] = moves
            fills.append((maker.order_id, units))
        self._keep(trade_id, TradeStatus.MATCHED, "", moves_by_fill)
        self.units_by_fill[trade_id] = dict(fills)
        self.taker_by_trade[trade_id] = taker.order_id
        report.trades.append((trade_id, fills))

    def _keep(
        self, trade_id: str, status: TradeStatus, tx_hash: str, fills: dict[str, list[Move]]
    ) -> None:
        self.moves_by_fill[trade_id] = fills
        self.trades[trade_id] = (status, tx_hash, list(itertools.chain(*fills.values())))

    def _split(self, command: SplitTrade, report: Report) -> None:
        if self.trades[command.trade_id][0] not in PENDING:
            return
        kept, status = dict(self.moves_by_fill[command.trade_id]), self.trades[command.trade_id][:2]
        parts = [{name: kept[name] for name in kept if name in part} for part in command.parts]
        for part in parts:
            for name in part:
                del kept[name]
        if kept:
            self._keep(command.trade_id, *status, kept)
            units = self.units_by_fill[command.trade_id]
            self.units_by_fill[command.trade_id] = {name: units[name] for name in kept}
            for part in filter(None, parts):
                part_id = part_id_of(command.trade_id, Bytes32(next(iter(part))))
                self._keep(part_id, *status, part)
                self.units_by_fill[part_id] = {name: units[name] for name in part}
                self.taker_by_trade[part_id] = self.taker_by_trade[command.trade_id]
        named = [each for each in self.resting if each.order_id in command.refused_ids]
        self._close(named, "reverts_on_chain", report)
        short = [each for each in self.resting if each.order_id in command.short_ids]
        self._close(short, "underfunded", report)

    def _halt(self, command: HaltMarket, _: Report) -> None:
        (self.halted.add if command.is_halted else self.halted.discard)(command.condition_id)

    def _bar(self, command: BarWallet, report: Report) -> None:
        if not command.is_barred:
            self.barred.pop(command.wallet, None)
        elif self.barred.get(command.wallet) != command.cause:
            self.barred[command.wallet] = command.cause
            theirs = [each for each in self.open_offers if each.wallet == command.wallet]
            self._close(theirs, "wallet_barred", report)

    def _end(self, command: ObserveChain, report: Report) -> None:
        for seen in command.cancels:
            named = [each for each in self.open_offers if each.order_id == seen.order_id]
            here = [each for each in named if each.market.exchange == seen.exchange]
            self._close(here, "canceled_on_chain", report)
            if seen.order_id not in self.answers:
                self.ended.add((seen.exchange, seen.order_id))
        for raised in command.nonces:
            self.nonces[raised.exchange, raised.maker] = raised.nonce
            old = [
                each
                for each in self.open_offers
                if (each.market.exchange, each.wallet) == (raised.exchange, raised.maker)
                and each.command.order.nonce < raised.nonce
            ]
            self._close(old, "nonce_raised", report)

    def _observe(self, command: ObserveChain, report: Report) -> None:
        looked_at: set[tuple[str, str]] = set()
        for balance in command.balances:
            self.balances[balance.wallet, balance.asset] = balance.units
            looked_at.add((balance.wallet, balance.asset))
        for seen in command.allowances:
            self.allowances[seen.wallet, seen.exchange, seen.is_collateral] = seen.units
            looked_at |= {(seen.wallet, each.pays_with) for each in self.open_offers}
        failing = []
        for trade in command.trades:
            settled = self._settle(trade.trade_id, trade.status, trade.tx_hash)
            looked_at |= settled
            failing += [(trade.trade_id, trade.returned)] if settled else []
        self._end(command, report)
        newest_first = sorted(self.resting, key=lambda each: -each.rested_as)
        for offer in [*(each for each, _ in reversed(self.delayed)), *newest_first]:
            wallet, asset = offer.wallet, offer.pays_with
            uncovered = self.spendable(wallet, offer.market.exchange, asset) < 0
            if (wallet, asset) in looked_at and uncovered:
                self._close([offer], "underfunded", report)
        for trade_id, returned in failing:
            for each in returned:
                self._return(trade_id, each, command.at_ms, report)

    def _return(self, trade_id: str, returned: ReturnedOrder, at_ms: int, report: Report) -> None:
        """Give an order of a failed trade what that took of it, if it could rest now."""
        offer, units = self.offers.get(returned.order_id), self.units_in(trade_id, returned)
        if offer is None or not units or offer.market.condition_id in self.resolved:
            return
        order, market = offer.command.order, offer.market
        second = max(self.latest_ms, at_ms) // 1000 + SECONDS_BEFORE_EXPIRATION
        is_barred = offer.wallet in self.barred or (market.exchange, offer.order_id) in self.ended
        is_old = order.nonce < self.nonces[market.exchange, offer.wallet]
        may_rest = offer.command.order_type in {OrderType.GTC, OrderType.GTD}
        if is_barred or is_old or not may_rest or 0 < order.expiration_s <= second:
            return
        is_resting = any(each is offer for each in self.resting)
        left = units + (offer.left if is_resting else 0)
        again = replace(offer, left=left)
        if not is_resting and (not returned.is_filled or left < offer.price.denominator):
            return
        if not is_resting and any(each.price_for(again) is not None for each in self.resting):
            return
        more = again.reserved - (offer.reserved if is_resting else 0)
        if left > returned.size_units or (
            self.spendable(offer.wallet, market.exchange, offer.pays_with) < more
        ):
            return
        offer.left = left
        if not is_resting:
            offer.rested_as = next(self.rests)
            older = [e for e in self.resting if e.command.at_ms <= offer.command.at_ms]
            self.resting.insert(len(older), offer)
        report.returned.append((offer.order_id, left))

    def units_in(self, trade_id: str, returned: ReturnedOrder) -> int:
        """Return what a trade took of an order: of a maker its fill, of the taker all fills."""
        fills = self.units_by_fill[trade_id]
        if returned.order_id == self.taker_by_trade[trade_id]:
            return sum(fills.values())
        return fills.get(returned.order_id, 0)

    def _settle(self, trade_id: str, status: TradeStatus, tx_hash: str) -> set[tuple[str, str]]:
        was = self.trades.get(trade_id)
        if was is None or was[0] in ENDED or was[:2] == (status, tx_hash):
            return set()
        if status is not TradeStatus.MATCHED:
            self.trades[trade_id] = (status, tx_hash, was[2])
        return {(wallet, asset) for wallet, asset, _ in was[2]}


def refuse_if(name: str, is_so: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if is_so:
        raise Refused(name)
