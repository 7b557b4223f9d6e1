"""The ledger of a position explains every figure of it, to the unit."""

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
from foretell.domain.exchange.ledger import AssetId
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
    database: Database, reader: Reader, acts_by_block: list[int], pages: list[list[int]]
) -> None:
    """A finding: a page had all of its blocks, megabytes of a wallet that splits in batches."""
    token = an_asset(is_yes=True)
    async with database.writing() as tx:
        for block, count in enumerate(acts_by_block, 1):
            at_s = AT_S + 2 * block
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


async def test_a_conversion_is_a_cause_in_its_own_event_alone(fresh_database: Database) -> None:
    """The wallet converts in one event and sells a token of another in the same block."""
    events = [word_of(keccak256(name)[:31] + b"\0") for name in (b"one", b"other")]
    prepared = [
        Condition(
            *(1, place, 0, a_word(f"{event} {index}"), ADAPTER, question_id(event, index)),
            *(AssetId(f"{place}01"), AssetId(f"{place}02")),
        )
        for place, (event, index) in enumerate([(events[0], 0), (events[0], 1), (events[1], 0)])
    ]
    converted, received, sold = prepared
    conversion = ActivityRow(
        *(2, 0, 0, ANN, ActivityKind.CONVERSION, converted.condition_id, None, None),
        *(5, 0, False, AT_S, a_word("tx")),
    )
    sale = conversion._replace(
        log_index=1,
        kind=ActivityKind.TRADE,
        condition_id=sold.condition_id,
        token_id=sold.token_yes,
        side=Side.SELL,
    )
    async with fresh_database.writing() as tx:
        await record_conditions(tx, prepared)
        await record_activities(tx, [conversion, sale])
        await record_positions(
            tx,
            [
                PositionRow(ANN, each.token_yes, each.condition_id, 5, 1, 5, 1, 0, AT_S, 2)
                for each in (received, sold)
            ],
        )
    reader = Reader(an_app(build_app, a_data_context(fresh_database, BLOBS, lambda: NOW_MS)))
    kinds = {}
    for each in (received, sold):
        (page,) = await pages_of(reader, ANN, each.token_yes)
        (entry,) = page["entries"]
        kinds[each] = [act["type"] for act in entry["activities"]]
    assert kinds == {received: ["CONVERSION"], sold: ["TRADE"]}
