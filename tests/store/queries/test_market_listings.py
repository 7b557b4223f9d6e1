import pytest
from tests.rigs.rows import CREATOR, Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, TOKEN, a_word, an_asset

from foretell.domain.portfolio.positions import Payout
from foretell.store.creation.halted_markets import (
    RegisteredMarket,
    record_halt,
    record_resumption,
)
from foretell.store.database import Database
from foretell.store.queries.market_listings import (
    Listing,
    load_market_id_at,
    load_market_listings,
    load_market_listings_by_id,
)
from foretell.trading.wire.markets import compact_record, market_record, simplified_record

pytestmark = pytest.mark.anyio


async def page(
    database: Database, offset: int, limit: int, *, unresolved: bool = False
) -> list[str]:
    async with database.reading() as tx:
        first_id = await load_market_id_at(tx, offset, is_unresolved_only=unresolved)
        if first_id is None:
            return []
        listings = await load_market_listings(tx, first_id, limit, is_unresolved_only=unresolved)
    return [listing.slug for listing in listings]


async def test_a_listing_has_the_fields_of_its_market_and_its_event(database: Database) -> None:
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")
    async with database.reading() as tx:
        (listing,) = await load_market_listings(tx, 0, 10)
    assert listing == Listing(
        market_id=1,
        condition_id=a_word("rain"),
        question_id=a_word("question rain"),
        question="Will it rain?",
        slug="will-it-rain",
        icon="icon-rain",
        outcome_yes="Yes",
        outcome_no="No",
        token_yes=an_asset(is_yes=True, market="rain"),
        token_no=an_asset(is_yes=False, market="rain"),
        is_neg_risk=False,
        neg_risk_market_id=None,
        neg_risk_request_id=None,
        ticks_per_one=100,
        size_units_min=5 * TOKEN,
        fee_rate_bps=0,
        created_at_ms=NOW_MS,
        event_id=1,
        event_slug="event-rain",
        event_title="About rain",
        event_image="image-rain",
        rules="Resolves to Yes when rain was seen by the operator.",
        creator=CREATOR,
        ends_at_ms=NOW_MS + 86_400_000,
        tags=("Politics", "World", "News"),
        payout=None,
    )


async def test_outcomes_have_the_names_that_their_creator_chose(database: Database) -> None:
    market = a_market_row("rain", outcome_yes="Wet", outcome_no="Dry")
    async with database.writing() as tx:
        await Rows(tx).open(an_event_row("rain", market))
    async with database.reading() as tx:
        (listing,) = await load_market_listings(tx, 0, 10)
    assert (listing.outcome(is_yes=True), listing.outcome(is_yes=False)) == ("Wet", "Dry")


async def test_pages_are_disjoint_and_complete(database: Database) -> None:
    names = [f"m{number}" for number in range(5)]
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in names:
            await rows.open_named(name)
    pages = [await page(database, offset, 2) for offset in (0, 2, 4, 6)]
    assert [len(part) for part in pages] == [2, 2, 1, 0]
    assert [slug for part in pages for slug in part] == [f"will-it-{name}" for name in names]


async def test_a_resolved_market_has_its_payout_and_is_not_among_the_unresolved(
    database: Database,
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.open_named("snow")
        await rows.resolve("rain", 1, 0)
    assert await page(database, 0, 10) == ["will-it-rain", "will-it-snow"]
    assert await page(database, 0, 10, unresolved=True) == ["will-it-snow"]
    async with database.reading() as tx:
        found = await load_market_listings_by_id(
            tx, [a_word("rain"), a_word("snow"), a_word("hail")]
        )
    assert {listing.slug: listing.payout for listing in found.values()} == {
        "will-it-rain": Payout(1, 0),
        "will-it-snow": None,
    }
    assert set(found) == {a_word("rain"), a_word("snow")}


async def test_a_halted_market_accepts_no_orders_until_it_resumes(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
        halted = RegisteredMarket(a_word("rain"), "request-rain")
        await record_halt(tx, halted, "lost by a reorganization", NOW_MS)
        listings = await load_market_listings(tx, 0, 10)
        assert [(each.is_halted, each.is_accepting_orders) for each in listings] == [
            (True, False),
            (False, True),
        ]
        records = [
            (market_record(each, None), simplified_record(each, None), compact_record(each))
            for each in listings
        ]
        await record_resumption(tx, halted)
        resumed = await load_market_listings(tx, 0, 10)
    shown = [
        (full.accepting_orders, full.closed, main.accepting_orders, main.closed, compact.ao)
        for full, main, compact in records
    ]
    assert shown == [(False, False, False, False, False), (True, False, True, False, True)]
    assert [each.is_accepting_orders for each in resumed] == [True, True]
