"""Takes up what is not finished: requests of a process that broke off, and those that queue.

Start and recovery are one path: every look begins with the open rows.
"""

import asyncio
from typing import Final

import structlog

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.relayer import CallReverts, InvalidField
from foretell.domain.relay.request import OPEN, RelayRequest, RelayTrigger
from foretell.relayer.checks import fetch_own_safe
from foretell.relayer.context import RelayerContext
from foretell.relayer.progress import follow, move
from foretell.relayer.submit import load_carrier, send
from foretell.store.outbox.relays import load_claimed_nonces, load_open_relays, load_relay

OPEN_MAX: Final = 1_000
AT_ONCE_MAX: Final = 8

_NONCE_GONE: Final = "the wallet used the nonce for something else"
_PREDECESSOR_GONE: Final = "an earlier transaction of the wallet came to nothing"
_TOO_LATE: Final = "it could not be sent in time"

_log: Final = structlog.get_logger(__name__)


async def run_once(context: RelayerContext) -> bool:
    """Bring every open request as far as it goes now, and return whether there were any."""
    async with context.database.reading() as tx:
        requests = await load_open_relays(tx, OPEN_MAX)
    at_once = asyncio.Semaphore(AT_ONCE_MAX)

    async def advance_in_turn(request: RelayRequest) -> None:
        async with at_once:
            await advance(context, request)

    outcomes = await asyncio.gather(*map(advance_in_turn, requests), return_exceptions=True)
    for fault in filter(None, outcomes):
        raise fault
    return bool(requests)


async def advance(context: RelayerContext, seen: RelayRequest) -> None:
    """Bring one request as far as it goes now; what hinders it is told to the log alone."""
    async with context.locks.of(seen.wallet):
        async with context.database.reading() as tx:
            request = await load_relay(tx, seen.transaction_id)
        if request is None or request.state not in OPEN:
            return
        try:
            await _advance(context, request)
        except CallReverts as refusal:
            _log.info("relay reverts", transaction_id=request.transaction_id, cause=refusal.message)
        except ForetellError as error:
            _log.warning("relay waits", transaction_id=request.transaction_id, cause=error.message)


async def _advance(context: RelayerContext, request: RelayRequest) -> None:
    sent = await load_carrier(context, request)
    if sent is not None:
        await follow(context, request, sent)
    elif context.now_ms() - request.created_at_ms > context.options.queue_deadline_ms:
        await move(context, request, RelayTrigger.REFUSE, _TOO_LATE)
    elif request.safe_nonce is None:
        await send(context, request)
    else:
        await _take_turn(context, request, request.safe_nonce)


async def _take_turn(context: RelayerContext, request: RelayRequest, nonce: int) -> None:
    """Send a wallet's transaction when its turn has come, or refuse one whose turn never will."""
    try:
        used = (await fetch_own_safe(context, request.wallet, request.owner)).nonce
    except InvalidField as refusal:
        await move(context, request, RelayTrigger.REFUSE, f"proxyWallet: {refusal.message}")
        return
    if nonce == used:
        await send(context, request)
        return
    async with context.database.reading() as tx:
        before = await load_claimed_nonces(tx, request.wallet, used, is_open=False)
    if nonce < used:
        await move(context, request, RelayTrigger.REFUSE, _NONCE_GONE)
    elif len([each for each in before if each < nonce]) < nonce - used:
        await move(context, request, RelayTrigger.REFUSE, _PREDECESSOR_GONE)
