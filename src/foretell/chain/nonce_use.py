"""The transaction in a block that used one of an account's nonces.

A node may not know a transaction by its hash although it is in a block: the index of transactions may be behind
the blocks, or belong to another replica. Only the transaction that used a nonce proves that no other one with it
will be mined. The states of recent blocks say in which block it is; where a node has dropped them, the blocks before
are read one by one, up to a limit.
"""

from typing import Final

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of, tx_hash_by_nonce
from foretell.domain.errors.chain import RpcRefused
from foretell.domain.values.hexadecimal import Address, Bytes32

BLOCKS_BACK_MAX: Final = 1 << 20
BLOCKS_READ_MAX: Final = 512


async def find_nonce_use(rpc: Rpc, sender: Address, nonce: int, last: int) -> Bytes32 | None:
    """Return the hash of the transaction that used the nonce in a block up to the last one given.

    Returns None when no such block is found: the nonce is used later, or the node shows too few blocks.
    """
    block_number = await _first_known_use(rpc, sender, nonce, last)
    for number in range(block_number, max(block_number - BLOCKS_READ_MAX, -1), -1):
        answer = await rpc.call("eth_getBlockByNumber", hex(number), True)  # noqa: FBT003 - JSON
        hash_by_nonce = tx_hash_by_nonce(answer, sender)
        if nonce in hash_by_nonce or min(hash_by_nonce, default=nonce) < nonce:
            return hash_by_nonce.get(nonce)
    return None


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
