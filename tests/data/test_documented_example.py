"""The example of the data API's page: each of its values is what the API answers."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.rigs.builders.decided_trading import Trading
from tests.rigs.builders.sums import a_code
from tests.rigs.clock import Clock
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.read_apis import Reader, keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_word,
    an_address,
    an_open_market,
    an_order_id,
    some_funds,
)

from foretell.data import responses
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.domain.portfolio.fee_shares import divide_fee
from foretell.domain.portfolio.positions import (
    NO_POSITION,
    TradePrice,
    apply_all,
    purchase,
    sale,
    split,
    transfer_in,
    transfer_out,
)
from foretell.domain.values.hexadecimal import checksum_address
from foretell.edge.codec import WireObject
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.projection import Projection
from foretell.journal.files.journal import FileJournal
from foretell.store.database import Database
from foretell.store.trading.referrals import record_referral

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"
DAY_S = 86_400
ANN, BOB = an_address("ann"), an_address("bob")


def documented(begin: str, end: str) -> dict[str, float]:
    """Return the fields and values of an example's table, which is between two texts of the page."""
    text = PAGE.read_text().partition(begin)[2].partition(end)[0]
    rows = re.findall(r"^\| ([\w' -]+) \| [^|]+ \| (-?[\d.]+) \|$", text, re.MULTILINE)
    return {field: float(value) for field, value in rows}


async def test_the_example_of_the_page_is_what_the_api_answers(
    database: Database, reader: Reader
) -> None:
    bought, sold = purchase(10 * TOKEN, 4 * TOKEN, 0), sale(4 * TOKEN, 28 * TOKEN // 10, 0)
    held = apply_all(NO_POSITION, [bought, sold])
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 59, 61)
        await rows.buy("ann", "rain", bought.size_units, bought.money_units, timestamp_s=NOW_S)
        sizes = sold.size_units, sold.money_units
        await rows.buy("ann", "rain", *sizes, side=Side.SELL, timestamp_s=NOW_S)
        spent = {"bought_units": held.bought_units, "spent_units": held.spent_units}
        gained = {"realized_units": held.realized_units, "changed_at_s": NOW_S}
        await rows.hold("ann", "rain", held.size_units, held.cost_units, **spent, **gained)
    await keep_rankings(database)
    [position] = await reader.get("/positions", user=ANN)
    [ranked] = await reader.get("/v1/leaderboard", timePeriod="ALL")
    traded = await reader.get("/traded", user=ANN)
    volume = await reader.get("/volume", user=ANN)
    [worth] = await reader.get("/value", user=ANN)
    yes = (await reader.get("/holders", market=a_word("rain")))[0]
    purchase_of_ann = (await reader.get("/trades", user=ANN))[-1]
    others = {
        "traded": traded["traded"],
        "volume": float(volume["volume"]),
        "value of the wallet": worth["value"],
        "amount of the holder": yes["holders"][0]["amount"],
        "rank": int(ranked["rank"]),
        **{f"{field} of the purchase": each for field, each in purchase_of_ann.items()},
    }
    example = documented("For example, ann", "For example, dave")
    assert len(example) == 17
    assert example == {field: {**position, **ranked, **others}[field] for field in example}


async def test_a_sale_that_settles_after_a_later_purchase_has_the_average_cost_of_both(
    database: Database, reader: Reader
) -> None:
    cheap, sold = purchase(10 * TOKEN, 4 * TOKEN, 0), sale(5 * TOKEN, 35 * TOKEN // 10, 0)
    dear = purchase(10 * TOKEN, 7 * TOKEN, 0)
    orders = {"dave": [cheap, dear, sold], "erin": [cheap, sold, dear]}
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for wallet, changes in orders.items():
            held = apply_all(NO_POSITION, changes)
            spent = {"bought_units": held.bought_units, "spent_units": held.spent_units}
            gained = {"realized_units": held.realized_units}
            await rows.hold(wallet, "rain", held.size_units, held.cost_units, **spent, **gained)
    [settled] = await reader.get("/positions", user=an_address("dave"))
    [matched] = await reader.get("/positions", user=an_address("erin"))
    by_matches = {f"{field} by matches": each for field, each in matched.items()}
    example = documented("For example, dave", "For a period, carol")
    assert len(example) == 5
    assert example == {field: {**settled, **by_matches}[field] for field in example}


async def test_the_gain_of_a_period_is_as_the_page_computes_it(
    database: Database, reader: Reader
) -> None:
    bought_at_s, week_ago_s = NOW_S - 40 * DAY_S, NOW_S - 7 * DAY_S
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quoted_at("rain", week_ago_s - 60, 49, 51)
        await rows.quote("rain", 59, 61)
        await rows.buy("carol", "rain", 10 * TOKEN, 4 * TOKEN, timestamp_s=bought_at_s)
        await rows.hold("carol", "rain", 10 * TOKEN, 4 * TOKEN, changed_at_s=bought_at_s)
    await keep_rankings(database)
    answered: dict[str, float] = {}
    for period in ("ALL", "WEEK"):
        [ranked] = await reader.get("/v1/leaderboard", timePeriod=period)
        answered |= {f"{field} of {period}": ranked[field] for field in ("pnl", "vol")}
    assert answered == documented("For a period, carol", "For ranks, two")


async def test_ranks_and_their_ties_are_as_the_page_computes_them(
    database: Database, reader: Reader
) -> None:
    smaller, greater = sorted(("hal", "ida"), key=an_address)
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 59, 61)
        for name, spent_units in ((smaller, 4), (greater, 4), ("joe", 5)):
            await rows.buy(name, "rain", 10 * TOKEN, spent_units * TOKEN, timestamp_s=NOW_S)
            await rows.hold(name, "rain", 10 * TOKEN, spent_units * TOKEN, changed_at_s=NOW_S)
    await keep_rankings(database)
    page = {
        row["proxyWallet"]: int(row["rank"])
        for row in await reader.get("/v1/leaderboard", timePeriod="ALL", orderBy="PNL")
    }
    own: dict[str, int] = {}
    for name in (smaller, greater, "joe"):
        [row] = await reader.get("/v1/leaderboard", timePeriod="ALL", user=an_address(name))
        own[row["proxyWallet"]] = int(row["rank"])
    assert page == own
    names = {"greater address": greater, "smaller address": smaller, "third": "joe"}
    ranks = {
        f"rank of the {words}": page[checksum_address(an_address(name))]
        for words, name in names.items()
    }
    assert ranks == documented("For ranks, two", "For example, bob")


async def test_split_transferred_and_closed_positions_are_as_the_page_computes_them(
    database: Database, reader: Reader
) -> None:
    traded = TradePrice(7 * TOKEN, 10 * TOKEN)
    yes = apply_all(
        NO_POSITION,
        [
            split(8 * TOKEN, is_yes=True),
            transfer_in(2 * TOKEN, traded),
            transfer_out(5 * TOKEN),
        ],
    )
    sold = sale(8 * TOKEN, 48 * TOKEN // 10, 0)
    no = apply_all(NO_POSITION, [split(8 * TOKEN, is_yes=False), sold])
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 30, 50, 35)
        for position, is_yes in ((yes, True), (no, False)):
            spent = {"bought_units": position.bought_units, "spent_units": position.spent_units}
            gained = {"realized_units": position.realized_units, "is_yes": is_yes}
            await rows.hold(
                "bob", "rain", position.size_units, position.cost_units, **spent, **gained
            )
    await keep_rankings(database)
    [held] = await reader.get("/positions", user=BOB)
    [closed] = await reader.get("/closed-positions", user=BOB)
    [win] = await reader.get("/v1/leaderboard/biggest-wins", timePeriod="ALL")
    example = documented("For example, bob", "He sold the 8 No")
    assert len(example) == 9
    assert example == {field: held[field] for field in example}
    of_win = {f"{field} of the win": win[field] for field in ("initialValue", "finalValue")}
    example = documented("He sold the 8 No", "And `curPrice`")
    assert len(example) == 5
    assert example == {field: {**closed, **of_win}[field] for field in example}


async def test_the_live_volume_of_the_page_is_what_the_engine_writes(
    database: Database, reader: Reader, tmp_path: Path
) -> None:
    """Each resting order, and the taker that matches all of it."""
    pairs = [
        (
            a_buy("bob", price_ticks=30, size_units=10 * TOKEN, is_yes=False),
            a_buy("alice", price_ticks=70, size_units=10 * TOKEN),
        ),
        (
            a_buy("alice", price_ticks=40, size_units=8 * TOKEN),
            a_sell("carol", price_ticks=40, size_units=8 * TOKEN),
        ),
        (
            a_sell("bob", price_ticks=30, size_units=5 * TOKEN, is_yes=False),
            a_sell("alice", price_ticks=70, size_units=5 * TOKEN),
        ),
    ]
    engine = Engine(FileJournal(tmp_path / "journal", segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    projection = Projection(database)
    engine.subscribe(projection.on_committed)
    await projection.start()
    await engine.start()
    for command in (an_open_market(), some_funds("alice", "bob", "carol")):
        await engine.submit(command)
    for pair in pairs:
        for order in pair:
            await engine.submit(a_placing(order))
    await projection.catch_up()
    await engine.close()
    [live] = await reader.get("/live-volume", market=a_word("market"))
    example = documented("Other figures are", "And of a fee")
    assert live["total"] == example["total of live-volume"]


def test_the_shares_of_a_fee_are_as_the_page_computes_them() -> None:
    shares = divide_fee(1_000_003, 2_000, 1_000)
    example = documented("And of a fee", "And of activities")
    assert example == {
        "totalAmount of the builder": shares.builder_units,
        "totalAmount of the referrer": shares.referrer_units,
    }


async def test_the_volume_of_referred_wallets_is_as_the_page_computes_it(
    database: Database, reader: Reader
) -> None:
    eve = an_address("eve")
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        before = await rows.buy("ann", "rain", 4 * TOKEN, 2 * TOKEN, timestamp_s=NOW_S - DAY_S)
        await record_referral(tx, [ANN, BOB], eve, before.timestamp_s + 1)
        await rows.buy("ann", "rain", 10 * TOKEN, 7 * TOKEN, timestamp_s=NOW_S)
        await rows.buy("ann", "rain", 5 * TOKEN, 3 * TOKEN, timestamp_s=NOW_S)
        await rows.buy("bob", "rain", 5 * TOKEN, 3 * TOKEN, side=Side.SELL, timestamp_s=NOW_S)
    [received] = await reader.get("/referrers", address=eve)
    example = documented("And of referrals", "And of what is owed")
    assert example == {"totalVolume": int(received["totalVolume"])}


async def test_the_volumes_of_a_builder_are_as_the_page_computes_them(
    database: Database, reader: Reader
) -> None:
    trading = Trading(database)
    await trading.begin()
    code = a_code(1)
    bids = [
        a_buy("bob", price_ticks=price, size_units=size * TOKEN)
        for price, size in ((60, 5), (50, 8))
    ]
    sales = [
        a_sell("alice", bid.maker_amount * 100 // bid.taker_amount, bid.taker_amount)
        for bid in bids
    ]
    yesterday = NOW_MS - 1000 * DAY_S
    for bid, order in zip(bids, sales, strict=True):
        await trading.write(
            a_placing(bid, at_ms=yesterday), a_placing(order, at_ms=yesterday, builder=code)
        )
    failed = trade_id_of(an_order_id(sales[-1]), 0)
    await trading.write(a_settlement(failed, TradeStatus.FAILED, ""))
    for order in (
        a_buy("carol", price_ticks=30, size_units=10 * TOKEN, is_yes=False),
        a_buy("alice", price_ticks=70, size_units=10 * TOKEN),
    ):
        await trading.write(a_placing(order, builder=code))
    [week] = await reader.get("/builders/leaderboard", timePeriod="WEEK")
    [day] = await reader.get("/builders/volume")
    answered = {
        f"{field} of the builder's {name}": float(row[field])
        for name, row in (("day", day), ("week", week))
        for field in ("volume", "activeUsers", "rank")
    }
    example = documented("And of builders", "\0")
    assert len(example) == 5
    assert example == {field: answered[field] for field in example}


EXAMPLE_BY_FIGURE: Final = {
    "OwedToken.size": "size of what is owed",
    "Value.value": "value of the wallet",
    "Traded.traded": "traded",
    "Volume.volume": "volume",
    **{
        f"TradeResponse.{name}": f"{name} of the purchase" for name in ("size", "price", "usdcSize")
    },
    **{
        f"ActivityResponse.{name}": f"{name} of the purchase"
        for name in ("size", "price", "usdcSize")
    },
    **{f"LedgerAct.{name}": f"{name} of the purchase" for name in ("size", "usdcSize")},
    "HolderResponse.amount": "amount of the holder",
    "MarketValue.value": "value of oi",
    "LiveVolume.total": "total of live-volume",
    "FeeAggregate.totalAmount": "totalAmount of the builder",
    "TraderRow.rank": "rank",
    "TraderRow.vol": "vol",
    "TraderRow.pnl": "pnl",
    "WinRow.winRank": "rank",
    "WinRow.initialValue": "initialValue of the win",
    "WinRow.finalValue": "finalValue of the win",
    "WinRow.pnl": "realizedPnl",
    **{
        f"{record}.{field}": f"{field} of the builder's day"
        for record in ("BuilderRow", "BuilderDayRow")
        for field in ("rank", "volume", "activeUsers")
    },
    "NamedDeficit.amount": "deficit of solvency",
}
"""The examples of figures; those of positions, ledgers and solvency have the names of their fields."""
NO_FIGURES: Final = {
    *("timestamp", "updatedAt", "block", "outcomeIndex", "conditions", "shortConditions"),
}
"""Numbers that say when, where or how many rows."""
FIGURES_IN_TEXT: Final = {"volume", "rank", "winRank", "totalAmount", "totalVolume"}


def figures() -> list[tuple[str, str]]:
    """Return every figure in the responses: its record and its field."""
    kinds = [
        kind
        for kind in vars(responses).values()
        if isinstance(kind, type) and issubclass(kind, WireObject)
    ]
    return [
        (kind.__name__, field.encode_name)
        for kind in kinds
        for field in msgspec.structs.fields(kind)
        if field.encode_name not in NO_FIGURES
        and (
            field.encode_name in FIGURES_IN_TEXT
            or field.type in {Decimal, int, Decimal | None, int | None}
        )
    ]


@pytest.mark.parametrize(("record", "field"), figures())
def test_every_figure_of_a_response_has_an_example(record: str, field: str) -> None:
    text = PAGE.read_text().partition("## Definitions")[2]
    examples = set(re.findall(r"^\| ([\w' -]+) \| [^|]+ \| -?[\d.]+ \|$", text, re.MULTILINE))
    own = f"{field} of solvency" if "Solvency" in record else field
    assert EXAMPLE_BY_FIGURE.get(f"{record}.{field}", own) in examples


def documented_prices() -> list[tuple[str, float]]:
    """Return the payouts or the book, and the price, of each row of the table of prices."""
    text = PAGE.read_text().partition("And `curPrice` of Yes")[2].partition("Other figures")[0]
    rows = re.findall(r"^\| ([^|]+) \| [^|]*\| ([\d.]+) \|$", text, re.MULTILINE)
    return [(known, float(price)) for known, price in rows]


@pytest.mark.parametrize(("known", "price"), documented_prices())
async def test_a_price_is_as_the_page_computes_it(
    database: Database, reader: Reader, known: str, price: float
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.hold("bob", "rain", TOKEN, TOKEN)
        if known.startswith("payouts"):
            yes, no = map(int, re.findall(r"\d+", known))
            await rows.resolve("rain", yes, no)
        else:
            ticks = [None if each == "none" else int(each[2:]) for each in known.split(", ")]
            await rows.quote("rain", *ticks)
    [position] = await reader.get("/positions", user=BOB)
    assert position["curPrice"] == price


def test_every_rule_of_a_price_has_an_example() -> None:
    assert len(documented_prices()) == 5


EXAMPLES_BY_DEFINITION: Final = {
    "price of a trade": "price of the purchase",
    "size of a trade or activity": "size of the purchase",
    "usdcSize": "usdcSize of the purchase",
    "amount of a holder": "amount of the holder",
    "value of `/value`": "value of the wallet",
    "value of `/oi`": "value of oi",
    "value of `/live-volume`": "total of live-volume",
    **{name: f"{name} of solvency" for name in ("held", "owed", "deficit")},
    "totalAmount": "totalAmount of the builder",
    "volume of a builder": "volume of the builder's week",
    "activeUsers": "activeUsers of the builder's week",
    "pnl of a leaderboard": "pnl of WEEK",
    "finalValue \N{MINUS SIGN} initialValue of a win": "finalValue of the win",
}
"""The examples of what the page defines; the others have the names of their fields."""
WITHOUT_FORMULA: Final = {"redeemable", "mergeable"}


def definitions() -> list[str]:
    """Return the fields that the page's table of definitions names."""
    text = PAGE.read_text().partition("| field | definition |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| ([^|]+) \| ", text, re.MULTILINE)
    return [field for fields in named for field in fields.split(", ") if field != "---"]


@pytest.mark.parametrize("field", sorted({*definitions()} - WITHOUT_FORMULA))
def test_every_documented_formula_has_an_example(field: str) -> None:
    examples = PAGE.read_text().partition("## Definitions")[2]
    assert (
        f"| {EXAMPLES_BY_DEFINITION.get(field, field)} | " in examples.partition("For example")[2]
    )
