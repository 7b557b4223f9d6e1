"""A process that trades without end, with its tables in a child process, to be killed.

Arguments: the journal's folder, the database's URL, and the file that gets the id of the child once that has
written.
"""

import asyncio
import sys
import types
from pathlib import Path

# The tests are not an installed package, and others install one of that name.
tests = types.ModuleType("tests")
tests.__path__ = [str(Path(__file__).parents[2])]
sys.modules["tests"] = tests

from tests.app.tables_process.rig import SEGMENT_BYTES, a_tables_rig  # noqa: E402 - see above

from foretell.journal.files.journal import FileJournal  # noqa: E402
from foretell.store.database import Database  # noqa: E402


async def main(folder: Path, url: str, noted: Path) -> None:
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    async with Database(url) as database, a_tables_rig(journal, database, folder) as rig:
        await rig.open()
        await rig.written()
        noted.with_suffix(".part").write_text(str(rig.pid))
        noted.with_suffix(".part").rename(noted)
        while True:
            await rig.trade(100)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
