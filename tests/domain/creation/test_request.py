import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.values import CHAIN_ID, NOW_MS, a_key, a_word, an_address

from foretell.domain.creation.request import (
    ANSWER_BY_STATUS,
    CHALLENGE_LIFETIME_MS,
    CHALLENGE_TYPE_HASH,
    CLAIM_LIFETIME_MS,
    REQUEST_TRANSITIONS,
    Challenge,
    Claim,
    Envelope,
    RequestStatus,
    RequestTrigger,
    advance_request,
    check_envelope,
    condition_claim,
    may_take,
    renewed_at_ms,
)
from foretell.domain.errors.creation import AuthExpired, AuthInvalid
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.values.eip712 import LOW_S_MAX, sign_digest

EDGES = {
    ("auth_pending", "prepare", "prepare_running"),
    ("prepare_running", "plan_built", "prepared"),
    ("prepared", "tx_confirm", "prepared"),
    ("prepared", "finalize", "finalize_running"),
    ("finalize_running", "updates_needed", "metadata_update_pending"),
    ("finalize_running", "complete", "finalized"),
    ("metadata_update_pending", "tx_confirm", "metadata_update_pending"),
    ("metadata_update_pending", "complete", "finalized"),
    ("auth_pending", "fail", "failed"),
    ("prepare_running", "fail", "failed"),
    ("prepared", "fail", "failed"),
    ("finalize_running", "fail", "failed"),
    ("metadata_update_pending", "fail", "failed"),
    ("finalized", "fail", "failed"),
}
REFUSED = sorted(
    set(product(RequestStatus, RequestTrigger)) - {(start, trigger) for start, trigger, _ in EDGES}
)


def test_there_are_seven_statuses() -> None:
    assert {str(status) for status in RequestStatus} == {
        "auth_pending",
        "prepare_running",
        "prepared",
        "finalize_running",
        "metadata_update_pending",
        "finalized",
        "failed",
    }


@pytest.mark.spec(57, 58, 59, 60, 61, 62, 63, 64)
def test_a_request_moves_along_the_published_edges() -> None:
    assert {
        (str(start), str(trigger), str(end))
        for (start, trigger), end in REQUEST_TRANSITIONS.items()
    } == EDGES


def test_the_reference_page_shows_the_same_edges() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "market-creation.md"
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| `(\w+)` \|$", page.read_text(), flags=re.MULTILINE)

    assert set(rows) == EDGES
    assert len(rows) == len(EDGES)


@pytest.mark.parametrize(("status", "trigger", "next_status"), sorted(EDGES))
def test_each_transition_leads_to_its_status(status: str, trigger: str, next_status: str) -> None:
    moved = advance_request(RequestStatus(status), RequestTrigger(trigger))

    assert moved is RequestStatus(next_status)


@pytest.mark.parametrize(("status", "trigger"), REFUSED)
def test_every_other_pair_is_refused(status: RequestStatus, trigger: RequestTrigger) -> None:
    with pytest.raises(IllegalTransition, match=f"request is {status} and cannot {trigger}"):
        advance_request(status, trigger)


@pytest.mark.spec(55)
def test_immediate_responses_have_their_own_words_for_running_statuses() -> None:
    assert {str(status): word for status, word in ANSWER_BY_STATUS.items()} == {
        "auth_pending": "auth_pending",
        "prepare_running": "prepare_in_progress",
        "prepared": "prepared",
        "finalize_running": "finalize_in_progress",
        "metadata_update_pending": "metadata_update_pending",
        "finalized": "finalized",
        "failed": "failed",
    }


def a_challenge(**fields: Any) -> Challenge:
    challenge = Challenge(
        request_id="6f1c1c1e-6d0e-4a57-9f0c-0d1f7d2f8f01",
        creator=an_address("creator"),
        payload_hash=a_word("payload"),
        nonce=a_word("nonce"),
        expires_at_ms=NOW_MS + CHALLENGE_LIFETIME_MS,
        chain_id=CHAIN_ID,
    )
    return replace(challenge, **fields)


def an_envelope(challenge: Challenge, **fields: Any) -> Envelope:
    envelope = Envelope(
        request_id=challenge.request_id,
        nonce=challenge.nonce,
        expires_at_ms=challenge.expires_at_ms,
        payload_hash=challenge.payload_hash,
        signature=sign_digest(challenge.digest(), a_key("creator")),
    )
    return replace(envelope, **fields)


@pytest.mark.spec(41, 69)
def test_the_type_hash_is_the_published_one() -> None:
    assert CHALLENGE_TYPE_HASH.hex() == (
        "61549481945e4332153bfee8daa576b35db4a88d5ae189e5847ab9217eaadc45"
    )


@pytest.mark.case("C-16")
@pytest.mark.spec(42, 69, 78)
@pytest.mark.parametrize(
    ("altered", "why"),
    [
        ({"request_id": "6f1c1c1e-6d0e-4a57-9f0c-0d1f7d2f8f02"}, "requestId is"),
        ({"nonce": a_word("other")}, "nonce is"),
        ({"expires_at_ms": NOW_MS + CHALLENGE_LIFETIME_MS + 1}, "expiresAt is"),
        ({"payload_hash": a_word("other")}, "payloadHash is"),
        ({"signature": b""}, "65 bytes"),
        ({"signature": bytes(65)}, "v 27 or 28|lower half"),
        ({"signature": b"\xff" * 32 + b"\x01" * 32 + b"\x1b"}, "signature"),
        (
            {"signature": sign_digest(a_challenge().digest(), a_key("outsider"))},
            "was not made by",
        ),
        (
            {"signature": sign_digest(a_challenge(chain_id=1).digest(), a_key("creator"))},
            "was not made by",
        ),
    ],
)
def test_each_part_of_the_envelope_altered_alone_is_refused(
    altered: dict[str, Any], why: str
) -> None:
    challenge = a_challenge()

    with pytest.raises(AuthInvalid, match=why):
        check_envelope(challenge, an_envelope(challenge, **altered), challenge.payload_hash, NOW_MS)


def test_a_signature_has_no_second_form() -> None:
    challenge = a_challenge()
    signature = sign_digest(challenge.digest(), a_key("creator"))
    s = 2 * LOW_S_MAX + 1 - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])

    with pytest.raises(AuthInvalid, match="lower half"):
        check_envelope(
            challenge, an_envelope(challenge, signature=twin), challenge.payload_hash, NOW_MS
        )


@pytest.mark.spec(7)
def test_a_payload_of_other_bytes_is_refused() -> None:
    challenge = a_challenge()

    with pytest.raises(AuthInvalid, match="the payload's bytes hash to"):
        check_envelope(challenge, an_envelope(challenge), a_word("other"), NOW_MS)


@pytest.mark.case("C-16")
@pytest.mark.spec(69)
def test_the_challenge_expires_by_one_millisecond() -> None:
    challenge = a_challenge()
    envelope = an_envelope(challenge)
    last_ms = challenge.expires_at_ms

    check_envelope(challenge, envelope, challenge.payload_hash, last_ms)
    with pytest.raises(AuthExpired):
        check_envelope(challenge, envelope, challenge.payload_hash, last_ms + 1)


def test_the_challenge_lives_thirty_minutes() -> None:
    assert CHALLENGE_LIFETIME_MS == 1_800_000


VERIFIED = {"finalize_running", "metadata_update_pending", "finalized"}


@pytest.mark.parametrize("status", list(RequestStatus))
@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("is_newer", [True, False])
@pytest.mark.parametrize("is_lapsed", [True, False])
def test_a_name_is_taken_from_a_failed_a_lapsed_or_an_own_earlier_request(
    status: RequestStatus, *, is_own: bool, is_newer: bool, is_lapsed: bool
) -> None:
    holder = an_address("creator" if is_own else "other")
    held = Claim("rain", "request", holder, status, NOW_MS, begun_at_ms=NOW_MS)
    now_ms = NOW_MS + CLAIM_LIFETIME_MS + (1 if is_lapsed else 0)
    begun_at_ms = NOW_MS if is_newer else NOW_MS - 1

    is_replaced = is_own and is_newer
    is_taken = status == "failed" or (status not in VERIFIED and (is_replaced or is_lapsed))

    assert may_take(held, an_address("creator"), begun_at_ms, now_ms) is is_taken


@pytest.mark.parametrize(
    ("holder", "status", "age_ms", "is_kept"),
    [
        ("creator", "prepared", CLAIM_LIFETIME_MS, True),
        ("creator", "prepared", CLAIM_LIFETIME_MS + 1, False),
        ("creator", "failed", 0, False),
        ("other", "prepared", 0, False),
    ],
)
def test_a_new_request_keeps_the_time_of_the_creators_own_live_claim(
    holder: str, status: str, age_ms: int, *, is_kept: bool
) -> None:
    held = Claim("rain", "request", an_address(holder), RequestStatus(status), NOW_MS, NOW_MS)
    now_ms = NOW_MS + age_ms

    since_ms = renewed_at_ms(held, an_address("creator"), now_ms)

    assert since_ms == (NOW_MS if is_kept else now_ms)


def test_a_condition_is_claimed_by_no_slug() -> None:
    assert condition_claim(a_word("condition")) == f"condition:{a_word('condition')}"
