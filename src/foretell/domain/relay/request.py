"""A relay request: a transaction that an owner signed for its wallet, and its states.

A wallet's transactions are executed in the order of its own nonces, so a nonce belongs to one open
request. At most one transaction of ours carries a request, and the wallet accepts a nonce only once,
so a call is executed at most once.

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
"""The highest gas of a wallet's transaction, so that no wallet can drain the relayer."""


class RelayKind(enum.StrEnum):
    """The kind of a request."""

    SAFE = "SAFE"
    """A transaction of an existing wallet."""
    SAFE_CREATE = "SAFE-CREATE"
    """The creation of a wallet."""
    WALLET = "WALLET"
    """A batch of calls of an existing deposit wallet."""
    WALLET_CREATE = "WALLET-CREATE"
    """The creation of a deposit wallet."""
    PROXY = "PROXY"
    """Calls of a proxy wallet, which the first ones create."""


CREATIONS: Final = frozenset({RelayKind.SAFE_CREATE, RelayKind.WALLET_CREATE})
DEPOSIT_KINDS: Final = frozenset({RelayKind.WALLET, RelayKind.WALLET_CREATE})


class RelayState(enum.StrEnum):
    """The state of a request, by its wire word."""

    NEW = "STATE_NEW"
    """It is stored; no node is known to have it."""
    EXECUTED = "STATE_EXECUTED"
    """It is broadcast."""
    MINED = "STATE_MINED"
    """It is in a block that a reorg may still remove."""
    CONFIRMED = "STATE_CONFIRMED"
    FAILED = "STATE_FAILED"
    """It failed, finally and without effect."""
    INVALID = "STATE_INVALID"
    """It was refused before it was broadcast."""


class RelayTrigger(enum.StrEnum):
    """The cause of a request's state change."""

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

_STATE_BY_TX_STATUS: Final[Mapping[TxStatus, RelayState]] = MappingProxyType(
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
_STATE_WITHOUT_CALL: Final[Mapping[RelayState, RelayState]] = MappingProxyType(
    {RelayState.MINED: RelayState.EXECUTED, RelayState.CONFIRMED: RelayState.FAILED}
)
"""The state when the transaction was mined but the wallet's own call in it failed."""

_TRIGGERS: Final[Mapping[RelayState, RelayTrigger]] = MappingProxyType(
    {
        RelayState.EXECUTED: RelayTrigger.EXECUTE,
        RelayState.MINED: RelayTrigger.MINE,
        RelayState.CONFIRMED: RelayTrigger.CONFIRM,
        RelayState.FAILED: RelayTrigger.FAIL,
    }
)


def advance_relay(state: RelayState, trigger: RelayTrigger) -> RelayState:
    """Return the next state; refuses a transition that the table lacks."""
    try:
        return RELAY_TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalTransition("relay request", state, trigger) from None


@dataclass(frozen=True, slots=True)
class RelayRequest:
    """A signed transaction, its submitter, and its state.

    `signature` is normalized, and `digest` are the 32 signed bytes, which identify the transaction.
    Only the transaction of an existing wallet has a nonce, or that of a proxy wallet: its owner's at the
    relay hub. The calldata of a deposit or proxy wallet's request is that of the whole transaction; nothing
    is signed to create a deposit wallet.
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
        """The id of the carrying transaction."""
        return f"relay:{self.transaction_id}"

    @property
    def claim(self) -> str | None:
        """The wallet's nonce or creation, which no other request may have while this one is open."""
        subject = "create" if self.safe_nonce is None else self.safe_nonce
        return f"{self.wallet}:{subject}" if self.state in OPEN else None

    def outgoing(self) -> OutgoingTx:
        """Return the transaction that carries the request."""
        if self.kind is RelayKind.PROXY:
            return OutgoingTx(self.tx_id, self.target, self.calldata, self.gas)
        if self.kind in DEPOSIT_KINDS:
            target = self.target if self.kind is RelayKind.WALLET_CREATE else self.wallet
            return OutgoingTx(self.tx_id, target, self.calldata, self.gas)
        if self.safe_nonce is None:
            return OutgoingTx(
                self.tx_id, self.target, encode_create_proxy(self.signature), self.gas
            )
        safe_tx = SafeTx(self.wallet, self.target, self.calldata, self.safe_nonce, self.operation)
        return OutgoingTx(self.tx_id, self.wallet, safe_tx.encode(self.signature), self.gas)


def relay_gas(calls: int, calldata_bytes: int, *, may_convert: bool = False) -> int:
    """Return the gas limit of a wallet's transaction of this many calls and bytes.

    A conversion gets the highest limit: its gas depends on the number of questions of its event.
    """
    if may_convert:
        return RELAY_GAS_MAX
    return min(EXECUTE_GAS + calls * CALL_GAS + calldata_bytes * BYTE_GAS, RELAY_GAS_MAX)


def seen_trigger(state: RelayState, tx: SentTx, *, is_done: bool) -> RelayTrigger | None:
    """Return the trigger that follows from the carrying transaction, or None.

    `is_done` is whether the wallet's own call succeeded in a mined transaction.
    """
    seen = _STATE_BY_TX_STATUS[tx.status]
    if not is_done:
        seen = _STATE_WITHOUT_CALL.get(seen, seen)
    if seen is state or seen is RelayState.NEW:
        return None
    if (state, seen) == (RelayState.MINED, RelayState.EXECUTED):
        return RelayTrigger.UNMINE
    return _TRIGGERS[seen]


def moved_relay(
    request: RelayRequest, trigger: RelayTrigger, now_ms: int, failure: str | None = None
) -> RelayRequest:
    """Return the request after a state change; refuses one that the table lacks.

    One that is refused will never be sent, and gives up its calldata and its signature.
    """
    state = advance_relay(request.state, trigger)
    if state is RelayState.INVALID:
        request = replace(request, calldata=b"", signature=b"")
    return replace(request, state=state, failure=failure, updated_at_ms=now_ms)


def next_safe_nonce(used: int, claimed: Collection[int]) -> int:
    """Return the nonce of a wallet's next transaction: the first unclaimed one."""
    nonce = used
    while nonce in claimed:
        nonce += 1
    return nonce
