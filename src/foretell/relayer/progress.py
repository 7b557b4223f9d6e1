"""Progress of a request along the state of its carrying transaction."""

from typing import Final

import msgspec
import structlog

from foretell.chain.rpc_types import ReceiptLogs
from foretell.chain.smaller_reads import decoded
from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.domain.relay.request import (
    CREATIONS,
    RelayKind,
    RelayRequest,
    RelayState,
    RelayTrigger,
    moved_relay,
    seen_trigger,
)
from foretell.domain.values.hexadecimal import keccak256
from foretell.relayer.context import RelayerContext
from foretell.store.outbox.relays import load_relay, record_relay_move

EXECUTION_SUCCESS: Final = "0x" + keccak256(b"ExecutionSuccess(bytes32,uint256)").hex()

_REVERT_WHOLE: Final = CREATIONS | {RelayKind.PROXY}
"""The kinds whose transaction reverts when the wallet's own call fails."""
_WORD_CHARS: Final = 2 + 2 * 32
_CALL_FAILED: Final = "the transaction was mined, and the wallet's own call in it failed"

log = structlog.get_logger(__name__)


class _Log(msgspec.Struct, frozen=True, gc=False):
    address: str
    topics: tuple[str, ...]
    data: str


_LOG: Final = msgspec.json.Decoder(_Log)


async def move(
    context: RelayerContext,
    request: RelayRequest,
    trigger: RelayTrigger,
    failure: str | None = None,
) -> RelayRequest:
    """Return the request after a transition, or as another process has moved it."""
    moved = moved_relay(request, trigger, context.now_ms(), failure)
    async with context.database.writing() as tx:
        if not await record_relay_move(tx, request, moved):
            moved = await load_relay(tx, request.transaction_id) or request
    context.pulse.beat()
    log.info(
        "relay request changed state", transaction_id=moved.transaction_id, state=moved.state.value
    )
    return moved


async def follow(context: RelayerContext, request: RelayRequest, sent: SentTx) -> RelayRequest:
    """Return the request, moved to the state of its carrying transaction."""
    is_done = await _is_done(context, request, sent)
    if is_done is None:
        return request
    trigger = seen_trigger(request.state, sent, is_done=is_done)
    if trigger is None:
        return request
    failure = None
    if trigger is RelayTrigger.FAIL:
        failure = _CALL_FAILED if sent.status is TxStatus.CONFIRMED else sent.failure
    return await move(context, request, trigger, failure)


async def _is_done(context: RelayerContext, request: RelayRequest, sent: SentTx) -> bool | None:
    """Return whether the wallet's own call succeeded; None when a reorg has removed the block.

    The outer transaction can succeed although the wallet's call failed; only the wallet's log shows
    that. Before the transaction is mined there is no log to read, and the result is True.
    """
    is_mined = sent.status in {TxStatus.MINED, TxStatus.CONFIRMED}
    is_known = (request.state, sent.status) == (RelayState.MINED, TxStatus.MINED)
    if request.kind in _REVERT_WHOLE or is_known or not is_mined:
        return True
    assert sent.mined_hash is not None
    receipt = await context.reader.rpc.call_as(
        ReceiptLogs, "eth_getTransactionReceipt", sent.mined_hash
    )
    if receipt is None:
        return None
    # Whom the wallet calls may log without number, so only logs that name the transaction are decoded.
    digest = request.digest.removeprefix("0x").encode()
    named = (decoded(_LOG, text) for text in receipt.logs if digest in bytes(text).lower())
    return any(
        log.address.lower() == request.wallet
        and log.topics[:1] == (EXECUTION_SUCCESS,)
        and log.data[:_WORD_CHARS].lower() == request.digest
        for log in named
    )
