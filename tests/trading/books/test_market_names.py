import pytest
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.trading import TradingRig
from tests.rigs.values import a_word

from foretell.trading.books.market_names import LISTINGS_PER_QUERY_MAX, MarketNames

pytestmark = pytest.mark.anyio


async def test_outcomes_have_their_own_names_once_they_were_read(rig: TradingRig) -> None:
    market_names = MarketNames(rig.context.database)
    row = a_market_row("rain", outcome_yes="Wet", outcome_no="Dry")
    async with rig.context.database.writing() as tx:
        await Rows(tx, numbers=rig.numbers).open(an_event_row("rain", row))
    before = [market_names.outcome(a_word("rain"), is_yes) for is_yes in (True, False)]
    await market_names.load([a_word("rain"), a_word("nothing")])
    after = [market_names.outcome(a_word("rain"), is_yes) for is_yes in (True, False)]
    assert (before, after) == (["Yes", "No"], ["Wet", "Dry"])
    assert market_names.find(a_word("nothing")) is None


async def test_a_listing_is_read_once_unless_asked_for_again(rig: TradingRig) -> None:
    market_names = MarketNames(rig.context.database)
    await market_names.load([a_word("market")])
    first = market_names.find(a_word("market"))
    await market_names.load([a_word("market")])
    assert market_names.find(a_word("market")) is first
    async with rig.context.database.writing() as tx:
        await Rows(tx).resolve("market", 1, 0)
    await market_names.load([a_word("market")], again=True)
    again = market_names.find(a_word("market"))
    assert again is not None
    assert again.payout is not None


async def test_many_listings_are_read_in_parts(rig: TradingRig) -> None:
    market_names = MarketNames(rig.context.database)
    unknown = [a_word(f"m{number}") for number in range(LISTINGS_PER_QUERY_MAX)]
    await market_names.load([*unknown, a_word("market")])
    assert market_names.find(a_word("market")) is not None
