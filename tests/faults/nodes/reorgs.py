"""Reorgs by the chain's own method, of blocks that a test has mined since it began."""

import random
from collections import Counter
from typing import Final

from tests.rigs.sandbox import Sandbox

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import RpcRefused

DEPTH_MAX: Final = 3
"""The dev chain keeps the states of four blocks. Rigs that stand such reorgs have so many confirmations."""
RATE: Final = 0.3
STRANGER: Final = AccountRole.FAUCET
"""The account whose transactions are in the blocks that replace others."""


class Reorgs:
    """Reorgs of one run, each with the choices of its generator."""

    def __init__(self, sandbox: Sandbox, generator: random.Random, occurred: Counter[str]) -> None:
        self._sandbox = sandbox
        self._random = generator
        self._occurred = occurred
        self._bottom = 0

    async def begin(self) -> None:
        """Keep all blocks until now; the chain mines more, because it has no states from before a snapshot."""
        await self._sandbox.mine(DEPTH_MAX + 1)
        self._bottom = await self._sandbox.reader.head()

    async def maybe(self) -> None:
        """Replace some of the newest blocks sometimes; what they had is in no block and no pool then."""
        if self._random.random() >= RATE:
            return
        depth = self._random.randint(1, DEPTH_MAX)
        depth = min(depth, await self._sandbox.reader.head() - self._bottom)
        while depth > 0 and not await self._replaced(depth):
            depth -= 1
        if depth > 0:
            self._occurred[f"reorg of {depth}"] += 1

    async def _replaced(self, depth: int) -> bool:
        """Replace blocks; the node lacks the states of those that an earlier reorg replaced."""
        account = self._sandbox.account(STRANGER).address
        gift = {"from": account, "to": account, "value": hex(self._random.randint(1, 10**6))}
        try:
            await self._sandbox.rpc.send("anvil_reorg", depth, [[gift, 0]])
        except RpcRefused:
            return False
        return True
