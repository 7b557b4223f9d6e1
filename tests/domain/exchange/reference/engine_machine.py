"""Random commands for the engine and the slow one, and the invariants after each of them."""

from collections import Counter
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.domain.exchange.reference.reference_engine import ReferenceEngine, Refused, Report
from tests.rigs.digest import digest
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

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.apply import Cancellation, Outcome, apply
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    BarWallet,
    CancelOrders,
    CancelSeen,
    ChangeTick,
    Command,
    DelayMarket,
    ExpireOrders,
    HaltMarket,
    NonceSeen,
    OpenMarket,
    PlaceOrder,
    ReleaseOrder,
    ResolveMarket,
    ReturnedOrder,
    SplitTrade,
    TradeSeen,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.delays.delayed_orders import due_releases
from foretell.domain.exchange.effects import Effect, OrderClosed, OrderReturned, TradeMatched
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import OrderTerms, OrderType, Side, has_budget, leaves_book_at_s
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import Placement, State
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.amounts import lot_units, reserve_units
from foretell.domain.values.hexadecimal import Address

NAMES = ("alice", "bob", "carol", "dave")
WALLETS = [an_address(name) for name in NAMES]
EXCHANGES = {"market": EXCHANGE, "other": NEG_RISK_EXCHANGE}
ASSETS = [COLLATERAL] + [
    an_asset(is_yes=is_yes, market=market) for market in EXCHANGES for is_yes in (True, False)
]
PLENTY = 10**9
PLACEMENTS_KEPT_MAX = 20
SIGNATURE = bytes(64) + b"\x1b"

CHANGES: list[dict[str, Any]] = [{}, {"owner": "x"}, {"order_type": OrderType.FAK}]

names = st.sampled_from(NAMES)
markets = st.sampled_from(list(EXCHANGES))


class Draft(NamedTuple):
    """An order that a wallet may place."""

    who: str
    market: str
    side: Side
    is_yes: bool
    price: float
    lots: int
    odd_units: int
    order_type: OrderType
    seconds: int
    is_post_only: bool
    nonce: int
    is_of_first_tick: bool


DRAFTS = st.builds(
    Draft,
    who=names,
    market=markets,
    side=st.sampled_from(Side),
    is_yes=st.booleans(),
    price=st.sampled_from([0, 0.25, 0.33, 0.4, 0.45, 0.5, 0.5, 0.55, 0.6, 0.67, 0.75, 0.999]),
    lots=st.integers(1, 6),
    odd_units=st.sampled_from([0, 0, 0, 1, 3, 50]),
    order_type=st.sampled_from([*OrderType, OrderType.GTC, OrderType.GTC]),
    seconds=st.integers(61, 90),
    is_post_only=st.sampled_from([False, False, False, False, True]),
    nonce=st.sampled_from([0, 0, 1, 2]),
    is_of_first_tick=st.booleans(),
)


class EngineMachine(RuleBasedStateMachine):
    """Four wallets trade in two markets; reorgs sometimes revert what was observed."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State(PLACEMENTS_KEPT_MAX)
        self.reference = ReferenceEngine(PLACEMENTS_KEPT_MAX + 1)
        self.at_ms = NOW_MS
        self.opened: dict[str, OpenMarket] = {}
        self.placings: list[PlaceOrder] = []
        self.journal: list[bytes] = []
        self.effects: list[Effect] = []
        self.only_good_news = True

    @initialize(ticks=st.tuples(*[st.sampled_from([4, 10, 20, 100])] * 2), rich=st.booleans())
    def begin(self, ticks: tuple[int, int], *, rich: bool) -> None:
        for (market, exchange), ticks_per_one in zip(EXCHANGES.items(), ticks, strict=True):
            rules = some_rules(ticks_per_one, size_units_min=1)
            self.opened[market] = an_open_market(market, rules=rules, exchange=exchange)
            self.submit(self.opened[market])
        units = PLENTY if rich else 400
        self.submit(
            an_observation(
                [BalanceSeen(wallet, asset, units) for wallet in WALLETS for asset in ASSETS],
                [
                    AllowanceSeen(wallet, exchange, is_collateral, PLENTY)
                    for wallet in WALLETS
                    for exchange in EXCHANGES.values()
                    for is_collateral in (True, False)
                ],
            )
        )

    @rule(drafts=st.lists(DRAFTS, min_size=1, max_size=10))
    def place(self, drafts: list[Draft]) -> None:
        for draft in drafts:
            self.placings.append(self.placing(draft))
            self.submit(self.placings[-1])

    def placing(self, draft: Draft) -> PlaceOrder:
        opened, number = self.opened[draft.market], len(self.placings)
        ticks_now = self.reference.ticks[opened.condition_id]
        ticks_per_one = opened.rules.ticks_per_one if draft.is_of_first_tick else ticks_now
        price_ticks = 1 + int(draft.price * (ticks_per_one - 1))
        size = draft.lots * lot_units(price_ticks, ticks_per_one) + draft.odd_units
        cost = reserve_units(size, price_ticks, ticks_per_one)
        is_buy, is_dated = draft.side is Side.BUY, draft.order_type is OrderType.GTD
        is_budgeted = has_budget(draft.side, draft.order_type)
        order = a_signed_order(
            draft.who,
            salt=str(number),
            token_id=opened.token_yes if draft.is_yes else opened.token_no,
            side=draft.side,
            maker_amount=cost if is_buy else size,
            taker_amount=size if is_buy else cost,
            expiration_s=self.at_ms // 1000 + draft.seconds if is_dated else 0,
            nonce=draft.nonce,
            signature=SIGNATURE,
        )
        return PlaceOrder(
            at_ms=self.at_ms,
            order_id=a_word(f"order {number}"),
            order=order,
            order_type=draft.order_type,
            is_post_only=draft.is_post_only,
            owner=draft.who,
            condition_id=opened.condition_id,
            is_yes=draft.is_yes,
            terms=OrderTerms(
                price_ticks,
                ticks_per_one,
                None if is_budgeted else size,
                cost if is_budgeted else None,
            ),
        )

    @rule(number=st.integers(0), change=st.sampled_from(CHANGES))
    def place_again(self, number: int, change: dict[str, Any]) -> None:
        some = at_most_one(self.placings, number)
        self.submit_all([msgspec.structs.replace(placing, **change) for placing in some])

    @rule(who=names, count=st.integers(0, 4), others_count=st.integers(0, 3))
    def cancel(self, who: str, count: int, others_count: int) -> None:
        signer = an_address(who)
        mine = [each for each in self.reference.resting if each.wallet == signer]
        mine += [each for each, _ in self.reference.delayed if each.wallet == signer][:1]
        resting = [each.command.order_id for each in mine]
        others = [placing.order_id for placing in self.placings]
        asked = [*resting[-count:], *others[:others_count], *resting[:1]]
        self.submit(CancelOrders(self.at_ms, signer, tuple(asked)))

    @rule(milliseconds=st.integers(0, 20_000))
    def wait(self, milliseconds: int) -> None:
        self.at_ms += milliseconds
        self.submit(ExpireOrders(self.at_ms))
        self.submit_all(list(due_releases(self.state, self.at_ms)))

    @rule(market=markets, delay_ms=st.sampled_from((0, 0, 3_000, 15_000)))
    def delay(self, market: str, delay_ms: int) -> None:
        self.submit(DelayMarket(self.at_ms, a_word(market), delay_ms))

    @rule(number=st.integers(0))
    def release_an_order_that_may_not_wait(self, number: int) -> None:
        """A release of an order that is not delayed does nothing, whatever became of the order."""
        waiting = self.state.delays.orders
        some = [each for each in self.placings if each.order_id not in waiting]
        fields = [msgspec.structs.astuple(each) for each in at_most_one(some, number)]
        self.submit_all([ReleaseOrder(self.at_ms, *each[1:]) for each in fields])

    @rule(who=names, asset=st.sampled_from(ASSETS), units=st.integers(0, 900))
    def see_a_balance(self, who: str, asset: AssetId, units: int) -> None:
        seen = BalanceSeen(an_address(who), asset, units)
        self.only_good_news &= units >= self.reference.balances[seen.wallet, asset]
        self.submit(an_observation([seen], at_ms=self.at_ms))

    @rule(
        who=names,
        exchange=st.sampled_from(list(EXCHANGES.values())),
        is_collateral=st.booleans(),
        units=st.sampled_from([0, 50, 300, PLENTY]),
    )
    def see_an_allowance(
        self, who: str, exchange: Address, units: int, *, is_collateral: bool
    ) -> None:
        seen = AllowanceSeen(an_address(who), exchange, is_collateral, units)
        self.submit(an_observation(allowances=[seen], at_ms=self.at_ms))

    @rule(
        number=st.integers(0),
        status=st.sampled_from(TradeStatus),
        tx_hash=st.sampled_from(["0x1", "0x2"]),
        blamed=st.integers(0, 3),
    )
    def see_a_trade(self, number: int, status: TradeStatus, tx_hash: str, blamed: int) -> None:
        some = at_most_one(list(self.reference.trades)[-5:], number)
        self.submit_all([self.observed(trade_id, status, tx_hash, blamed) for trade_id in some])

    @rule(number=st.integers(0), exchange=st.sampled_from(list(EXCHANGES.values())))
    def see_a_cancel(self, number: int, exchange: Address) -> None:
        newest = len(self.placings)
        seen = CancelSeen(exchange, a_word(f"order {max(0, newest - number % 9)}"))
        self.submit(msgspec.structs.replace(an_observation(at_ms=self.at_ms), cancels=(seen,)))

    @rule(
        who=names,
        exchange=st.sampled_from(list(EXCHANGES.values())),
        nonce=st.sampled_from(range(3)),
    )
    def see_a_nonce(self, who: str, exchange: Address, nonce: int) -> None:
        seen = NonceSeen(exchange, an_address(who), nonce)
        self.submit(msgspec.structs.replace(an_observation(at_ms=self.at_ms), nonces=(seen,)))

    @rule(who=names, is_barred=st.booleans(), cause=st.sampled_from(("reverts", "costs")))
    def bar(self, who: str, cause: str, *, is_barred: bool) -> None:
        self.submit(BarWallet(self.at_ms, an_address(who), is_barred, cause))

    @rule(market=markets, is_halted=st.sampled_from((True, False, False)))
    def halt(self, market: str, *, is_halted: bool) -> None:
        self.submit(HaltMarket(self.at_ms, a_word(market), is_halted))

    @rule(number=st.integers(0), marks=st.lists(st.integers(0, 2), min_size=1, max_size=6))
    def split(self, number: int, marks: list[int]) -> None:
        """Split a trade: fills with the same mark leave it together, and some orders are refused."""
        some = at_most_one(list(self.reference.moves_by_fill.items())[-5:], number)
        self.submit_all([self.splitting(trade_id, list(fills), marks) for trade_id, fills in some])

    def splitting(self, trade_id: str, order_ids: list[Any], marks: list[int]) -> Command:
        mark_by_id = dict(zip(order_ids, marks * len(order_ids), strict=False))
        parts = [
            tuple(order_id for order_id in order_ids if mark_by_id[order_id] == mark)
            for mark in (1, 2)
        ]
        return SplitTrade(self.at_ms, trade_id, tuple(parts), parts[0])

    def returned(self, trade_id: str, blamed: int) -> tuple[ReturnedOrder, ...]:
        """Return the orders of a trade but one, as the tables have them."""
        taker, fills = self.reference.taker_by_trade[trade_id], self.reference.units_by_fill
        order_ids = [taker, *fills[trade_id]]
        del order_ids[blamed % len(order_ids)]
        return tuple(self.row_of(order_id, trade_id) for order_id in order_ids)

    def row_of(self, order_id: str, trade_id: str) -> ReturnedOrder:
        offer = self.reference.offers[order_id]
        command, is_resting = offer.command, order_id in self.state.live_orders
        return ReturnedOrder(
            order_id=command.order_id,
            signer=command.order.signer,
            owner=command.owner,
            order_type=command.order_type,
            price_ticks=command.terms.price_ticks,
            ticks_per_one=command.terms.ticks_per_one,
            size_units=command.terms.size_units or command.order.taker_amount,
            leaves_at_s=leaves_book_at_s(command.order),
            placed_at_ms=command.at_ms,
            nonce=command.order.nonce,
            trade_ids=(trade_id,),
            is_filled=offer.left == 0 and not is_resting,
        )

    def observed(self, trade_id: str, status: TradeStatus, tx_hash: str, blamed: int) -> Command:
        """Return what an honest chain shows: balances with the trade, or without it.

        The orders of a failed trade go back to the book, but one of them.
        """
        was, _, moves = self.reference.trades[trade_id]
        on_chain = {TradeStatus.MINED, TradeStatus.CONFIRMED}
        ended = {TradeStatus.CONFIRMED, TradeStatus.FAILED}
        ignored = was in ended or status is TradeStatus.MATCHED
        sign = 0 if ignored else (status in on_chain) - (was in on_chain)
        self.only_good_news &= ignored or status is not TradeStatus.FAILED
        is_failed = status is TradeStatus.FAILED
        returned = self.returned(trade_id, blamed) if is_failed else ()
        changes: Counter[tuple[Any, Any]] = Counter()
        for wallet, asset, units in moves:
            changes[wallet, asset] += sign * units
        balances = [
            BalanceSeen(*account, self.reference.balances[account] + units)
            for account, units in changes.items()
        ]
        return an_observation(
            balances,
            trades=[TradeSeen(trade_id, status, tx_hash, returned)],
            at_ms=self.at_ms,
        )

    @rule(
        market=markets,
        ticks_per_one=st.sampled_from([3, 10, 20, 100, 200, 400, 1_000, 10_000]),
        one_in=st.integers(0, 2),
    )
    def change_the_tick(self, market: str, ticks_per_one: int, one_in: int) -> None:
        some = [market] if one_in == 0 else []
        self.submit_all([ChangeTick(self.at_ms, a_word(each), ticks_per_one) for each in some])

    @rule()
    def change_the_tick_of_an_unknown_market(self) -> None:
        self.submit(ChangeTick(self.at_ms, a_word("unknown"), 1_000))

    @rule(market=markets, one_in=st.integers(0, 29))
    def resolve(self, market: str, one_in: int) -> None:
        some = [market] if one_in == 0 else []
        self.submit_all([ResolveMarket(self.at_ms, a_word(each)) for each in some])

    @rule()
    def resolve_an_unknown_market(self) -> None:
        self.submit(ResolveMarket(self.at_ms, a_word("unknown")))

    @rule()
    def restart_from_a_snapshot(self) -> None:
        raw = encode_state(self.state)
        restored = decode_state(raw, PLACEMENTS_KEPT_MAX)
        assert digest(restored) == digest(self.state)
        assert encode_state(restored) == raw
        self.state = restored

    def submit_all(self, commands: list[Any]) -> None:
        for command in commands:
            self.submit(command)

    def submit(self, command: Command) -> None:
        """Apply the command to both engines; both refuse the same commands and change nothing then."""
        before = digest(self.state)
        try:
            report = self.reference.apply(command)
        except Refused as refusal:
            self.refused(command, str(refusal), before)
            return
        outcome = apply(self.state, command)
        self.compare(command, outcome, report)
        assert outcome.is_change or digest(self.state) == before
        self.journal += [encode_command(command)] * outcome.is_change
        if outcome.is_change:
            self.reference.latest_ms = max(self.reference.latest_ms, command.at_ms)
        self.effects += outcome.effects
        self.repeat(command, outcome)

    def refused(self, command: Command, name: str, before: str) -> None:
        with pytest.raises(ForetellError) as refusal:
            apply(self.state, command)
        assert type(refusal.value).__name__ == name
        assert digest(self.state) == before

    def repeat(self, command: Command, first: Outcome) -> None:
        """Assert that a repeated command takes effect once."""
        before = digest(self.state)
        second = apply(self.state, command)
        assert digest(self.state) == before
        assert second.effects == []
        if type(command) is PlaceOrder:
            assert second.result == first.result

    def compare(self, command: Command, outcome: Outcome, report: Report) -> None:
        trades = [each.trade for each in outcome.effects if isinstance(each, TradeMatched)]
        fills = [[(fill.maker_order_id, fill.size_units) for fill in each.fills] for each in trades]
        matched = [(each.trade_id, those) for each, those in zip(trades, fills, strict=True)]
        assert matched == report.trades
        closed = [each for each in outcome.effects if isinstance(each, OrderClosed)]
        assert sorted((each.order_id, each.reason.value) for each in closed) == sorted(
            report.closed
        )
        returned = [each.order for each in outcome.effects if isinstance(each, OrderReturned)]
        assert report.returned == [
            (each.order_id, each.size_units - each.matched_units) for each in returned
        ]
        assert answer(outcome.result) == report.answer
        for trade in trades:
            assert isinstance(command, PlaceOrder)
            check_trade(self.state, trade, command)

    @invariant()
    def the_books_are_those_of_the_slow_engine(self) -> None:
        for market in self.state.market_by_id.values():
            offers = [
                offer
                for offer in self.reference.resting
                if offer.market.condition_id == market.opened.condition_id
            ]
            seen = [(order.order_id, order.remaining_units) for order in market.book.orders()]
            bids = sorted(
                (each for each in offers if each.is_bid), key=lambda each: -each.price_in_yes
            )
            asks = sorted(
                (each for each in offers if not each.is_bid), key=lambda each: each.price_in_yes
            )
            assert seen == [(offer.order_id, offer.left) for offer in bids + asks]
            ticks = self.reference.ticks[market.opened.condition_id]
            assert market.rules.ticks_per_one == market.book.ticks_per_one == ticks
            assert [order.yes_price_ticks for order in market.book.orders()] == [
                offer.price_in_yes * ticks for offer in bids + asks
            ]
        assert set(self.state.live_orders) == {each.order_id for each in self.reference.resting}
        waiting = [each.order_id for each, _ in self.reference.delayed]
        assert list(self.state.delays.orders) == waiting

    @invariant()
    def no_book_is_crossed(self) -> None:
        for market in self.state.market_by_id.values():
            bid, ask = market.book.best_bid(), market.book.best_ask()
            assert bid is None or ask is None or bid < ask

    @invariant()
    def no_order_is_filled_beyond_its_size(self) -> None:
        for order in self.state.live_orders.values():
            assert 0 < order.remaining_units <= order.size_units

    @invariant()
    def the_ledger_is_what_adding_everything_up_gives(self) -> None:
        ledger, reference = self.state.ledger, self.reference
        for wallet in WALLETS:
            for asset in ASSETS:
                account, coming = ledger.look_up(wallet, asset), reference.coming(wallet, asset)
                assert account.reserved_units == reference.reserved(wallet, asset)
                assert account.credit_units == sum(units for units in coming if units > 0)
                assert account.debit_units == -sum(units for units in coming if units < 0)
                assert account.confirmed_units == reference.balances[wallet, asset]

    @invariant()
    def reservations_never_exceed_what_is_held(self) -> None:
        for _, _, account in self.state.ledger.accounts():
            held = account.confirmed_units + account.credit_units - account.debit_units
            assert account.reserved_units <= max(held, 0)

    @invariant()
    def nothing_is_spent_twice_while_the_chain_brings_good_news(self) -> None:
        for wallet in WALLETS if self.only_good_news else []:
            for asset in ASSETS:
                account = self.state.ledger.look_up(wallet, asset)
                held = account.confirmed_units + account.credit_units - account.debit_units
                assert account.reserved_units <= held

    def teardown(self) -> None:  # type: ignore[explicit-override] # 3.11 has none
        """A replay of the journal gives the same state and the same effects in the same order."""
        again, effects = State(PLACEMENTS_KEPT_MAX), []
        for raw in self.journal:
            effects += apply(again, decode_command(raw)).effects
        assert digest(again) == digest(self.state)
        assert encode_state(again) == encode_state(self.state)
        assert effects == self.effects


def at_most_one(things: list[Any], number: int) -> list[Any]:
    return things[number % max(1, len(things)) :][:1]


def answer(result: Any) -> Any:
    """Return a reply of the engine in the form of the slow one."""
    if isinstance(result, Placement):
        return (result.status, result.making_units, result.taking_units, result.trade_ids)
    if isinstance(result, Cancellation):
        return (set(result.canceled), set(result.not_canceled))
    return None


def check_trade(state: State, trade: Trade, placing: PlaceOrder) -> None:
    """Assert that a trade conserves every unit and is never worse than a limit."""
    sums: Counter[AssetId] = Counter()
    unsettled = state.unsettled_trades[trade.trade_id]
    for _, asset, units in unsettled.moves:
        sums[asset] += units
    market = state.market_by_id[trade.condition_id].opened
    assert sums[market.token_yes] == sums[market.token_no] == -sums[COLLATERAL]
    limit = trade.size_units * placing.terms.price_ticks
    paid = trade.cost_units * placing.terms.ticks_per_one
    assert paid <= limit if trade.side is Side.BUY else paid >= limit
    for fill in trade.fills:
        at_limit = fill.size_units * fill.price_ticks
        cost = fill.making_units if fill.side is Side.BUY else fill.taking_units
        assert cost * trade.ticks_per_one == at_limit
