"""The treasury where it runs, with its coordinator and its feed from the chain."""

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
from foretell.runtime.loops import Loop
from foretell.runtime.worker import PollIntervals, run_worker

CATCH_UP_PACE: Final = PollIntervals(busy_s=1.0, idle_s=1.0)

log = structlog.get_logger(__name__)


class TreasuryHost:
    """A treasury that handles requests, as the host of a shard does."""

    def __init__(
        self, engine: TreasuryEngine, coordinator: AllocationCoordinator, feed: CollateralFeed
    ) -> None:
        self.engine = engine
        self.coordinator = coordinator
        self.feed = feed

    async def start(self) -> None:
        """Replay the journal; a loop catches up with the shards when they are there."""
        await self.engine.start()

    async def close(self) -> None:
        """Take no more requests, and make durable what was taken."""
        await self.engine.close()

    def loops(self) -> dict[str, Loop]:
        """Return the loops to run, by name, while requests are taken; a failed journal ends one."""
        return {
            "shards": partial(run_worker, "shards", self.catch_up, CATCH_UP_PACE),
            "collateral": self.feed.run,
            "treasury": self._watch,
        }

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the reply, durable if anything changed; or raise the refusal."""
        if isinstance(request, AccountRequest):
            return self._view_account(request)
        assert isinstance(request, FundRequest), "the treasury is asked for collateral alone"
        return FundReply(await self.coordinator.fund(request.shard, request.wallet, request.given))

    async def catch_up(self) -> bool:
        """Catch up with the shards that are due for it; return if any has not joined after that."""
        for name in await self.coordinator.find_due():
            try:
                await self.coordinator.catch_up(name)
            except ForetellError as error:
                log.warning("shard has not joined", shard=name, cause=error.message)
        return bool(self.coordinator.unjoined_shards)

    async def _watch(self) -> None:
        await self.engine.failed.wait()
        raise EngineStopped(
            "the treasury's journal failed; restart the process to continue from the last durable command"
        )

    def _view_account(self, request: AccountRequest) -> AccountReply:
        """Return what of a wallet is allocated to no shard."""
        treasury = self.engine.state
        assert request.asset == COLLATERAL, "tokens belong to one shard, and need no treasury"
        allocations = treasury.allocations_by_wallet.get(request.wallet, {})
        confirmed_units = treasury.confirmed_by_wallet.get(request.wallet, 0)
        allowances = treasury.allowances_by_wallet.get(request.wallet, {})
        return AccountReply(
            confirmed_units=confirmed_units - sum(held.units for held in allocations.values()),
            pending_units=0,
            reserved_units=0,
            allowed_units=[allowances.get(exchange, 0) for exchange in request.exchanges],
            observed_block=treasury.observed_block,
        )
