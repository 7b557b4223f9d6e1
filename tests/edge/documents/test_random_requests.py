"""Random requests, valid and invalid ones, that schemathesis makes of each document.

No request may end in a server error, and every answer must be as the document says: its status, its media
type, its headers and its body. FORETELL_TEST_SCHEMA_CASES sets how many there are in all.
"""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anyio.from_thread
import anyio.to_thread
import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from litestar import Litestar
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks
from tests.creation import rig as creation_rig
from tests.edge.documents.apis import BUILD_APPS, OPERATIONS
from tests.relayer import rig as relayer_rig
from tests.rigs.applications import an_app, openapi_document
from tests.rigs.read_apis import a_data_context
from tests.rigs.rows import Rows
from tests.rigs.sandbox import Sandbox
from tests.rigs.trading import Headers, a_rig_on
from tests.rigs.values import (
    CHAIN_ID,
    NOW_MS,
    a_buy,
    a_sell,
    a_word,
    an_address,
    an_asset,
    an_open_market,
)
from tests.web.contexts import OPERATOR_TOKEN, TOKEN, a_configuration

from foretell.discovery.context import DiscoveryContext
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.index.blocks import Block, record_blocks
from foretell.web.context import WebContext
from foretell.web.operation import OperatorView
from foretell.web.sandbox_wallets import SandboxWallets

pytestmark = pytest.mark.anyio

CASES = int(os.environ.get("FORETELL_TEST_SCHEMA_CASES", "1500"))
SEED = 20
HOST = "http://api.test"
SENT_ALONE = 4
"""Of so many requests one is sent without a signature, and one without the ids that exist."""
VARIED = [
    each
    for each in OPERATIONS
    if "requestBody" in each.content
    or any(parameter["in"] != "header" for parameter in each.content.get("parameters", ()))
]
"""The operations of which there is more than one request."""
CASES_PER_OPERATION = -(-CASES // len(VARIED))
RUNS_MAX = 10
"""How often what is left is shared among the operations that still have requests."""

Sign = Callable[[str, str, bytes], Headers]


class Target(NamedTuple):
    """An application, the ids that exist in it, and a caller that signs requests."""

    app: Litestar
    ids: Mapping[str, str]
    sign: Sign | None = None


@pytest.fixture
async def trading(fresh_database: Database, tmp_path: Path) -> AsyncIterator[Target]:
    async with a_rig_on(tmp_path / "journal", fresh_database) as rig:
        await rig.open("market", "alice", "bob")
        alice, bob = await rig.trader("alice"), await rig.trader("bob")
        placed = await alice.placed(a_buy("alice"))
        await bob.placed(a_sell("bob"))
        await rig.settle_tables()
        token_id, condition_id = an_asset(is_yes=True), an_open_market("market").condition_id
        ids = {
            "token_id": token_id,
            "asset_id": token_id,
            "condition_id": condition_id,
            "market": condition_id,
            "order_id": placed["orderID"],
            "address": alice.address,
        }
        yield Target(rig.app, ids, alice.l2_headers)


@pytest.fixture
async def creation(
    fresh_sandbox: Sandbox, tmp_path: Path, empty_database: Path
) -> AsyncIterator[Target]:
    shutil.copy(empty_database, tmp_path / creation_rig.DATABASE_FILE)
    rig = creation_rig.CreationRig(fresh_sandbox, tmp_path)
    await rig.start()
    creator = rig.creator()
    yield Target(rig.app, {"creator": creator.account.address})
    await rig.stop()


@pytest.fixture
async def relayer(
    fresh_sandbox: Sandbox, tmp_path: Path, empty_database: Path
) -> AsyncIterator[Target]:
    shutil.copy(empty_database, tmp_path / relayer_rig.DATABASE_FILE)
    rig = relayer_rig.RelayerRig(fresh_sandbox, tmp_path)
    await rig.start()
    owner = await rig.owner("an owner")
    ids = {"id": await owner.submitted(owner.create_body()), "address": owner.address}
    yield Target(rig.app, ids, owner.l2_headers)
    await rig.stop()


@pytest.fixture
async def filled(fresh_database: Database) -> Mapping[str, str]:
    """The ids of what the read-only APIs have."""
    async with fresh_database.writing() as tx:
        rows = Rows(tx)
        market_id = await rows.open_named("market")
        await rows.buy("alice", "market", 10_000_000, 5_000_000)
        await rows.match("market", 5_000_000, NOW_MS)
        await rows.hold("alice", "market", 10_000_000, 5_000_000)
        await record_blocks(tx, [Block(1, a_word("block"), a_word("parent"), NOW_MS // 1000)])
    return {
        "user": an_address("alice"),
        "address": an_address("alice"),
        "market": a_word("market"),
        "market_id": str(market_id),
        "event_id": "1",
        "tag_id": "1",
    }


async def hold_enough(_block_hash: Bytes32) -> BackingUnits:
    """Return what the contracts of the chain in these tables would hold."""
    return BackingUnits(10_000_000)


@pytest.fixture
def data(fresh_database: Database, filled: Mapping[str, str]) -> Target:
    context = a_data_context(fresh_database, "", lambda: NOW_MS, hold_enough)
    return Target(an_app(BUILD_APPS["data"], context), filled)


@pytest.fixture
def discovery(fresh_database: Database, filled: Mapping[str, str]) -> Target:
    context = DiscoveryContext(database=fresh_database, blob_base_url="")
    return Target(an_app(BUILD_APPS["discovery"], context), filled)


@pytest.fixture
def web(fresh_sandbox: Sandbox, fresh_database: Database) -> Target:
    wallets = SandboxWallets(fresh_sandbox.rpc, CHAIN_ID, TOKEN, [HOST.partition("//")[2]])
    operation = OperatorView(fresh_database, fresh_sandbox.rpc, OPERATOR_TOKEN, lambda: NOW_MS)
    context = WebContext({}, a_configuration(), "", wallets, operation)

    def sign(_method: str, path: str, _body: bytes) -> Headers:
        token = OPERATOR_TOKEN if path.startswith("/operator") else TOKEN
        return {"authorization": f"Bearer {token}"}

    return Target(an_app(BUILD_APPS["web"], context), {}, sign)


class Requests:
    """Random requests to one application."""

    def __init__(self, target: Target) -> None:
        transport = httpx.ASGITransport(target.app, raise_app_exceptions=False)  # type: ignore[arg-type]
        self._http = httpx.AsyncClient(transport=transport)
        self._target = target
        self.count = 0

    async def close(self) -> None:
        await self._http.aclose()

    def try_all(self, api: str) -> None:
        """Send requests of each operation until the API had its share.

        An operation with few possible requests ends early. What it leaves is sent to the others, with
        another seed.
        """
        document = schemathesis.openapi.from_dict(openapi_document(BUILD_APPS[api]))
        operations: list[Any] = [
            found.ok()  # type: ignore[union-attr]  # a document of ours has no error
            for found in document.get_all_operations()
        ]
        varied = [operation for operation in operations if is_varied(operation)]
        for operation in operations:
            if not is_varied(operation):
                self._try_modes(operation, 2, SEED)
        wanted = self.count + CASES_PER_OPERATION * len(varied)
        for run in range(RUNS_MAX):
            left = wanted - self.count
            if left <= 0 or not varied:
                return
            share = -(-left // len(varied))
            varied = [
                operation
                for operation in varied
                if self._try_modes(operation, share, SEED + run) >= share
            ]

    def _try_modes(self, operation: Any, share: int, seeded: int) -> int:
        """Send requests of an operation in each of its modes, and return their number."""
        before, modes = self.count, modes_of(operation)
        for mode in modes:
            self._try(operation, mode, -(-share // len(modes)), seeded)
        return self.count - before

    def _try(self, operation: Any, mode: GenerationMode, share: int, seeded: int) -> None:
        @seed(seeded)
        @settings(
            max_examples=share,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            self._send(case)

        check()

    def _send(self, case: Any) -> None:
        """Send a request, and check its answer."""
        self.count += 1
        if self.count % SENT_ALONE:
            case.path_parameters = known(case.path_parameters, self._target.ids)
            case.query = known(case.query, self._target.ids)
        request = request_of(case)
        if self._target.sign is not None and (self.count + 1) % SENT_ALONE:
            path = request.url.raw_path.partition(b"?")[0].decode()
            request.headers.update(self._target.sign(request.method, path, request.content))
        answer = anyio.from_thread.run(self._http.send, request)
        case.validate_response(answer, checks=CHECKS)


def request_of(case: Any) -> httpx.Request:
    """Return the request that schemathesis would send by its own client."""
    prepared: Any = requests.Request(**case.as_transport_kwargs(base_url=HOST)).prepare()
    body = prepared.body or b""
    raw = body if isinstance(body, bytes) else body.encode()
    return httpx.Request(prepared.method, prepared.url, headers=dict(prepared.headers), content=raw)


def known(parameters: dict[str, Any] | None, ids: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters with ids that exist."""
    return {name: ids.get(name, value) for name, value in (parameters or {}).items()}


def modes_of(operation: Any) -> list[GenerationMode]:
    """Return whether an operation has valid requests only, or invalid ones too."""
    can_be_invalid = operation.body.items or operation.query.items
    return list(GenerationMode) if can_be_invalid else [GenerationMode.POSITIVE]


def is_varied(operation: Any) -> bool:
    """Return whether there is more than one request of an operation."""
    return bool(operation.body.items or operation.query.items or operation.path_parameters.items)


def checks() -> Iterator[Any]:
    """Yield the checks of an answer."""
    load_all_checks()
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    ):
        yield schemathesis.checks.CHECKS.get_one(name)


CHECKS = list(checks())


async def try_all(api: str, target: Target, played: Callable[[int], None]) -> None:
    sent = Requests(target)
    try:
        await anyio.to_thread.run_sync(sent.try_all, api)
    except BaseExceptionGroup as found:  # as it is, it would end the loop of all later tests
        raise AssertionError("\n".join(map(str, found.exceptions))) from found
    finally:
        await sent.close()
    assert sent.count >= CASES_PER_OPERATION * sum(each.api == api for each in VARIED)
    played(sent.count)


@pytest.mark.case("G-01")
async def test_random_requests_to_trading_are_answered_as_documented(
    trading: Target, played: Callable[[int], None]
) -> None:
    await try_all("trading", trading, played)


@pytest.mark.case("G-01")
async def test_random_requests_to_creation_are_answered_as_documented(
    creation: Target, played: Callable[[int], None]
) -> None:
    await try_all("creation", creation, played)


@pytest.mark.case("G-01")
async def test_random_requests_to_the_relayer_are_answered_as_documented(
    relayer: Target, played: Callable[[int], None]
) -> None:
    await try_all("relayer", relayer, played)


@pytest.mark.case("G-01")
async def test_random_requests_to_data_are_answered_as_documented(
    data: Target, played: Callable[[int], None]
) -> None:
    await try_all("data", data, played)


@pytest.mark.case("G-01")
async def test_random_requests_to_discovery_are_answered_as_documented(
    discovery: Target, played: Callable[[int], None]
) -> None:
    await try_all("discovery", discovery, played)


@pytest.mark.case("G-01")
async def test_random_requests_to_the_web_app_are_answered_as_documented(
    web: Target, played: Callable[[int], None]
) -> None:
    await try_all("web", web, played)
