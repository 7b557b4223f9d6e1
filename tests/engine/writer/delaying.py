"""A process that places orders which are delayed and prints each acknowledged one, to be killed.

Argument: the journal's folder, in which a market has a delay and an offer at 40.
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


async def main(folder: Path) -> None:
    engine = Engine(FileJournal(folder, segment_bytes=64 * 1024), lambda: NOW_MS)
    await engine.start()
    for salt in range(100_000):
        order = a_buy("alice", price_ticks=40, size_units=5 * TOKEN, salt=str(salt))
        command = a_placing(order)
        await engine.submit(command)
        sys.stdout.write(command.order_id + "\n")
        sys.stdout.flush()


asyncio.run(main(Path(sys.argv[1])))
