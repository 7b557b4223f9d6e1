"""Rendering of challenges, as a wallet signs them; tests of routes cover the rest."""

import json
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from tests.rigs.values import CHAIN_ID, NOW_MS, a_key, a_word, an_address

from foretell.creation import render
from foretell.creation.render import render_challenge
from foretell.domain.creation import request
from foretell.domain.creation.request import (
    CHALLENGE_LIFETIME_MS,
    Challenge,
    Envelope,
    check_envelope,
)
from foretell.domain.errors.creation import AuthInvalid
from foretell.edge.codec import json_response

CHALLENGE = Challenge(
    request_id="5f1c1c1e-6d0e-4a57-9f0c-0d1f7d2f8f02",
    creator=an_address("creator"),
    payload_hash=a_word("payload"),
    nonce=a_word("nonce"),
    expires_at_ms=NOW_MS + CHALLENGE_LIFETIME_MS,
    chain_id=CHAIN_ID,
)


@pytest.fixture
def document() -> Any:
    return json.loads(json_response(render_challenge(CHALLENGE)).content)


@pytest.mark.spec(38, 40, 41)
def test_a_challenge_has_all_that_a_wallet_needs(document: Any) -> None:
    assert document["domain"] == {
        "name": "Create Market",
        "version": "1",
        "verifyingContract": "0x" + "00" * 20,
    }
    assert document["primaryType"] == "CreateMarketAuth"
    assert document["types"] == {
        "CreateMarketAuth": [
            {"name": "requestId", "type": "string"},
            {"name": "creator", "type": "address"},
            {"name": "payloadHash", "type": "bytes32"},
            {"name": "nonce", "type": "bytes32"},
            {"name": "expiresAt", "type": "uint256"},
            {"name": "chainId", "type": "uint256"},
        ]
    }
    assert document.keys() == {
        "requestId",
        "nonce",
        "expiresAt",
        "creator",
        "chainId",
        "payloadHash",
        "domain",
        "primaryType",
        "types",
    }
    assert document["requestId"] == CHALLENGE.request_id
    assert document["nonce"] == CHALLENGE.nonce
    assert document["creator"].lower() == CHALLENGE.creator
    assert document["chainId"] == CHAIN_ID
    assert document["payloadHash"] == CHALLENGE.payload_hash


def signed(document: Any, **domain: str) -> Envelope:
    """Return the envelope of a challenge, signed by a third-party library as it stands."""
    names = [field["name"] for field in document["types"]["CreateMarketAuth"]]
    message = encode_typed_data(
        domain_data=document["domain"] | {"chainId": document["chainId"]} | domain,
        message_types=document["types"],
        message_data={name: document[name] for name in names},
    )
    return Envelope(
        request_id=CHALLENGE.request_id,
        nonce=CHALLENGE.nonce,
        expires_at_ms=CHALLENGE.expires_at_ms,
        payload_hash=CHALLENGE.payload_hash,
        signature=bytes(Account.sign_message(message, a_key("creator")).signature),
    )


@pytest.mark.spec(41, 69)
def test_a_third_party_wallet_signs_the_challenge_as_it_is(document: Any) -> None:
    check_envelope(CHALLENGE, signed(document), CHALLENGE.payload_hash, NOW_MS)


@pytest.mark.spec(40, 150)
@pytest.mark.parametrize("version", ["1", "2"])
def test_the_version_is_a_string_in_the_domain_and_is_signed_also_after_a_bump(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "CHALLENGE_VERSION", version)
    monkeypatch.setattr(render, "CHALLENGE_VERSION", version)

    document = json.loads(json_response(render_challenge(CHALLENGE)).content)

    assert document["domain"]["version"] == version
    check_envelope(CHALLENGE, signed(document), CHALLENGE.payload_hash, NOW_MS)
    with pytest.raises(AuthInvalid, match="the signature was not made by"):
        check_envelope(CHALLENGE, signed(document, version="3"), CHALLENGE.payload_hash, NOW_MS)
