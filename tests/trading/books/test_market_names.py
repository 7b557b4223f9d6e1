import pytest
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import a_word
from tests.trading.rig import Venue

from foretell.trading.books.market_names import LISTINGS_PER_QUERY_MAX, Catalogue

pytestmark = pytest.mark.anyio


async def test_outcomes_have_their_own_names_once_they_were_read(venue: Venue) -> None:
    catalogue = Catalogue(venue.services.database)
    row = a_market_row("rain", outcome_yes="Wet", outcome_no="Dry")
    async with venue.services.database.writing() as tx:
        rows = Rows(tx)
        rows._numbers = venue._numbers
        await rows.open(an_event_row("rain", row))
    before = [catalogue.outcome(a_word("rain"), is_yes) for is_yes in (True, False)]
    await catalogue.load([a_word("rain"), a_word("nothing")])
    after = [catalogue.outcome(a_word("rain"), is_yes) for is_yes in (True, False)]
    assert (before, after) == (["Yes", "No"], ["Wet", "Dry"])
    assert catalogue.find(a_word("nothing")) is None


async def test_a_listing_is_read_once_unless_asked_for_again(venue: Venue) -> None:
    catalogue = Catalogue(venue.services.database)
    await catalogue.load([a_word("market")])
    first = catalogue.find(a_word("market"))
    await catalogue.load([a_word("market")])
    assert catalogue.find(a_word("market")) is first
    async with venue.services.database.writing() as tx:
        await Rows(tx).resolve("market", 1, 0)
    await catalogue.load([a_word("market")], again=True)
    again = catalogue.find(a_word("market"))
    assert again is not None
    assert again.payout is not None


async def test_many_listings_are_read_in_parts(venue: Venue) -> None:
    catalogue = Catalogue(venue.services.database)
    unknown = [a_word(f"m{number}") for number in range(LISTINGS_PER_QUERY_MAX)]
    await catalogue.load([*unknown, a_word("market")])
    assert catalogue.find(a_word("market")) is not None
