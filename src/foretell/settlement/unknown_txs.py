"""Transactions of the accounts that a node has and the database does not: what is done about them.

A database that was restored from an older copy lacks them. Each may carry any trade, so nothing is sent
before a block has them. That has a deadline: after it their nonces are used up by empty transactions with
higher fees. A nonce is used once, so either the old transaction or the empty one is mined, and settlement
goes on when a confirmed block has shown which.
"""

from typing import Final

import structlog

from foretell.chain.sender import Sender, UnknownTxs
from foretell.settlement.context import SettlementContext

LOGGED_EVERY_MS: Final = 60_000
NONCES_SHOWN_MAX: Final = 10
CURE: Final = (
    "wait until blocks have them; after FORETELL_UNKNOWN_TXS_WAIT_S seconds empty ones replace them"
)

log = structlog.get_logger(__name__)


async def has_unknown_txs(context: SettlementContext) -> bool:
    """Return whether the node has transactions of the accounts that wait and are not known here.

    Those that have waited for too long are replaced, and count until the outcome is final.
    """
    senders = (context.operator, *context.further_operators)
    found = [(sender, await sender.unknown_txs()) for sender in senders]
    count = sum(unknown.waiting for _, unknown in found)
    context.counts.unknown(count)
    wait, now_ms = context.start.unknown, context.now_ms()
    if not count:
        wait.end()
        return False
    waited_ms = wait.waited_ms(now_ms)
    if wait.is_to_log(now_ms, LOGGED_EVERY_MS):
        for sender, unknown in found:
            _log(sender, unknown, waited_ms)
    if 0 < context.options.unknown_wait_ms <= waited_ms:
        for sender, unknown in found:
            await _replace(sender, unknown)
    return True


def _log(sender: Sender, unknown: UnknownTxs, waited_ms: int) -> None:
    if unknown.waiting:
        log.error(
            "unknown transactions wait",
            account=sender.address,
            nonces=list(unknown.nonces[:NONCES_SHOWN_MAX]),
            count=len(unknown.nonces),
            replacing=unknown.replacing,
            waited_s=waited_ms // 1000,
            cure=CURE,
        )


async def _replace(sender: Sender, unknown: UnknownTxs) -> None:
    """Replace the first unknown transactions, once those before them are final.

    A node that names ever more would have each pass pay for empty ones otherwise.
    """
    if unknown.nonces and not unknown.replacing:
        replaced = await sender.replace_unknown(unknown.nonces)
        first, last = replaced[0], replaced[-1]
        log.error("unknown transactions replaced", account=sender.address, first=first, last=last)
