from pathlib import Path

import pytest
from tests.rigs.read_apis import Reader, keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, TOKEN, a_word, an_address

from foretell.domain.exchange.order import Side
from foretell.store.database import Database
from foretell.store.trading.profiles import PublicProfile, record_profile

pytestmark = pytest.mark.anyio

IMAGE = "https://example.org/a.png"


@pytest.fixture(autouse=True)
async def traded(database: Database) -> None:
    """Alice, who has a profile, and bob, who has none."""
    alice, safe = an_address("alice"), an_address("alice's safe")
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.buy("alice", "rain", 10 * TOKEN, 4 * TOKEN)
        await rows.buy("bob", "rain", 9 * TOKEN, 3 * TOKEN, side=Side.SELL)
        for name in ("alice", "bob"):
            await rows.hold(name, "rain", TOKEN, 0, realized_units=TOKEN, bought_units=9 * TOKEN)
        await record_profile(tx, PublicProfile(alice, safe, "Alice", "I trade.", IMAGE, NOW_MS))


@pytest.mark.parametrize("path", ["/trades", "/activity", "/holders"])
async def test_rows_show_the_profile_of_their_wallet(reader: Reader, path: str) -> None:
    queries: dict[str, dict[str, str]] = {
        "/holders": {"market": a_word("rain")},
        "/activity": {"user": an_address("alice")},
    }
    answer = await reader.get(path, **queries.get(path, {}))
    rows = answer[0]["holders"] if path == "/holders" else answer
    by_wallet = {row["proxyWallet"].lower(): row for row in rows}
    alice = by_wallet[an_address("alice")]
    assert [alice[name] for name in ("name", "bio", "profileImage")] == ["Alice", "I trade.", IMAGE]
    bob = by_wallet.get(an_address("bob"), {"name": "", "bio": "", "profileImage": ""})
    assert [bob[name] for name in ("name", "bio", "profileImage")] == ["", "", ""]


async def test_a_holder_with_a_name_shows_it(reader: Reader) -> None:
    """A finding: `/holders` said that no name is shown, beside the names, and `/public-profile` that it is."""
    [holders, _] = await reader.get("/holders", market=a_word("rain"))
    shown = {row["name"]: row["displayUsernamePublic"] for row in holders["holders"]}
    assert shown["Alice"] is True
    assert shown[""] is False


async def test_the_leaderboard_shows_names_and_images(database: Database, reader: Reader) -> None:
    await keep_rankings(database)
    rows = await reader.get("/v1/leaderboard")
    shown = {row["proxyWallet"].lower(): (row["userName"], row["profileImage"]) for row in rows}
    assert shown[an_address("alice")] == ("Alice", IMAGE)
    assert shown[an_address("bob")] == (None, None)


async def test_the_page_names_the_fields_that_no_wallet_has(
    database: Database, reader: Reader
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "data-api.md").read_text()
    sentence = page.partition("The others are the same for all wallets:")[2].partition("\n\n")[0]
    await keep_rankings(database)
    [holders, _] = await reader.get("/holders", market=a_word("rain"))
    ranked = await reader.get("/v1/leaderboard")
    wins = await reader.get("/v1/leaderboard/biggest-wins", timePeriod="ALL")
    for row in [*holders["holders"], *await reader.get("/trades"), *ranked]:
        assert row.get("pseudonym", "") == ""
        nulls = {"profileImageOptimized", "xUsername", "verifiedBadge"} & row.keys()
        assert nulls
        assert {row[name] for name in nulls} == {None}
    words = "pseudonym is empty, and profileImageOptimized, xUsername and verifiedBadge are `null`."
    assert " ".join(sentence.split()) == words
    assert all(isinstance(row["winRank"], str) for row in wins)
    assert "`winRank`\nis a *str*" in page


async def test_the_leaderboard_finds_the_wallets_of_the_owner_of_a_name(
    database: Database, reader: Reader
) -> None:
    safe = an_address("alice's safe")
    async with database.writing() as tx:
        await Rows(tx).buy("alice's safe", "rain", TOKEN, TOKEN)
        await Rows(tx).hold("alice's safe", "rain", TOKEN, 0, bought_units=TOKEN)
    await keep_rankings(database)

    async def found(**parameters: str) -> list[tuple[str, str]]:
        rows = await reader.get("/v1/leaderboard", orderBy="VOL", **parameters)
        return [(row["proxyWallet"].lower(), row["userName"]) for row in rows]

    both = [(an_address("alice"), "Alice"), (safe, "Alice")]
    assert await found(userName="aLICE") == both
    assert await found(userName="Álïcé") == both
    assert await found(userName="  alice\u00a0 ") == both, "blanks around it do not count"
    assert await found(userName="   ") == []
    assert await found(userName="Alice", user=safe) == both[1:]
    assert await found(userName="Alice", user=an_address("bob")) == []
    assert await found(userName="Alice", limit="1") == both[:1]
    assert await found(userName="Alice", offset="1") == both[1:]
    assert await found(userName="alic") == []
