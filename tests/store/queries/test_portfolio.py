import pytest
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_word, an_address, an_asset
from tests.store.queries.recorded_queries import recorded

from foretell.domain.portfolio.positions import Payout, Position
from foretell.domain.portfolio.prices import BookTop
from foretell.store.database import Database
from foretell.store.queries import portfolio
from foretell.store.queries.captions import (
    load_conditions_of_events,
    load_market_captions,
)
from foretell.store.queries.portfolio import (
    Holding,
    HoldingFilter,
    HoldingOrder,
    HoldingPage,
    HoldingsSum,
    load_holdings,
    load_holdings_sums,
    load_titled_conditions,
)

pytestmark = pytest.mark.anyio

ALICE = an_address("alice")
BY_SIZE = HoldingPage(100, 0, HoldingOrder.SIZE, is_descending=True)
OPEN = HoldingFilter(wallet=ALICE)
CLOSED = HoldingFilter(wallet=ALICE, is_closed=True)


async def load(
    database: Database, chosen: HoldingFilter, page: HoldingPage = BY_SIZE
) -> list[Holding]:
    async with database.reading() as tx:
        return list(await load_holdings(tx, chosen, page))


def titles(holdings: list[Holding]) -> list[str]:
    return [holding.listing.title if holding.listing else "" for holding in holdings]


async def test_a_holding_has_everything_that_its_value_is_computed_from(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        event_id = await rows.open_named("rain")
        await rows.quote("rain", 40, 45, 42)
        await rows.hold("alice", "rain", 10 * TOKEN, 4 * TOKEN, is_yes=False, realized_units=-7)
        await rows.hold("bob", "rain", 10 * TOKEN, 4 * TOKEN)
    [holding] = await load(database, OPEN)
    assert holding.token_id == an_asset(is_yes=False, market="rain")
    assert holding.opposite_token_id == an_asset(is_yes=True, market="rain")
    assert (holding.condition_id, holding.is_yes) == (a_word("rain"), False)
    assert holding.position == Position(10 * TOKEN, 4 * TOKEN, 10 * TOKEN, 4 * TOKEN, -7)
    assert (holding.top, holding.payout) == (BookTop(100, 40, 45, 42), None)
    assert not holding.is_mergeable
    assert holding.listing is not None
    assert holding.listing.event_id == event_id
    assert holding.listing.event_slug == "event-rain"
    assert holding.listing.ends_at_ms == NOW_MS + 86_400_000
    assert holding.listing.outcome(is_yes=False) == "No"
    assert holding.listing.outcome(is_yes=True) == "Yes"


async def test_a_token_without_a_market_is_a_holding_too(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.prepare("elsewhere")
        await rows.hold("alice", "elsewhere", TOKEN, 0)
    [holding] = await load(database, OPEN)
    assert (holding.listing, holding.top, holding.payout) == (None, None, None)


async def test_a_wallet_with_both_tokens_may_merge_them(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
            await rows.hold("alice", name, TOKEN, 0)
        await rows.hold("alice", "rain", 2 * TOKEN, 0, is_yes=False)
        await rows.hold("bob", "snow", 2 * TOKEN, 0, is_yes=False)
        await rows.hold("alice", "snow", 0, 0, is_yes=False)
    found = await load(database, OPEN)
    assert sorted(holding.is_mergeable for holding in found) == [False, True, True]
    mergeable = HoldingFilter(wallet=ALICE, only_mergeable=True)
    assert titles(await load(database, mergeable)) == ["Will it rain?"] * 2


async def test_only_resolved_holdings_may_be_redeemed(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
            await rows.hold("alice", name, TOKEN, 0)
        await rows.resolve("snow", 0, 1)
    [holding] = await load(database, HoldingFilter(wallet=ALICE, only_redeemable=True))
    assert holding.payout == Payout(0, 1)
    assert titles([holding]) == ["Will it snow?"]


async def test_a_holding_is_open_from_a_least_size_on_and_closed_at_zero(
    database: Database,
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name, size in (("rain", 3), ("snow", 2), ("hail", 1), ("sun", 0)):
            await rows.open_named(name)
            await rows.hold("alice", name, size, 0)
    assert len(await load(database, HoldingFilter(wallet=ALICE, size_units_min=2))) == 2
    assert len(await load(database, HoldingFilter(wallet=ALICE, size_units_min=0))) == 3
    assert titles(await load(database, CLOSED)) == ["Will it sun?"]


async def test_holdings_are_filtered_by_condition_event_or_title(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        ids = {}
        for name in ("rain", "snow", "100%_ÉTÉ"):
            ids[name] = await rows.open(an_event_row(name, a_market_row(name)))
            await rows.hold("alice", name, TOKEN, 0)
    chosen = {
        "condition": HoldingFilter(wallet=ALICE, condition_ids=[a_word("rain"), a_word("none")]),
        "event": HoldingFilter(wallet=ALICE, event_ids=[ids["snow"], 99]),
    }
    found = {name: titles(await load(database, wanted)) for name, wanted in chosen.items()}
    assert found == {
        "condition": ["Will it rain?"],
        "event": ["Will it snow?"],
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("it rain", ["rain"]),
        ("0%_ete", ["100%_ÉTÉ"]),
        ("r_in", []),
        ("\\", []),
        ("will", ["rain", "100%_ÉTÉ"]),
    ],
)
async def test_t1_titles_are_found_without_regard_to_accents_and_capitals(
    database: Database, monkeypatch: pytest.MonkeyPatch, text: str, found: list[str]
) -> None:
    monkeypatch.setattr(portfolio, "TITLES_PER_PART", 1)
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "100%_ÉTÉ"):
            await rows.open(an_event_row(name, a_market_row(name)))
            await rows.hold("alice", name, TOKEN, 0)
        await rows.prepare("elsewhere")
        await rows.hold("alice", "elsewhere", TOKEN, 0)
        titled = await load_titled_conditions(tx, HoldingFilter(wallet=ALICE), text)
    assert sorted(titled) == sorted(a_word(name) for name in found)


async def test_titles_are_found_among_what_may_be_redeemed_or_merged(database: Database) -> None:
    """A finding: with a title, the resolved and the opposite tokens of all wallets were searched."""
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow", "hail"):
            await rows.open_named(name)
            await rows.hold("alice", name, TOKEN, 0)
        await rows.hold("alice", "rain", TOKEN, 0, is_yes=False)
        await rows.hold("bob", "hail", TOKEN, 0, is_yes=False)
        await rows.resolve("snow", 0, 1)
        mergeable = HoldingFilter(wallet=ALICE, only_mergeable=True)
        assert await load_titled_conditions(tx, mergeable, "will") == [a_word("rain")]
        redeemable = HoldingFilter(wallet=ALICE, only_redeemable=True)
        assert await load_titled_conditions(tx, redeemable, "will") == [a_word("snow")]


async def test_titles_are_read_with_one_statement_of_positions_and_markets(
    database: Database,
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
            await rows.hold("alice", name, TOKEN, 0)
        with recorded() as queries:
            found = await load_titled_conditions(tx, HoldingFilter(wallet=ALICE), "snow")
    assert found == [a_word("snow")]
    [(sql, _)] = queries
    assert "JOIN markets" in sql
    assert [name for name in ("quotes", "payouts", "events", "opposite") if name in sql] == []


async def test_a_sum_of_holdings_may_exceed_63_bits(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow", "hail"):
            await rows.open_named(name)
            await rows.hold("alice", name, 2**63 - 1, 0)
        [total] = await load_holdings_sums(tx, ALICE)
    assert total.size_units == 3 * (2**63 - 1)


ASCENDING = {
    HoldingOrder.VALUE: ["hail", "snow", "rain"],
    HoldingOrder.COST: ["rain", "hail", "snow"],
    HoldingOrder.SIZE: ["hail", "rain", "snow"],
    HoldingOrder.GAIN: ["snow", "hail", "rain"],
    HoldingOrder.GAIN_RATE: ["hail", "snow", "rain"],
    HoldingOrder.TITLE: ["hail", "rain", "snow"],
    HoldingOrder.END: ["snow", "rain", "hail"],
    HoldingOrder.PRICE: ["hail", "snow", "rain"],
    HoldingOrder.AVERAGE_PRICE: ["rain", "snow", "hail"],
    HoldingOrder.REALIZED_GAIN: ["rain", "hail", "snow"],
    HoldingOrder.CHANGE: ["snow", "rain", "hail"],
}


async def test_open_holdings_are_sorted_both_ways(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name, size, cost, bid, ends, realized in (
            ("rain", 10, 1, 80, 2, -5),
            ("snow", 30, 10, 20, 1, 7),
            ("hail", 2, 2, 1, 3, 0),
        ):
            await rows.open(an_event_row(name, ends_at_ms=NOW_MS + ends))
            await rows.quote(name, bid, bid + 2)
            changed_at_s = NOW_S + ends
            await rows.hold(
                "alice",
                name,
                size * TOKEN,
                cost * TOKEN,
                realized_units=realized,
                changed_at_s=changed_at_s,
            )
    wanted = {order: [f"Will it {name}?" for name in names] for order, names in ASCENDING.items()}
    up = {
        order: titles(await load(database, OPEN, HoldingPage(9, 0, order, is_descending=False)))
        for order in HoldingOrder
    }
    down = {
        order: titles(await load(database, OPEN, HoldingPage(9, 0, order, is_descending=True)))
        for order in HoldingOrder
    }
    assert up == wanted
    assert down == {order: names[::-1] for order, names in wanted.items()}


async def test_closed_holdings_are_sorted_by_their_average_price(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name, bought, spent in (("rain", 10, 1), ("snow", 10, 5), ("hail", 0, 0)):
            await rows.open_named(name)
            await rows.hold("alice", name, 0, 0, bought_units=bought, spent_units=spent)
    page = HoldingPage(100, 0, HoldingOrder.AVERAGE_PRICE, is_descending=True)
    assert titles(await load(database, CLOSED, page)) == [
        "Will it snow?",
        "Will it rain?",
        "Will it hail?",
    ]


async def test_pages_are_disjoint_and_complete_in_every_order(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in range(7):
            name = f"market {number}"
            await rows.open_named(name)
            await rows.hold("alice", name, TOKEN, TOKEN // 2)
    pages = {
        (order, offset): await load(
            database, OPEN, HoldingPage(3, offset, order, is_descending=True)
        )
        for order in HoldingOrder
        for offset in (0, 3, 6, 9)
    }
    sizes = {key: len(page) for key, page in pages.items()}
    assert sizes == {(order, offset): min(3, max(0, 7 - offset)) for order, offset in pages}
    seen = {(order, holding.token_id) for (order, _), page in pages.items() for holding in page}
    assert len(seen) == 7 * len(HoldingOrder)


async def test_extreme_payouts_do_not_overflow(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.prepare("odd")
        await rows.resolve("odd", 2**63 - 1, 2**63 - 1)
        await rows.hold("alice", "odd", 2**62, 1)
    page = HoldingPage(100, 0, HoldingOrder.GAIN_RATE, is_descending=True)
    [holding] = await load(database, OPEN, page)
    assert holding.payout == Payout(2**63 - 1, 2**63 - 1)


async def test_worths_are_the_sums_of_holdings_with_the_same_price(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow", "hail", "sun"):
            await rows.open_named(name)
            await rows.hold("alice", name, 3, 0)
        await rows.hold("alice", "rain", 4, 0, is_yes=False)
        await rows.hold("bob", "rain", 100, 0)
        await rows.hold("alice", "sun", 0, 0)
        await rows.quote("hail", 10, 20)
    async with database.reading() as tx:
        everything = await load_holdings_sums(tx, ALICE)
        hail = await load_holdings_sums(tx, ALICE, [a_word("hail")])
    empty, quoted = BookTop(100), BookTop(100, 10, 20)
    assert set(everything) == {
        HoldingsSum(is_yes=True, size_units=6, top=empty, payout=None),
        HoldingsSum(is_yes=False, size_units=4, top=empty, payout=None),
        HoldingsSum(is_yes=True, size_units=3, top=quoted, payout=None),
    }
    assert hail == [HoldingsSum(is_yes=True, size_units=3, top=quoted, payout=None)]


async def test_an_event_has_its_conditions_in_their_order(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        event_id = await rows.open(
            an_event_row("weather", a_market_row("snow"), a_market_row("rain"))
        )
        await rows.open_named("hail")
    async with database.reading() as tx:
        found = await load_conditions_of_events(tx, [event_id])
    assert found == [a_word("snow"), a_word("rain")]


async def test_a_condition_has_a_caption_when_it_has_a_market(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.prepare("elsewhere")
    async with database.reading() as tx:
        found = await load_market_captions(
            tx, [a_word("rain"), a_word("elsewhere"), a_word("none")]
        )
    token, listing = found[a_word("rain")]
    assert (token, listing.slug if listing else "") == (
        an_asset(is_yes=True, market="rain"),
        "will-it-rain",
    )
    assert found[a_word("elsewhere")] == (an_asset(is_yes=True, market="elsewhere"), None)
    assert len(found) == 2
