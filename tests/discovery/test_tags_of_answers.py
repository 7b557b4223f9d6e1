"""Every read of a table names its content, and its document says so; only answers that are always the same do not."""

import re

import pytest
from litestar.handlers import HTTPRouteHandler
from tests.rigs.read_apis import Reader, keep_listings
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.values import NOW_MS, an_address

from foretell.discovery.routes import ROUTES
from foretell.edge.documents.description import description_of
from foretell.edge.read_answers import ASKED_AGAIN
from foretell.store.database import Database
from foretell.store.trading.profiles import PublicProfile, record_profile

pytestmark = pytest.mark.anyio

ANN = an_address("ann")
UNTAGGED = {
    "/",
    "/status",
    "/comments",
    "/comments/{comment_id:str}",
    "/comments/user_address/{address:str}",
    "/events/creators",
    "/events/creators/{record_id:str}",
    "/events/{event_id:str}/comments/count",
    "/series/{series_id:str}/comments/count",
    "/tags/{tag_id:str}/related-tags",
    "/tags/{tag_id:str}/related-tags/tags",
    "/tags/slug/{slug:str}/related-tags",
    "/tags/slug/{slug:str}/related-tags/tags",
}
"""The status, and placeholders."""
TAGGED = {path for handler in ROUTES for path in handler.paths} - UNTAGGED
PARTS = {
    "/events/slug/{slug:str}": "/events/slug/event-game",
    "/markets/slug/{slug:str}": "/markets/slug/game-moneyline-home",
    "/tags/slug/{slug:str}": "/tags/slug/politics",
}


def test_all_but_placeholders_and_the_status_is_documented_with_a_tag() -> None:
    assert all(isinstance(each, HTTPRouteHandler) for each in ROUTES)
    tagged = [each for each in ROUTES if description_of(each).answer.is_tagged]
    assert {path for each in tagged for path in each.paths} == TAGGED


@pytest.mark.parametrize("path", sorted(TAGGED))
async def test_a_read_has_a_tag_while_its_answer_stays_the_same(
    reader: Reader, database: Database, path: str
) -> None:
    async with database.writing() as tx:
        await Rows(tx).open(a_game_event_row("game"))
        await record_profile(tx, PublicProfile(ANN, an_address("safe"), "Ann", "", "", NOW_MS))
    await keep_listings(database)
    url = re.sub(r"\{\w+_id:str\}", "1", PARTS.get(path, path)).replace("{address:str}", ANN)
    query = {"q": "game", "address": ANN}
    first = await reader.http.get(url, params=query)
    assert (first.status_code, first.headers["cache-control"]) == (200, ASKED_AGAIN), first.text
    tag = {"if-none-match": first.headers["etag"]}
    again = await reader.http.get(url, params=query, headers=tag)
    assert (again.status_code, again.content) == (304, b"")
