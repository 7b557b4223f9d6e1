"""The transaction in a block that used one of an account's nonces.

A node may not know a transaction by its hash although it is in a block: the index of transactions may be behind
the blocks, or belong to another replica. Only the transaction that used a nonce proves that no other one with it
will be mined. The states of recent blocks say in which block it is; where a node has dropped them, the blocks before
are read one by one, some in each search.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of, tx_hash_by_nonce
from foretell.domain.errors.chain import RpcRefused
from foretell.domain.values.hexadecimal import Address, Bytes32

READS_OF_ACCOUNT: Final = 4
ADDRESS_DIGITS: Final = 40

BLOCKS_BACK_MAX: Final = 1 << 20
BLOCKS_READ_MAX: Final = 128
"""Most blocks that one search reads: the account sends nothing meanwhile."""


class NonceSearch(NamedTuple):
    """The hash of the transaction that used a nonce, or None; and the block from which to search on, if any is left."""

    user: Bytes32 | None
    next_block: int | None = None


async def find_nonce_use(
    rpc: Rpc, sender: Address, nonce: int, last: int, next_block: int | None = None
) -> NonceSearch:
    """Search the transaction that used the nonce in blocks up to the last one given, the newest first.

    `next_block` is where an earlier search ended. Nothing is found and nothing left when the nonce is used
    later, or the node shows too few blocks.
    """
    if next_block is None:
        next_block = await _first_known_use(rpc, sender, nonce, last)
    end = max(next_block - BLOCKS_READ_MAX, -1)
    for number in range(next_block, end, -1):
        answer = await rpc.call("eth_getBlockByNumber", hex(number), True)  # noqa: FBT003 - JSON
        hash_by_nonce = tx_hash_by_nonce(answer, sender)
        if nonce in hash_by_nonce or min(hash_by_nonce, default=nonce) < nonce:
            return NonceSearch(hash_by_nonce.get(nonce))
    return NonceSearch(None, end if end >= 0 else None)


async def _first_known_use(rpc: Rpc, sender: Address, nonce: int, last: int) -> int:
    """Return the first block in whose state the nonce is used, as far back as the node has states."""
    unused, used, distance = max(last - 1, -1), last, 1
    while unused > 0 and distance < BLOCKS_BACK_MAX and await _is_used(rpc, sender, nonce, unused):
        distance *= 2
        unused, used = max(last - distance, 0), unused
    while used - unused > 1:
        middle = (unused + used) // 2
        if await _is_used(rpc, sender, nonce, middle):
            used = middle
        else:
            unused = middle
    return used


async def _is_used(rpc: Rpc, sender: Address, nonce: int, block_number: int) -> bool:
    """Return whether the nonce is used at a block; a state that the node lacks counts as unused."""
    try:
        count = await rpc.call("eth_getTransactionCount", sender, hex(block_number))
    except RpcRefused:
        return False
    return quantity_of(count, "eth_getTransactionCount") > nonce


async def idle_accounts(
    rpc: Rpc, accounts: Sequence[Address], block_number: int, contracts: Collection[Address]
) -> frozenset[Address]:
    """Return the accounts without code that did nothing in a block and that no log of these contracts names.

    What an account holds and allows did not change within the block: it takes a nonce of its own to change
    that or to have code for a time, or a transfer, which is logged. None is where the node does not say.
    """
    before, after = hex(block_number - 1), hex(block_number)
    asked: list[tuple[str, Sequence[object]]] = [
        (method, [account, at])
        for account in accounts
        for method in ("eth_getCode", "eth_getTransactionCount")
        for at in (before, after)
    ]
    query = {"fromBlock": after, "toBlock": after, "address": sorted(contracts)}
    *answers, logs = await rpc.send_all([*asked, ("eth_getLogs", [query])])
    if isinstance(logs, RpcRefused):
        return frozenset()
    named = {
        str(topic)[-ADDRESS_DIGITS:].lower() for log in logs for topic in log.get("topics", ())
    }
    idle = set()
    for place, account in enumerate(accounts):
        own = answers[place * READS_OF_ACCOUNT : (place + 1) * READS_OF_ACCOUNT]
        if _is_idle(own) and account[-ADDRESS_DIGITS:] not in named:
            idle.add(account)
    return frozenset(idle)


def _is_idle(answers: Sequence[Any]) -> bool:
    """Return whether an account had no code before and after a block, and used no nonce in it."""
    if any(isinstance(each, RpcRefused) for each in answers):
        return False
    code_before, code_after, nonce_before, nonce_after = answers
    return bool(code_before == code_after == "0x" and nonce_before == nonce_after)
