"""The process that settles trades.

Argument: the number of a socket that it inherits. It begins with the rows of the database, as every start of
settlement does, so it may be killed at any time. It ends when the other end of the socket closes.
"""

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Final

from typing_extensions import override

from foretell.app.framed_process import ServingConnection, run_framed
from foretell.app.settlement_process.context import build_settlement
from foretell.app.settlement_process.messages import (
    Announced,
    BeginSettlement,
    FailedGas,
    SettlementAlive,
    SettlementStarted,
    UnknownWaiting,
    decode_to_settlement,
    message,
)
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import parse_deployment
from foretell.runtime.garbage_collection import collect_when_idle
from foretell.runtime.loops import run_together
from foretell.settlement import worker
from foretell.settlement.metrics import SettlementCounts
from foretell.store.database import SMALL_CACHES, Database

BEGIN_DEADLINE_S: Final = 60.0


class SettlementConnection(ServingConnection):
    """The connection to the serving process, and settlement."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: asyncio.Future[BeginSettlement] = asyncio.get_running_loop().create_future()
        self._database: Database | None = None
        self._unknown = 0

    @override
    async def run(self) -> None:
        """Settle until cancelled."""
        alive = partial(self.stay_alive, message(SettlementAlive()))
        await run_together([alive, self._settle, collect_when_idle])

    @override
    def take(self, message: bytes) -> None:
        received = decode_to_settlement(message)
        if isinstance(received, BeginSettlement):
            self._begun.set_result(received)
        elif self._database is not None:
            self._database.topics.wake(received.topics)

    async def _settle(self) -> None:
        async with asyncio.timeout(BEGIN_DEADLINE_S):
            begin = await self._begun
        chain_id = parse_deployment(begin.deployment).chain_id
        async with (
            Database(begin.database_url, caches=SMALL_CACHES) as database,
            Rpc(begin.rpc_url, chain_id) as rpc,
        ):
            if database.is_sqlite:
                database.topics.relay(self._announce)
                self._database = database
            counts = SettlementCounts(self._count_gas, self._count_unknown)
            context = build_settlement(begin, database, rpc, counts)
            self.send(message(SettlementStarted()))
            await worker.run(context)

    def _announce(self, topics: Collection[str]) -> None:
        self.send(message(Announced(topics)))

    def _count_gas(self, blamed: str, gas: int) -> None:
        self.send(message(FailedGas(blamed, gas)))

    def _count_unknown(self, count: int) -> None:
        if count != self._unknown:
            self._unknown = count
            self.send(message(UnknownWaiting(count)))


if __name__ == "__main__":
    run_framed(SettlementConnection)
