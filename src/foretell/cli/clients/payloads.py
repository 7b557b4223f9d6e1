"""The payload and the picture of a market, as the demo and the sandbox's first market have them."""

import io
from dataclasses import dataclass
from typing import Final

import msgspec
from PIL import Image

from foretell.domain.hexadecimal import Address, checksum_address

IMAGE_SIDE_PX: Final = 512
RULES: Final = (
    "This market resolves to Yes if the condition in the question is met before the end date,"
    " and to No otherwise. The proposer of this installation decides."
)


@dataclass(frozen=True, slots=True)
class MarketWish:
    """What a creator wants to ask."""

    creator: Address
    title: str
    slug: str
    question: str
    ends_at: str


def binary_payload(wish: MarketWish) -> str:
    """Return the payload of a Yes/No market, serialized: this string is hashed and sent."""
    payload = {
        "creator": checksum_address(wish.creator),
        "title": wish.title,
        "slug": wish.slug,
        "endDateIso": wish.ends_at,
        "mainCategorySlug": "world",
        "categories": ["World", "Weather", "Sandbox", "Demo", "Forecasts"],
        "marketMode": "binary",
        "binaryQuestion": wish.question,
        "binaryOutcomeYes": "Yes",
        "binaryOutcomeNo": "No",
        "resolutionRules": RULES,
    }
    return msgspec.json.encode(payload).decode()


def picture() -> bytes:
    """Return a real PNG: a square whose colours run from blue to orange."""
    across = Image.linear_gradient("L").resize((IMAGE_SIDE_PX, IMAGE_SIDE_PX))
    flat = Image.new("L", across.size, 120)
    encoded = io.BytesIO()
    Image.merge("RGB", (across.rotate(90), flat, across.rotate(180))).save(encoded, "PNG")
    return encoded.getvalue()
