"""The payload and the picture of a new market."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from PIL import Image

from foretell.domain.creation.payload import MarketMode, ResolutionType
from foretell.domain.values.hexadecimal import Address, checksum_address

IMAGE_SIDE_PX: Final = 512
RULES: Final = (
    "This market resolves to Yes if the condition in the question is met before the end date,"
    " and to No otherwise. The proposer of this installation decides."
)


@dataclass(frozen=True, slots=True)
class NewMarket:
    """A market before it is created."""

    creator: Address
    title: str
    slug: str
    question: str
    ends_at: str
    resolution_type: ResolutionType = ResolutionType.DIRECT


def binary_payload(draft: NewMarket) -> str:
    """Return the payload of a Yes/No market, serialized: this string is hashed and sent."""
    return _serialized(
        draft,
        {
            "marketMode": MarketMode.BINARY,
            "binaryQuestion": draft.question,
            "binaryOutcomeYes": "Yes",
            "binaryOutcomeNo": "No",
        },
    )


def event_payload(draft: NewMarket, outcomes: Sequence[str]) -> str:
    """Return the payload of an event with exactly one true outcome, serialized."""
    options = [
        {
            "id": outcome.lower(),
            "question": f"{draft.question} {outcome}?",
            "title": outcome,
            "shortName": outcome,
            "slug": outcome.lower(),
        }
        for outcome in outcomes
    ]
    return _serialized(draft, {"marketMode": MarketMode.MULTI_UNIQUE, "options": options})


def _serialized(draft: NewMarket, markets: Mapping[str, object]) -> str:
    payload = {
        "creator": checksum_address(draft.creator),
        "title": draft.title,
        "slug": draft.slug,
        "endDateIso": draft.ends_at,
        "mainCategorySlug": "world",
        "categories": ["World", "Weather", "Sandbox", "Demo", "Forecasts"],
        "resolutionType": draft.resolution_type,
        "resolutionRules": RULES,
        **markets,
    }
    return msgspec.json.encode(payload).decode()


def picture() -> bytes:
    """Return a PNG: a square with colours from blue to orange."""
    across = Image.linear_gradient("L").resize((IMAGE_SIDE_PX, IMAGE_SIDE_PX))
    flat = Image.new("L", across.size, 120)
    encoded = io.BytesIO()
    Image.merge("RGB", (across.rotate(90), flat, across.rotate(180))).save(encoded, "PNG")
    return encoded.getvalue()
