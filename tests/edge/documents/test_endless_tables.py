"""Every operation of every API, while no statement of the database ends: each is answered soon all the same.

All tables are views of two billion rows here. A request with a transaction without a deadline would never be answered.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import sqlalchemy as sa
from litestar import Litestar
from tests.creation import rig as creation_rig
from tests.edge.documents.apis import BUILD_APPS, DocumentedOperation, operations_of
from tests.relayer import rig as relayer_rig
from tests.rigs.applications import an_app
from tests.rigs.read_apis import a_data_context
from tests.rigs.sandbox import Sandbox
from tests.rigs.trading import Headers, Trader, a_rig_on
from tests.rigs.values import CHAIN_ID, NOW_MS
from tests.store.endless_tables import endless
from tests.web.contexts import OPERATOR_TOKEN, TOKEN, a_configuration

from foretell.discovery.context import DiscoveryContext
from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits
from foretell.store.tables import (
    metadata,
    projections,
    relay_requests,
    relayed_tx_attempts,
    relayed_txs,
)
from foretell.web.context import WebContext
from foretell.web.operation import OperatorView
from foretell.web.sandbox_wallets import SandboxWallets

pytestmark = pytest.mark.anyio

LIMITS = PublicReadLimits(read_s=0.1, sum_s=0.1, key_s=0.1, write_s=1.0)
SETUP_S = 30.0
ANSWERED_S = 60.0
"""Far beyond every deadline, also those of what is waited for besides: the tables of the engine, and the chain."""
HOST = "http://api.test"
UNAVAILABLE = 503
L1_PATHS = {("POST", "/auth/api-key"), ("GET", "/auth/derive-api-key")}
ALL_TABLES = metadata.sorted_tables
TABLES_OF_READERS = [each for each in ALL_TABLES if each is not projections]
"""All but the one from which a loop of the rig reads, which has no deadline."""

IN_EVERY_API = {"show_limits"}
FROM_MEMORY_OR_THE_CHAIN = {
    "trading": {
        *("get_root", "get_root_ok", "get_time", "get_version", "get_account", "get_rebates"),
        *("get_book", "get_books", "get_price", "get_prices", "get_prices_of", "get_spread"),
        *("get_midpoint", "get_midpoints", "get_midpoints_of", "get_spreads", "get_spreads_of"),
        *("get_last_trade_price", "get_last_trades_prices", "get_tick_size", "get_tick_size_of"),
        *("get_neg_risk", "get_neg_risk_of", "get_fee_rate", "get_fee_rate_of", "get_rfq_config"),
        "get_reward_markets_rewards_markets_current",
        "get_reward_markets_rewards_markets_multi",
        "get_reward_markets_rewards_markets_condition_id",
    },
    "data": {"get_root"},
    "discovery": {
        *("get_status", "get_status_status", "get_nothing_comments", "get_nothing_events_creators"),
        *("get_nothing_comments_comment_id", "get_nothing_comments_user_address_address"),
        "get_unknown",
    },
    "creation": {"show_root", "show_config", "show_blob", "show_item"},
    "relayer": {"show_root", "show_deployed"},
}
"""Operations that need no table."""
ANSWERED_BEFORE = {
    "trading": {"find_volumes", "get_events"},
    "data": {"export_rows"},
    "creation": {"prepare"},
}
"""Operations whose request here is refused before a read; tests of their product read at length."""
FIRST_ROWS = {
    "data": {"get_builders", "get_builder_volumes"},
    "discovery": {"get_events", "get_events_after", "get_event_page"},
}
"""Operations that need the first rows of an index alone, which these tables have."""

Sign = Callable[[str, str, bytes], Headers]


class Target(NamedTuple):
    """An application, and a caller that signs requests."""

    app: Litestar
    sign: Sign | None = None
    patient: Litestar | None = None
    """The same with long deadlines, for operations that need no table, or the first rows of one alone."""


@pytest.fixture
async def database(fresh_database: Database) -> AsyncIterator[Database]:
    async with Database(fresh_database.url, LIMITS) as database:
        yield database


@pytest.fixture
async def patient(fresh_database: Database) -> AsyncIterator[Database]:
    """The same tables with long deadlines: on a busy machine the first rows alone take longer than the short ones."""
    limits = PublicReadLimits(read_s=SETUP_S, sum_s=SETUP_S, key_s=SETUP_S, write_s=SETUP_S)
    async with Database(fresh_database.url, limits) as database:
        yield database


@pytest.fixture
async def alice(database: Database, tmp_path: Path) -> AsyncIterator[Trader]:
    """A trader whose key no cache has."""
    async with a_rig_on(tmp_path / "journal", database) as rig:
        await rig.open("market", "alice")
        yield await rig.trader("alice")


@pytest.fixture
async def creation(
    fresh_sandbox: Sandbox, tmp_path: Path, empty_database: Path
) -> AsyncIterator[creation_rig.CreationRig]:
    shutil.copy(empty_database, tmp_path / creation_rig.DATABASE_FILE)
    rig = creation_rig.CreationRig(fresh_sandbox, tmp_path)
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
async def owner(
    fresh_sandbox: Sandbox, tmp_path: Path, empty_database: Path
) -> AsyncIterator[relayer_rig.OwnerClient]:
    """An owner whose wallet is on the chain."""
    shutil.copy(empty_database, tmp_path / relayer_rig.DATABASE_FILE)
    rig = relayer_rig.RelayerRig(fresh_sandbox, tmp_path)
    await rig.start()
    owner = await rig.owner("an owner")
    await owner.submitted(owner.create_body())
    await rig.settle()
    yield owner
    await rig.stop()


def signs_as(trader: Trader) -> Sign:
    def sign(method: str, path: str, content: bytes) -> Headers:
        if (method, path) in L1_PATHS:
            return trader.l1_headers()
        return trader.l2_headers(method, path, content)

    return sign


async def make_known(trader: Trader) -> None:
    """Have the trader's key in the cache, however often the machine is too slow to read it."""
    status = UNAVAILABLE
    while status == UNAVAILABLE:
        status = (await trader.send("GET", "/auth/ban-status/closed-only")).status_code


async def answer_to(target: Target, operation: DocumentedOperation) -> httpx.Response:
    """Return the answer to the request of an operation's examples."""
    parameters = {
        (each["in"], each["name"]): each.get("example", each["schema"].get("default"))
        for each in operation.content.get("parameters", ())
    }
    in_path = {name: str(value) for (place, name), value in parameters.items() if place == "path"}
    query = {name: value for (place, name), value in parameters.items() if place == "query"}
    path, content = operation.path.format_map(in_path), body_of(operation)
    request = httpx.Request(
        operation.method,
        HOST + path,
        params={name: value for name, value in query.items() if value is not None},
        content=content,
    )
    if target.sign is not None:
        request.headers.update(target.sign(operation.method, path, content))
    transport = httpx.ASGITransport(target.app)  # type: ignore[arg-type]  # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport) as client:
        return await asyncio.wait_for(client.send(request), ANSWERED_S)


def body_of(operation: DocumentedOperation) -> bytes:
    body = operation.content.get("requestBody", {}).get("content", {}).get("application/json")
    return b"" if body is None else json.dumps(body.get("example")).encode()


async def status_of(target: Target, operation: DocumentedOperation) -> int:
    return (await answer_to(target, operation)).status_code


async def answered_otherwise(api: str, target: Target) -> set[str]:
    """Send a request of each operation, and return those that were answered as if there were no such table."""
    patient = target if target.patient is None else target._replace(app=target.patient)
    few = without_tables(api)
    statuses = {
        each.operation_id: await status_of(patient if each.operation_id in few else target, each)
        for each in operations_of(api)
    }
    return {operation for operation, status in statuses.items() if status != UNAVAILABLE}


def without_tables(api: str) -> set[str]:
    """Return the operations that are answered in spite of such tables."""
    named = (FROM_MEMORY_OR_THE_CHAIN, ANSWERED_BEFORE, FIRST_ROWS)
    return IN_EVERY_API.union(*(each.get(api, set()) for each in named))


async def test_every_operation_of_trading_ends_at_a_deadline(
    alice: Trader, database: Database
) -> None:
    async with endless(database, *TABLES_OF_READERS):
        target = Target(alice.rig.app, signs_as(alice))
        otherwise = await answered_otherwise("trading", target)
    assert otherwise == without_tables("trading") - IN_EVERY_API


async def test_every_operation_of_trading_ends_at_a_deadline_for_a_known_key(
    alice: Trader, database: Database
) -> None:
    await asyncio.wait_for(make_known(alice), ANSWERED_S)
    async with endless(database, *TABLES_OF_READERS):
        target = Target(alice.rig.app, signs_as(alice))
        otherwise = await answered_otherwise("trading", target)
    assert otherwise > without_tables("trading")
    assert {"cancel_order", "cancel_all", "place_orders"} <= otherwise
    assert otherwise.isdisjoint(
        {"list_keys", "get_builder_keys", "list_readonly_keys", "get_orders"}
    )


async def test_every_operation_of_data_ends_at_a_deadline(
    database: Database, patient: Database
) -> None:
    app, patient_app = (
        an_app(BUILD_APPS["data"], a_data_context(each, "", lambda: NOW_MS))
        for each in (database, patient)
    )
    async with endless(database, *ALL_TABLES):
        otherwise = await answered_otherwise("data", Target(app, patient=patient_app))
    assert otherwise == without_tables("data")


async def test_every_operation_of_discovery_ends_at_a_deadline(
    database: Database, patient: Database
) -> None:
    app, patient_app = (
        an_app(BUILD_APPS["discovery"], DiscoveryContext(database=each, blob_base_url=""))
        for each in (database, patient)
    )
    async with endless(database, *ALL_TABLES):
        otherwise = await answered_otherwise("discovery", Target(app, patient=patient_app))
    assert otherwise == without_tables("discovery")


async def test_every_operation_of_creation_ends_at_a_deadline(
    creation: creation_rig.CreationRig,
) -> None:
    creator = creation.creator()
    challenge = (await creator.ask(creator.payload())).json()
    creation.limits = LIMITS
    await creation.restart()
    async with endless(creation.database, *ALL_TABLES):
        otherwise = await answered_otherwise("creation", Target(creation.app))
        prepared = await asyncio.wait_for(
            creator.send(creator.payload(), creator.sign(challenge)), ANSWERED_S
        )
    assert otherwise == without_tables("creation")
    assert creation_rig.error_of(prepared) == (UNAVAILABLE, "read_too_slow")


async def test_every_operation_of_the_relayer_ends_at_a_deadline(
    owner: relayer_rig.OwnerClient,
) -> None:
    owner.rig.limits = LIMITS
    await owner.rig.restart()
    async with endless(owner.rig.database, *ALL_TABLES):
        otherwise = await answered_otherwise("relayer", Target(owner.rig.app, owner.l2_headers))
    assert otherwise == without_tables("relayer")


@pytest.mark.parametrize(
    "table", [relay_requests, relayed_txs, relayed_tx_attempts], ids=lambda each: each.name
)
async def test_a_submission_ends_at_a_deadline_whichever_table_is_endless(
    owner: relayer_rig.OwnerClient, table: sa.Table
) -> None:
    body = await owner.tokens_body(relayer_rig.an_operator_approval(owner.rig))
    owner.rig.limits = LIMITS._replace(key_s=SETUP_S)
    await owner.rig.restart()
    async with endless(owner.rig.database, table):
        answer = await asyncio.wait_for(owner.submit(body), ANSWERED_S)
    assert answer.status_code == UNAVAILABLE, answer.text


async def test_the_operators_view_ends_at_a_deadline(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    wallets = SandboxWallets(fresh_sandbox.rpc, CHAIN_ID, TOKEN, [HOST.partition("//")[2]])
    operation = OperatorView(database, fresh_sandbox.rpc, OPERATOR_TOKEN, lambda: NOW_MS)
    app = an_app(BUILD_APPS["web"], WebContext({}, a_configuration(), "", wallets, operation))
    (state,) = [each for each in operations_of("web") if each.path.startswith("/operator")]
    async with endless(database, *ALL_TABLES):
        bearer = {"authorization": f"Bearer {OPERATOR_TOKEN}"}
        answer = await answer_to(Target(app, lambda *_: bearer), state)
    assert answer.status_code == UNAVAILABLE
