"""A process that trades, takes snapshots and removes segments as fast as it can, to be killed.

Arguments: the journal's folder, and the salt of the first order. It prints each order that was
placed, each that it is about to cancel, and each that was canceled.
"""

import asyncio
import itertools
import sys
import types
from pathlib import Path

# The tests are not an installed package, and others install one of that name.
tests = types.ModuleType("tests")
tests.__path__ = [str(Path(__file__).parents[1])]
sys.modules["tests"] = tests

from tests.rigs.values import (  # noqa: E402
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.commands import CancelOrders  # noqa: E402
from foretell.engine.protocol.requests import CommittedCommand  # noqa: E402
from foretell.engine.writer.engine import Engine  # noqa: E402
from foretell.journal.files.journal import FileJournal  # noqa: E402
from foretell.journal.files.snapshots import newest_sequence  # noqa: E402
from foretell.journal.snapshot_process import take_snapshot  # noqa: E402

SEGMENT_BYTES = 32 * 1024
ORDERS_AT_ONCE = 4
SNAPSHOT_EVERY = 60
CANCELED_OF = 3


def report(word: str, order_id: str) -> None:
    sys.stdout.write(f"{word} {order_id}\n")
    sys.stdout.flush()


class Trader:
    def __init__(self, folder: Path, first: int) -> None:
        self.folder = folder
        self.journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
        self.engine = Engine(self.journal, lambda: NOW_MS)
        self.salts = itertools.count(first)
        self.durable_sequence = 0
        self.engine.subscribe(self.on_committed)

    def on_committed(self, committed: CommittedCommand) -> None:
        self.durable_sequence = committed.sequence

    async def run(self) -> None:
        await self.engine.start()
        if not self.engine.state.market_by_id:
            await self.engine.submit(an_open_market())
            await self.engine.submit(some_funds("alice"))
        await asyncio.gather(
            self.keep_snapshots(), *(self.trade_until_killed() for _ in range(ORDERS_AT_ONCE))
        )

    async def trade_until_killed(self) -> None:
        for salt in self.salts:
            order = a_buy("alice", price_ticks=20, size_units=5 * TOKEN, salt=str(salt))
            command = a_placing(order)
            await self.engine.submit(command)
            report("placed", command.order_id)
            if salt % CANCELED_OF == 0:
                report("canceling", command.order_id)
                cancel = CancelOrders(NOW_MS, an_address("alice"), (command.order_id,))
                await self.engine.submit(cancel)
                report("canceled", command.order_id)

    async def keep_snapshots(self) -> None:
        while True:
            until = self.durable_sequence
            if until - newest_sequence(self.folder) >= SNAPSHOT_EVERY:
                await asyncio.to_thread(take_snapshot, self.folder, until)
                await self.journal.compact()
            await asyncio.sleep(0.001)


asyncio.run(Trader(Path(sys.argv[1]), int(sys.argv[2])).run())
