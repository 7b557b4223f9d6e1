"""The treasury where it runs: what shards ask it, and what it asks them."""

import asyncio
from functools import partial
from typing import Final

import structlog

from foretell.domain.errors.exchange import EngineStopped
from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.engine.allocations.collateral_feed import CollateralFeed
from foretell.engine.allocations.coordinator import AllocationCoordinator
from foretell.engine.protocol.requests import (
    AccountReply,
    AccountRequest,
    EngineReply,
    EngineRequest,
    FundReply,
    FundRequest,
)
from foretell.engine.writer.treasury_engine import TreasuryEngine
from foretell.runtime.loops import Loop, restart_on_failure

CATCH_UP_LOOK_S: Final = 1.0

log = structlog.get_logger(__name__)


class TreasuryHost:
    """A treasury with its carrier and its eyes on the tables; it answers as a shard's host does."""

    def __init__(
        self, engine: TreasuryEngine, coordinator: AllocationCoordinator, feed: CollateralFeed
    ) -> None:
        self.engine = engine
        self.coordinator = coordinator
        self.feed = feed

    async def start(self) -> None:
        """Replay the journal; shards are greeted by a loop, when they are there."""
        await self.engine.start()

    def loops(self) -> dict[str, Loop]:
        """Return what is to run, by name, while questions are answered; a journal's failure ends it."""
        return {
            "shards": partial(restart_on_failure, "shards", self._greet),
            "collateral": partial(restart_on_failure, "collateral", self.feed.run),
            "treasury": self._watch,
        }

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return the answer, durable if anything changed; or raise the refusal."""
        if isinstance(question, AccountRequest):
            return self._account(question)
        assert isinstance(question, FundRequest), "the treasury is asked for collateral alone"
        return FundReply(
            await self.coordinator.fund(question.shard, question.wallet, question.given)
        )

    async def greet(self) -> None:
        """Catch up with the shards that were not heard of yet, or not again."""
        for name in self.coordinator.unjoined_shards:
            try:
                await self.coordinator.catch_up(name)
            except ForetellError as error:
                log.warning("a shard is not caught up with", shard=name, cause=error.message)

    async def _greet(self) -> None:
        while True:
            await self.greet()
            await asyncio.sleep(CATCH_UP_LOOK_S)

    async def _watch(self) -> None:
        await self.engine.failed.wait()
        raise EngineStopped("the treasury's journal failed; start again to go on from it")

    def _account(self, wanted: AccountRequest) -> AccountReply:
        """Return what of a wallet is in no shard's slice."""
        treasury = self.engine.state
        assert wanted.asset == COLLATERAL, "tokens belong to one shard, and need no treasury"
        allocations = treasury.allocations_by_wallet.get(wanted.wallet, {})
        confirmed = treasury.confirmed_by_wallet.get(wanted.wallet, 0)
        allowances = treasury.allowances_by_wallet.get(wanted.wallet, {})
        return AccountReply(
            confirmed_units=confirmed - sum(held.units for held in allocations.values()),
            pending_units=0,
            reserved_units=0,
            allowed_units=[allowances.get(exchange, 0) for exchange in wanted.exchanges],
            observed_block=treasury.observed_block,
        )
