"""Titles that are scripts, formulas or written to mislead: refused, or shown as the text they are."""

import httpx
import pytest
from tests.creation.rig import CreatorClient, details_of
from tests.rigs.applications import serving

from foretell.edge.security_headers import SECURITY_HEADERS, SecureApplication
from foretell.store.creation.markets import load_markets

pytestmark = pytest.mark.anyio

TEXTS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("http://example.org","x")',
    "{{7*7}}${7*7}",
    "%s%n\\u0000",
    "p\u0430ypal",  # the second letter is Cyrillic
    "A\u0301\u0301\u0301",
]
REFUSED = ["\u202egnp.exe", "a\u2066b", "a\x00b", "a\u2028b", "\x1b[31mred", "a\rb", "\u202a"]


@pytest.mark.case("F-06")
@pytest.mark.parametrize("text", TEXTS)
async def test_a_title_is_served_as_the_text_it_is(creator: CreatorClient, text: str) -> None:
    """It is a value of JSON, which browsers must not take for a page."""
    record = await creator.record(await creator.finalized(creator.payload(title=text)))
    async with creator.rig.database.reading() as tx:
        (market,) = await load_markets(tx)
    assert set(market.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    [update] = record["metadataUpdates"]
    app = SecureApplication(creator.rig.app)
    async with (
        serving(app) as host,
        httpx.AsyncClient(base_url=f"http://{host}", timeout=60) as client,
    ):
        answer = await client.get(f"/blobs/{update['metadataTxId']}")
    assert text in answer.json().values()
    assert answer.headers["content-type"].startswith("application/json")
    for name, value in SECURITY_HEADERS:
        assert answer.headers[name.decode()] == value.decode()


@pytest.mark.case("F-06")
@pytest.mark.parametrize("text", REFUSED)
async def test_a_title_with_characters_that_hide_others_is_refused(
    creator: CreatorClient, text: str
) -> None:
    raw = creator.payload(title=f"x{text}y")
    challenge = (await creator.ask(raw)).json()
    answer = await creator.send(raw, creator.sign(challenge))
    assert answer.status_code == 400
    assert ("title", "must have no control characters") in details_of(answer)
