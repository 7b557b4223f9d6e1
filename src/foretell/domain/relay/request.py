"""A relay request: what an owner signed for its wallet, and its life until it is on the chain.

A wallet's transactions are executed in the order of the wallet's own nonces, so a nonce belongs to
one open request. At most one transaction of ours carries a request, and the wallet takes a nonce
only once: whatever is sent again, its call happens at most once.

```
STATE_NEW ──execute──▶ STATE_EXECUTED ──mine──▶ STATE_MINED ──confirm──▶ STATE_CONFIRMED
   │                     │        ▲────unmine──────┘ │
   └──refuse──▶ INVALID  └──fail──▶ STATE_FAILED ◀───┘
```
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from foretell.domain.contracts.safe import SafeTx, encode_create_proxy
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.evm.transaction import OutgoingTx, SentTx, TxStatus
from foretell.domain.values.hexadecimal import Address, Bytes32

EXECUTE_GAS: Final = 150_000
CALL_GAS: Final = 400_000
BYTE_GAS: Final = 64
CREATE_GAS: Final = 600_000
RELAY_GAS_MAX: Final = 8_000_000
"""What a wallet's transaction may burn at most, so that no wallet can empty the relayer."""


class RelayKind(enum.StrEnum):
    """What a request is for."""

    SAFE = "SAFE"
    """A transaction of a wallet that exists."""
    SAFE_CREATE = "SAFE-CREATE"
    """The wallet itself."""


class RelayState(enum.StrEnum):
    """Where a request is in its life, in the words of the wire."""

    NEW = "STATE_NEW"
    """It is accepted; no node is known to have it."""
    EXECUTED = "STATE_EXECUTED"
    """It is broadcast."""
    MINED = "STATE_MINED"
    """It is in a block that a reorg may still take away."""
    CONFIRMED = "STATE_CONFIRMED"
    FAILED = "STATE_FAILED"
    """It did nothing, and never will."""
    INVALID = "STATE_INVALID"
    """It was refused before it was broadcast."""


class RelayTrigger(enum.StrEnum):
    """What moves a request."""

    EXECUTE = "execute"
    MINE = "mine"
    UNMINE = "unmine"
    CONFIRM = "confirm"
    FAIL = "fail"
    REFUSE = "refuse"


RELAY_TRANSITIONS: Final[Mapping[tuple[RelayState, RelayTrigger], RelayState]] = MappingProxyType(
    {
        (RelayState.NEW, RelayTrigger.EXECUTE): RelayState.EXECUTED,
        (RelayState.NEW, RelayTrigger.MINE): RelayState.MINED,
        (RelayState.NEW, RelayTrigger.CONFIRM): RelayState.CONFIRMED,
        (RelayState.NEW, RelayTrigger.FAIL): RelayState.FAILED,
        (RelayState.NEW, RelayTrigger.REFUSE): RelayState.INVALID,
        (RelayState.EXECUTED, RelayTrigger.MINE): RelayState.MINED,
        (RelayState.EXECUTED, RelayTrigger.CONFIRM): RelayState.CONFIRMED,
        (RelayState.EXECUTED, RelayTrigger.FAIL): RelayState.FAILED,
        (RelayState.MINED, RelayTrigger.UNMINE): RelayState.EXECUTED,
        (RelayState.MINED, RelayTrigger.CONFIRM): RelayState.CONFIRMED,
        (RelayState.MINED, RelayTrigger.FAIL): RelayState.FAILED,
    }
)
OPEN: Final = frozenset({RelayState.NEW, RelayState.EXECUTED, RelayState.MINED})
DEAD: Final = frozenset({RelayState.FAILED, RelayState.INVALID})

_SEEN: Final[Mapping[TxStatus, RelayState]] = MappingProxyType(
    {
        TxStatus.PENDING: RelayState.NEW,
        TxStatus.SENT: RelayState.EXECUTED,
        TxStatus.MINED: RelayState.MINED,
        TxStatus.REVERTED: RelayState.EXECUTED,
        TxStatus.CONFIRMED: RelayState.CONFIRMED,
        TxStatus.FAILED: RelayState.FAILED,
        TxStatus.CANCELED: RelayState.FAILED,
    }
)
_UNDONE: Final[Mapping[RelayState, RelayState]] = MappingProxyType(
    {RelayState.MINED: RelayState.EXECUTED, RelayState.CONFIRMED: RelayState.FAILED}
)
"""What a transaction comes to that was mined while the wallet's own call in it failed."""

_TRIGGERS: Final[Mapping[RelayState, RelayTrigger]] = MappingProxyType(
    {
        RelayState.EXECUTED: RelayTrigger.EXECUTE,
        RelayState.MINED: RelayTrigger.MINE,
        RelayState.CONFIRMED: RelayTrigger.CONFIRM,
        RelayState.FAILED: RelayTrigger.FAIL,
    }
)


def advance_relay(state: RelayState, trigger: RelayTrigger) -> RelayState:
    """Return the state that follows, or refuse."""
    try:
        return RELAY_TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalTransition("relay request", state, trigger) from None


@dataclass(frozen=True, slots=True)
class RelayRequest:
    """What an owner signed, who sent it in, and how it stands.

    `signature` is a normalized one, and `digest` the 32 bytes that it is over: the identity of what
    was signed. Only a transaction of a wallet has a nonce.
    """

    transaction_id: str
    kind: RelayKind
    owner: Address
    submitter: Address
    wallet: Address
    target: Address
    calldata: bytes
    operation: int
    safe_nonce: int | None
    signature: bytes
    digest: Bytes32
    gas: int
    metadata: str | None
    created_at_ms: int
    updated_at_ms: int
    state: RelayState = RelayState.NEW
    failure: str | None = None

    @property
    def tx_id(self) -> str:
        """The id under which the sender knows it."""
        return f"relay:{self.transaction_id}"

    @property
    def claim(self) -> str | None:
        """What no other request may have while this one is open: a wallet's nonce, or its making."""
        place = "create" if self.safe_nonce is None else self.safe_nonce
        return f"{self.wallet}:{place}" if self.state in OPEN else None

    def outgoing(self) -> OutgoingTx:
        """Return the transaction that carries it."""
        if self.safe_nonce is None:
            return OutgoingTx(
                self.tx_id, self.target, encode_create_proxy(self.signature), self.gas
            )
        safe_tx = SafeTx(self.wallet, self.target, self.calldata, self.safe_nonce, self.operation)
        return OutgoingTx(self.tx_id, self.wallet, safe_tx.encode(self.signature), self.gas)


def relay_gas(calls: int, calldata_bytes: int, *, may_convert: bool = False) -> int:
    """Return the gas that a wallet's transaction of so many calls and bytes may take.

    What a conversion takes depends on how many questions its event has.
    """
    if may_convert:
        return RELAY_GAS_MAX
    return min(EXECUTE_GAS + calls * CALL_GAS + calldata_bytes * BYTE_GAS, RELAY_GAS_MAX)


def seen_trigger(state: RelayState, tx: SentTx, *, is_done: bool) -> RelayTrigger | None:
    """Return what the carrying transaction does to a request, if anything.

    `is_done` says of a mined one whether the wallet's own call in it succeeded.
    """
    seen = _SEEN[tx.status]
    if not is_done:
        seen = _UNDONE.get(seen, seen)
    if seen is state or seen is RelayState.NEW:
        return None
    if (state, seen) == (RelayState.MINED, RelayState.EXECUTED):
        return RelayTrigger.UNMINE
    return _TRIGGERS[seen]


def moved_relay(
    request: RelayRequest, trigger: RelayTrigger, now_ms: int, failure: str | None = None
) -> RelayRequest:
    """Return the request after a step of its life, or refuse the step."""
    state = advance_relay(request.state, trigger)
    return replace(request, state=state, failure=failure, updated_at_ms=now_ms)


def next_safe_nonce(used: int, claimed: Collection[int]) -> int:
    """Return the nonce that a wallet's next transaction must bear: the first that nobody has."""
    nonce = used
    while nonce in claimed:
        nonce += 1
    return nonce
