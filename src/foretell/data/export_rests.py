"""The rests of exports, which render rows in the process that answers everybody."""

import asyncio
from typing import Final

from foretell.runtime.pauses import Pauses

REST_PER_WORK: Final = 8.0
"""How long exports rest after a read and its parts, over the time that these took."""
REST_S_MAX: Final = 0.05
"""The longest rest after one read: a database that is slow makes no export wait for another's."""


class ExportRests:
    """Rests of all exports of a process, one after the other: however many there are, no two reads follow each other at once."""

    def __init__(self) -> None:
        self._pauses = Pauses()

    async def rest(self, worked_s: float) -> None:
        """Wait for the rests of the parts before, and rest after work that took so many seconds."""
        await asyncio.sleep(self._pauses.add(min(REST_S_MAX, REST_PER_WORK * worked_s)))
