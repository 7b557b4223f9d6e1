"""The head of a chain that ends below the block that an engine has observed.

Tables that end below that block are usually behind: they are new or restored, or their node is behind, and what they
lack is not gone. A chain that mines on demand may also have lost blocks, when its node was started from an older state.
It may never be as long again, so the engine follows it. A chain with regular blocks is soon longer than before, and a node that is
behind is the likelier cause there: its engine waits.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

from foretell.chain.rpc_types import BlockHeader
from foretell.domain.errors.families import Upstream
from foretell.store.index.blocks import Block

SET_BACK_WAIT_S: Final = 10.0
"""How long a node must name lower heads alone: one that starts, or replaces blocks, may name one for a moment."""
LOOK_EVERY_S: Final = 1.0
LOOK_S_MAX: Final = 5.0
"""A node that is silent for so long names no head."""


class LowerHead:
    """Compares the end of the tables with the head that a node names, while both are below an observed block."""

    def __init__(
        self,
        fetch_head: Callable[[], Awaitable[BlockHeader | None]],
        wait_s: float = SET_BACK_WAIT_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch_head = fetch_head
        self._wait_s = wait_s
        self._monotonic_s = monotonic_s
        self._looked_at_s = -math.inf
        self._since_s: float | None = None

    async def is_end_of(self, last: Block, observed_block: int) -> bool:
        """Return whether the chain itself went back to the last indexed block, below the observed one.

        It is so when the node has named heads below the observed block alone, for the wait, and names this block now.
        Called for every block, also for those that are not below.
        """
        if last.block_number >= observed_block:
            self._since_s = None
            return False
        now_s = self._monotonic_s()
        if now_s - self._looked_at_s < LOOK_EVERY_S:
            return False
        self._looked_at_s = now_s
        head = await self._head()
        if head is None or head.block_number >= observed_block:
            self._since_s = None
            return False
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s >= self._wait_s and head.block_hash == last.block_hash

    async def _head(self) -> BlockHeader | None:
        with contextlib.suppress(Upstream, TimeoutError):
            async with asyncio.timeout(LOOK_S_MAX):
                return await self._fetch_head()
        return None
