"""How an accepted wish gets on the chain, once, whatever happens in between.

The request's row is stored before anything is sent, and the id of the transaction that carries it
follows from the row: a crash in between leaves a row that the worker takes up again, and what was
sent is found and not sent anew. A wallet's transactions go out one after the other, each once the
chain has the one before it.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.relayer import (
    CallReverts,
    ExecutionFailed,
    NonceMismatch,
    TooManyQueued,
    WalletExists,
)
from foretell.domain.evm.transaction import SentTx
from foretell.domain.relay.request import OPEN, RelayRequest, RelayTrigger
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.body import Submission
from foretell.relayer.checks import CheckedSubmission, fetch_own_safe
from foretell.relayer.context import RelayerContext
from foretell.relayer.nonces import load_next_nonce
from foretell.relayer.progress import follow, move
from foretell.relayer.revert_reasons import reverted_cause, words_of
from foretell.store.outbox.relays import load_same_relay, record_relay
from foretell.store.outbox.transactions import RELAYED, load_tx

Check = Callable[[RelayerContext, CheckedSubmission], Awaitable[None]]

_log: Final = structlog.get_logger(__name__)


async def check_nothing(context: RelayerContext, judged: CheckedSubmission) -> None:
    """Pass: the trial run says enough."""


async def accept(
    context: RelayerContext,
    judged: CheckedSubmission,
    submitter: Address,
    check: Check = check_nothing,
) -> RelayRequest:
    """Return the request that a wish has become: an earlier one when its owner signed the same.

    What is refused here, or by the node's trial run, was not sent, and its nonce is free again.
    """
    wish = judged.wish
    async with context.locks.of(wish.wallet):
        used = await _fetch_used(context, wish)
        same = await _load_same(context, judged)
        if same is not None and (same.state in OPEN or _place(wish) < used):
            return same
        await _check_place(context, wish, used)
        await check(context, judged)
        request = judged.request(context.new_uuid(), submitter, context.now_ms())
        async with context.database.writing() as tx:
            is_new = await record_relay(tx, request)
        if not is_new:
            return await _taken_meanwhile(context, judged)
        return await _send_or_refuse(context, request) if _place(wish) == used else request


def _place(wish: Submission) -> int:
    """Return how many places must be used before this wish's turn: making a wallet is the first."""
    return wish.safe_nonce or 0


async def _fetch_used(context: RelayerContext, wish: Submission) -> int:
    """Return how many of the wallet's places the chain has used."""
    if wish.safe_nonce is None:
        return 1 if await context.reader.code(wish.wallet) else 0
    return (await fetch_own_safe(context, wish.wallet, wish.owner)).nonce


async def _load_same(context: RelayerContext, judged: CheckedSubmission) -> RelayRequest | None:
    async with context.database.reading() as tx:
        return await load_same_relay(tx, judged.wish.wallet, judged.digest)


async def _check_place(context: RelayerContext, wish: Submission, used: int) -> None:
    if wish.safe_nonce is None:
        if used:
            raise WalletExists(wish.wallet)
        return
    expected = await load_next_nonce(context, wish.wallet, used)
    if wish.safe_nonce != expected:
        raise NonceMismatch(expected, wish.safe_nonce)
    if expected - used >= context.options.open_per_wallet_max:
        raise TooManyQueued(context.options.open_per_wallet_max)


async def _taken_meanwhile(context: RelayerContext, judged: CheckedSubmission) -> RelayRequest:
    """Return the same wish that another process took in just now, or say that it took another."""
    same = await _load_same(context, judged)
    if same is None:
        place = _place(judged.wish)
        raise NonceMismatch(place + 1, place)
    return same


async def _send_or_refuse(context: RelayerContext, request: RelayRequest) -> RelayRequest:
    """Send a request whose client waits: when it cannot be sent now, it is over."""
    try:
        return await send(context, request)
    except CallReverts:
        raise
    except ForetellError as error:
        return await _refuse_unsent(context, request, error)


async def _refuse_unsent(
    context: RelayerContext, request: RelayRequest, error: ForetellError
) -> RelayRequest:
    """End a request that could not be sent, and raise why; return one that may have been sent.

    What has a carrier may be with a node: it is accepted, whatever failed after, and the worker
    follows it. While the store cannot tell whether there is one, the row is left to the worker too.
    """
    if await load_carrier(context, request) is not None:
        _log.warning("relay waits", transaction_id=request.transaction_id, cause=error.message)
        return request
    failure = ExecutionFailed(words_of(error)) if isinstance(error, RpcRefused) else error
    await move(context, request, RelayTrigger.REFUSE, failure.message)
    raise failure


async def send(context: RelayerContext, request: RelayRequest) -> RelayRequest:
    """Return the request once it is sent; hold the wallet's lock.

    One that reverts in the node's trial run is over. Of any other failure that is raised only
    `load_carrier` can tell whether it came before anything was stored or sent, or after.
    """
    try:
        sent = await context.sender.send(request.outgoing())
    except ExecutionReverted as reverted:
        cause = await reverted_cause(context, request, reverted)
        await move(context, request, RelayTrigger.REFUSE, cause)
        raise CallReverts(cause) from reverted
    except ForetellError:
        stored = await load_carrier(context, request)
        if stored is None:
            raise
        sent = stored
    return await follow(context, request, sent)


async def load_carrier(context: RelayerContext, request: RelayRequest) -> SentTx | None:
    """Return the transaction that carries a request, if it was ever stored."""
    async with context.database.reading() as tx:
        return await load_tx(tx, RELAYED, request.tx_id)
