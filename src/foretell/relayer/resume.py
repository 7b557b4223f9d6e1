"""Resumption of unfinished requests: those of a process that stopped, and those that queue.

Start and recovery are one path: every pass begins with the open rows.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.relayer import CallReverts, InvalidField
from foretell.domain.relay.request import OPEN, RelayKind, RelayRequest, RelayTrigger
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.checks import fetch_own_wallet
from foretell.relayer.context import RelayerContext
from foretell.relayer.progress import follow, move
from foretell.relayer.submit import load_carrying_tx, send
from foretell.store.outbox.relays import load_claimed_nonces, load_open_relays, load_relay

OPEN_MAX: Final = 1_000
"""How many requests are read at once; a pass advances all, so that none waits behind those that wait."""
AT_ONCE_MAX: Final = 8

_NONCE_USED: Final = "the wallet used the nonce for something else"
_PREDECESSOR_FAILED: Final = "an earlier transaction of the wallet failed"
_EXPIRED: Final = "it could not be sent in time"

log = structlog.get_logger(__name__)


async def run_once(context: RelayerContext) -> bool:
    """Advance every open request as far as possible, and return whether there were any."""
    last: RelayRequest | None = None
    were_any = False
    while True:
        async with context.database.reading() as tx:
            requests = await load_open_relays(tx, OPEN_MAX, last)
        await _advance_all(context, requests)
        were_any = were_any or bool(requests)
        if len(requests) < OPEN_MAX:
            return were_any
        last = requests[-1]


async def _advance_all(context: RelayerContext, requests: Sequence[RelayRequest]) -> None:
    """Advance requests, those of a wallet in their order; a wallet that sends just now has its turn in a later pass."""
    at_once = asyncio.Semaphore(AT_ONCE_MAX)
    by_wallet: dict[Address, list[RelayRequest]] = {}
    for request in requests:
        by_wallet.setdefault(request.wallet, []).append(request)

    async def advance_those(of_wallet: Sequence[RelayRequest]) -> None:
        for request in of_wallet:
            async with at_once:
                if not context.locks.is_free(request.wallet):
                    return
                await advance(context, request)

    works = map(advance_those, by_wallet.values())
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    for fault in filter(None, outcomes):
        raise fault


async def advance(context: RelayerContext, seen: RelayRequest) -> None:
    """Advance a request as far as possible; an error is only logged."""
    async with context.locks.holding(seen.wallet):
        async with context.database.reading() as tx:
            request = await load_relay(tx, seen.transaction_id)
        if request is None or request.state not in OPEN:
            return
        try:
            await _advance(context, request)
        except CallReverts as refusal:
            log.info(
                "relay request would revert",
                transaction_id=request.transaction_id,
                cause=refusal.message,
            )
        except ForetellError as error:
            log.warning(
                "relay request waits", transaction_id=request.transaction_id, cause=error.message
            )


async def _advance(context: RelayerContext, request: RelayRequest) -> None:
    sent = await load_carrying_tx(context, request)
    if sent is not None:
        await follow(context, request, sent)
    elif context.now_ms() - request.created_at_ms > context.options.queue_deadline_ms:
        await move(context, request, RelayTrigger.REFUSE, _EXPIRED)
    elif request.safe_nonce is None:
        await send(context, request)
    else:
        await _send_if_next(context, request, request.safe_nonce)


async def _send_if_next(context: RelayerContext, request: RelayRequest, nonce: int) -> None:
    """Send a transaction with the next nonce, or refuse one with a nonce that cannot become next.

    Its wallet was there when the request was accepted. A node without it lags behind or lost it to a reorg,
    so the request waits.
    """
    wallet, owner, kind = request.wallet, request.owner, request.kind
    at = hex(await context.reader.head())
    if kind is not RelayKind.PROXY and not await context.reader.code(wallet, at):
        raise ChainInconsistent(f"no wallet {wallet} in block {at}")
    try:
        used = (await fetch_own_wallet(context, wallet, owner, kind, at)).nonce
    except InvalidField as refusal:
        cause = f"{refusal.details['field']}: {refusal.message}"
        await move(context, request, RelayTrigger.REFUSE, cause)
        return
    if nonce == used:
        await send(context, request)
        return
    async with context.database.reading() as tx:
        claimed = await load_claimed_nonces(tx, request.wallet, used, is_open=False)
    if nonce < used:
        await move(context, request, RelayTrigger.REFUSE, _NONCE_USED)
    elif len([each for each in claimed if each < nonce]) < nonce - used:
        await move(context, request, RelayTrigger.REFUSE, _PREDECESSOR_FAILED)
