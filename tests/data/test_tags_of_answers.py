"""Every route whose answer is documented with a tag names its content, and no other does."""

import pytest
from litestar.handlers import HTTPRouteHandler
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows
from tests.rigs.values import a_word, an_address, an_asset

from foretell.data.routes import ROUTES
from foretell.edge.documents.description import description_of
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

ANN = an_address("ann")
NEEDS_CHAIN = {"/solvency"}
"""It has an answer with a node alone."""
PATHS = [
    (path, handler)
    for handler in ROUTES
    for path in sorted(handler.paths)
    if path not in NEEDS_CHAIN and not path.startswith("/export")
]


@pytest.mark.parametrize(("path", "handler"), PATHS, ids=[path for path, _ in PATHS])
async def test_an_answer_has_a_tag_if_its_document_says_so(
    reader: Reader, database: Database, path: str, handler: HTTPRouteHandler
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.hold("ann", "rain", 5, 1)
    described = description_of(handler)
    names = {name for parameter in described.parameters for name in parameter.names}
    known = {"user": ANN, "market": a_word("rain"), "address": ANN}
    query = {name: value for name, value in known.items() if name in names}
    url = path.replace("{token:str}", an_asset(is_yes=True, market="rain"))
    answer = await reader.http.get(url, params=query)
    assert answer.status_code == 200, answer.text
    assert ("etag" in answer.headers) == described.answer.is_tagged
    tag = {"if-none-match": answer.headers.get("etag", "none")}
    again = await reader.http.get(url, params=query, headers=tag)
    assert again.status_code == (304 if described.answer.is_tagged else 200)
