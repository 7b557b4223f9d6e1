"""The context of the data API's handlers, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass

from foretell.data.solvency_books import SolvencyBooks
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class DataContext:
    """The tables, the base URL of images, the clock, and the report of solvency."""

    database: Database
    blob_base_url: str
    now_ms: Callable[[], int]
    solvency: SolvencyBooks

    @property
    def now_s(self) -> int:
        """The time in seconds."""
        return self.now_ms() // 1000
