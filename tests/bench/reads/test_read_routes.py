"""Every read route is measured by `foretell bench data`, or is one of a few that read nothing."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import Reader

from foretell.app.http.request_head import HEAD_BYTES_MAX
from foretell.bench.rigs.reads.history import History, HistoryPlan, a_condition
from foretell.bench.rigs.reads.history_cases import largest_batch
from foretell.bench.rigs.reads.public_trading import ROUTES as MEASURED_TRADING_ROUTES
from foretell.bench.rigs.reads.read_case import DATA, DISCOVERY, TRADING
from foretell.bench.rigs.reads.routes import cases, dear_cases
from foretell.bench.rigs.reads.served import read_apps
from foretell.data.dear_reads import DEAR_READS as DATA_DEAR_READS
from foretell.data.routes import ROUTES as DATA_ROUTES
from foretell.discovery.routes import ROUTES as DISCOVERY_ROUTES
from foretell.domain.portfolio.price_history import POINTS_PER_BATCH_MAX
from foretell.store.database import Database
from foretell.store.scratch import fetch_bare
from foretell.trading.handlers.price_history import TOKENS_PER_BATCH_MAX
from foretell.trading.routes.listings import ROUTES as LISTING_ROUTES
from foretell.trading.routes.public import ROUTES as TRADING_ROUTES

HISTORY: Final = re.compile("prices-history")
NOT_MEASURED: Final = {
    (DATA, "/"): "a constant",
    (DATA, "/v1/builders/leaderboard"): "always empty",
    (DATA, "/v1/builders/volume"): "always empty",
    (DISCOVERY, "/"): "a constant",
    (DISCOVERY, "/comments"): "always empty",
    (DISCOVERY, "/events/creators/{record_id:str}"): "always refused",
}
"""Routes by their first path, and why nothing of them is measured."""


def read_routes() -> list[tuple[str, Sequence[str]]]:
    """Return the API and the paths of each route that reads tables of the data and discovery APIs, or a history."""
    histories = [each for each in TRADING_ROUTES if any(map(HISTORY.search, each.paths))]
    return [
        (api, sorted(route.paths))
        for api, routes in (
            (DATA, DATA_ROUTES),
            (DISCOVERY, DISCOVERY_ROUTES),
            (TRADING, histories),
        )
        for route in routes
    ]


READ_ROUTES: Final = read_routes()
RIGHTLY_EMPTY: Final = frozenset(
    {
        *("trades of an amount", "sells of a wallet that has none"),
        *("related tags", "related tags by id"),
    }
)
"""A short history has no rare trade, and tags have no relations: the read is that of the tag."""
NO_POINTS: Final = re.compile(r'\{"history":\{("\d+":\[\],?)*\}\}')
EMPTY: Final = (
    "[]",
    "{}",
    "",
    '{"owed":[],"next":""}',
    '{"history":[]}',
    '{"history":{}}',
    '{"marketTypes":[]}',
)


def patterns(paths: Sequence[str]) -> list[str]:
    return [re.sub(r"\{[^}]*\}", "[^/]+", path) for path in paths]


def measured(api: str, paths: Sequence[str]) -> list[str]:
    """Return the reads of a route; a path without a parameter is not one of a route that has one there."""
    fixed = {
        path for other, each in READ_ROUTES if other == api for path in each if "{" not in path
    }
    return [
        case.name
        for case in cases(History(HistoryPlan(0, 100, 5)).names, is_sqlite=True)
        if case.api == api
        and any(re.fullmatch(each, case.path) for each in patterns(paths))
        and (case.path not in fixed or case.path in paths)
    ]


@pytest.mark.parametrize(("api", "paths"), READ_ROUTES, ids=lambda value: str(value)[:60])
def test_a_read_route_is_measured_or_says_why_not(api: str, paths: Sequence[str]) -> None:
    assert bool(measured(api, paths)) is not ((api, paths[0]) in NOT_MEASURED)


def test_the_list_of_routes_that_are_not_measured_names_routes() -> None:
    assert {*NOT_MEASURED} <= {(api, paths[0]) for api, paths in READ_ROUTES}


def test_reads_have_names_of_their_own() -> None:
    found: list[Any] = [
        case.name for case in cases(History(HistoryPlan(0, 100, 5)).names, is_sqlite=True)
    ]
    assert len({*found}) == len(found)


@pytest.mark.anyio
async def test_no_measured_read_is_answered_without_rows(fresh_database: Database) -> None:
    history = History(HistoryPlan(20_000, 1_000, 600))
    await history.write(fresh_database)
    await history.write_sums(fresh_database)
    names = history.names._replace(typical=history.typical_wallet, median=history.median_wallet)
    apps = read_apps(fresh_database)
    for case in [each for each in cases(names, is_sqlite=True) if each.name not in RIGHTLY_EMPTY]:
        rows = await fetch_bare(fresh_database, case.sql, case.values)
        http = Reader(apps[case.api]).http
        answer = await http.request(case.method, f"{case.path}?{case.query}", content=case.body)
        assert answer.status_code == HTTPStatus.OK, case.name
        assert rows, case.name
        assert answer.text not in EMPTY, case.name
        assert not NO_POINTS.fullmatch(answer.text), case.name


@pytest.mark.anyio
async def test_bare_sql_of_closed_positions_exports_and_owed_tokens_finds_the_rows_of_their_answers(
    fresh_database: Database,
) -> None:
    """A finding: that of closed positions found open ones, and that of an export joined what it does not return."""
    history = History(HistoryPlan(20_000, 1_000, 600))
    await history.write(fresh_database)
    names, apps = history.names._replace(typical=history.typical_wallet), read_apps(fresh_database)
    by_name = {case.name: case for case in cases(names, is_sqlite=fresh_database.is_sqlite)}
    answers: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    for name in ("closed-positions", "export", "owed"):
        case = by_name[name]
        async with fresh_database.reading() as tx:
            rows[name] = await tx.all(sa.text(case.sql).bindparams(**case.values))
        answers[name] = (await Reader(apps[case.api]).http.get(f"{case.path}?{case.query}")).text
    assert all(rows.values())
    closed, owed = (
        msgspec.json.decode(answers["closed-positions"]),
        msgspec.json.decode(answers["owed"]),
    )
    assert [each["asset"] for each in closed] == [row.token_id for row in rows["closed-positions"]]
    assert [each["asset"] for each in owed["owed"]] == [row.token_id for row in rows["owed"]]
    assert len(answers["export"].splitlines()) == 1 + len(rows["export"])
    assert "markets" not in by_name["export"].sql


@pytest.mark.anyio
async def test_the_largest_batch_has_all_the_points_of_all_the_markets_that_a_batch_may_have(
    fresh_database: Database,
) -> None:
    """A finding: it had two hundred points of ten markets."""
    history = History(HistoryPlan(4_000, 1_000, 600))
    await history.write(fresh_database)
    case = largest_batch()
    http = Reader(read_apps(fresh_database)[case.api]).http
    answer = await http.request(case.method, case.path, content=case.body)
    points = [len(each) for each in answer.json()["history"].values()]
    assert points == [POINTS_PER_BATCH_MAX // TOKENS_PER_BATCH_MAX] * TOKENS_PER_BATCH_MAX
    rows = await fetch_bare(fresh_database, case.sql, case.values)
    assert rows == POINTS_PER_BATCH_MAX


def test_the_measured_routes_of_the_trading_api_are_its_own() -> None:
    """A finding: those of price histories were copies, which named no content."""
    assert {*MEASURED_TRADING_ROUTES} <= {*TRADING_ROUTES, *LISTING_ROUTES}


def test_the_dearest_reads_fit_a_request_and_are_those_that_the_rules_just_let_pass_and_the_largest() -> (
    None
):
    names = History(HistoryPlan(0, 1_000, 1_000)).names
    queries = [case.query.encode() for case in dear_cases(names)]
    assert max(map(len, queries)) < HEAD_BYTES_MAX
    few, many = (case for case in dear_cases(names) if case.path == "/holders")
    rule = DATA_DEAR_READS["/holders"]
    one_more = f"{few.query},{a_condition(0)}".encode()
    assert [rule.is_dear(each) for each in (few.query.encode(), one_more)] == [False, True]
    assert rule.is_dear(many.query.encode())
