from dataclasses import replace
from typing import Any

import pytest
from tests.creation.rig import CreationRig, CreatorClient
from tests.rigs.payloads import ABSENT, AWAY, HOME, a_payload, a_sports_market, a_sports_payload

from foretell.creation.metadata import icons_of, store_drafts, store_images
from foretell.domain.creation.metadata import Icons

pytestmark = pytest.mark.anyio


async def document(rig: CreationRig, item_id: str) -> dict[str, Any]:
    answer = await rig.http.get(f"/blobs/{item_id}")
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.spec(11, 17, 50)
async def test_the_final_document_is_the_market_as_it_trades(creator: CreatorClient) -> None:
    rig = creator.rig
    raw = creator.payload(slug="Ünï  Code!!", binaryOutcomeYes="Up", binaryOutcomeNo="Down")

    record = await creator.record(await creator.finalized(raw))

    (update,), (result,) = record["metadataUpdates"], record["registerResults"]
    final = await document(rig, update["metadataTxId"])
    assert (final["slug"], final["event"]["slug"]) == ("uni-code", "uni-code")
    assert final["outcomes"] == [
        {"outcome": "Up", "token_id": result["tokenA"]},
        {"outcome": "Down", "token_id": result["tokenB"]},
    ]
    assert final["condition_id"] == update["conditionId"] == result["conditionId"]
    image = await rig.http.get(f"/blobs/{final['event']['icon']}")
    assert image.headers["content-type"] == "image/webp"
    entry = await rig.sandbox.reader.market_entry(update["conditionId"])
    assert entry is not None
    assert entry.metadata_id == update["metadataTxId"]


@pytest.mark.spec(70)
async def test_a_draft_is_stored_when_the_request_is_prepared(creator: CreatorClient) -> None:
    before = len(list((creator.rig.folder / "blobs").rglob("*.sha256")))

    await creator.prepared()

    after = len(list((creator.rig.folder / "blobs").rglob("*.sha256")))
    assert (before, after) == (0, 2)


async def test_the_same_content_stored_twice_is_stored_once(rig: CreationRig) -> None:
    first = await store_images(rig.context, {"eventImage": b"picture"})
    second = await store_images(rig.context, {"eventImage": b"picture"})
    await store_drafts(rig.context, a_payload(), first)
    await store_drafts(rig.context, a_payload(), first)

    assert first == second
    assert len(list((rig.folder / "blobs").rglob("*.sha256"))) == 2


def test_a_market_without_a_picture_of_its_own_has_the_event_s() -> None:
    payload = a_payload()
    (market,) = payload.markets
    option = replace(market, key="a")
    ids = {"eventImage": "event", "optionImage:a": "own"}

    assert icons_of(payload, market, ids) == Icons("event", "event")
    assert icons_of(payload, option, ids) == Icons("event", "own")


@pytest.mark.spec(29, 33)
@pytest.mark.parametrize(
    ("icon", "images", "expected"),
    [
        ("home", {}, HOME["logo"]),
        ("home", {"teamLogo:home": "uploaded"}, "uploaded"),
        ("home", {"teamLogo:home": "uploaded", "optionImage:first-goal-1": "own"}, "own"),
        ("away", {"teamLogo:home": "uploaded"}, AWAY["logo"]),
        ("ball", {"optionImage:ball": "a ball"}, "a ball"),
        ("ball", {}, "event"),
        (ABSENT, {"teamLogo:home": "uploaded"}, "event"),
    ],
)
def test_a_sports_market_has_its_own_image_else_that_of_its_icon(
    icon: object, images: dict[str, str], expected: str
) -> None:
    market = a_sports_market(iconAssetKey=icon)
    payload = a_sports_payload(template=ABSENT, markets=[market])

    icons = icons_of(payload, payload.markets[0], {"eventImage": "event"} | images)

    assert icons.market == expected
    assert icons.logos == {
        "home": images.get("teamLogo:home", HOME["logo"]),
        "away": AWAY["logo"],
    }
