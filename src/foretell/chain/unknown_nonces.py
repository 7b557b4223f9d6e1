"""The nonces of an account that a node counts and the outbox lacks: the first free one, and those of waiting transactions.

A node whose answer is wrong once may count any number. A transaction with a nonce far ahead would wait, and all after it,
until every nonce before it is paid for.

A node does not count a transaction behind a gap of nonces as pending: it keeps it until the gap is filled,
so the first new transaction of the account would release it.
"""

import contextlib
from typing import Any, Final, NamedTuple

import structlog

from foretell.chain.outbox import Outbox
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.chain.sending_account import SendingAccount
from foretell.domain.errors.chain import ChainInconsistent, ChainUnavailable, RpcRefused
from foretell.domain.values.hexadecimal import Address

NONCES_AHEAD_MAX: Final = 64
"""Most nonces by which one answer of a node is believed to be ahead of those known: the outbox's, or else those in blocks."""
CONFIRMED_AFTER_S: Final = 5
"""The pause from an answer that is further ahead to the one that confirms it."""

_NOT_SHOWN: Final = (
    *(RpcRefused, ChainUnavailable),
    *(TypeError, KeyError, AttributeError, ValueError),
)
"""A node or its gateway that lacks a method refuses it in any way, also with another shape."""

CURE: Final = (
    f"nothing is sent until it names fewer, or blocks have them {CONFIRMED_AFTER_S} s later: if neither comes, use"
    " another node (FORETELL_RPC_URL), and have no other program send from the account"
)

log = structlog.get_logger(__name__)


class _Claim(NamedTuple):
    """The lowest nonce far ahead that the node has named as free, and when it first did."""

    nonce: int
    since_ms: int


class FreeNonces:
    """The nonces of an account that nothing has used."""

    def __init__(self, account: SendingAccount) -> None:
        self._account = account
        self._claim: _Claim | None = None

    async def first(self) -> int:
        """Return the lowest nonce after all that are used.

        The outbox knows nonces that no node has yet, and the node those that another program used: the
        larger one is free in both. The unique nonce of the outbox settles a race between processes, and
        the loser tries the next nonce.

        Raises ChainInconsistent when the node is far ahead, until it is so again some seconds later, with blocks
        that have used the nonces before.
        """
        account = self._account
        last = await account.outbox.load_last_nonce(account.address)
        pending = await account.fetch_nonce("pending")
        known = await account.fetch_nonce("latest") if last is None else last + 1
        nonce = pending if last is None else max(pending, known)
        if nonce - known <= NONCES_AHEAD_MAX:
            self._claim = None
        elif not await self._is_confirmed(nonce):
            cause = f"it counts {nonce} transactions of {account.address}, and at most {known} are known"
            account.lines.write_error(
                "node counts unknown transactions", cause, CURE, pending=nonce
            )
            raise ChainInconsistent(f"{cause}; {CURE}")
        return nonce

    async def _is_confirmed(self, nonce: int) -> bool:
        """Return whether blocks and the node still reach what it first named, and the nonce is not far ahead of blocks."""
        account, claim = self._account, self._claim
        now_ms = account.now_ms()
        if claim is None or nonce < claim.nonce:
            self._claim = _Claim(nonce, now_ms)
            return False
        if abs(now_ms - claim.since_ms) < CONFIRMED_AFTER_S * 1000:
            return False
        mined = await account.fetch_nonce("latest")
        return claim.nonce <= mined and nonce - mined <= NONCES_AHEAD_MAX


async def unknown_nonces(rpc: Rpc, outbox: Outbox, account: Address) -> range:
    """Return the nonces after all of the outbox up to the last one that the node has in no block.

    Those of a gap, which no transaction has, are among them. They are at most the first NONCES_AHEAD_MAX: the node may
    name any number, and the rest is seen when these are used.
    """
    last = await outbox.load_last_nonce(account)
    answers = await rpc.batch(
        [("eth_getTransactionCount", [account, at]) for at in ("latest", "pending")]
    )
    mined, pending = (quantity_of(each, "eth_getTransactionCount") for each in answers)
    queued = await _queued_nonces(rpc, account)
    first = mined if last is None else max(mined, last + 1)
    end = max([pending, *(nonce + 1 for nonce in queued)])
    return range(first, min(end, first + NONCES_AHEAD_MAX))


async def _queued_nonces(rpc: Rpc, account: Address) -> list[int]:
    """Return the nonces of the account's transactions behind a gap; none if the node does not show them.

    Some nodes show those of one account, others those of all accounts at once.
    """
    with contextlib.suppress(*_NOT_SHOWN):
        return _nonces((await rpc.call("txpool_contentFrom", account))["queued"])
    try:
        queued = (await rpc.call("txpool_inspect"))["queued"]
        by_account = {sender.lower(): nonces for sender, nonces in queued.items()}
        return _nonces(by_account.get(account, {}))
    except _NOT_SHOWN as error:
        log.warning("node shows no queued transactions", account=account, cause=str(error))
        return []


def _nonces(queued: Any) -> list[int]:
    return [int(nonce) for nonce in queued]
