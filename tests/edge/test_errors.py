"""The one table from refusal to status and body, per API."""

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import structlog
from litestar import Litestar, get
from litestar.exceptions import ClientException, HTTPException
from tests.build import NOW_S, a_word, an_address
from tests.refusals import a_refusal, every_refusal

from foretell.domain import (
    creation_errors,
    errors,
    matching_errors,
    request_errors,
    storage_errors,
    trading_errors,
)
from foretell.domain.errors import ForetellError
from foretell.edge.errors import (
    DATA,
    DISCOVERY,
    RELAYER,
    TRADING,
    WORKER,
    Row,
    data_body,
    discovery_body,
    handlers,
    relayer_body,
    row_of,
    trading_body,
    trading_l1_body,
    worker_body,
)

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
ORDER_ID = a_word("order")


def name(kind: type[ForetellError]) -> str:
    return kind.__name__


def words(body: Any) -> str:
    told = body["error"]
    return told if isinstance(told, str) else told["message"]


def plain(body: object) -> Any:
    return json.loads(json.dumps(body, default=dict))


@pytest.mark.parametrize("kind", KINDS, ids=name)
@pytest.mark.parametrize("style", STYLES)
def test_every_refusal_has_a_status_and_a_body_in_every_style(
    style: str, kind: type[ForetellError]
) -> None:
    status, body = STYLES[style](a_refusal(kind))
    assert 400 <= status <= 599
    assert set(plain(body)) >= SHAPES[style]
    assert words(plain(body)) != ""


NOT_THE_CLIENTS = [
    kind for kind in KINDS if issubclass(kind, (errors.Unavailable, errors.Upstream))
]


@pytest.mark.parametrize("kind", NOT_THE_CLIENTS, ids=name)
@pytest.mark.parametrize("style", TABLES)
def test_what_is_not_the_clients_fault_may_be_tried_again(
    style: str, kind: type[ForetellError]
) -> None:
    """A client gives up at most statuses of 400 and more; 408, 425 and 429 ask it not to."""
    status, _ = row_of(TABLES[style], a_refusal(kind))
    assert status >= 500 or status in {408, 425, 429}


@pytest.mark.parametrize("kind", KINDS, ids=name)
@pytest.mark.parametrize("style", TABLES)
def test_nobody_unknown_is_told_anything_but_401(style: str, kind: type[ForetellError]) -> None:
    status, _ = row_of(TABLES[style], a_refusal(kind))
    assert (status == 401) == issubclass(kind, errors.Unauthenticated)


FORBIDDEN = {"secret", "passphrase", "private_key", "key", "password", "hmac", "master_key"}


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_no_refusal_is_made_of_a_secret(kind: type[ForetellError]) -> None:
    assert not set(inspect.signature(kind).parameters) & FORBIDDEN


@pytest.mark.parametrize(
    ("family", "status"),
    [
        (errors.InvalidInput, 400),
        (errors.Unauthenticated, 401),
        (errors.NotFound, 404),
        (errors.Conflict, 409),
        (errors.Unavailable, 503),
        (errors.Upstream, 502),
        (ForetellError, 500),
    ],
)
def test_a_refusal_without_a_row_has_the_status_of_its_family(
    family: type[ForetellError], status: int
) -> None:
    class Unlisted(family):  # type: ignore[misc, valid-type]
        """A refusal that no table knows."""

    assert row_of({}, Unlisted("why")) == (status, None)


class Parent(errors.Conflict):
    """A refusal with a row."""


class Child(Parent):
    """A refusal without one, or with half of one."""


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, (409, None)),
        ({Parent: Row(418, "parent")}, (418, "parent")),
        ({Parent: Row(418, "parent"), Child: Row(410)}, (410, "parent")),
        ({Parent: Row(418, "parent"), Child: Row(410, "child")}, (410, "child")),
        ({Parent: Row(words="parent")}, (409, "parent")),
        ({errors.Conflict: Row(418, "family")}, (418, "family")),
        ({Parent: Row(418, lambda error: error.message.upper())}, (418, "WHY")),
    ],
    ids=range(7),
)
def test_the_nearest_row_says_what_it_says_and_the_next_one_the_rest(
    table: dict[type[ForetellError], Row], told: tuple[int, str | None]
) -> None:
    assert row_of(table, Child("why")) == told


# What clients of the ecosystem look for, letter by letter.
TRADING_WORDS: list[tuple[ForetellError, int, str]] = [
    (request_errors.UnknownKey("?"), 401, "Unauthorized/Invalid api key"),
    (request_errors.RevokedKey("?"), 401, "Unauthorized/Invalid api key"),
    (request_errors.WrongPassphrase("?"), 401, "Unauthorized/Invalid api key"),
    (request_errors.ClockSkew("0", NOW_S), 401, "Unauthorized/Invalid api key"),
    (request_errors.MissingHeader("X"), 401, "Unauthorized/Invalid api key"),
    (request_errors.L2SignatureMismatch(1, "00"), 401, "Unauthorized/Invalid api key"),
    (request_errors.L1SignatureMismatch("0x"), 401, "Invalid L1 Request headers"),
    (request_errors.NonceNotMonotonic(1, 2), 400, "Could not create api key"),
    (request_errors.NoSuchCredentials("?"), 400, "Could not derive api key!"),
    (matching_errors.MalformedOrder("?"), 400, "Invalid order payload"),
    (errors.MalformedSignature("?"), 400, "Invalid order payload"),
    (matching_errors.SignerMismatch("0x"), 400, "Invalid order payload"),
    (
        matching_errors.PriceOffTick(ORDER_ID, 333, 1_000, 100),
        400,
        f"order {ORDER_ID} is invalid. Price (0.333) breaks minimum tick size rule: 0.01",
    ),
    (
        matching_errors.SizeBelowMinimum(ORDER_ID, 4_990_000, 5_000_000),
        400,
        f"order {ORDER_ID} is invalid. Size (4.99) lower than the minimum: 5",
    ),
    (matching_errors.OrderDuplicated(ORDER_ID), 400, f"order {ORDER_ID} is invalid. Duplicated."),
    (matching_errors.OrderPlacedBefore(ORDER_ID), 400, f"order {ORDER_ID} is invalid. Duplicated."),
    (matching_errors.InsufficientBalance(need=1, asset="0"), 400, "not enough balance / allowance"),
    (
        matching_errors.InsufficientAllowance(need=1, asset="0"),
        400,
        "not enough balance / allowance",
    ),
    (
        matching_errors.ReservedByOpenOrders(need=1, asset="0"),
        400,
        "not enough balance / allowance",
    ),
    (matching_errors.InvalidExpiration("?"), 400, "invalid expiration"),
    (matching_errors.PostOnlyWouldCross(), 400, "invalid post-only order: order crosses book"),
    (
        matching_errors.FillOrKillUnfilled(),
        400,
        "order couldn't be fully filled. FOK orders are fully filled or killed.",
    ),
    (
        matching_errors.FillAndKillUnmatched(),
        400,
        (
            "no orders found to match with FAK order. FAK orders are partially filled or killed if"
            " no match is found."
        ),
    ),
    (matching_errors.UnknownMarket("1"), 404, "No orderbook exists for the requested token id"),
    (
        matching_errors.MarketClosed("0x", "resolved"),
        404,
        "No orderbook exists for the requested token id",
    ),
]


@pytest.mark.parametrize(
    ("error", "status", "told"), TRADING_WORDS, ids=[name(type(row[0])) for row in TRADING_WORDS]
)
def test_a_trading_client_finds_the_words_that_it_looks_for(
    error: ForetellError, status: int, told: str
) -> None:
    seen, body = trading_body(error)
    assert (seen, plain(body)["error"]) == (status, told)
    assert plain(body)["code"] == error.code
    assert plain(body)["message"] == error.message


LETTER_BY_LETTER: list[tuple[type[ForetellError], int, str]] = [
    (trading_errors.OrderVersionMismatch, 400, "order_version_mismatch"),
    (trading_errors.OwnerMismatch, 400, "the order owner has to be the owner of the API KEY"),
    (
        trading_errors.SignerNotCaller,
        400,
        "the order signer address has to be the address of the API KEY",
    ),
    (trading_errors.InvalidOrderNonce, 400, "invalid nonce"),
    (matching_errors.OrderCanceledOnChain, 400, "order was canceled on chain"),
    (trading_errors.InvalidTokenId, 400, "Invalid token id"),
    (trading_errors.InvalidSide, 400, "Invalid side"),
    (trading_errors.BatchTooLong, 400, "Payload exceeds the limit"),
    (trading_errors.TooManyOrders, 400, "Too many orders in payload: 7, max allowed: 7"),
    (trading_errors.TooManyCancels, 400, "Too many orders in payload, max allowed: 7"),
    (trading_errors.InvalidOrderId, 400, "Invalid orderID"),
    (trading_errors.InvalidOrderFilter, 400, "invalid order params payload"),
    (trading_errors.InvalidTradeFilter, 400, "Invalid trade params payload"),
    (trading_errors.InvalidMarketId, 400, "Invalid market"),
    (trading_errors.MarketNotFound, 404, "market not found"),
    (trading_errors.InvalidAssetType, 400, "Invalid asset type"),
    (matching_errors.EngineRestarting, 425, "the matching engine is restarting"),
]


@pytest.mark.parametrize(("kind", "status", "told"), LETTER_BY_LETTER)
def test_a_trading_client_finds_the_words_of_every_route(
    kind: type[ForetellError], status: int, told: str
) -> None:
    seen, body = trading_body(a_refusal(kind))
    assert (seen, plain(body)["error"]) == (status, told)


def test_a_wallet_that_signed_wrongly_is_told_in_the_words_of_its_level() -> None:
    status, body = trading_l1_body(request_errors.MissingHeader("SERVICE_NONCE"))
    assert (status, plain(body)["error"]) == (401, "Invalid L1 Request headers")
    assert plain(body)["details"] == {"header": "SERVICE_NONCE"}


def test_a_trading_refusal_carries_its_numbers_only_where_it_has_some() -> None:
    _, body = trading_body(matching_errors.InsufficientBalance(need=5, asset="0"))
    assert plain(body)["details"] == {"need": 5, "asset": "0"}
    _, body = trading_body(matching_errors.PostOnlyWouldCross())
    assert "details" not in plain(body)


@pytest.mark.spec(125)
@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_a_worker_body_always_has_its_three_keys(kind: type[ForetellError]) -> None:
    _, body = worker_body(a_refusal(kind))
    told = plain(body)["error"]
    assert set(told) == {"code", "message", "details"}
    assert isinstance(told["code"], str)
    assert isinstance(told["message"], str)


@pytest.mark.spec(94, 125)
def test_what_a_worker_client_sent_wrongly_is_a_validation_error() -> None:
    status, body = worker_body(errors.MalformedHex("creator", "an address"))
    told = plain(body)["error"]
    assert (status, told["code"]) == (400, "validation_error")


def test_a_worker_refusal_tells_its_numbers() -> None:
    _, body = worker_body(creation_errors.CreatorNotWhitelisted("0x01"))
    assert plain(body)["error"]["details"] == {"creator": "0x01"}
    _, body = worker_body(matching_errors.EngineStopped("why"))
    assert plain(body)["error"]["details"] is None


def test_relayer_and_data_refusals_begin_with_a_word_for_machines() -> None:
    status, body = relayer_body(request_errors.UnknownKey("no such API key"))
    assert (status, plain(body)["error"]) == (401, "unauthorized: no such API key")
    status, body = relayer_body(storage_errors.StoreUnavailable("why"))
    assert plain(body)["error"] == "store_unavailable: the database is unavailable: why"
    status, body = data_body(storage_errors.StoreUnavailable("why"))
    assert plain(body)["error"] == "store_unavailable: the database is unavailable: why"


@pytest.mark.parametrize(
    ("path", "method", "code"),
    [
        ("/nowhere", "GET", "unknown_route"),
        ("/refused", "DELETE", "method_not_allowed"),
        ("/malformed", "GET", "http_refusal"),
    ],
)
@pytest.mark.anyio
async def test_what_the_framework_refuses_has_a_code_of_its_own(
    path: str, method: str, code: str
) -> None:
    assert (await ask("trading", path, method)).json()["code"] == code


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (request_errors.UnknownRoute("Not Found"), (404, "not found error")),
        (request_errors.MalformedQuery("limit", "an integer"), (422, "validation error")),
        (request_errors.MalformedBody("?"), (400, "bad request")),
        (storage_errors.StoreUnavailable("?"), (503, "server error")),
    ],
    ids=lambda each: name(type(each)),
)
def test_a_discovery_refusal_has_a_type_of_its_status(
    error: ForetellError, told: tuple[int, str]
) -> None:
    status, body = discovery_body(error)
    assert (status, plain(body)["type"]) == told


CANARY = "canary-5d41402abc4b2a76b9719d911017c592"


@get("/refused")
async def refused() -> None:
    raise matching_errors.MarketClosed(an_address("market"), "resolved")


@get("/restarting")
async def restarting() -> None:
    raise matching_errors.EngineRestarting


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
    return Litestar(routes, exception_handlers=handlers(body_of))


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
async def test_a_refusal_leaves_a_route_as_its_api_tells_it(style: str) -> None:
    answer = await ask(style, "/refused")
    refusal = matching_errors.MarketClosed(an_address("market"), "resolved")
    status, body = STYLES[style](refusal)
    assert (answer.status_code, answer.json()) == (status, plain(body))
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.anyio
async def test_a_refusal_that_will_pass_says_when_to_come_back() -> None:
    answer = await ask("trading", "/restarting")
    assert (answer.status_code, answer.headers["retry-after"]) == (425, "1")
    assert answer.json()["retry_after_seconds"] == 1


@pytest.mark.anyio
@pytest.mark.parametrize("style", STYLES)
async def test_a_route_that_does_not_exist_is_told_in_the_style_of_the_api(style: str) -> None:
    answer = await ask(style, "/nowhere")
    assert answer.status_code == 404
    assert set(answer.json()) >= SHAPES[style]


@pytest.mark.anyio
@pytest.mark.parametrize("style", STYLES)
async def test_a_method_that_a_route_does_not_take_is_told_in_the_style_of_the_api(
    style: str,
) -> None:
    answer = await ask(style, "/refused", "DELETE")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, OPTIONS")
    assert set(answer.json()) >= SHAPES[style]
    assert "the route takes GET, OPTIONS, and not DELETE" in json.dumps(answer.json())


@pytest.mark.anyio
@pytest.mark.parametrize("style", STYLES)
async def test_what_the_framework_refuses_is_the_clients_fault(style: str) -> None:
    answer = await ask(style, "/malformed")
    assert answer.status_code == 400
    assert set(answer.json()) >= SHAPES[style]


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/broken", "/broken-inside"])
@pytest.mark.parametrize("style", STYLES)
async def test_a_fault_of_ours_tells_nothing_and_is_logged(
    style: str, path: str, logs: list[Any]
) -> None:
    answer = await ask(style, path)
    assert answer.status_code == 500
    assert CANARY not in answer.text
    assert set(answer.json()) >= SHAPES[style]
    assert [(entry["event"], entry["path"]) for entry in logs] == [("unhandled", path)]
    assert CANARY in str(logs[0]["exc_info"])
