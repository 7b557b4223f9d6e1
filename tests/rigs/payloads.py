"""Market payloads that keep every rule, except where a test changes them."""

import json
from typing import Any, Final

from tests.rigs.values import CHAIN_ID, NOW_MS, an_address

from foretell.domain.creation.payload import Payload, PayloadRules, parse_payload

RULES: Final = PayloadRules(supported_chain_ids=(CHAIN_ID,), default_chain_id=CHAIN_ID)
RULES_TEXT: Final = (
    "This market resolves to Yes if the station records rain on the day, and to No otherwise."
)
ABSENT: Final = object()


def a_payload_document(**fields: Any) -> dict[str, Any]:
    """Return a binary payload as an object; a field that is ABSENT is left out."""
    document = {
        "chainId": CHAIN_ID,
        "resolutionType": "dro_moov2",
        "creator": an_address("creator"),
        "title": "Rain in Bergen",
        "slug": "rain-in-bergen",
        "endDateIso": "2035-06-01T12:00:00Z",
        "mainCategorySlug": "weather",
        "categories": ["Weather", "Norway", "Rain", "Europe", "Daily"],
        "marketMode": "binary",
        "resolutionSource": "https://example.org/station",
        "resolutionRules": RULES_TEXT,
        "binaryQuestion": "Will it rain in Bergen?",
        "binaryOutcomeYes": "Yes",
        "binaryOutcomeNo": "No",
    } | fields
    return {name: value for name, value in document.items() if value is not ABSENT}


def an_option(number: int, **fields: Any) -> dict[str, Any]:
    """Return an option of a payload of several markets; a field that is ABSENT is left out."""
    option = {
        "id": f"town-{number}",
        "question": f"Will it rain most in town {number}?",
        "title": f"Town {number}",
        "shortName": f"T{number}",
        "slug": f"town-{number}",
    } | fields
    return {name: value for name, value in option.items() if value is not ABSENT}


def event_fields(mode: str = "multi_unique", count: int = 3, **fields: Any) -> dict[str, Any]:
    """Return the fields that turn a binary payload into one of several markets."""
    options = [an_option(number) for number in range(1, count + 1)]
    return {
        "marketMode": mode,
        "title": "Most rain",
        "slug": "most-rain",
        "options": options,
        "binaryQuestion": ABSENT,
        "binaryOutcomeYes": ABSENT,
        "binaryOutcomeNo": ABSENT,
    } | fields


def a_raw_payload(**fields: Any) -> bytes:
    """Return a binary payload as its creator hashes it."""
    return json.dumps(a_payload_document(**fields)).encode()


def a_payload(**fields: Any) -> Payload:
    """Return a parsed payload."""
    return parse_payload(a_raw_payload(**fields), RULES, NOW_MS)
