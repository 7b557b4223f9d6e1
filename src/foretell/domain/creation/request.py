"""A request to create markets: its statuses, and the challenge that its creator signs.

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

every status but FAILED ──fail──▶ FAILED
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

CLAIM_LIFETIME_MS: Final = 60 * 60 * 1000
"""How long a request whose transactions are not verified keeps a name from other creators."""


class RequestStatus(enum.StrEnum):
    """The status of a request."""

    AUTH_PENDING = "auth_pending"
    PREPARE_RUNNING = "prepare_running"
    PREPARED = "prepared"
    FINALIZE_RUNNING = "finalize_running"
    METADATA_UPDATE_PENDING = "metadata_update_pending"
    FINALIZED = "finalized"
    FAILED = "failed"


class RequestTrigger(enum.StrEnum):
    """The cause of a request's status change."""

    PREPARE = "prepare"
    PLAN_BUILT = "plan_built"
    TX_CONFIRM = "tx_confirm"
    FINALIZE = "finalize"
    UPDATES_NEEDED = "updates_needed"
    COMPLETE = "complete"
    FAIL = "fail"


_Status = RequestStatus
_Trigger = RequestTrigger

REQUEST_TRANSITIONS: Final[Mapping[tuple[RequestStatus, RequestTrigger], RequestStatus]] = (
    MappingProxyType(
        {
            (_Status.AUTH_PENDING, _Trigger.PREPARE): _Status.PREPARE_RUNNING,
            (_Status.PREPARE_RUNNING, _Trigger.PLAN_BUILT): _Status.PREPARED,
            (_Status.PREPARED, _Trigger.TX_CONFIRM): _Status.PREPARED,
            (_Status.PREPARED, _Trigger.FINALIZE): _Status.FINALIZE_RUNNING,
            (_Status.FINALIZE_RUNNING, _Trigger.UPDATES_NEEDED): _Status.METADATA_UPDATE_PENDING,
            (_Status.FINALIZE_RUNNING, _Trigger.COMPLETE): _Status.FINALIZED,
            (_Status.METADATA_UPDATE_PENDING, _Trigger.TX_CONFIRM): _Status.METADATA_UPDATE_PENDING,
            (_Status.METADATA_UPDATE_PENDING, _Trigger.COMPLETE): _Status.FINALIZED,
            (_Status.AUTH_PENDING, _Trigger.FAIL): _Status.FAILED,
            (_Status.PREPARE_RUNNING, _Trigger.FAIL): _Status.FAILED,
            (_Status.PREPARED, _Trigger.FAIL): _Status.FAILED,
            (_Status.FINALIZE_RUNNING, _Trigger.FAIL): _Status.FAILED,
            (_Status.METADATA_UPDATE_PENDING, _Trigger.FAIL): _Status.FAILED,
            (_Status.FINALIZED, _Trigger.FAIL): _Status.FAILED,
        }
    )
)
RUNNING: Final = frozenset({_Status.PREPARE_RUNNING, _Status.FINALIZE_RUNNING})
ENDED: Final = frozenset({_Status.FINALIZED, _Status.FAILED})
VERIFIED: Final = frozenset(
    {_Status.FINALIZE_RUNNING, _Status.METADATA_UPDATE_PENDING, _Status.FINALIZED}
)
"""Statuses after the creator's transactions were verified on the chain."""

ANSWER_BY_STATUS: Final[Mapping[RequestStatus, str]] = MappingProxyType(
    {status: str(status) for status in RequestStatus}
    | {
        _Status.PREPARE_RUNNING: "prepare_in_progress",
        _Status.FINALIZE_RUNNING: "finalize_in_progress",
    }
)
"""The status words of immediate responses; the record has the statuses themselves."""


def advance_request(status: RequestStatus, trigger: RequestTrigger) -> RequestStatus:
    """Return the next status; refuses a transition that the table lacks."""
    try:
        return REQUEST_TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransition("request", status, trigger) from None


@dataclass(frozen=True, slots=True)
class Challenge:
    """The typed data that a creator signs to request its markets."""

    request_id: str
    creator: Address
    payload_hash: Bytes32
    nonce: Bytes32
    expires_at_ms: int
    chain_id: int

    def digest(self) -> bytes:
        """Return the 32 bytes to sign."""
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
    """A signed challenge, as the creator sends it back."""

    request_id: str
    nonce: Bytes32
    expires_at_ms: int
    payload_hash: Bytes32
    signature: bytes


def check_envelope(
    challenge: Challenge, envelope: Envelope, payload_hash: Bytes32, now_ms: int
) -> None:
    """Refuse an envelope that differs from the challenge, is not signed by its creator, or is late."""
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
    """A request's claim on a name: a slug, or a condition."""

    name: str
    request_id: str
    creator: Address
    status: RequestStatus
    claimed_at_ms: int
    begun_at_ms: int


def condition_claim(condition_id: Bytes32) -> str:
    """Return the name that claims a condition; no slug contains a colon."""
    return f"condition:{condition_id}"


def renewed_at_ms(held: Claim, creator: Address, now_ms: int) -> int:
    """Return the time from which a name counts as claimed when a request takes it.

    A claim that the creator's earlier request has, and has had for less than its lifetime, keeps its time.
    """
    is_own = held.creator == creator and held.status is not RequestStatus.FAILED
    is_lapsed = now_ms - held.claimed_at_ms > CLAIM_LIFETIME_MS
    return held.claimed_at_ms if is_own and not is_lapsed else now_ms


def may_take(held: Claim, creator: Address, begun_at_ms: int, now_ms: int) -> bool:
    """Return whether a request of the creator that began at a time may take a claimed name.

    A request with verified transactions keeps its names. Before that a claim lapses after an hour, so
    that a request alone cannot block a name, and a creator who starts again takes the names of its
    own earlier request, together with the questions asked for it.
    """
    if held.status is RequestStatus.FAILED:
        return True
    is_lapsed = now_ms - held.claimed_at_ms > CLAIM_LIFETIME_MS
    is_replaced = held.creator == creator and held.begun_at_ms <= begun_at_ms
    return held.status not in VERIFIED and (is_lapsed or is_replaced)
