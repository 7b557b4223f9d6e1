"""The payload and the picture of a new market."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

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
    row = bytes([0])  # no filter
    for column in range(IMAGE_SIDE_PX):
        shade = column * 255 // (IMAGE_SIDE_PX - 1)
        row += bytes([shade, 120, 255 - shade])
    size = struct.pack(">IIBBBBB", IMAGE_SIDE_PX, IMAGE_SIDE_PX, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", size),
            _chunk(b"IDAT", zlib.compress(row * IMAGE_SIDE_PX)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Return a part of a PNG: its length, its kind, its content and their checksum."""
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
