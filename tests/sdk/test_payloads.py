import io
from datetime import UTC, datetime

from PIL import Image
from tests.rigs.payloads import RULES
from tests.rigs.values import NOW_MS, an_address

from foretell.domain.creation.payload import MarketMode, parse_payload
from foretell.sdk.payloads import IMAGE_SIDE_PX, NewMarket, binary_payload, picture

CREATOR = an_address("creator")
DRAFT = NewMarket(
    creator=CREATOR,
    title="Will it rain?",
    slug="will-it-rain",
    question="Will it rain tomorrow?",
    ends_at=datetime.fromtimestamp(NOW_MS // 1000 + 86_400, UTC).isoformat().replace("+00:00", "Z"),
)


def test_a_draft_becomes_a_payload_that_the_worker_accepts() -> None:
    payload = parse_payload(binary_payload(DRAFT).encode(), RULES, NOW_MS)
    assert (payload.creator, payload.slug) == (CREATOR, "will-it-rain")
    assert payload.market_mode is MarketMode.BINARY
    assert [market.question for market in payload.markets] == ["Will it rain tomorrow?"]


def test_the_picture_can_be_decoded() -> None:
    with Image.open(io.BytesIO(picture())) as image:
        assert (image.format, image.size) == ("PNG", (IMAGE_SIDE_PX, IMAGE_SIDE_PX))
        assert len(image.getcolors(IMAGE_SIDE_PX**2) or []) > 100
