"""Clients of the read-only APIs, and the types of their records."""

from collections.abc import Callable
from typing import Any, Never

import httpx
from litestar import Litestar
from litestar.types import ASGIApp
from tests.rigs.values import NOW_MS
from typing_extensions import override

from foretell.data.context import DataContext
from foretell.data.owed_reader import OwedReader
from foretell.data.solvency_books import FetchBacking, SolvencyBooks
from foretell.domain.errors.chain import ChainUnavailable
from foretell.indexer.listings import ListingContext, refresh_listings
from foretell.indexer.rankings import RankingContext, refresh_rankings
from foretell.store.database import Database

BLOBS = "https://blobs.example/worker"


async def no_node(*_: object) -> Never:
    """Refuse as a node that is away: most tests of the data API have no chain."""
    raise ChainUnavailable("eth_call", "no node")


OWED_NOTHING = OwedReader((), no_node)


def a_data_context(
    database: Database,
    blob_base_url: str,
    now_ms: Callable[[], int],
    fetch_backing: FetchBacking = no_node,
    owed: OwedReader = OWED_NOTHING,
) -> DataContext:
    """Return the context of the data API, of an installation whose node is away by default."""
    solvency = SolvencyBooks(database, None, fetch_backing, now_ms)
    return DataContext(database, blob_base_url, now_ms, solvency, owed)


async def keep_rankings(database: Database, now_ms: int = NOW_MS, rows_max: int = 3) -> None:
    """Bring the standings to now, in small steps."""
    await refresh_rankings(RankingContext(database, lambda: now_ms, rows_max))


async def keep_listings(database: Database, now_ms: int = NOW_MS) -> None:
    """Bring the totals of markets and events to now."""
    await refresh_listings(ListingContext(database, lambda: now_ms))


class Reader:
    """A client of an application in the same process."""

    def __init__(self, app: Litestar | ASGIApp) -> None:
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app, raise_app_exceptions=False),  # type: ignore[arg-type]  # Litestar's own ASGI types
            base_url="http://api.example",
        )

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the JSON of a successful answer."""
        answer = await self.http.get(path, params=parameters or None)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    async def refused(self, path: str, **parameters: Any) -> tuple[int, Any]:
        """Return the status and the JSON of any answer."""
        answer = await self.http.get(path, params=parameters or None)
        return answer.status_code, answer.json()


class ListedReader(Reader):
    """A client of the discovery API, before whose requests the totals are brought to now."""

    def __init__(self, app: Litestar | ASGIApp, database: Database) -> None:
        super().__init__(app)
        self._database = database

    @override
    async def get(self, path: str, **parameters: Any) -> Any:
        await keep_listings(self._database)
        return await super().get(path, **parameters)

    @override
    async def refused(self, path: str, **parameters: Any) -> tuple[int, Any]:
        await keep_listings(self._database)
        return await super().refused(path, **parameters)


KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "number": (int, float),
    "bool": (bool,),
    "list": (list,),
    "str?": (str, type(None)),
    "int?": (int, type(None)),
    "number?": (int, float, type(None)),
    "bool?": (bool, type(None)),
}


def misfits(record: dict[str, Any], kind_by_field: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a record that are missing, unknown or of another type."""
    wrong = {
        name: record.get(name, "missing")
        for name, kind in kind_by_field.items()
        if type(record.get(name)) not in KINDS[kind] or name not in record
    }
    return wrong | dict.fromkeys(record.keys() - kind_by_field.keys(), "unknown")


def fields(*groups: tuple[str, str]) -> dict[str, str]:
    """Return the type of each field, from texts of names by type."""
    return {name: kind for kind, names in groups for name in names.split()}
