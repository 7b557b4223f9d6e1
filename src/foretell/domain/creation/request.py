"""A request to create markets: its life, and the challenge that its creator signs.

```
AUTH_PENDING ──prepare──▶ PREPARE_RUNNING ──plan_built──▶ PREPARED ─┐
                                                           ▲   │    │ tx_confirm
                                                           └───┼────┘
                                                          finalize
                                                               ▼
              FINALIZED ◀──complete── FINALIZE_RUNNING ◀───────┘
                  ▲                          │
               complete               updates_needed
                  │                          ▼
                  └────────────── METADATA_UPDATE_PENDING ⟲ tx_confirm

every one but FAILED ──fail──▶ FAILED
```
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from foretell.domain.errors.creation import AuthExpired, AuthInvalid
from foretell.domain.errors.families import IllegalTransition, MalformedSignature
from foretell.domain.values.eip712 import (
    Eip712Domain,
    address_word,
    normalize_signature,
    recover_signer,
    text_word,
    typed_digest,
    uint_word,
)
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    Address,
    Bytes32,
    keccak256,
    word_bytes,
)

CHALLENGE_LIFETIME_MS: Final = 30 * 60 * 1000
CHALLENGE_NAME: Final = "Create Market"
CHALLENGE_VERSION: Final = "1"
CHALLENGE_TYPE: Final = "CreateMarketAuth"
CHALLENGE_FIELDS: Final = (
    ("requestId", "string"),
    ("creator", "address"),
    ("payloadHash", "bytes32"),
    ("nonce", "bytes32"),
    ("expiresAt", "uint256"),
    ("chainId", "uint256"),
)
CHALLENGE_TYPE_HASH: Final = text_word(
    f"{CHALLENGE_TYPE}({','.join(f'{kind} {name}' for name, kind in CHALLENGE_FIELDS)})"
)

CLAIM_LIFETIME_MS: Final = 24 * 60 * 60 * 1000
"""How long a request keeps a name from others before its transactions were verified."""


class RequestStatus(enum.StrEnum):
    """Where a request is in its life."""

    AUTH_PENDING = "auth_pending"
    PREPARE_RUNNING = "prepare_running"
    PREPARED = "prepared"
    FINALIZE_RUNNING = "finalize_running"
    METADATA_UPDATE_PENDING = "metadata_update_pending"
    FINALIZED = "finalized"
    FAILED = "failed"


class RequestTrigger(enum.StrEnum):
    """What moves a request."""

    PREPARE = "prepare"
    PLAN_BUILT = "plan_built"
    TX_CONFIRM = "tx_confirm"
    FINALIZE = "finalize"
    UPDATES_NEEDED = "updates_needed"
    COMPLETE = "complete"
    FAIL = "fail"


_S = RequestStatus
_T = RequestTrigger

REQUEST_TRANSITIONS: Final[Mapping[tuple[RequestStatus, RequestTrigger], RequestStatus]] = (
    MappingProxyType(
        {
            (_S.AUTH_PENDING, _T.PREPARE): _S.PREPARE_RUNNING,
            (_S.PREPARE_RUNNING, _T.PLAN_BUILT): _S.PREPARED,
            (_S.PREPARED, _T.TX_CONFIRM): _S.PREPARED,
            (_S.PREPARED, _T.FINALIZE): _S.FINALIZE_RUNNING,
            (_S.FINALIZE_RUNNING, _T.UPDATES_NEEDED): _S.METADATA_UPDATE_PENDING,
            (_S.FINALIZE_RUNNING, _T.COMPLETE): _S.FINALIZED,
            (_S.METADATA_UPDATE_PENDING, _T.TX_CONFIRM): _S.METADATA_UPDATE_PENDING,
            (_S.METADATA_UPDATE_PENDING, _T.COMPLETE): _S.FINALIZED,
            (_S.AUTH_PENDING, _T.FAIL): _S.FAILED,
            (_S.PREPARE_RUNNING, _T.FAIL): _S.FAILED,
            (_S.PREPARED, _T.FAIL): _S.FAILED,
            (_S.FINALIZE_RUNNING, _T.FAIL): _S.FAILED,
            (_S.METADATA_UPDATE_PENDING, _T.FAIL): _S.FAILED,
            (_S.FINALIZED, _T.FAIL): _S.FAILED,
        }
    )
)
RUNNING: Final = frozenset({_S.PREPARE_RUNNING, _S.FINALIZE_RUNNING})
ENDED: Final = frozenset({_S.FINALIZED, _S.FAILED})
VERIFIED: Final = frozenset({_S.FINALIZE_RUNNING, _S.METADATA_UPDATE_PENDING, _S.FINALIZED})
"""The creator's transactions were checked and are on the chain."""

ANSWER_BY_STATUS: Final[Mapping[RequestStatus, str]] = MappingProxyType(
    {status: str(status) for status in RequestStatus}
    | {
        _S.PREPARE_RUNNING: "prepare_in_progress",
        _S.FINALIZE_RUNNING: "finalize_in_progress",
    }
)
"""The words of immediate answers; the record itself has the statuses' own."""


def advance_request(status: RequestStatus, trigger: RequestTrigger) -> RequestStatus:
    """Return the status that follows, or refuse."""
    try:
        return REQUEST_TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransition("request", status, trigger) from None


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a creator signs to show that it wants these markets."""

    request_id: str
    creator: Address
    payload_hash: Bytes32
    nonce: Bytes32
    expires_at_ms: int
    chain_id: int

    def digest(self) -> bytes:
        """Return the 32 bytes that are signed."""
        domain = Eip712Domain(CHALLENGE_NAME, CHALLENGE_VERSION, self.chain_id, ZERO_ADDRESS)
        words = (
            CHALLENGE_TYPE_HASH,
            text_word(self.request_id),
            address_word(self.creator),
            word_bytes(self.payload_hash),
            word_bytes(self.nonce),
            uint_word(self.expires_at_ms),
            uint_word(self.chain_id),
        )
        return typed_digest(domain.separator(), keccak256(b"".join(words)))


@dataclass(frozen=True, slots=True)
class Envelope:
    """A signed challenge, as it comes back."""

    request_id: str
    nonce: Bytes32
    expires_at_ms: int
    payload_hash: Bytes32
    signature: bytes


def check_envelope(
    challenge: Challenge, envelope: Envelope, payload_hash: Bytes32, now_ms: int
) -> None:
    """Refuse an envelope that is not this challenge, signed by its creator in time."""
    pairs = (
        ("requestId", envelope.request_id, challenge.request_id),
        ("nonce", envelope.nonce, challenge.nonce),
        ("expiresAt", envelope.expires_at_ms, challenge.expires_at_ms),
        ("payloadHash", envelope.payload_hash, challenge.payload_hash),
    )
    for name, given, issued in pairs:
        if given != issued:
            raise AuthInvalid(f"{name} is {given}, and the challenge's is {issued}")
    if payload_hash != challenge.payload_hash:
        raise AuthInvalid(
            f"the payload's bytes hash to {payload_hash}, and {challenge.payload_hash} was signed"
        )
    if _signer(challenge.digest(), envelope.signature) != challenge.creator:
        raise AuthInvalid(f"the signature was not made by {challenge.creator}")
    if now_ms > challenge.expires_at_ms:
        raise AuthExpired(challenge.expires_at_ms, now_ms)


def _signer(digest: bytes, signature: bytes) -> Address:
    try:
        return recover_signer(digest, normalize_signature(signature))
    except MalformedSignature as error:
        raise AuthInvalid(error.message) from error


@dataclass(frozen=True, slots=True)
class Claim:
    """A request's hold on a name: a slug, or a condition."""

    name: str
    request_id: str
    creator: Address
    status: RequestStatus
    claimed_at_ms: int


def condition_claim(condition_id: Bytes32) -> str:
    """Return the name by which a condition is claimed; no slug has a colon."""
    return f"condition:{condition_id}"


def may_take(held: Claim, creator: Address, now_ms: int) -> bool:
    """Return whether a new request of the creator may take a name from its holder.

    A market that is made, or whose transactions are verified, keeps its names. Before that a claim
    lapses after a day, so that nobody keeps a name by asking for it; and a creator who starts
    again takes it from its own earlier request, whose questions the new one adopts.
    """
    if held.status is RequestStatus.FAILED:
        return True
    is_lapsed = now_ms - held.claimed_at_ms > CLAIM_LIFETIME_MS
    return held.status not in VERIFIED and (is_lapsed or held.creator == creator)
