"""The context of the discovery API's handlers, built once by the composition root."""

from dataclasses import dataclass, field

from foretell.discovery.search_index import SearchIndex
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class DiscoveryContext:
    """The tables, the base URL of images, the search index, and the delay of sports markets."""

    database: Database
    blob_base_url: str
    search_index: SearchIndex = field(default_factory=SearchIndex)
    sports_delay_s: int = 0
