"""The context of the data API's handlers, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from foretell.data.export_rests import ExportRests
from foretell.data.owed_reader import OwedReader
from foretell.data.recent_answers import RecentAnswers
from foretell.data.solvency_books import SolvencyBooks
from foretell.store.database import Database
from foretell.store.public_reads.places import ReadPlaces

EXPORTS_MAX: Final = 32
EXPORTS_PER_CLIENT_MAX: Final = 4
"""An export that is sent holds a part in memory, for as long as its client takes to read it."""
EXPORT_S: Final = 120.0
"""How long one response of an export goes on; its client asks for the rows after it."""


@dataclass(frozen=True, slots=True)
class DataContext:
    """The tables, the base URL of images, the clock, what is asked of the chain, kept answers, the places of exports."""

    database: Database
    blob_base_url: str
    now_ms: Callable[[], int]
    solvency: SolvencyBooks
    owed: OwedReader
    recent: RecentAnswers = field(default_factory=lambda: RecentAnswers(0))
    exports: ReadPlaces = field(
        default_factory=lambda: ReadPlaces(EXPORTS_MAX, EXPORTS_PER_CLIENT_MAX)
    )
    export_rests: ExportRests = field(default_factory=ExportRests)
    export_s: float = EXPORT_S

    @property
    def now_s(self) -> int:
        """The time in seconds."""
        return self.now_ms() // 1000
