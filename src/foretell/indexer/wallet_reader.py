"""Reading of wallets at a block: their collateral and allowances from before the first indexed block.

Logs show only what changed since then. A wallet that trading asks for is read once, at the newest block of
a range, and written with it: the rows of the wallet are then those of the chain, and later logs change them.
Outcome tokens need no reading: their conditions are prepared after the first block.

Nothing corrects a reading later, so a node is asked twice, by the hash of the block, and both answers must be equal.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from foretell.chain.rpc import Rpc
from foretell.chain.views import BlockTag, ViewCall, at_block, call_views
from foretell.domain.errors.chain import (
    ChainInconsistent,
    ChainUnavailable,
    ExecutionReverted,
    RpcRefused,
)
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address
from foretell.indexer.contracts import IndexedContracts
from foretell.store.database import Database
from foretell.store.index.blocks import Block
from foretell.store.index.wallet_readings import (
    WalletReading,
    load_to_read_again,
    load_unread,
)

log = structlog.get_logger(__name__)

WALLETS_PER_READING_MAX: Final = 20
READ_AGAIN_MAX: Final = 2_000
"""Wallets that are read again with one block, in as many round trips as it takes; the rest come with the next."""
READING_INTERVAL_MS: Final = 500
"""The least time between two readings of new wallets, so that requests cannot use up a node's limit."""
STATE_BLOCKS_MAX: Final = 128
"""How far below the head a block may be read: a node without history keeps this many states."""
ASKED_LATE_MS: Final = 60_000
"""How much later than its time a request may show in the table, committed by another process."""

_BALANCE_OF: Final = contract_function("balanceOf(address)", "(uint256)")
_ALLOWANCE: Final = contract_function("allowance(address,address)", "(uint256)")
_IS_APPROVED: Final = contract_function("isApprovedForAll(address,address)", "(bool)")


class WalletReader:
    """Reads the wallets that are asked for; it remembers only up to when all of them are read."""

    def __init__(
        self,
        database: Database,
        rpc: Rpc,
        contracts: IndexedContracts,
        now_ms: Callable[[], int],
        *,
        wallets_max: int = WALLETS_PER_READING_MAX,
        again_max: int = READ_AGAIN_MAX,
    ) -> None:
        self._database = database
        self._rpc = rpc
        self._contracts = contracts
        self._now_ms = now_ms
        self._wallets_max = wallets_max
        self._again_max = again_max
        self._asked_since_ms = 0
        self._read_at_ms = 0

    async def read(self, block: Block, head_number: int) -> Sequence[WalletReading]:
        """Return what is to be stored with this block.

        Wallets that a reorg left to be read again are read with its first block near the head, or the
        chain's failure is raised: without them the tables would show too little. New ones can wait, and so
        can all when the node no longer has the state of a block below its head.
        """
        if head_number - block.block_number > STATE_BLOCKS_MAX:
            return []
        async with self._database.reading() as tx:
            again = await load_to_read_again(tx, self._again_max)
        tag = at_block(block.block_hash)
        try:
            readings = [
                reading
                for start in range(0, len(again), self._wallets_max)
                for reading in await self._of(again[start : start + self._wallets_max], tag)
            ]
        except RpcRefused:
            if block.block_number == head_number:
                raise
            return []
        try:
            return [*readings, *await self._of(await self._unread(), tag)]
        except (ChainUnavailable, ChainInconsistent, RpcRefused) as error:
            log.warning("wallets were not read", block=block.block_number, cause=str(error))
            return readings

    async def _unread(self) -> Sequence[Address]:
        """Return the next new wallets, none before the interval has passed."""
        now_ms = self._now_ms()
        if 0 <= now_ms - self._read_at_ms < READING_INTERVAL_MS:
            return []
        async with self._database.reading() as tx:
            wallets = await load_unread(tx, self._asked_since_ms, self._wallets_max)
        if wallets:
            self._read_at_ms = now_ms
        else:
            self._asked_since_ms = now_ms - ASKED_LATE_MS
        return wallets

    async def _of(self, wallets: Sequence[Address], at: BlockTag) -> list[WalletReading]:
        """Return the readings of wallets, in two round trips unless a contract refuses one of them."""
        calls = [call for wallet in wallets for call in self._calls(wallet)]
        if not calls:
            return []
        answers = await self._answers(calls, at)
        if answers != await self._answers(calls, at):
            raise ChainInconsistent(f"two answers on {len(wallets)} wallets in one block differ")
        if answers is None:
            if len(wallets) == 1:
                return [WalletReading(wallets[0], 0, ())]
            return [reading for each in wallets for reading in await self._of([each], at)]
        size = len(calls) // len(wallets)
        return [
            self._reading(wallet, answers[place * size : (place + 1) * size])
            for place, wallet in enumerate(wallets)
        ]

    async def _answers(self, calls: list[ViewCall], at: BlockTag) -> Sequence[int] | None:
        """Return what a node answers, None where a contract refuses."""
        try:
            return await call_views(self._rpc, calls, at)
        except ExecutionReverted:
            return None

    def _calls(self, wallet: Address) -> list[ViewCall]:
        collateral, tokens = self._contracts.collateral, self._contracts.conditional_tokens
        spenders = sorted(self._contracts.spenders)
        return [
            ViewCall(collateral, _BALANCE_OF, (wallet,)),
            *(ViewCall(collateral, _ALLOWANCE, (wallet, spender)) for spender in spenders),
            *(ViewCall(tokens, _IS_APPROVED, (wallet, spender)) for spender in spenders),
        ]

    def _reading(self, wallet: Address, answers: Sequence[int]) -> WalletReading:
        spenders = sorted(self._contracts.spenders)
        units, allowed = answers[0], answers[1:]
        kinds = itertools.product((True, False), spenders)
        return WalletReading(
            wallet,
            min(units, AMOUNT_UNITS_MAX),
            [
                (spender, is_collateral, _allowed_units(answer, is_collateral=is_collateral))
                for (is_collateral, spender), answer in zip(kinds, allowed, strict=True)
            ],
        )


def _allowed_units(answer: int, *, is_collateral: bool) -> int:
    """Return an allowance in units; an approval of all tokens has no limit."""
    return min(answer, AMOUNT_UNITS_MAX) if is_collateral else AMOUNT_UNITS_MAX * bool(answer)
