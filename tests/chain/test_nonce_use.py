"""Searches in a node that keeps the states of its last blocks alone, as ordinary nodes do."""

from typing import Any, cast

import pytest
from tests.rigs.values import an_address

from foretell.chain.nonce_use import BLOCKS_READ_MAX, NonceSearch, find_nonce_use
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import RpcRefused
from foretell.domain.values.hexadecimal import Bytes32

pytestmark = pytest.mark.anyio

HEAD, STATES, NONCE = 10_000, 128, 7
ACCOUNT = an_address("operator")
USER = Bytes32("0x" + "11" * 32)


class PrunedNode:
    """Used nonces 6 and 7 in one block each; the states before the last ones are gone."""

    def __init__(self, used_at: int) -> None:
        self.used_at = used_at
        self.blocks_read = 0

    async def call(self, method: str, *params: Any) -> Any:
        if method == "eth_getTransactionCount":
            block_number = int(params[1], 16)
            if block_number < HEAD - STATES:
                raise RpcRefused(method, -32000, "missing trie node", "")
            return hex(NONCE + (block_number >= self.used_at))
        self.blocks_read += 1
        nonce_by_block = {self.used_at: NONCE, self.used_at - 1: NONCE - 1}
        nonce = nonce_by_block.get(int(params[0], 16))
        used = {"hash": USER, "from": ACCOUNT, "nonce": hex(nonce or 0)}
        return {"transactions": [] if nonce is None else [used]}


async def search(node: PrunedNode, next_block: int | None = None) -> NonceSearch:
    before = node.blocks_read
    found = await find_nonce_use(cast("Rpc", node), ACCOUNT, NONCE, HEAD, next_block)
    assert node.blocks_read - before <= BLOCKS_READ_MAX
    return found


@pytest.mark.parametrize("ago", [0, 10, 127, 200, 650, 5_000, HEAD - 1])
async def test_a_use_is_found_however_long_ago_it_was(ago: int) -> None:
    """An outage of half an hour left the row of its transaction open for ever."""
    node = PrunedNode(HEAD - ago)
    found = await search(node)
    while found.next_block is not None:
        found = await search(node, found.next_block)
    assert found == NonceSearch(USER)


async def test_a_search_that_finds_an_older_nonce_ends() -> None:
    """The nonce is used later than the last block given: the next search begins at a newer one."""
    node = PrunedNode(HEAD - 300)
    assert await search(node, HEAD - 301) == NonceSearch(None)


async def test_a_search_ends_with_the_first_block() -> None:
    assert await search(PrunedNode(HEAD), 40) == NonceSearch(None)
