"""The rules of dear reads: for every path of a route, and as the page has them."""

from pathlib import Path
from typing import Final

import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, a_data_context
from tests.rigs.values import NOW_MS

from foretell.data.dear_reads import DEAR_READS as DATA_DEAR_READS
from foretell.data.routes import build_app as build_data_app
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.dear_reads import DEAR_READS as DISCOVERY_DEAR_READS
from foretell.discovery.routes import build_app as build_discovery_app
from foretell.edge.read_answers import QUERY_CHEAP_BYTES_MAX, DearRules
from foretell.store.database import Database

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "rate-limits.md"


@pytest.fixture(params=["data", "discovery"])
async def ruled(
    request: pytest.FixtureRequest, fresh_database: Database
) -> tuple[Litestar, DearRules]:
    """An API, and its rules."""
    if request.param == "data":
        context = a_data_context(fresh_database, BLOBS, lambda: NOW_MS)
        return an_app(build_data_app, context), DATA_DEAR_READS
    catalog = DiscoveryContext(fresh_database, BLOBS, sports_delay_s=3)
    return an_app(build_discovery_app, catalog), DISCOVERY_DEAR_READS


@pytest.mark.anyio
async def test_a_rule_is_for_every_path_of_its_route(ruled: tuple[Litestar, DearRules]) -> None:
    """A finding: the largest wins had a rule under one of their two paths."""
    app, rules = ruled
    routes = {
        frozenset(handler.paths)
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
    }
    assert rules.keys() <= frozenset.union(*routes)
    assert [paths for paths in routes if len({id(rules.get(each)) for each in paths}) > 1] == []


@pytest.mark.parametrize("path", sorted(DATA_DEAR_READS))
def test_a_long_query_is_dear_on_every_route_that_the_page_names(path: str) -> None:
    """A finding: values and ranks were dear beyond 512 bytes, and the page did not say so."""
    _, _, listed = PAGE.read_text().partition("They are\n")
    listed, _, _ = listed.partition(f"with a query of more than {QUERY_CHEAP_BYTES_MAX} bytes")
    assert f"`{path}`" in listed
    assert DATA_DEAR_READS[path].is_dear(b"x" * (QUERY_CHEAP_BYTES_MAX + 1))
    assert not DATA_DEAR_READS[path].is_dear(b"x" * QUERY_CHEAP_BYTES_MAX)
