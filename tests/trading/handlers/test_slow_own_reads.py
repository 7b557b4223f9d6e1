"""C11: an account's own reads end at the deadline of public reads, and use none of the connections of the engine."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.rigs.trading import Trader, a_rig_on
from tests.rigs.values import a_word, an_open_market
from tests.store.endless_tables import endless

from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits
from foretell.store.tables import (
    api_keys,
    builder_keys,
    fills,
    orders,
    profiles,
    quotes,
    readonly_keys,
    trades,
)

pytestmark = pytest.mark.anyio

LIMITS = PublicReadLimits(read_s=0.5, key_s=60.0)


@pytest.fixture
async def alice(each_database_url: str, tmp_path: Path) -> AsyncIterator[Trader]:
    """A trader of an installation whose tables never end."""
    async with (
        Database(each_database_url, LIMITS) as database,
        a_rig_on(tmp_path / "journal", database) as rig,
    ):
        await rig.open("market", "alice")
        alice = await rig.trader("alice")
        await alice.get("/auth/ban-status/closed-only")  # her key is known
        await rig.settle_tables()
        tables = (orders, trades, fills, profiles, quotes, api_keys, readonly_keys, builder_keys)
        async with endless(database, *tables):
            yield alice


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/data/trades", None),
        ("GET", "/data/orders", None),
        ("GET", f"/data/order/{a_word('order')}", None),
        ("POST", "/data/orders", [{"orderId": a_word("order")}]),
        ("GET", "/notifications", None),
        ("GET", "/profile", None),
        ("POST", "/data/volumes", [{"conditionId": an_open_market("market").condition_id}]),
        ("GET", "/auth/api-keys", None),
        ("GET", "/auth/readonly-api-keys", None),
        ("DELETE", "/auth/readonly-api-key", {"key": str(UUID(int=1))}),
        ("GET", "/auth/builder-api-key", None),
        ("DELETE", "/auth/builder-api-key", None),
    ],
)
async def test_c11_an_own_read_that_never_ends_is_stopped(
    alice: Trader, method: str, path: str, body: object
) -> None:
    answer = await alice.send(method, path, body)
    assert (answer.status_code, answer.json()["code"]) == (503, "read_too_slow"), answer.text
