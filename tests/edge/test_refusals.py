"""The mapping from refusals to HTTP statuses and bodies, in every API."""

import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx
import pytest
import structlog
from litestar import Litestar, get
from litestar.exceptions import ClientException, HTTPException
from tests.rigs.refusals import a_refusal, every_refusal
from tests.rigs.values import an_address

from foretell.creation.refusals import WORKER, worker_body
from foretell.data.refusals import DATA, data_body
from foretell.discovery.refusals import DISCOVERY, discovery_body
from foretell.domain.errors.exchange import (
    EngineRestarting,
    MarketClosed,
)
from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
    Upstream,
)
from foretell.edge.refusals import RefusalRow, handlers, row_of
from foretell.relayer.refusals import RELAYER, relayer_body
from foretell.trading.refusals import TRADING, trading_body, trading_l1_body

STYLES = {
    "trading": trading_body,
    "trading, L1": trading_l1_body,
    "worker": worker_body,
    "relayer": relayer_body,
    "data": data_body,
    "discovery": discovery_body,
}
TABLES = {
    "trading": TRADING,
    "worker": WORKER,
    "relayer": RELAYER,
    "data": DATA,
    "discovery": DISCOVERY,
}
SHAPES: dict[str, set[str]] = {
    "trading": {"error", "code", "message"},
    "trading, L1": {"error", "code", "message"},
    "worker": {"error"},
    "relayer": {"error", "code"},
    "data": {"error"},
    "discovery": {"type", "error"},
}
KINDS = every_refusal()


def name(kind: type[ForetellError]) -> str:
    return kind.__name__


def words(body: Any) -> str:
    error = body["error"]
    return error if isinstance(error, str) else error["message"]


def plain(body: object) -> Any:
    return json.loads(json.dumps(body, default=dict))


@pytest.mark.parametrize("style", STYLES)
def test_every_refusal_has_a_status_and_a_body_in_every_style(style: str) -> None:
    answers = {name(kind): STYLES[style](a_refusal(kind)) for kind in KINDS}
    bodies = {kind: plain(body) for kind, (_, body) in answers.items()}
    assert [kind for kind, (status, _) in answers.items() if not 400 <= status <= 599] == []
    assert [kind for kind, body in bodies.items() if not set(body) >= SHAPES[style]] == []
    assert [kind for kind, body in bodies.items() if words(body) == ""] == []


NOT_THE_CLIENTS = [kind for kind in KINDS if issubclass(kind, (Unavailable, Upstream))]


def status_by_name(style: str, kinds: Iterable[type[ForetellError]]) -> dict[str, int]:
    return {name(kind): row_of(TABLES[style], a_refusal(kind))[0] for kind in kinds}


@pytest.mark.parametrize("style", TABLES)
def test_a_refusal_that_is_not_the_client_s_fault_is_retryable(style: str) -> None:
    """Clients give up at most statuses from 400 on; they retry after 408, 425 and 429."""
    statuses = status_by_name(style, NOT_THE_CLIENTS)
    final = {kind for kind, status in statuses.items() if status < 500}
    assert {kind for kind in final if statuses[kind] not in {408, 425, 429}} == set()


@pytest.mark.parametrize("style", TABLES)
def test_an_unauthenticated_caller_gets_401(style: str) -> None:
    statuses = status_by_name(style, KINDS)
    unauthenticated = {name(kind) for kind in KINDS if issubclass(kind, Unauthenticated)}
    assert {kind for kind, status in statuses.items() if status == 401} == unauthenticated


FORBIDDEN = {"secret", "passphrase", "private_key", "key", "password", "hmac", "master_key"}


def test_no_refusal_is_constructed_from_a_secret() -> None:
    parameters = {name(kind): set(inspect.signature(kind).parameters) for kind in KINDS}
    assert {kind for kind, names in parameters.items() if names & FORBIDDEN} == set()


@pytest.mark.parametrize(
    ("family", "status"),
    [
        (InvalidInput, 400),
        (Unauthenticated, 401),
        (NotFound, 404),
        (Conflict, 409),
        (Unavailable, 503),
        (Upstream, 502),
        (ForetellError, 500),
    ],
)
def test_a_refusal_without_a_row_has_the_status_of_its_family(
    family: type[ForetellError], status: int
) -> None:
    class Unlisted(family):  # type: ignore[misc, valid-type]
        """A refusal without a row."""

    assert row_of({}, Unlisted("why")) == (status, None)


class Parent(Conflict):
    """A refusal with a row."""


class Child(Parent):
    """A refusal without a row, or with an incomplete one."""


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, (409, None)),
        ({Parent: RefusalRow(418, "parent")}, (418, "parent")),
        ({Parent: RefusalRow(418, "parent"), Child: RefusalRow(410)}, (410, "parent")),
        ({Parent: RefusalRow(418, "parent"), Child: RefusalRow(410, "child")}, (410, "child")),
        ({Parent: RefusalRow(words="parent")}, (409, "parent")),
        ({Conflict: RefusalRow(418, "family")}, (418, "family")),
        ({Parent: RefusalRow(418, lambda error: error.message.upper())}, (418, "WHY")),
    ],
    ids=range(7),
)
def test_the_nearest_row_wins_and_further_rows_fill_its_gaps(
    table: dict[type[ForetellError], RefusalRow], expected: tuple[int, str | None]
) -> None:
    assert row_of(table, Child("why")) == expected


@pytest.mark.parametrize(
    ("path", "method", "code"),
    [
        ("/nowhere", "GET", "unknown_route"),
        ("/refused", "DELETE", "method_not_allowed"),
        ("/malformed", "GET", "http_refusal"),
    ],
)
@pytest.mark.anyio
async def test_a_refusal_of_the_framework_has_its_own_code(
    path: str, method: str, code: str
) -> None:
    assert (await ask("trading", path, method)).json()["code"] == code


CANARY = "canary-5d41402abc4b2a76b9719d911017c592"


@get("/refused")
async def refused() -> None:
    raise MarketClosed(an_address("market"), "resolved")


@get("/restarting")
async def restarting() -> None:
    raise EngineRestarting


@get("/broken")
async def broken() -> None:
    raise RuntimeError(CANARY)


@get("/broken-inside")
async def broken_inside() -> None:
    raise HTTPException(CANARY, status_code=500)


@get("/malformed")
async def malformed() -> None:
    raise ClientException("the header is malformed")


def an_app(body_of: Callable[[ForetellError], tuple[int, object]]) -> Litestar:
    routes = [refused, restarting, broken, broken_inside, malformed]
    return Litestar(routes, exception_handlers=handlers(body_of), logging_config=None)


async def ask(style: str, path: str, method: str = "GET") -> httpx.Response:
    transport = httpx.ASGITransport(an_app(STYLES[style]))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, path)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.mark.anyio
@pytest.mark.parametrize("style", STYLES)
async def test_a_refusal_of_a_route_has_the_body_of_its_api(style: str) -> None:
    answer = await ask(style, "/refused")
    refusal = MarketClosed(an_address("market"), "resolved")
    status, body = STYLES[style](refusal)
    assert (answer.status_code, answer.json()) == (status, plain(body))
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.anyio
async def test_a_temporary_refusal_has_a_retry_time() -> None:
    answer = await ask("trading", "/restarting")
    assert (answer.status_code, answer.headers["retry-after"]) == (425, "1")
    assert answer.json()["retry_after_seconds"] == 1


@pytest.mark.anyio
@pytest.mark.parametrize("style", STYLES)
async def test_an_unknown_route_is_refused_with_the_body_of_its_api(style: str) -> None:
    answer = await ask(style, "/nowhere")
    assert answer.status_code == 404
    assert set(answer.json()) >= SHAPES[style]


@pytest.mark.anyio
@pytest.mark.parametrize("style", STYLES)
async def test_an_unknown_method_is_refused_with_the_body_of_its_api(
    style: str,
) -> None:
    answer = await ask(style, "/refused", "DELETE")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert set(answer.json()) >= SHAPES[style]
    assert "the method is DELETE, and this route supports GET, HEAD, OPTIONS" in json.dumps(
        answer.json()
    )


@pytest.mark.anyio
@pytest.mark.parametrize("style", STYLES)
async def test_a_refusal_of_the_framework_is_the_client_s_fault(style: str) -> None:
    answer = await ask(style, "/malformed")
    assert answer.status_code == 400
    assert set(answer.json()) >= SHAPES[style]


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/broken", "/broken-inside"])
@pytest.mark.parametrize("style", STYLES)
async def test_a_fault_of_the_server_is_logged_and_not_published(
    style: str, path: str, logs: list[Any]
) -> None:
    answer = await ask(style, path)
    assert answer.status_code == 500
    assert CANARY not in answer.text
    assert set(answer.json()) >= SHAPES[style]
    assert [(entry["event"], entry["path"]) for entry in logs] == [("unhandled error", path)]
    assert CANARY in str(logs[0]["exc_info"])
