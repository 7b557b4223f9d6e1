"""Submission of accepted requests to the chain, exactly once across crashes.

The request's row is stored before anything is sent, and the id of its carrying transaction is derived
from the row. After a crash the worker resumes the row, finds a transaction that was sent, and does not
send it again. The transactions of a wallet are sent in order, each once the chain has the previous one.
"""

from collections.abc import Awaitable, Callable

import structlog

from foretell.domain.errors.chain import ChainInconsistent, ExecutionReverted, RpcRefused
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.relayer import (
    CallReverts,
    ExecutionFailed,
    InvalidField,
    NonceMismatch,
    TooManyQueued,
    WalletExists,
)
from foretell.domain.evm.transaction import SentTx
from foretell.domain.relay.request import OPEN, RelayKind, RelayRequest, RelayTrigger
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.body import Submission
from foretell.relayer.budgets import check_budgets
from foretell.relayer.checks import CheckedSubmission, fetch_own_wallet
from foretell.relayer.context import RelayerContext
from foretell.relayer.nonces import load_next_nonce
from foretell.relayer.progress import follow, move
from foretell.relayer.revert_reasons import find_revert_reason, reason_text
from foretell.store.failures import after_effect
from foretell.store.outbox.relay_hours import lock_budgets
from foretell.store.outbox.relays import load_same_relay, record_relay
from foretell.store.outbox.transactions import RELAYED, load_tx
from foretell.store.public_reads.places import ReadKind

Check = Callable[[RelayerContext, CheckedSubmission], Awaitable[None]]

log = structlog.get_logger(__name__)


async def check_nothing(context: RelayerContext, checked: CheckedSubmission) -> None:
    """Pass: the node's trial run is enough."""


async def accept(
    context: RelayerContext,
    checked: CheckedSubmission,
    submitter: Address,
    check_chain: Check = check_nothing,
) -> RelayRequest:
    """Return the request for a submission: an earlier one if its owner signed the same transaction.

    A submission that is refused, here or by the node's trial run, was not sent; its nonce is free. What its
    submitter has to wait for is waited for without the wallet's lock, where that is not needed: another may ask
    for the creation of a wallet, which its owner does not sign.
    """
    submission = checked.submission
    is_signed = submission.kind is not RelayKind.WALLET_CREATE
    request = checked.request(context.new_uuid(), submitter, context.now_ms())
    if not is_signed and await _fetch_used(context, submission):
        return await _load_created(context, checked)
    async with context.database.public_reading(ReadKind.OWN) as tx:
        same = await load_same_relay(tx, submission.wallet, checked.digest)
        if same is None:
            await check_budgets(tx, context, request)
    if same is not None and same.state in OPEN:
        return same
    async with context.locks.holding(submission.wallet, is_signed=is_signed):
        used = await _fetch_used(context, submission)
        same = await _load_same(context, checked)
        if same is not None and (same.state in OPEN or _place(submission) < used):
            return same
        if same is not None:
            await _check_reached(context, same)
        await _check_place(context, submission, used)
        await check_chain(context, checked)
        async with context.database.writing() as tx:
            await lock_budgets(tx)
            await check_budgets(tx, context, request)
            is_new = await record_relay(tx, request)
        if not is_new:
            return await _load_concurrent(context, checked)
        return await _send_or_refuse(context, request) if _place(submission) == used else request


def _place(submission: Submission) -> int:
    """Return the number of places before this submission's; deploying the wallet is the first."""
    return submission.safe_nonce or 0


async def _fetch_used(context: RelayerContext, submission: Submission) -> int:
    """Return the number of the wallet's places that the chain has used."""
    if submission.safe_nonce is None:
        return 1 if await context.reader.code(submission.wallet) else 0
    wallet, owner, kind = submission.wallet, submission.owner, submission.kind
    return (await fetch_own_wallet(context, wallet, owner, kind)).nonce


async def _load_same(context: RelayerContext, checked: CheckedSubmission) -> RelayRequest | None:
    async with context.database.public_reading(ReadKind.OWN) as tx:
        return await load_same_relay(tx, checked.submission.wallet, checked.digest)


async def _check_reached(context: RelayerContext, confirmed: RelayRequest) -> None:
    """Refuse the answers of a node that lacks the block in which a confirmed request was mined.

    A node that has the block and not the request lost it to a reorg, and the request may be sent again.
    """
    carrying_tx = await load_carrying_tx(context, confirmed)
    if carrying_tx is None or carrying_tx.block_number is None:
        return
    head = await context.reader.head()
    if head < carrying_tx.block_number:
        mined = f"transaction {carrying_tx.mined_hash} is in block {carrying_tx.block_number}"
        raise ChainInconsistent(f"{mined}, and the node's newest block is {head}")


async def _check_place(context: RelayerContext, submission: Submission, used: int) -> None:
    if submission.safe_nonce is None:
        if used:
            raise WalletExists(submission.wallet)
        return
    expected = await load_next_nonce(context, submission.wallet, used, ReadKind.OWN)
    if submission.safe_nonce != expected:
        raise NonceMismatch(expected, submission.safe_nonce)
    if expected - used >= context.options.open_per_wallet_max:
        raise TooManyQueued(context.options.open_per_wallet_max)


async def _load_created(context: RelayerContext, checked: CheckedSubmission) -> RelayRequest:
    """Return the request that created a wallet which the chain has, or refuse the wallet."""
    same = await _load_same(context, checked)
    if same is None:
        raise WalletExists(checked.submission.wallet)
    return same


async def _load_concurrent(context: RelayerContext, checked: CheckedSubmission) -> RelayRequest:
    """Return the request that another process stored at the same time, or refuse the nonce."""
    same = await _load_same(context, checked)
    if same is None:
        place = _place(checked.submission)
        raise NonceMismatch(place + 1, place)
    return same


async def _send_or_refuse(context: RelayerContext, request: RelayRequest) -> RelayRequest:
    """Send a request while its client waits; one that cannot be sent now is refused."""
    try:
        return await send(context, request)
    except CallReverts:
        raise
    except ForetellError as error:
        return await _refuse_unsent(context, request, error)


async def _refuse_unsent(
    context: RelayerContext, request: RelayRequest, error: ForetellError
) -> RelayRequest:
    """End a request that was not sent and raise the error; return one that may have been sent.

    A request with a carrying transaction may have reached a node: it is accepted, and the worker
    follows it. If the store fails here, the row is left to the worker too.
    """
    failure = ExecutionFailed(reason_text(error)) if isinstance(error, RpcRefused) else error
    with after_effect():
        if await load_carrying_tx(context, request) is not None:
            log.warning(
                "relay request waits", transaction_id=request.transaction_id, cause=error.message
            )
            return request
        await move(context, request, RelayTrigger.REFUSE, failure.message)
    raise failure


async def send(context: RelayerContext, request: RelayRequest) -> RelayRequest:
    """Return the request once it is sent; the caller holds the wallet's lock.

    A request that reverts in the node's trial run is refused. After any other error, `load_carrying_tx`
    shows whether a transaction was stored and may have been sent.
    """
    try:
        sent = await context.sender.send(request.outgoing())
    except ExecutionReverted as reverted:
        cause = await find_revert_reason(context, request, reverted)
        await _check_reverts(context, request)
        await move(context, request, RelayTrigger.REFUSE, cause)
        raise CallReverts(cause) from reverted
    except ForetellError:
        stored = await load_carrying_tx(context, request)
        if stored is None:
            raise
        sent = stored
    return await follow(context, request, sent)


async def _check_reverts(context: RelayerContext, request: RelayRequest) -> None:
    """Refuse a revert that is not one of a block in which the request is the wallet's next.

    A replica that lacks the wallet's last transaction reverts the next one, which is not at fault. The
    next question may meet another replica, so nonce and trial are of one block that is named.
    """
    at = hex(await context.reader.head())
    wallet, nonce = request.wallet, request.safe_nonce
    if nonce is not None:
        try:
            seen = (await fetch_own_wallet(context, wallet, request.owner, request.kind, at)).nonce
        except InvalidField as refusal:
            raise ChainInconsistent(
                f"wallet {wallet} is not its owner's in block {at}"
            ) from refusal
        if seen != nonce:
            raise ChainInconsistent(f"nonce {seen} of wallet {wallet}, where {nonce} was the next")
    if await context.sender.revert_of(request.outgoing(), at) is None:
        raise ChainInconsistent(f"a call that reverted, and does not in block {at}")


async def load_carrying_tx(context: RelayerContext, request: RelayRequest) -> SentTx | None:
    """Return the transaction that carries a request, if one was stored."""
    async with context.database.reading() as tx:
        return await load_tx(tx, RELAYED, request.tx_id)
