"""A transaction that we send: its statuses, its attempts and its fees.

An id is executed at most once. Its account nonce is reserved and stored before anything is
broadcast, and every attempt has that nonce, so at most one of them is mined, and it may be any of
them. Only after another transaction used the nonce, finally, may the id's owner send a new one.

```
PENDING ──accept──▶ SENT ──mine──▶ MINED ──confirm──▶ CONFIRMED
   │                 │ ▲             │
   │                 │ └──unmine─────┤   (a reorg took the block away)
   │                 └──revert──▶ REVERTED ──confirm──▶ FAILED
   └──cancel──▶ CANCELED   (from SENT too: another transaction used the nonce)
```
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.errors.chain import TxIdReused
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.evm.raw_transaction import Fees, is_noop
from foretell.domain.values.hexadecimal import Address, Bytes32

BASE_FEE_HEADROOM: Final = 2
"""The first attempt can still be mined after the base fee has doubled."""

BUMP_NUMERATOR: Final = 9
BUMP_DENOMINATOR: Final = 8
"""A replacement raises both fees by one eighth; nodes require one tenth."""


class TxStatus(enum.StrEnum):
    """The status of a transaction."""

    PENDING = "PENDING"
    """It is signed with a reserved nonce; no node is known to have it."""
    SENT = "SENT"
    """A node has accepted it."""
    MINED = "MINED"
    """It is in a block that a reorg may still remove."""
    REVERTED = "REVERTED"
    """It is in such a block, and reverted."""
    CONFIRMED = "CONFIRMED"
    FAILED = "FAILED"
    """It reverted in a confirmed block."""
    CANCELED = "CANCELED"
    """It cannot be mined: another transaction used its nonce."""


class TxTrigger(enum.StrEnum):
    """The cause of a transaction's status change."""

    ACCEPT = "accept"
    MINE = "mine"
    REVERT = "revert"
    UNMINE = "unmine"
    CONFIRM = "confirm"
    CANCEL = "cancel"


TX_TRANSITIONS: Final[Mapping[tuple[TxStatus, TxTrigger], TxStatus]] = MappingProxyType(
    {
        (TxStatus.PENDING, TxTrigger.ACCEPT): TxStatus.SENT,
        (TxStatus.PENDING, TxTrigger.MINE): TxStatus.MINED,
        (TxStatus.PENDING, TxTrigger.REVERT): TxStatus.REVERTED,
        (TxStatus.PENDING, TxTrigger.CANCEL): TxStatus.CANCELED,
        (TxStatus.SENT, TxTrigger.MINE): TxStatus.MINED,
        (TxStatus.SENT, TxTrigger.REVERT): TxStatus.REVERTED,
        (TxStatus.SENT, TxTrigger.CANCEL): TxStatus.CANCELED,
        (TxStatus.MINED, TxTrigger.UNMINE): TxStatus.SENT,
        (TxStatus.MINED, TxTrigger.CONFIRM): TxStatus.CONFIRMED,
        (TxStatus.REVERTED, TxTrigger.UNMINE): TxStatus.SENT,
        (TxStatus.REVERTED, TxTrigger.CONFIRM): TxStatus.FAILED,
    }
)
WAITING: Final = frozenset({TxStatus.PENDING, TxStatus.SENT})
FINISHED: Final = frozenset({TxStatus.CONFIRMED, TxStatus.FAILED, TxStatus.CANCELED})
UNFINISHED: Final = frozenset(TxStatus) - FINISHED


def advance_tx(status: TxStatus, trigger: TxTrigger) -> TxStatus:
    """Return the next status; refuses a transition that the table lacks."""
    try:
        return TX_TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransition("transaction", status, trigger) from None


@dataclass(frozen=True, slots=True)
class OutgoingTx:
    """A transaction that a product wants to send; the same id is the same transaction.

    Without `gas` the node estimates it.
    """

    tx_id: str
    target: Address
    calldata: bytes
    gas: int | None = None


@dataclass(frozen=True, slots=True)
class TxAttempt:
    """One signed version of a transaction."""

    tx_hash: Bytes32
    raw: bytes
    fees: Fees
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class SentTx:
    """A transaction whose nonce is reserved, with all its attempts, the newest last."""

    tx_id: str
    sender: Address
    account_nonce: int
    target: Address
    calldata: bytes
    gas: int
    status: TxStatus
    attempts: tuple[TxAttempt, ...]
    created_at_ms: int
    updated_at_ms: int
    failure: str | None = None
    mined_hash: Bytes32 | None = None
    block_number: int | None = None

    @property
    def newest(self) -> TxAttempt:
        """The attempt that is broadcast now."""
        return self.attempts[-1]

    @property
    def is_finished(self) -> bool:
        """Whether its outcome is final."""
        return self.status in FINISHED

    @property
    def is_given_up(self) -> bool:
        """Whether its newest attempt only uses up the nonce."""
        return is_noop(self.newest.raw, self.sender)

    def check_same(self, tx: OutgoingTx) -> None:
        """Refuse another target or calldata under the same id."""
        if (tx.target, tx.calldata) != (self.target, self.calldata):
            raise TxIdReused(tx.tx_id)

    def with_attempt(self, attempt: TxAttempt, failure: str | None = None) -> "SentTx":
        """Return it with one more attempt, and the failure of the earlier ones."""
        return replace(
            self,
            attempts=(*self.attempts, attempt),
            failure=failure or self.failure,
            updated_at_ms=attempt.created_at_ms,
        )


class MinedAttempt(NamedTuple):
    """An attempt that is in a block."""

    tx_hash: Bytes32
    block_number: int
    is_success: bool


@dataclass(frozen=True, slots=True)
class TxMove:
    """A status change, with the block and the failure that are recorded with it."""

    trigger: TxTrigger
    mined_hash: Bytes32 | None = None
    block_number: int | None = None
    failure: str | None = None


def next_move(
    tx: SentTx, sighting: MinedAttempt | None, head: int, confirmations: int
) -> TxMove | None:
    """Return the next status change that follows from the sighting, or None.

    A block is final with `confirmations` blocks on top of it. Call again after each change: a
    transaction that a reorg moved to another block is first unmined and then mined again.
    """
    if tx.block_number is not None:
        return _move_in_block(tx, sighting, head, confirmations)
    if sighting is None:
        return None
    if not _is_noop(tx, sighting.tx_hash):
        return _mined_move(sighting)
    if _is_deep(sighting, head, confirmations):
        return TxMove(TxTrigger.CANCEL, sighting.tx_hash, sighting.block_number)
    return None


def _move_in_block(
    tx: SentTx, sighting: MinedAttempt | None, head: int, confirmations: int
) -> TxMove | None:
    recorded = tx.mined_hash, tx.block_number, tx.status is TxStatus.MINED
    if sighting != recorded:
        return TxMove(TxTrigger.UNMINE)
    if _is_deep(sighting, head, confirmations):
        return replace(_mined_move(sighting), trigger=TxTrigger.CONFIRM)
    return None


def _is_deep(sighting: MinedAttempt, head: int, confirmations: int) -> bool:
    return head - sighting.block_number >= confirmations


def _is_noop(tx: SentTx, tx_hash: Bytes32) -> bool:
    attempt = next(attempt for attempt in tx.attempts if attempt.tx_hash == tx_hash)
    return is_noop(attempt.raw, tx.sender)


def _mined_move(sighting: MinedAttempt) -> TxMove:
    if sighting.is_success:
        return TxMove(TxTrigger.MINE, sighting.tx_hash, sighting.block_number)
    failure = f"reverted in block {sighting.block_number}"
    return TxMove(TxTrigger.REVERT, sighting.tx_hash, sighting.block_number, failure)


def moved(tx: SentTx, move: TxMove, now_ms: int) -> SentTx:
    """Return the transaction after a status change; refuses one that the table lacks."""
    keeps_failure = move.trigger in {TxTrigger.ACCEPT, TxTrigger.CANCEL}
    return replace(
        tx,
        status=advance_tx(tx.status, move.trigger),
        mined_hash=move.mined_hash,
        block_number=move.block_number,
        failure=tx.failure if keeps_failure and move.failure is None else move.failure,
        updated_at_ms=now_ms,
    )


def opening_fees(base_fee_wei: int, priority_fee_wei: int, cap_wei: int) -> Fees:
    """Return the fees of the first attempt, never above the cap."""
    max_fee_wei = min(base_fee_wei * BASE_FEE_HEADROOM + priority_fee_wei, cap_wei)
    return Fees(max_fee_wei, min(priority_fee_wei, max_fee_wei))


def bumped_fees(last: Fees, market: Fees, cap_wei: int) -> Fees | None:
    """Return the fees of a replacement, or None when they would exceed the cap.

    Both fees rise by at least an eighth, since a node refuses a replacement that raises only one.
    """
    lowest = Fees(_raised(last.max_fee_wei), _raised(last.priority_fee_wei))
    if lowest.max_fee_wei > cap_wei:
        return None
    max_fee_wei = min(max(lowest.max_fee_wei, market.max_fee_wei), cap_wei)
    priority_fee_wei = max(lowest.priority_fee_wei, market.priority_fee_wei)
    return Fees(max_fee_wei, min(priority_fee_wei, max_fee_wei))


def _raised(fee_wei: int) -> int:
    """Return the fee raised by an eighth, rounded up and by one wei at least."""
    return max(fee_wei + 1, -(-fee_wei * BUMP_NUMERATOR // BUMP_DENOMINATOR))


class ContractCall(NamedTuple):
    """A contract call; without a gas limit the node estimates it."""

    target: Address
    calldata: bytes
    gas: int | None = None
    value_wei: int = 0
