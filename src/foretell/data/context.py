"""The context of the data API's handlers, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass

from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class DataContext:
    """The tables, the base URL of images, and the clock."""

    database: Database
    blob_base_url: str
    now_ms: Callable[[], int]

    @property
    def now_s(self) -> int:
        """The time in seconds."""
        return self.now_ms() // 1000
