import pytest
from tests.rigs.read_apis import Reader
from tests.rigs.values import an_address, an_asset

pytestmark = pytest.mark.anyio

ALICE = an_address("alice")
PATHS = ["/referrers", "/affiliates"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"exchange": an_address("exchange"), "tokenId": an_asset(is_yes=True)},
        {"limit": "500", "offset": "3"},
    ],
)
async def test_shared_fees_are_an_empty_list(
    reader: Reader, path: str, parameters: dict[str, str]
) -> None:
    assert await reader.get(path, address=ALICE, **parameters) == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({}, "missing_field: address"),
        ({"address": "alice"}, "invalid_field: address"),
        ({"address": ALICE, "exchange": "0x"}, "invalid_field: exchange"),
        ({"address": ALICE, "tokenId": "0x12"}, "invalid_field: tokenId"),
        ({"address": ALICE, "tokenId": "9" * 79}, "invalid_field: tokenId"),
        ({"address": ALICE, "limit": "501"}, "invalid_field: limit"),
        ({"address": ALICE, "offset": "-1"}, "invalid_field: offset"),
        ({"address": ALICE, "x": "1", "strict": "true"}, "unknown_field: x"),
    ],
)
async def test_a_malformed_query_for_shared_fees_is_refused(
    reader: Reader, path: str, parameters: dict[str, str], error: str
) -> None:
    status, body = await reader.refused(path, **parameters)
    assert (status, body["error"].startswith(error)) == (400, True)
