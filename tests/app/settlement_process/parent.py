"""A process that keeps settlement running in a child process, to be killed.

Arguments: the file of what settlement is given, and the file that gets the id of the child.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from foretell.app.settlement_process.client import SettlementProcess
from foretell.app.settlement_process.messages import BeginSettlement
from foretell.store.database import Database


async def main(begin: BeginSettlement, noted: Path) -> None:
    async with Database(begin.database_url) as database:
        process = SettlementProcess(database, begin)
        running = asyncio.create_task(process.run())
        while process.process_id is None:  # noqa: ASYNC110 - nothing publishes it
            await asyncio.sleep(0)
        noted.with_suffix(".part").write_text(str(process.process_id))
        noted.with_suffix(".part").rename(noted)
        await running


given = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=BeginSettlement)
asyncio.run(main(given, Path(sys.argv[2])))
