import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.creation.messages import TXS_MAX, parse_auth_request, parse_envelope, parse_sent_txs
from foretell.domain.creation.plan import PlanTx
from foretell.domain.creation.request import Envelope
from foretell.domain.errors.families import InvalidFields

CREATOR = "0x" + "Ab" * 20
WORD = "0x" + "CD" * 32
AUTH = {
    "requestId": "6f1c1c1e-6d0e-4a57-9f0c-0d1f7d2f8f01",
    "nonce": WORD,
    "expiresAt": 1_800_000_000_000,
    "payloadHash": WORD,
    "signature": "0x" + "12" * 65,
}


def problems(parse: Any, body: object) -> list[str]:
    with pytest.raises(InvalidFields) as refused:
        parse(json.dumps(body).encode())
    return [problem["field"] for problem in refused.value.details["problems"]]


def test_hex_is_accepted_in_any_case_and_stored_in_one() -> None:
    parsed = parse_auth_request(
        json.dumps({"creator": CREATOR, "chainId": 80002, "payloadHash": WORD}).encode()
    )

    assert (parsed.creator, parsed.payload_hash) == (CREATOR.lower(), WORD.lower())


@pytest.mark.spec(42)
def test_an_envelope_is_read_as_it_was_signed() -> None:
    assert parse_envelope(json.dumps(AUTH).encode()) == Envelope(
        request_id=str(AUTH["requestId"]),
        nonce=parse_envelope(json.dumps(AUTH).encode()).nonce,
        expires_at_ms=1_800_000_000_000,
        payload_hash=parse_envelope(json.dumps(AUTH).encode()).payload_hash,
        signature=b"\x12" * 65,
    )


@pytest.mark.spec(42)
@pytest.mark.parametrize("name", sorted(AUTH))
@pytest.mark.parametrize("value", [None, True, [], {}, ""])
def test_each_missing_or_malformed_field_of_an_envelope_is_named(name: str, value: object) -> None:
    assert problems(parse_envelope, AUTH | {name: value}) == [f"auth/{name}"]
    without = {key: each for key, each in AUTH.items() if key != name}
    assert problems(parse_envelope, without) == [f"auth/{name}"]


@pytest.mark.parametrize("body", [[], "text", None, 5])
def test_an_envelope_is_an_object(body: object) -> None:
    assert problems(parse_envelope, body) == ["auth"]


def test_hashes_are_read_in_their_order() -> None:
    body = {
        "requestId": "x",
        "creator": CREATOR,
        "txs": [{"id": "b", "hash": WORD}, {"id": "a", "hash": WORD, "other": 1}],
    }

    sent = parse_sent_txs(json.dumps(body).encode(), may_omit_txs=False)

    assert sent.txs == (PlanTx("b", sent.txs[0].tx_hash), PlanTx("a", sent.txs[1].tx_hash))
    assert sent.txs[0].tx_hash == WORD.lower()


@pytest.mark.parametrize("silence", [{}, {"txs": None}])
def test_hashes_may_be_omitted_where_that_is_allowed(silence: dict[str, Any]) -> None:
    body = json.dumps({"requestId": "x", "creator": CREATOR} | silence).encode()

    assert parse_sent_txs(body, may_omit_txs=True).txs == ()
    with pytest.raises(InvalidFields):
        parse_sent_txs(body, may_omit_txs=False)


def test_the_number_of_hashes_is_limited() -> None:
    body = {
        "requestId": "x",
        "creator": CREATOR,
        "txs": [{"id": "a", "hash": WORD}] * (TXS_MAX + 1),
    }

    assert problems(lambda raw: parse_sent_txs(raw, may_omit_txs=False), body) == ["txs"]


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidFields):
        parse_sent_txs(raw, may_omit_txs=True)
    with pytest.raises(InvalidFields):
        parse_envelope(raw)
    with pytest.raises(InvalidFields):
        parse_auth_request(raw)
