"""A process that places orders as fast as it can and prints each acknowledged one, to be killed.

Arguments: the journal's folder, and the salt of the first order.
"""

import asyncio
import sys
import types
from pathlib import Path

# The tests are not an installed package, and others install one of that name.
tests = types.ModuleType("tests")
tests.__path__ = [str(Path(__file__).parents[2])]
sys.modules["tests"] = tests

from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_placing  # noqa: E402 - after the line above

from foretell.engine.writer.engine import Engine  # noqa: E402
from foretell.journal.files.journal import FileJournal  # noqa: E402

ORDERS_AT_ONCE = 5


async def main(folder: Path, first: int) -> None:
    engine = Engine(FileJournal(folder, segment_bytes=64 * 1024), lambda: NOW_MS)
    await engine.start()
    salts = iter(range(first, first + 100_000))

    async def place_for_ever() -> None:
        for salt in salts:
            order = a_buy("alice", price_ticks=20, size_units=5 * TOKEN, salt=str(salt))
            command = a_placing(order)
            await engine.submit(command)
            sys.stdout.write(command.order_id + "\n")
            sys.stdout.flush()

    await asyncio.gather(*(place_for_ever() for _ in range(ORDERS_AT_ONCE)))


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
