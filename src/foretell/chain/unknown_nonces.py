"""The nonces of an account with which a node has transactions that the outbox lacks.

A node does not count a transaction behind a gap of nonces as pending: it keeps it until the gap is filled,
so the first new transaction of the account would release it.
"""

import contextlib
from typing import Any, Final

import structlog

from foretell.chain.outbox import Outbox
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.domain.errors.chain import ChainUnavailable, RpcRefused
from foretell.domain.values.hexadecimal import Address

_NOT_SHOWN: Final = (
    *(RpcRefused, ChainUnavailable),
    *(TypeError, KeyError, AttributeError, ValueError),
)
"""A node or its gateway that lacks a method refuses it in any way, also with another shape."""

log = structlog.get_logger(__name__)


async def unknown_nonces(rpc: Rpc, outbox: Outbox, account: Address) -> range:
    """Return the nonces after all of the outbox up to the last one that the node has in no block.

    Those of a gap, which no transaction has, are among them.
    """
    last = await outbox.load_last_nonce(account)
    answers = await rpc.batch(
        [("eth_getTransactionCount", [account, at]) for at in ("latest", "pending")]
    )
    mined, pending = (quantity_of(each, "eth_getTransactionCount") for each in answers)
    queued = await _queued_nonces(rpc, account)
    first = mined if last is None else max(mined, last + 1)
    return range(first, max([pending, *(nonce + 1 for nonce in queued)]))


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
