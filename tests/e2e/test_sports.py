"""A game, from its payload to a trade, through the public APIs of a running installation."""

import json
from typing import Any

import pytest
from tests.rigs.installation import Running
from tests.rigs.payloads import a_payload_document, sports_fields

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sandbox.demo.trade import gather_traders, place, wait_for_funds, wait_for_trades
from foretell.sandbox.market_creation import MarketCreator, SilentNarrator

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

SIZE_UNITS = 10 * UNITS_PER_TOKEN
SPREAD = 4
"""The place of the first spread among the markets."""


@pytest.mark.spec(20, 21, 28, 29, 111)
async def test_a_game_is_created_listed_and_traded(shared: Running) -> None:
    async with shared.session() as session:
        key = session.account(AccountRole.CREATOR)
        fields: dict[str, Any] = sports_fields() | {
            "chainId": session.ready.chain_id,
            "creator": checksum_address(session.caller(key).address),
        }
        creator = MarketCreator(session, key, SilentNarrator())

        markets = await creator.create(json.dumps(a_payload_document(**fields)))

        spread = markets[SPREAD]
        traders = await gather_traders(session)
        await wait_for_funds(session, traders)
        resting = await place(
            session, traders.alice, spread.token_yes, Side.BUY, SIZE_UNITS, SIZE_UNITS // 2
        )
        matched = await place(
            session, traders.bob, spread.token_no, Side.BUY, SIZE_UNITS, SIZE_UNITS // 2
        )
        trades = await wait_for_trades(session, traders.bob, spread, 1)
        [event] = await session.discovery.get("/events", series_slug="eliteserien")
        [listed] = await session.discovery.get("/markets", condition_ids=spread.condition_id)
        types = await session.discovery.get("/sports/market-types")
        teams = await session.discovery.get("/teams", league="eliteserien")

    assert (resting["status"], matched["status"]) == ("live", "matched")
    assert [trade["outcome"] for trade in trades] == ["Molde"]
    assert [market["conditionId"] for market in event["markets"]] == [
        market.condition_id for market in markets
    ]
    assert (listed["sportsMarketType"], listed["line"]) == ("spreads", -1.5)
    assert listed["outcomes"] == '["Brann", "Molde"]'
    assert listed["volumeNum"] == 5
    assert {"moneyline", "spreads", "totals"} <= set(types["marketTypes"])
    assert [team["name"] for team in teams] == ["Brann", "Molde"]
