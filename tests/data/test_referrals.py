import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows
from tests.rigs.values import EXCHANGE, TOKEN, an_address, an_asset

from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind
from foretell.store.index.unwind import unwind
from foretell.store.tables import activities
from foretell.store.trading.referrals import load_referrer, record_referral

pytestmark = pytest.mark.anyio

ALICE = an_address("alice")
BOB = an_address("bob")
PATHS = ["/referrers", "/affiliates"]


@pytest.fixture
async def referred(database: Database) -> None:
    """Alice referred bob before his first trade, and carol, who trades on another exchange, after hers."""
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
        await record_referral(tx, [BOB], ALICE, 0)
        await rows.buy("bob", "rain", 10 * TOKEN, 4 * TOKEN)
        await rows.buy("bob", "rain", 3 * TOKEN, 2 * TOKEN, is_yes=False)
        await rows.act("bob", "rain", ActivityKind.SPLIT, 7 * TOKEN)
        late = await rows.buy("carol", "snow", 5 * TOKEN, TOKEN)
        await rows.buy("dave", "snow", 5 * TOKEN, TOKEN)
        await record_referral(tx, [an_address("carol")], ALICE, late.timestamp_s + 1)


@pytest.mark.usefixtures("referred")
@pytest.mark.parametrize("path", PATHS)
async def test_trades_of_referred_wallets_are_summed_for_their_referrer(
    reader: Reader, path: str
) -> None:
    (shared,) = await reader.get(path, address=ALICE)
    assert shared == {
        "exchange": checksum_address(EXCHANGE),
        "receiver": checksum_address(ALICE),
        "tokenId": "0",
        "totalAmount": "0",
        "updatedAt": shared["updatedAt"],
        "totalVolume": str(6 * TOKEN),
    }
    assert await reader.get(path, address=BOB) == []


@pytest.mark.usefixtures("referred")
async def test_sums_are_of_one_token_or_one_exchange(reader: Reader) -> None:
    token = an_asset(is_yes=False, market="rain")
    (shared,) = await reader.get("/referrers", address=ALICE, tokenId=token)
    assert (shared["tokenId"], shared["totalVolume"]) == (token, str(2 * TOKEN))
    assert len(await reader.get("/referrers", address=ALICE, exchange=EXCHANGE)) == 1
    assert await reader.get("/referrers", address=ALICE, exchange=an_address("exchange")) == []
    assert await reader.get("/referrers", address=ALICE, limit="0") == []
    assert await reader.get("/referrers", address=ALICE, offset="1") == []


@pytest.mark.usefixtures("referred")
async def test_a_reorganization_takes_back_the_volume(reader: Reader, database: Database) -> None:
    async with database.writing() as tx:
        first = await tx.scalar(sa.select(sa.func.min(activities.c.block_number)))
        await unwind(tx, first)
    (shared,) = await reader.get("/referrers", address=ALICE)
    assert shared["totalVolume"] == str(4 * TOKEN)


async def test_the_first_referral_stays(database: Database) -> None:
    async with database.writing() as tx:
        await record_referral(tx, [BOB], ALICE, 5)
        await record_referral(tx, [BOB], an_address("carol"), 6)
        assert await load_referrer(tx, BOB) == ALICE


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
