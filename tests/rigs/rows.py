"""Rows for the read-only APIs, written through the store's own modules.

Markets go by names, as in `tests/rigs/values.py`: a market named "rain" always has the same condition
and tokens. Sizes and prices are plain numbers of base units and ticks.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from tests.rigs.payloads import a_sports_payload
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_sell,
    a_token_pair,
    a_word,
    an_address,
    an_asset,
)
from tests.store.wallet_totals import add_trade

from foretell.domain.creation.payload import Category, MarketMode, ResolutionType
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.matching import Fill, MatchType
from foretell.domain.exchange.order import OrderStatus, OrderType, Side
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.creation.games import GameRow
from foretell.store.creation.markets import EventRow, MarketRow, record_event
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind, ActivityRow, record_activities
from foretell.store.index.balances import Balance, LockedCollateral, record_balances, record_locked
from foretell.store.index.conditions import (
    Condition,
    PayoutReport,
    record_conditions,
    record_payouts,
)
from foretell.store.index.positions import PositionRow, record_positions
from foretell.store.tables import quote_points, quotes
from foretell.store.trading.failed_volumes import FailedTrade, add_failed
from foretell.store.trading.orders import OrderRow, record_orders
from foretell.store.trading.quote_points import (
    MINUTE_MS,
    QuoteKey,
    QuotePoint,
    record_quote_points,
)
from foretell.store.trading.trades import Quote, TradeRow, record_quotes, record_trades

ORACLE = an_address("oracle")
CREATOR = an_address("creator")
TAGS = tuple(Category(label, label.lower()) for label in ("Politics", "World", "News"))


def a_market_row(name: str = "rain", **fields: Any) -> MarketRow:
    """Return a market with a question made of its name."""
    row = MarketRow(
        condition_id=a_word(name),
        question_id=a_word(f"question {name}"),
        market_key="binary",
        slug=f"will-it-{name}",
        question=f"Will it {name}?",
        title=f"Will it {name}?",
        outcome_yes="Yes",
        outcome_no="No",
        tokens=a_token_pair(name),
        exchange=EXCHANGE,
        oracle=ORACLE,
        resolution_type=ResolutionType.DIRECT,
        metadata_id=f"metadata-{name}",
        metadata_uri=f"local://metadata-{name}",
        icon=f"icon-{name}",
        ticks_per_one=100,
        size_units_min=5 * TOKEN,
        fee_rate_bps=0,
    )
    return replace(row, **fields)


def an_event_row(name: str = "rain", *markets: MarketRow, **fields: Any) -> EventRow:
    """Return an event of these markets, or of one market of the same name."""
    row = EventRow(
        request_id=f"request-{name}",
        slug=f"event-{name}",
        title=f"About {name}",
        creator=CREATOR,
        chain_id=80002,
        market_mode=MarketMode.BINARY,
        main_category_slug="politics",
        rules=f"Resolves to Yes when {name} was seen by the operator.",
        resolution_source=None,
        image=f"image-{name}",
        ends_at_ms=NOW_MS + 86_400_000,
        tags=TAGS,
        markets=markets or (a_market_row(name),),
    )
    return replace(row, **fields)


def a_game_event_row(name: str = "game", **fields: Any) -> EventRow:
    """Return the event of a game with all its markets; the fields are those of `sports`."""
    payload = a_sports_payload(**fields)
    assert payload.sports is not None
    rows = [
        a_market_row(
            f"{name} {market.key}",
            market_key=market.key,
            slug=f"{name}-{market.key}",
            question=f"{name}: {market.question}",
            title=market.title,
            outcome_yes=market.outcome_yes,
            outcome_no=market.outcome_no,
        )
        for market in payload.markets
    ]
    logos = {str(team.host_status): team.logo or "" for team in payload.sports.details.teams}
    game = GameRow(
        event=payload.sports,
        logos={side: logo for side, logo in logos.items() if logo},
        markets=tuple(market.sports for market in payload.markets),
        slug=f"event-{name}",
        image=f"image-{name}",
        resolution_source="https://example.org/results",
    )
    return an_event_row(name, *rows, market_mode=MarketMode.MULTI_MULTIPLE, game=game)


class Rows:
    """Writes rows in one transaction; block numbers count up from the first."""

    def __init__(
        self, tx: Transaction, first: int = 1, *, numbers: Iterator[int] | None = None
    ) -> None:
        self.tx = tx
        self._numbers = itertools.count(first) if numbers is None else numbers

    async def prepare(self, name: str) -> None:
        """Write a condition of the chain, with or without a market."""
        pair = a_token_pair(name)
        condition = Condition(
            block_number=next(self._numbers),
            log_index=0,
            part=0,
            condition_id=a_word(name),
            oracle=ORACLE,
            question_id=a_word(f"question {name}"),
            token_yes=AssetId(str(pair.yes)),
            token_no=AssetId(str(pair.no)),
        )
        await record_conditions(self.tx, [condition])

    async def open(self, event: EventRow, now_ms: int = NOW_MS) -> int:
        """Write an event with open markets and empty books."""
        event_id = await record_event(self.tx, event, now_ms)
        for market in event.markets:
            condition = Condition(
                block_number=next(self._numbers),
                log_index=0,
                part=0,
                condition_id=market.condition_id,
                oracle=market.oracle,
                question_id=market.question_id,
                token_yes=AssetId(str(market.tokens.yes)),
                token_no=AssetId(str(market.tokens.no)),
            )
            await record_conditions(self.tx, [condition])
            empty = Quote(
                market.condition_id, market.ticks_per_one, None, None, None, None, 0, now_ms
            )
            await record_quotes(self.tx, [empty])
        return event_id

    async def list_event(self, event: EventRow, now_ms: int = NOW_MS) -> int:
        """Write an event whose conditions are known and traded already."""
        return await record_event(self.tx, event, now_ms)

    async def open_named(self, name: str, **fields: Any) -> int:
        """Write an event of one market, both of this name."""
        return await self.open(an_event_row(name, **fields))

    async def quote(
        self,
        name: str,
        bid: int | None = None,
        ask: int | None = None,
        last: int | None = None,
        *,
        volume_units: int = 0,
        ticks_per_one: int = 100,
    ) -> None:
        """Write the current top of a market's book."""
        side = None if last is None else "BUY"
        quote = Quote(a_word(name), ticks_per_one, bid, ask, last, side, volume_units, NOW_MS)
        await record_quotes(self.tx, [quote])

    async def fail(self, name: str, units: int) -> None:
        """Write that so much of a market's volume has failed to settle."""
        failing = quotes.update().where(quotes.c.condition_id == a_word(name))
        assert await self.tx.execute(failing.values(failed_units=units)) == 1

    async def quoted_at(
        self,
        name: str,
        at_s: int,
        bid: int | None,
        ask: int | None,
        last: int | None = None,
        *,
        volume_units: int = 0,
    ) -> None:
        """Write the top of a market's book in a past minute, and the volume until then."""
        point = QuotePoint(BookTop(100, bid, ask, last), volume_units)
        await record_quote_points(self.tx, {QuoteKey(a_word(name), at_s // 60): point})

    async def resolve(self, name: str, yes: int, no: int, at_s: int = NOW_S) -> None:
        """Write the payout of a market."""
        number = next(self._numbers)
        report = PayoutReport(
            number, 0, 0, a_word(name), yes, no, a_word(f"report of {name}"), at_s
        )
        await record_payouts(self.tx, [report])

    async def hold(
        self, who: str, name: str, size_units: int, cost_units: int, **fields: Any
    ) -> None:
        """Write a position and its balance."""
        asset = an_asset(is_yes=fields.pop("is_yes", True), market=name)
        number = next(self._numbers)
        row = PositionRow(
            wallet=an_address(who),
            token_id=asset,
            condition_id=a_word(name),
            size_units=size_units,
            cost_units=cost_units,
            bought_units=size_units,
            spent_units=cost_units,
            realized_units=0,
            changed_at_s=NOW_S,
            block_number=number,
        )
        await record_positions(self.tx, [row._replace(**fields)])
        await record_balances(self.tx, [Balance(an_address(who), asset, size_units, number)])

    async def lock(self, name: str, units: int) -> None:
        """Write the collateral locked in a condition."""
        locked = LockedCollateral(a_word(name), units, next(self._numbers))
        await record_locked(self.tx, [locked])

    async def act(
        self, who: str, name: str, kind: ActivityKind, size_units: int, **fields: Any
    ) -> ActivityRow:
        """Write an act of a wallet on the chain."""
        number = next(self._numbers)
        act = ActivityRow(
            block_number=number,
            log_index=0,
            part=0,
            wallet=an_address(who),
            kind=kind,
            condition_id=a_word(name),
            token_id=None,
            side=None,
            size_units=size_units,
            cost_units=size_units,
            is_taker=False,
            timestamp_s=NOW_S + number,
            tx_hash=a_word(f"tx {number}"),
        )
        act = act._replace(**fields)
        await record_activities(self.tx, [act])
        if act.kind is ActivityKind.TRADE:
            await add_trade(self.tx, act)
        return act

    async def buy(
        self, who: str, name: str, size_units: int, cost_units: int, **fields: Any
    ) -> ActivityRow:
        """Write a settled trade, by default the taker's side."""
        asset = an_asset(is_yes=fields.pop("is_yes", True), market=name)
        traded = {
            "token_id": asset,
            "side": Side.BUY,
            "cost_units": cost_units,
            "is_taker": True,
        }
        return await self.act(who, name, ActivityKind.TRADE, size_units, **{**traded, **fields})

    async def rest(
        self, who: str, name: str, side: Side, price_ticks: int, size_units: int, **fields: Any
    ) -> None:
        """Write an order in the book."""
        is_yes = fields.pop("is_yes", True)
        number = next(self._numbers)
        make = a_buy if side is Side.BUY else a_sell
        signed = make(who, price_ticks, size_units, is_yes=is_yes, market=name, salt=str(number))
        row = OrderRow(
            order_id=a_word(f"order {number}"),
            sequence=number,
            condition_id=a_word(name),
            is_yes=is_yes,
            owner=f"key-of-{who}",
            order_type=OrderType.GTC,
            price_ticks=price_ticks,
            ticks_per_one=100,
            size_units=size_units,
            matched_units=0,
            status=OrderStatus.LIVE,
            close_reason=None,
            placed_at_ms=NOW_MS,
            updated_at_ms=NOW_MS,
            signed=signed,
        )
        await record_orders(self.tx, [row._replace(**fields)])

    async def match(
        self,
        name: str,
        cost_units: int,
        at_ms: int,
        status: TradeStatus = TradeStatus.CONFIRMED,
    ) -> None:
        """Write a trade of the engine, of twice as many tokens as it cost."""
        number = next(self._numbers)
        size_units = 2 * cost_units
        maker = Address(an_address("maker"))
        fill = Fill(
            maker_order_id=a_word(f"maker order {number}"),
            maker=maker,
            owner="key-of-maker",
            side=Side.SELL,
            is_yes=True,
            price_ticks=50,
            size_units=size_units,
            making_units=size_units,
            taking_units=cost_units,
            match_type=MatchType.COMPLEMENTARY,
        )
        trade = Trade(
            trade_id=f"trade-{number}",
            condition_id=a_word(name),
            taker_order_id=a_word(f"taker order {number}"),
            taker=an_address("taker"),
            taker_owner="key-of-taker",
            side=Side.BUY,
            is_yes=True,
            size_units=size_units,
            cost_units=cost_units,
            taker_fill_units=cost_units,
            matched_at_ms=at_ms,
            fills=(fill,),
            ticks_per_one=100,
        )
        token = an_asset(is_yes=True, market=name)
        row = TradeRow(trade, number, token, (token,), status, "", at_ms)
        await record_trades(self.tx, [row])
        await self._add_volume(a_word(name), cost_units, at_ms // MINUTE_MS)
        if status is TradeStatus.FAILED:
            await add_failed(self.tx, [FailedTrade(a_word(name), at_ms, cost_units)])

    async def _add_volume(self, condition_id: Bytes32, units: int, minute: int) -> None:
        """Add a trade to the points of its market from its minute on, as the projection does."""
        is_market = quote_points.c.condition_id == condition_id
        before = sa.select(quote_points).where(is_market, quote_points.c.minute <= minute)
        newest = await self.tx.first(before.order_by(quote_points.c.minute.desc()).limit(1))
        if newest is None or newest.minute < minute:
            point = QuotePoint(BookTop(100), 0)
            if newest is not None:
                point = QuotePoint(BookTop._make(newest[2:6]), newest.volume_units)
            await record_quote_points(self.tx, {QuoteKey(condition_id, minute): point})
        later = quote_points.update().where(is_market, quote_points.c.minute >= minute)
        await self.tx.execute(later.values(volume_units=quote_points.c.volume_units + units))
