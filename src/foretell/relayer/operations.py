"""Operations: any served transaction of a wallet, and two that wait for their block.

A redemption and a merge are answered when they are in a block. The wait is limited: after it the answer
has the hash and no confirmations, and the same request, sent again, returns the outcome.
"""

import enum
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import (
    MERGE_POSITIONS,
    REDEEM_POSITIONS,
    ClientCall,
    MergePositions,
    RedeemPositions,
)
from foretell.domain.contracts.safe import OPERATION_CALL
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.errors.families import Upstream
from foretell.domain.errors.relayer import (
    CallReverts,
    ExecutionFailed,
    InvalidField,
    MergeImpossible,
    NotSentYet,
    OwnerAddressMismatch,
)
from foretell.domain.evm.abi import ContractFunction
from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.domain.relay.request import RelayKind, RelayRequest, RelayState
from foretell.domain.values.hexadecimal import Bytes32
from foretell.relayer.body import Submission, parse_submission
from foretell.relayer.callers import RelayCaller
from foretell.relayer.checks import check_holdings, checked_submission
from foretell.relayer.context import RelayerContext, wait_for
from foretell.relayer.submit import accept, load_carrying_tx
from foretell.store.outbox.relays import load_relay

POLL_S: Final = 1.0


class Operation(enum.Enum):
    """An operation with its own route."""

    REDEEM = "redeem-position"
    MERGE = "merge-position"


_CALLS: Final[Mapping[Operation, tuple[type[ClientCall], ContractFunction]]] = MappingProxyType(
    {
        Operation.REDEEM: (RedeemPositions, REDEEM_POSITIONS),
        Operation.MERGE: (MergePositions, MERGE_POSITIONS),
    }
)

_DONE: Final = frozenset({RelayState.MINED, RelayState.CONFIRMED})


class Execution(NamedTuple):
    """A sent transaction of a wallet; its own block counts as the first confirmation."""

    tx_hash: Bytes32
    confirmations: int


async def submit(context: RelayerContext, caller: RelayCaller, raw: bytes) -> RelayRequest:
    """Return the request for a body, which its owner or a builder submits."""
    submission = parse_submission(raw)
    if not caller.is_builder:
        _check_owner(submission, caller)
    return await accept(context, checked_submission(context, submission), caller.address)


async def operate(
    context: RelayerContext, caller: RelayCaller, operation: Operation, raw: bytes
) -> Execution:
    """Redeem or merge for a wallet; return once that is in a block, or the wait is over."""
    submission = parse_submission(raw, [RelayKind.SAFE])
    _check_owner(submission, caller)
    _check_operation(context, submission)
    checked = checked_submission(context, submission)
    kind, function = _CALLS[operation]
    if not isinstance(checked.calls[0], kind):
        raise MalformedCalldata(f"a call of {function.name}")
    try:
        request = await accept(context, checked, caller.address, check_holdings)
    except CallReverts as refusal:
        raise _revert_refusal(operation, refusal.message) from refusal
    return await _wait(context, operation, request)


def _check_owner(submission: Submission, caller: RelayCaller) -> None:
    if submission.owner != caller.address:
        raise OwnerAddressMismatch(submission.owner, caller.address)


def _check_operation(context: RelayerContext, submission: Submission) -> None:
    tokens = context.deployment.conditional_tokens
    if submission.operation != OPERATION_CALL:
        raise InvalidField("signatureParams.operation", f'"{OPERATION_CALL}"')
    if submission.target != tokens:
        raise InvalidField("to", f"the conditional tokens {tokens}")


def _revert_refusal(operation: Operation, cause: str) -> MergeImpossible | ExecutionFailed:
    """Return the refusal for a call that reverts: an impossible merge is the client's error."""
    is_merge = operation is Operation.MERGE
    return MergeImpossible(cause) if is_merge else ExecutionFailed(cause)


async def _wait(context: RelayerContext, operation: Operation, request: RelayRequest) -> Execution:
    deadline_s = context.options.confirmation_deadline_s
    ends_at_s = time.monotonic() + deadline_s
    while True:
        moved = context.pulse.next
        async with context.database.reading() as tx:
            request = await load_relay(tx, request.transaction_id) or request
        if request.state is RelayState.INVALID:
            raise _revert_refusal(operation, request.failure or "")
        if request.state is RelayState.FAILED:
            raise ExecutionFailed(request.failure or "")
        sent = await load_carrying_tx(context, request)
        if sent is not None and request.state in _DONE and sent.mined_hash is not None:
            return await _executed(context, sent.mined_hash, sent.block_number or 0)
        left_s = ends_at_s - time.monotonic()
        if left_s <= 0:
            return _unconfirmed(request, sent, deadline_s)
        await wait_for(moved, min(left_s, POLL_S))


async def _executed(context: RelayerContext, tx_hash: Bytes32, block_number: int) -> Execution:
    try:
        head = await context.reader.head()
    except Upstream:
        head = block_number
    return Execution(tx_hash, max(1, head - block_number + 1))


def _unconfirmed(request: RelayRequest, sent: SentTx | None, waited_s: float) -> Execution:
    """Return the hash of a transaction without a block, or refuse one that reverted in a block."""
    if sent is None:
        raise NotSentYet(request.transaction_id, waited_s)
    if sent.status is TxStatus.REVERTED:
        raise ExecutionFailed(sent.failure or "")
    return Execution(sent.newest.tx_hash, 0)
