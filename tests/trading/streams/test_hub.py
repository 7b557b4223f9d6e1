import asyncio
import resource

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, an_open_market
from tests.trading.rig import listening

from foretell.app.gateway import FILES_KEPT_BACK, FILES_WANTED, connections_max
from foretell.store.trading.api_keys import revoke_key
from foretell.trading.streams.hub import CONNECTIONS_MAX

pytestmark = pytest.mark.anyio

FAILED = "step failed and is repeated"


async def test_a_full_process_closes_new_connections(rig: TradingRig) -> None:
    async with serving(rig.app) as host, listening(host, "/ws/market") as first:
        rig.context.streams.connections_max = 1
        async with listening(host, "/ws/market") as second:
            assert await second.close_code() == 1013
        await first.silence()


def test_attack_h2_streams_are_bounded_by_the_places_of_the_process() -> None:
    """A lower number here would let anonymous streams keep out authenticated ones."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
        assert FILES_KEPT_BACK < connections_max() + FILES_KEPT_BACK <= FILES_WANTED
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert CONNECTIONS_MAX >= FILES_WANTED - FILES_KEPT_BACK


async def test_clients_are_disconnected_when_an_engine_starts_again(rig: TradingRig) -> None:
    async with serving(rig.app) as host, listening(host, "/ws/market") as listener:
        await listener.silence()
        rig.context.begin(lambda _: True)
        assert await listener.close_code() == 1013


@pytest.mark.spec(53)
async def test_a_key_that_another_process_revoked_loses_its_connections(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    context = rig.context
    following = asyncio.create_task(context.streams.follow_revocations(context.database))
    async with (
        serving(rig.app) as host,
        listening(host, "/ws/user") as alices,
        listening(host, "/ws/user") as bobs,
    ):
        await alices.log_in(alice)
        await bobs.log_in(bob)
        async with context.database.writing() as tx:
            assert await revoke_key(tx, alice.key_id, rig.clock.at_ms)
        assert await alices.close_code() == 1008
        await bobs.silence()
        assert (await alice.place(a_buy("alice"))).status_code == 401
        assert (await bob.place(a_buy("bob"))).status_code == 200
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_revocation_is_found_after_the_storage_failed(
    rig: TradingRig, alice: Trader
) -> None:
    context = rig.context
    await rename(rig, "api_keys", "hidden")
    following = asyncio.create_task(
        context.streams.follow_revocations(context.database, check_every_s=0.02)
    )
    await rename(rig, "hidden", "api_keys")
    async with serving(rig.app) as host, listening(host, "/ws/user") as listener:
        await listener.log_in(alice)
        with capture_logs() as logs:
            await rename(rig, "api_keys", "hidden")
            async with asyncio.timeout(60):
                while FAILED not in [each["event"] for each in logs]:  # noqa: ASYNC110 - a log
                    await asyncio.sleep(0.01)
        await rename(rig, "hidden", "api_keys")
        async with context.database.writing() as tx:
            await tx.execute(sa.text("UPDATE api_keys SET status = 'revoked'"))
        assert await listener.close_code() == 1008
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_failed_read_loses_one_announcement_only(rig: TradingRig) -> None:
    announcing = asyncio.create_task(rig.context.streams.announce())
    async with serving(rig.app) as host, listening(host, "/ws/market") as listener:
        await listener.subscribe(custom_feature_enabled=True)
        await listener.silence()
        await rename(rig, "events", "hidden")
        await rig.submit(an_open_market("lost"))
        async with asyncio.timeout(60):
            while rig.context.streams.market.announcements:  # noqa: ASYNC110 - in its own time
                await asyncio.sleep(0.01)
        await rename(rig, "hidden", "events")
        await rig.open("rain")
        assert (await listener.message())["slug"] == "will-it-rain"
    announcing.cancel()
    await asyncio.gather(announcing, return_exceptions=True)


async def rename(rig: TradingRig, table: str, name: str) -> None:
    async with rig.context.database.writing() as tx:
        await tx.execute(sa.text(f"ALTER TABLE {table} RENAME TO {name}"))
