"""Sports events on a real chain, from payload to markets that trade."""

import json
import time
from typing import Any

import pytest
from tests.creation.rig import PICTURE, CreationRig, CreatorClient, details_of, error_of
from tests.rigs.payloads import (
    ABSENT,
    AWAY,
    a_prop,
    a_sports_market,
    a_team,
    a_template,
    sports_fields,
)
from tests.rigs.pictures import a_picture

from foretell.store.creation.markets import MarketRow, load_markets

pytestmark = pytest.mark.anyio

KEYS = [
    "moneyline-home",
    "moneyline-draw",
    "moneyline-away",
    "btts",
    "spread-minus-1-5",
    "spread-1-5",
    "total-2-5",
    "first-goal-1",
]
LOGO = a_picture("WEBP", (32, 32))
EVENT_IMAGE = ("eventImage", PICTURE)
PREPARED_S_MAX = 60.0
"""A generous deadline: the figure of the reference page is measured on an idle machine."""


async def markets_of(rig: CreationRig) -> list[MarketRow]:
    async with rig.database.reading() as tx:
        return await load_markets(tx)


async def document_of(rig: CreationRig, item_id: str) -> dict[str, Any]:
    answer = await rig.http.get(f"/blobs/{item_id}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def send(
    creator: CreatorClient, raw: bytes, *images: tuple[str, bytes]
) -> tuple[str, tuple[int, Any]]:
    """Sign and send a payload with images; return the request's id and the answer."""
    challenge = (await creator.ask(raw)).json()
    answer = await creator.send(raw, creator.sign(challenge), [EVENT_IMAGE, *images])
    return str(challenge["requestId"]), (answer.status_code, answer)


@pytest.mark.deviation(6)
@pytest.mark.spec(20, 28, 29, 48)
async def test_a_game_becomes_markets_that_trade_under_their_own_keys(
    creator: CreatorClient,
) -> None:
    rig = creator.rig

    record = await creator.record(await creator.finalized(creator.payload(**sports_fields())))

    plan = record["prepared"]["txPlan"]
    assert plan[0]["id"] == "approve-direct-resolution-fee"
    assert "marketKey" not in plan[0]
    assert [item["marketKey"] for item in plan[1:]] == KEYS
    assert [item["id"] for item in plan[1:]] == [
        f"initialize-market-{number}" for number in range(1, len(KEYS) + 1)
    ]
    for name in ("registerResults", "metadataUpdates"):
        assert [each["key"] for each in record[name]] == KEYS
    assert [item["marketKey"] for item in record["metadataUpdateTxPlan"]] == KEYS
    markets = await markets_of(rig)
    assert [market.market_key for market in markets] == KEYS
    assert [market.slug for market in markets][4] == "brann-molde-spread-minus-1-5"
    spread, listed = markets[4], markets[-1]
    assert (spread.outcome_yes, spread.outcome_no) == ("Brann", "Molde")
    assert (listed.outcome_yes, listed.outcome_no) == ("Scores first", "Does not")
    assert all(
        [
            await rig.sandbox.reader.is_registered(
                market.tokens, market.condition_id, rig.sandbox.deployment.exchange
            )
            for market in markets
        ]
    )


@pytest.mark.spec(24, 27, 29, 50)
async def test_the_stored_document_of_a_market_has_the_game_and_the_icon(
    creator: CreatorClient,
) -> None:
    raw = creator.payload(**sports_fields(template=ABSENT))

    record = await creator.record(await creator.finalized(raw))

    [update] = record["metadataUpdates"]
    document = await document_of(creator.rig, update["metadataTxId"])
    [market] = await markets_of(creator.rig)
    assert document["sports"]["market"]["sports_market_type"] == "first_goal"
    assert document["sports"]["event"]["game_id"] == "game-77"
    assert document["icon"] == market.icon == "https://logos.example/brann.png"
    assert [outcome["token_id"] for outcome in document["outcomes"]] == [
        str(market.tokens.yes),
        str(market.tokens.no),
    ]


@pytest.mark.deviation(6)
@pytest.mark.spec(21)
async def test_a_provider_and_an_id_prepare_with_nothing_but_a_market(
    creator: CreatorClient,
) -> None:
    sports = {
        "sourceProvider": "thesportsdb",
        "sourceEventId": "2052711",
        "markets": [a_sports_market()],
    }

    request_id = await creator.prepared(creator.payload(**sports_fields(sports)))

    plan = (await creator.record(request_id))["prepared"]["txPlan"]
    assert [item.get("marketKey") for item in plan] == [None, "first-goal-1"]


@pytest.mark.spec(27, 33, 34)
async def test_an_uploaded_logo_is_stored_and_is_the_icon_of_its_side(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    teams = [a_team(logo=ABSENT), a_team(AWAY, logo=ABSENT)]
    raw = creator.payload(**sports_fields(template=ABSENT, teams=teams))

    request_id, (status, _) = await send(
        creator, raw, ("teamLogo:home", LOGO), ("teamLogo:away", PICTURE)
    )
    assert status == 200
    await rig.settle()
    answer = await creator.finalize(request_id, await creator.paid(request_id))
    assert answer.status_code == 200
    await rig.settle()
    updates = (await creator.record(request_id))["metadataUpdateTxPlan"]
    await creator.finalize(request_id, await creator.execute(updates))

    record = await creator.record(request_id)
    document = await document_of(rig, record["metadataUpdates"][0]["metadataTxId"])
    home, away = document["sports"]["event"]["teams"]
    assert document["icon"] == home["logo"] != away["logo"]
    policy = rig.context.images.policy
    for team in (home, away):
        image = await rig.http.get(f"/blobs/{team['logo']}")
        assert image.headers["content-type"] == "image/webp"
        assert len(image.content) <= policy.bytes_max


@pytest.mark.spec(27, 33)
@pytest.mark.parametrize("side", ["home", "away"])
async def test_each_logo_that_is_missing_alone_is_refused_and_changes_nothing(
    creator: CreatorClient, side: str
) -> None:
    other = {"home": "away", "away": "home"}[side]
    teams = [a_team(logo=ABSENT), a_team(AWAY, logo=ABSENT)]
    raw = creator.payload(**sports_fields(teams=teams))

    request_id, (_, answer) = await send(creator, raw, (f"teamLogo:{other}", LOGO))

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer) == [(f"teamLogo:{side}", f"is required: the {side} team has no logo")]
    assert (await creator.record(request_id))["status"] == "auth_pending"


@pytest.mark.spec(33)
async def test_a_logo_is_no_part_of_another_payload(creator: CreatorClient) -> None:
    _, (_, answer) = await send(creator, creator.payload(), ("teamLogo:home", LOGO))

    assert details_of(answer) == [("teamLogo:home", "is for sports payloads only")]


@pytest.mark.spec(20, 22, 23, 147)
@pytest.mark.parametrize(
    ("event", "fields", "where"),
    [
        ({"mainCategorySlug": "weather"}, {}, "mainCategorySlug"),
        ({"marketMode": "multi_unique"}, {}, "marketMode"),
        ({}, {"startTime": ABSENT}, "sports/startTime"),
        ({}, {"teams": [a_team(), a_team(name="Viking")]}, "sports/teams"),
        ({}, {"teams": [a_team(AWAY)]}, "sports/teams"),
    ],
)
async def test_a_sports_payload_that_breaks_a_rule_leaves_the_challenge_usable(
    creator: CreatorClient, event: dict[str, Any], fields: dict[str, Any], where: str
) -> None:
    raw = creator.payload(**sports_fields(event=event, **fields))

    request_id, (_, answer) = await send(creator, raw)

    assert error_of(answer) == (400, "validation_error")
    assert [field for field, _ in details_of(answer)] == [where]
    assert (await creator.record(request_id))["status"] == "auth_pending"


async def test_props_are_prepared_under_their_ids(creator: CreatorClient) -> None:
    sports = {
        "section": "props",
        "sourceProvider": "thesportsdb",
        "sourceEventId": "2052711",
        "props": [a_prop(1), a_prop(2)],
    }

    request_id = await creator.prepared(creator.payload(**sports_fields(sports)))

    plan = (await creator.record(request_id))["prepared"]["txPlan"]
    assert [item.get("marketKey") for item in plan] == [None, "prop-of-1", "prop-of-2"]


@pytest.mark.spec(28, 29, 58)
async def test_an_event_of_300_markets_is_prepared(creator: CreatorClient) -> None:
    template = a_template(
        spreadLines=[number + 0.5 for number in range(-40, 40)],
        totalLines=[number + 0.5 for number in range(80)],
    )
    listed = [a_sports_market(number) for number in range(300 - 164)]
    raw = creator.payload(**sports_fields(template=template, markets=listed))
    started_s = time.monotonic()

    request_id = await creator.prepare(raw)
    await creator.rig.run_once()

    record = await creator.record(request_id)
    plan = record["prepared"]["txPlan"]
    assert time.monotonic() - started_s < PREPARED_S_MAX
    assert (record["status"], len(plan)) == ("prepared", 301)
    assert len({item["marketKey"] for item in plan[1:]}) == 300
    assert json.dumps(plan)
