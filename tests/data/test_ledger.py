"""The ledger of a position explains every figure of it, to the unit."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
from tests.indexer.rig import IndexerRig
from tests.reconciliation.conftest import deep_sandbox, fresh_sandbox, market  # noqa: F401 - fixtures
from tests.reconciliation.history import EventActs, RandomHistory
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import NOW_MS, a_word, an_address, an_asset

from foretell.data.routes import build_app
from foretell.domain.contracts.neg_risk import question_id
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import keccak256, word_of
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind, ActivityRow, record_activities
from foretell.store.index.conditions import Condition, record_conditions
from foretell.store.index.positions import PositionRow, record_positions

pytestmark = pytest.mark.anyio

FIGURES = ("size", "initialValue", "totalBought", "totalBoughtUsdc", "realizedPnl")
ANN = an_address("ann")
ADAPTER = an_address("adapter")
AT_S = NOW_MS // 1000


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url) as database:
        yield database


async def pages_of(reader: Reader, wallet: str, token: str) -> list[Any]:
    """Return all pages of a ledger, of two entries each."""
    pages = [await reader.get(f"/positions/{token}/ledger", user=wallet, limit="2")]
    while pages[-1]["next"]:
        asked = {"user": wallet, "limit": "2", "after": pages[-1]["next"]}
        pages.append(await reader.get(f"/positions/{token}/ledger", **asked))
    return pages


async def test_the_entries_of_a_random_history_add_up_to_every_position(
    fresh_sandbox: Sandbox,  # noqa: F811 - the fixture
    market: tuple[IndexerRig, EventActs],  # noqa: F811 - the fixture
    fresh_database: Database,
) -> None:
    history = RandomHistory(fresh_sandbox, *market, fresh_database, 1)
    await history.play(30)
    reader = Reader(an_app(build_app, a_data_context(fresh_database, BLOBS, lambda: NOW_MS)))
    wallet = fresh_sandbox.trader(0).address
    shown = await reader.get("/positions", user=wallet, sizeThreshold="0")
    shown += await reader.get("/closed-positions", user=wallet)
    kinds: set[str] = set()
    for position in shown:
        pages = await pages_of(reader, wallet, position["asset"])
        entries = [entry for page in pages for entry in page["entries"]]
        sums = {name: sum(exact(entry[name]) for entry in entries) for name in FIGURES}
        assert sums == {name: exact(position[name]) for name in FIGURES}
        assert sums == {name: exact(pages[0]["now"][name]) for name in FIGURES}
        assert pages[0]["before"] == dict.fromkeys(FIGURES, 0)
        assert [entry["block"] for entry in entries] == sorted({e["block"] for e in entries})
        kinds |= {act["type"] for entry in entries for act in entry["activities"]}
    assert kinds >= {"TRADE", "SPLIT", "MERGE"}
    assert len(shown) > 2


def exact(number: float) -> Decimal:
    return Decimal(str(number))


async def test_a_wallet_that_never_had_the_token_has_an_empty_ledger(reader: Reader) -> None:
    assert await reader.get("/positions/7/ledger", user=ANN) == {
        "proxyWallet": (await reader.get("/value", user=ANN))[0]["user"],
        "asset": "7",
        "conditionId": "",
        "before": dict.fromkeys(FIGURES, 0),
        "entries": [],
        "now": dict.fromkeys(FIGURES, 0),
        "next": "",
    }


@pytest.mark.parametrize("token", ["-1", "0x7", "\u0667", "7" * 79])
async def test_a_token_that_is_no_number_is_refused(reader: Reader, token: str) -> None:
    status, body = await reader.refused(f"/positions/{token}/ledger", user=ANN)
    assert status == 400
    assert body["error"].startswith("invalid_field: ")


@pytest.mark.parametrize("seconds_per_block", [2, 0])
@pytest.mark.parametrize(
    ("acts_by_block", "pages"),
    [
        ([200, 300], [[200, 300]]),
        ([200, 300, 1], [[200, 300], [1]]),
        ([200, 301, 1], [[200], [301, 1]]),
        ([1, 700, 0, 2], [[1], [500], [0, 2]]),
        ([3] * 60, [[3] * 60]),
        ([20] * 60, [[20] * 25, [20] * 25, [20] * 10]),
    ],
)
async def test_a_page_has_few_activities_and_the_pages_have_all_blocks(
    database: Database,
    reader: Reader,
    acts_by_block: list[int],
    pages: list[list[int]],
    seconds_per_block: int,
) -> None:
    """A finding: a page had all of its blocks, megabytes of a wallet that splits in batches.

    Another one: activities of other blocks of the same second were counted, so the last block of a page had none.
    """
    token = an_asset(is_yes=True)
    async with database.writing() as tx:
        for block, count in enumerate(acts_by_block, 1):
            at_s = AT_S + seconds_per_block * block
            split = ActivityRow(
                *(block, 0, 0, ANN, ActivityKind.SPLIT, a_word("market"), None, None),
                *(5, 5, False, at_s, a_word("tx")),
            )
            elsewhere = split._replace(log_index=9_999, condition_id=a_word("another"))
            acts = [split._replace(log_index=each) for each in range(count)]
            await record_activities(tx, [*acts, elsewhere])
            position = PositionRow(ANN, token, a_word("market"), block, 1, 5, 1, 0, at_s, block)
            await record_positions(tx, [position])
    found: list[list[int]] = []
    after: dict[str, str] = {}
    while not found or after:
        page = await reader.get(f"/positions/{token}/ledger", user=ANN, limit="200", **after)
        found.append([len(entry["activities"]) for entry in page["entries"]])
        after = {"after": page["next"]} if page["next"] else {}
    assert found == pages


def an_event(name: bytes, questions: int) -> list[Condition]:
    """Return the conditions of an event of the adapter."""
    event = word_of(keccak256(name)[:31] + b"\0")
    return [
        Condition(
            *(1, 0, 0, a_word(f"{event} {index}"), ADAPTER, question_id(event, index)),
            *(an_asset(is_yes=yes, market=f"{event} {index}") for yes in (True, False)),
        )
        for index in range(questions)
    ]


def a_conversion(condition: Condition, block: int, log_index: int = 0) -> ActivityRow:
    """Return a conversion in a block of its own second."""
    return ActivityRow(
        *(block, log_index, 0, ANN, ActivityKind.CONVERSION, condition.condition_id, None, None),
        *(5, 0, False, AT_S + block, a_word("tx")),
    )


def a_sale(condition: Condition, block: int, log_index: int) -> ActivityRow:
    """Return a sale of a condition's Yes in a block of its own second."""
    return a_conversion(condition, block, log_index)._replace(
        kind=ActivityKind.TRADE, token_id=condition.token_yes, side=Side.SELL
    )


async def write_ledger(
    database: Database, prepared: list[Condition], acts: list[ActivityRow]
) -> None:
    """Write conditions, activities, and a change of every Yes in each block of these."""
    placed = [each._replace(log_index=place) for place, each in enumerate(prepared)]
    async with database.writing() as tx:
        await record_conditions(tx, placed)
        await record_activities(tx, acts)
        for block in sorted({each.block_number for each in acts}):
            await record_positions(
                tx,
                [
                    PositionRow(
                        *(ANN, each.token_yes, each.condition_id, 5, 1, 5, 1, 0),
                        *(AT_S + block, block),
                    )
                    for each in prepared
                ],
            )


async def kinds_of(reader: Reader, condition: Condition) -> list[list[str]]:
    """Return the kinds of the activities of each block that changed the Yes of a condition."""
    asked = {"user": ANN, "limit": "200"}
    page = await reader.get(f"/positions/{condition.token_yes}/ledger", **asked)
    assert not page["next"]
    return [[act["type"] for act in entry["activities"]] for entry in page["entries"]]


async def test_a_conversion_is_a_cause_in_its_own_event_alone(
    database: Database, reader: Reader
) -> None:
    """The wallet converts in one event and sells a token of another in the same block."""
    converted, received = an_event(b"one", 2)
    [sold] = an_event(b"other", 1)
    acts = [a_conversion(converted, 2), a_sale(sold, 2, 1)]
    await write_ledger(database, [converted, received, sold], acts)
    assert await kinds_of(reader, converted) == [["CONVERSION"]]
    assert await kinds_of(reader, received) == [["CONVERSION"]]
    assert await kinds_of(reader, sold) == [["TRADE"]]


async def test_conversions_in_other_events_take_no_place_of_a_cause(
    database: Database, reader: Reader
) -> None:
    """A finding: a page read so many of them that its last blocks had no activities."""
    [converted] = an_event(b"one", 1)
    [sold] = an_event(b"other", 1)
    acts = [
        act
        for block in range(2, 102)
        for act in (
            *(a_conversion(converted, block, log_index) for log_index in range(6)),
            a_sale(sold, block, 6),
        )
    ]
    await write_ledger(database, [converted, sold], acts)
    assert await kinds_of(reader, sold) == [["TRADE"]] * 100
