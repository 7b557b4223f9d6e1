"""Registration of a condition's tokens on the exchange, exactly once across crashes.

The id of the transaction is derived from the condition, so a crash never sends a second one. Tokens
that are registered already are left as they are.
"""

from typing import Final, NamedTuple

import structlog

from foretell.chain.artifacts import reason_of
from foretell.creation.context import CreationContext
from foretell.domain.contracts.calldata import encode_register_token
from foretell.domain.creation.plan import MarketIds
from foretell.domain.errors.chain import ChainInconsistent, ExecutionReverted
from foretell.domain.errors.creation import RegistrationBlocked, RegistrationRefused
from foretell.domain.evm.transaction import OutgoingTx, SentTx, TxStatus
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.outbox.transactions import REGISTRATION, load_tx

ATTEMPTS_MAX: Final = 3
"""Transactions of a registration: another is sent if one lost its nonce or reverted."""

_UNKNOWN_CONDITION: Final = "InvalidCondition"
"""The exchange's revert before a condition is prepared.

The question is on the chain when tokens are registered, and so is its condition: a replica of the node is behind.
"""

_OTHER_TOKENS: Final = "InvalidTokenId"
"""The revert for tokens that are not the condition's: it is final, and any other is the operator's or the node's fault."""

log = structlog.get_logger(__name__)


class Registered(NamedTuple):
    """Registered tokens; without a hash they were registered before this request."""

    tx_hash: Bytes32 | None


async def register(context: CreationContext, ids: MarketIds, since_ms: int) -> Registered | None:
    """Return the registration of the tokens, or None while it is in progress.

    A transaction that an earlier request sent before `since_ms` counts as registered before.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        sent = await _sent(context, ids, attempt)
        if sent is None:
            return Registered(None)
        if sent.status is TxStatus.CONFIRMED:
            return Registered(sent.mined_hash if sent.created_at_ms >= since_ms else None)
        if not sent.is_finished:
            return None
    if await context.reader.is_registered(ids.tokens, ids.condition_id, context.exchange(ids)):
        return Registered(None)
    raise RegistrationRefused(ids.condition_id, f"{ATTEMPTS_MAX} transactions failed")


async def _sent(context: CreationContext, ids: MarketIds, attempt: int) -> SentTx | None:
    """Return the transaction of an attempt, or None when the tokens are registered without it."""
    tx_id = f"register:{ids.condition_id}:{attempt}"
    async with context.database.reading() as tx:
        known = await load_tx(tx, REGISTRATION, tx_id)
    if known is not None:
        return known
    if await context.reader.is_registered(ids.tokens, ids.condition_id, context.exchange(ids)):
        return None
    calldata = encode_register_token(ids.tokens, ids.condition_id)
    outgoing = OutgoingTx(tx_id, context.exchange(ids), calldata)
    try:
        return await context.registrar.send(outgoing)
    except ExecutionReverted as reverted:
        if await context.reader.is_registered(ids.tokens, ids.condition_id, context.exchange(ids)):
            return None
        reason = reason_of(reverted)
        if reason == _UNKNOWN_CONDITION:
            cause = f"it has the question of condition {ids.condition_id}, and not the condition"
            raise ChainInconsistent(cause) from reverted
        if reason == _OTHER_TOKENS:
            raise RegistrationRefused(ids.condition_id, reason) from reverted
        log.warning(
            "the exchange registers no tokens for this registrar",
            registrar=context.registrar.address,
            exchange=outgoing.target,
            cause=reason,
            cure="have an admin of the exchange add it as a registrar",
        )
        raise RegistrationBlocked(ids.condition_id, reason) from reverted
