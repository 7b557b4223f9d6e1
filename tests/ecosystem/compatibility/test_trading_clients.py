"""Every public method of the trading clients, called; the page of the documentation has the results."""

from typing import Any, Final

import pytest
from tests.ecosystem.clients import KUEST_V2, NAMES, POLYMARKET_V2, Client, Family, a_client
from tests.ecosystem.compatibility.page import held_against_the_page
from tests.ecosystem.compatibility.programs import Step, python_version_1, python_version_2
from tests.ecosystem.compatibility.running import results_of
from tests.ecosystem.compatibility.typescript import typescript
from tests.ecosystem.test_version_2_clients import endow
from tests.rigs.orders.version_2 import a_deposit_wallet
from tests.rigs.trading import TradingRig
from tests.rigs.values import TOKEN, a_buy, a_sell, an_address

pytestmark = pytest.mark.anyio

PROGRAMS: Final = {
    NAMES[0]: python_version_1,
    NAMES[1]: python_version_1,
    KUEST_V2: python_version_1,
    POLYMARKET_V2: python_version_2,
    "@polymarket/clob-client": typescript,
    "@polymarket/clob-client-v2": typescript,
}
WITHOUT_A_BUILDER: Final = {POLYMARKET_V2, "@polymarket/clob-client-v2"}
"""Clients that name a builder in the order instead of signing as one."""


async def credentials(host: str, name: str) -> dict[str, str] | None:
    """Return a builder's key of bob, which a client makes that can."""
    if name in WITHOUT_A_BUILDER:
        return None
    family = Family(POLYMARKET_V2)
    try:
        async with a_client(family, host, "bob") as bob:
            await bob.log_in("create_or_derive_api_key")
            created: dict[str, str] = await bob.call("create_builder_api_key")
    finally:
        await family.stop()
    return created


@pytest.mark.parametrize("name", PROGRAMS)
async def test_every_method_is_called(rig: TradingRig, host: str, name: str) -> None:
    await rig.rest(a_sell("bob", price_ticks=41, size_units=500 * TOKEN))
    await rig.rest(a_buy("bob", price_ticks=30, size_units=500 * TOKEN))
    wallet = a_deposit_wallet("alice")
    is_kuest_2 = name == KUEST_V2
    funder = wallet if is_kuest_2 else None
    await endow(rig, funder or an_address("alice"))
    await rig.rest(a_buy("alice", price_ticks=41, size_units=5 * TOKEN))
    family = Family(name)
    builder = await credentials(host, name)
    try:
        async with a_client(
            family, host, "alice", 3 if is_kuest_2 else 0, funder, builder
        ) as alice:
            results = await results_of(PROGRAMS[name](), await alice.methods(), called_by(alice))
    finally:
        await family.stop()
    held_against_the_page(family.version(), results)


def called_by(client: Client) -> Any:
    async def call(step: Step) -> Any:
        return await client.call(step.method, *step.args, keep=step.keep)

    return call
