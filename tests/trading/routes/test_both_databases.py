"""One list of reads, those of an account too, with the same answers on SQLite and on PostgreSQL."""

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import httpx
import pytest
from tests.data.test_both_databases import postgres_url_emptied
from tests.rigs.orders.builders import a_builder_of
from tests.rigs.rows import Rows
from tests.rigs.trading import Trader, TradingRig, a_rig_on
from tests.rigs.values import (
    NOW_S,
    TOKEN,
    a_buy,
    a_sell,
    a_settlement,
    a_word,
    an_address,
    an_asset,
    an_order_id,
)

from foretell.domain.exchange.commands import ResolveMarket
from foretell.domain.exchange.trade import TradeStatus
from foretell.edge.builders.keys import builder_code
from foretell.store.database import Database

__all__ = ["postgres_url_emptied"]

pytestmark = pytest.mark.anyio

MARKET: Final = a_word("market")
YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
OTHER_YES: Final = an_asset(is_yes=True, market="other")
RESTING: Final = a_buy("alice", price_ticks=30, salt="7")
CODE: Final = builder_code(an_address("carol"))
CREDENTIALS: Final = "/auth/derive-api-key"
READERS_KEY: Final = "{key}"
"""Stands for a read-only key of alice."""
HISTORIES: Final = (
    *(f"market={token}&interval={interval}" for token in (YES, NO) for interval in ("1h", "max")),
    f"market={YES}&startTs={NOW_S - 7200}&endTs={NOW_S}&fidelity=5",
    f"market={OTHER_YES}&interval=1d",
)
TRADES: Final = (
    "",
    f"market={MARKET}",
    f"asset_id={YES}",
    f"maker_address={an_address('alice')}",
    f"maker={an_address('bob')}",
    f"taker={an_address('alice')}",
    f"before={NOW_S + 30}",
    f"after={NOW_S + 30}",
)
READS: Final = (
    *(("GET", f"/prices-history?{chosen}", None) for chosen in HISTORIES),
    *(
        ("POST", "/batch-prices-history", {"markets": [YES, NO, OTHER_YES], **chosen})
        for chosen in (
            {"interval": "1h"},
            {"start_ts": NOW_S - 7200, "end_ts": NOW_S + 60, "fidelity": 10},
        )
    ),
    *(
        ("GET", f"/{path}?{chosen}", None)
        for path in ("data/trades", "trades")
        for chosen in TRADES
    ),
    *(("GET", f"/data/orders?{chosen}", None) for chosen in ("", f"market={MARKET}")),
    *(("GET", f"/data/order/{an_order_id(order)}", None) for order in (RESTING,)),
    ("POST", "/data/orders", [{"orderId": an_order_id(RESTING)}]),
    *(
        ("GET", f"/builder/trades?builder_code={CODE}{chosen}", None)
        for chosen in ("", f"&market={MARKET}", f"&after={NOW_S - 60}")
    ),
    ("GET", f"/fees/builder-fees/{CODE}", None),
    ("GET", "/notifications", None),
    ("GET", "/profile", None),
    ("GET", f"/auth/account?address={an_address('alice')}", None),
    *(("GET", f"/auth/api-keys?metadata={each}", None) for each in ("true", "false")),
    ("GET", CREDENTIALS, None),
    ("GET", "/auth/builder-api-key", None),
    ("GET", "/auth/readonly-api-keys", None),
    (
        "GET",
        f"/auth/validate-readonly-api-key?address={an_address('alice')}&key={READERS_KEY}",
        None,
    ),
    *(
        ("GET", f"/{path}", None)
        for path in (
            *("markets", "simplified-markets", "sampling-markets", "sampling-simplified-markets"),
            *(f"markets/{MARKET}", f"clob-markets/{MARKET}", f"markets-by-token/{NO}"),
            *(f"live-activity/events/{MARKET}", f"markets/live-activity/{MARKET}"),
        )
    ),
    *(
        (
            "POST",
            f"/data/volumes?include_24h={each}",
            [{"conditionId": MARKET}, {"conditionId": a_word("other")}],
        )
        for each in ("true", "false")
    ),
)
"""The method, the path and the body of each read that reads a table."""
NOT_READ: Final = {
    *(("GET", path) for path in ("/", "/ok", "/time", "/version", "/limits")),
    *(("GET", f"/{word}") for word in ("book", "price", "prices", "midpoint", "midpoints")),
    *(("GET", f"/{word}") for word in ("spread", "spreads", "last-trade-price", "events")),
    *(("POST", f"/{word}") for word in ("books", "prices", "midpoints", "spreads")),
    ("POST", "/last-trades-prices"),
    *(
        ("GET", f"/{name}{of}")
        for name in ("tick-size", "neg-risk", "fee-rate")
        for of in ("", "/{token_id}")
    ),
    *(("GET", f"/balance-allowance{part}") for part in ("", "/update")),
    ("GET", "/auth/ban-status/closed-only"),
}
"""Reads of the engine's memory, of the books that readers see, and of no state at all."""
PLACEHOLDERS: Final = re.compile(
    r"/(rewards|rebates|rfq)/|/order-scoring$|/data/pre-migration-orders$"
)
WRITES: Final = {
    *("/auth/api-key", "/auth/builder-api-key", "/auth/readonly-api-key", "/profile"),
    *("/heartbeats", "/v1/heartbeats", "/order", "/orders", "/order/validate", "/orders-scoring"),
}
"""Routes whose POST writes, or asks the engine."""


async def play(rig: TradingRig) -> tuple[Trader, str]:
    """Trade for two minutes, and return alice with one of her read-only keys."""
    await rig.open("market", "alice", "bob", "carol")
    await rig.open("other", "alice", "bob")
    alice, bob, carol = [await rig.trader(name) for name in ("alice", "bob", "carol")]
    await rig.trader("alice", 1)
    builder, _ = await a_builder_of(carol), await a_builder_of(alice)
    await alice.placed(RESTING)
    traded = []
    for number, (maker, taker) in enumerate(
        [
            (a_sell("bob", 40, 5 * TOKEN), a_buy("alice", 40, 5 * TOKEN)),
            (a_buy("alice", 45, 9 * TOKEN, is_yes=False), a_buy("bob", 55, 6 * TOKEN)),
            (
                a_buy("bob", 35, 8 * TOKEN, market="other"),
                a_sell("alice", 35, 5 * TOKEN, market="other"),
            ),
        ]
    ):
        await (alice if maker.maker == alice.address else bob).placed(maker)
        owner = alice if taker.maker == alice.address else bob
        answer = await builder.bring(owner, taker) if number < 2 else await owner.place(taker)
        assert answer.status_code == 200, answer.text
        traded += answer.json()["tradeIDs"]
        rig.clock.move(60_000)
    await rig.settle_tables()
    await settle(rig, traded[0])
    async with rig.context.database.writing() as tx:
        for back_s, bid, ask, last in ((3600, 20, 30, None), (1800, None, None, 33)):
            await Rows(tx).quoted_at("market", NOW_S - back_s, bid, ask, last)
    profile = {"name": "Alice", "bio": "Épée", "image": "https://example.org/a.png"}
    assert (await alice.send("POST", "/profile", profile)).status_code == 200
    made = await alice.send("POST", "/auth/readonly-api-key")
    assert made.status_code == 200, made.text
    await rig.submit(ResolveMarket(at_ms=rig.clock.at_ms, condition_id=a_word("other")))
    await rig.settle_tables()
    return alice, made.json()["apiKey"]


async def settle(rig: TradingRig, trade_id: str) -> None:
    """Have the chain confirm a trade."""
    await rig.submit(a_settlement(trade_id, TradeStatus.CONFIRMED, a_word("settled")))
    await rig.settle_tables()


@contextlib.asynccontextmanager
async def played(folder: Path, database: Database) -> AsyncIterator[tuple[Trader, str]]:
    async with a_rig_on(folder, database) as rig:
        yield await play(rig)


async def test_every_read_of_trading_has_the_same_answer_on_both_databases(
    fresh_database: Database, postgres_url_emptied: str, tmp_path: Path
) -> None:
    answers: list[list[tuple[str, Any]]] = []
    async with Database(postgres_url_emptied) as other:
        for place, database in enumerate((fresh_database, other)):
            async with played(tmp_path / f"journal {place}", database) as (alice, key):
                answered = []
                for method, path, body in READS:
                    sent = await ask(alice, method, path.replace(READERS_KEY, key), body)
                    assert sent.status_code in {200, 207}, (path, sent.text)
                    answered.append((path, sent.json()))
                answers.append(answered)
    for one, another in zip(*answers, strict=True):
        assert one == another
    assert [path for path, answer in answers[0] if is_empty(answer)] == []


async def ask(trader: Trader, method: str, path: str, body: object) -> httpx.Response:
    """Send a request that the trader signs: with its wallet for the credentials, else with its key."""
    if path == CREDENTIALS:
        return await trader.rig.client.get(path, headers=trader.l1_headers())
    route, _, chosen = path.partition("?")
    return await trader.send(method, route, body, query=dict(parse_qsl(chosen)))


def is_empty(answer: Any) -> bool:
    """Return whether an answer has no row."""
    if isinstance(answer, dict) and "data" in answer:
        return not answer["data"]
    return not answer


async def test_the_list_has_every_route_of_trading_that_reads_a_table(rig: TradingRig) -> None:
    document = (await rig.client.get("/schema/openapi.json")).json()
    asked = {(method, path.partition("?")[0]) for method, path, _ in READS}
    missing = {
        (method, path)
        for path, methods in document["paths"].items()
        for method in map(str.upper, methods)
        if method in {"GET", "POST"} and not (method == "POST" and path in WRITES)
        if (method, path) not in NOT_READ and not PLACEHOLDERS.search(path)
        if not any(
            method == by and re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", path), each)
            for by, each in asked
        )
    }
    assert missing == set()
