from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_MS, an_address

from foretell.domain.exchange.order import SignatureType
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.trading.profiles import load_profiles

pytestmark = pytest.mark.anyio

PROFILE = {
    "name": "Alice B.",
    "bio": "I trade rain.\nSometimes.",
    "image": "https://example.org/a.png",
}
EMPTY = {"name": "", "bio": "", "image": ""}


async def put(trader: Trader, **fields: str) -> Any:
    answer = await trader.send("POST", "/profile", fields)
    return answer.status_code, answer.json()


async def test_a_profile_is_set_and_replaced_as_a_whole(alice: Trader) -> None:
    address = {"address": checksum_address(alice.address)}
    assert await alice.get("/profile") == address | EMPTY
    assert await put(alice, **PROFILE) == (200, address | PROFILE)
    assert await alice.get("/profile") == address | PROFILE
    assert await put(alice, name="Alice") == (200, address | EMPTY | {"name": "Alice"})


async def test_a_profile_is_that_of_both_wallets(rig: TradingRig, alice: Trader) -> None:
    await put(alice, **PROFILE)
    own = an_address("alice")
    safe = rig.context.wallets.by_signature_type(own, SignatureType.SAFE)
    async with rig.context.database.reading() as tx:
        found = await load_profiles(tx, [own, safe, an_address("bob")])
        none = await load_profiles(tx, [])
    assert set(found) == {own, safe}
    assert found[own] == found[safe]
    assert (found[own].name, found[own].updated_at_ms) == ("Alice B.", NOW_MS)
    assert none == {}


async def test_a_name_is_one_address_s_in_any_case(alice: Trader, bob: Trader) -> None:
    assert (await put(alice, name="Rain"))[0] == 200
    status, body = await put(bob, name="rAIN")
    assert (status, body["code"]) == (409, "name_taken")
    assert (await put(alice, name="RAIN"))[0] == 200
    assert (await put(alice, name="Sun"))[0] == 200
    assert (await put(bob, name="rain"))[0] == 200
    for trader in (alice, bob):
        assert (await put(trader))[0] == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "x" * 41),
        ("name", "-alice"),
        ("name", "al\u0456ce"),
        ("name", "a<b"),
        ("bio", "x" * 501),
        ("bio", "a\u202eb"),
        ("bio", "a\0b"),
        ("image", "http://example.org/a.png"),
        ("image", "javascript:alert(1)"),
        ("image", "https://user@example.org/a.png"),
        ("image", 'https://example.org/"onload=x'),
        ("image", "https:///a.png"),
        ("image", "https://[x/a.png"),
        ("image", "https://example.org/" + "a" * 500),
    ],
)
async def test_a_text_that_a_page_could_take_for_something_else_is_refused(
    alice: Trader, field: str, value: str
) -> None:
    status, body = await put(alice, **{field: value})
    assert (status, body["code"]) == (400, "invalid_fields")
    assert body["details"]["problems"][0]["field"] == field
    assert await alice.get("/profile") == {"address": checksum_address(alice.address)} | EMPTY
