"""Operations: any served transaction of a wallet, and those that wait for their block.

Each operation with a route of its own is answered when it is in a block. The wait is limited: after it the answer
has the hash and no confirmations, and the same request, sent again, returns the outcome.
"""

import enum
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import (
    APPROVE,
    MERGE_POSITIONS,
    REDEEM_POSITIONS,
    SET_APPROVAL_FOR_ALL,
    SPLIT_POSITION,
)
from foretell.domain.contracts.neg_risk import CONVERT_POSITIONS, SPLIT_SETS
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
from foretell.domain.evm.abi import SELECTOR_BYTES, ContractFunction
from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.domain.relay.request import RelayKind, RelayRequest, RelayState
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.relayer.body import Submission, parse_deployment, parse_submission
from foretell.relayer.callers import RelayCaller
from foretell.relayer.checks import check_holdings, checked_submission
from foretell.relayer.context import RelayerContext, wait_for
from foretell.relayer.submit import accept, load_carrying_tx
from foretell.store.failures import after_effect
from foretell.store.outbox.relays import load_relay
from foretell.store.public_reads.places import ReadKind

POLL_S: Final = 1.0
NO_TX: Final = Bytes32("0x" + "0" * 64)
"""The hash of a deployment that was not needed."""


class Operation(enum.Enum):
    """An operation with its own route."""

    REDEEM = "redeem-position"
    MERGE = "merge-position"
    SPLIT = "split-position"
    CONVERT = "convert-position"
    APPROVE = "approve"
    SET_APPROVAL = "set-approval"
    DEPLOY = "safe"


def _functions(context: RelayerContext, operation: Operation) -> Mapping[Address, ContractFunction]:
    """Return the function that an operation calls at each contract that it may call."""
    deployment = context.deployment
    tokens = deployment.conditional_tokens
    adapter = None if context.rules.events is None else context.rules.events.adapter
    at_adapter: dict[Operation, ContractFunction] = {
        Operation.SPLIT: SPLIT_SETS,
        Operation.CONVERT: CONVERT_POSITIONS,
    }
    functions: dict[Operation, Mapping[Address, ContractFunction]] = {
        Operation.REDEEM: {tokens: REDEEM_POSITIONS},
        Operation.MERGE: {tokens: MERGE_POSITIONS},
        Operation.SPLIT: {tokens: SPLIT_POSITION},
        Operation.APPROVE: {deployment.collateral: APPROVE},
        Operation.SET_APPROVAL: {tokens: SET_APPROVAL_FOR_ALL},
    }
    found = dict(functions.get(operation, {}))
    if adapter is not None and operation in at_adapter:
        found[adapter] = at_adapter[operation]
    return found


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
    """Carry out an operation of a wallet; return once that is in a block, or the wait is over."""
    submission = parse_submission(raw, [RelayKind.SAFE])
    _check_owner(submission, caller)
    function = _check_operation(context, submission, operation)
    checked = checked_submission(context, submission)
    if submission.calldata[:SELECTOR_BYTES] != function.selector:
        raise MalformedCalldata(f"a call of {function.name}")
    try:
        request = await accept(context, checked, caller.address, check_holdings)
    except CallReverts as refusal:
        raise _revert_refusal(operation, refusal.message) from refusal
    return await _wait(context, operation, request)


async def deploy(context: RelayerContext, caller: RelayCaller, raw: bytes) -> Execution:
    """Deploy the wallet of an owner that signed for it; a wallet that exists needs nothing."""
    submission = parse_deployment(context.deployment, raw)
    _check_owner(submission, caller)
    checked = checked_submission(context, submission)
    if await context.reader.code(submission.wallet):
        return Execution(NO_TX, 0)
    request = await accept(context, checked, caller.address)
    return await _wait(context, Operation.DEPLOY, request)


def _check_owner(submission: Submission, caller: RelayCaller) -> None:
    if submission.owner != caller.address:
        raise OwnerAddressMismatch(submission.owner, caller.address)


def _check_operation(
    context: RelayerContext, submission: Submission, operation: Operation
) -> ContractFunction:
    """Return the function that the transaction must call."""
    if submission.operation != OPERATION_CALL:
        raise InvalidField("signatureParams.operation", f'"{OPERATION_CALL}"')
    functions = _functions(context, operation)
    if submission.target not in functions:
        raise InvalidField("to", " or ".join(sorted(functions)) or "a contract of events")
    return functions[submission.target]


def _revert_refusal(operation: Operation, cause: str) -> MergeImpossible | ExecutionFailed:
    """Return the refusal for a call that reverts: an impossible merge is the client's error."""
    is_merge = operation is Operation.MERGE
    return MergeImpossible(cause) if is_merge else ExecutionFailed(cause)


async def _wait(context: RelayerContext, operation: Operation, request: RelayRequest) -> Execution:
    deadline_s = context.options.confirmation_deadline_s
    ends_at_s = time.monotonic() + deadline_s
    while True:
        moved = context.pulse.next
        with after_effect():
            async with context.database.public_reading(ReadKind.OWN) as tx:
                request = await load_relay(tx, request.transaction_id) or request
            sent = await load_carrying_tx(context, request)
        if request.state is RelayState.INVALID:
            raise _revert_refusal(operation, request.failure or "")
        if request.state is RelayState.FAILED:
            raise ExecutionFailed(request.failure or "")
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
