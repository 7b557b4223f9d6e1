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
from tests.rigs.refusals import a_refusal, every_refusal
from tests.rigs.values import NOW_S, a_word, an_address

from foretell.creation.refusals import WORKER, worker_body
from foretell.data.refusals import DATA, data_body
from foretell.discovery.refusals import DISCOVERY, discovery_body
from foretell.domain.errors.creation import CreatorNotWhitelisted
from foretell.domain.errors.exchange import (
    EngineRestarting,
    EngineStopped,
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    InsufficientAllowance,
    InsufficientBalance,
    InvalidExpiration,
    MalformedOrder,
    MarketClosed,
    OrderCanceledOnChain,
    OrderDuplicated,
    OrderPlacedBefore,
    PostOnlyWouldCross,
    PriceOffTick,
    ReservedByOpenOrders,
    Shortfall,
    SignerMismatch,
    SizeBelowMinimum,
    UnknownMarket,
)
from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    InvalidInput,
    MalformedHex,
    MalformedSignature,
    NotFound,
    Unauthenticated,
    Unavailable,
    Upstream,
)
from foretell.domain.errors.http import (
    ClockSkew,
    L1SignatureMismatch,
    L2SignatureMismatch,
    MalformedBody,
    MalformedQuery,
    MissingHeader,
    NonceNotMonotonic,
    NoSuchCredentials,
    RevokedKey,
    UnknownKey,
    UnknownRoute,
    WrongPassphrase,
)
from foretell.domain.errors.order import (
    BatchTooLong,
    InvalidAssetType,
    InvalidMarketId,
    InvalidOrderFilter,
    InvalidOrderId,
    InvalidOrderNonce,
    InvalidSide,
    InvalidTokenId,
    InvalidTradeFilter,
    MarketNotFound,
    OrderVersionMismatch,
    OwnerMismatch,
    SignerNotCaller,
    TooManyCancels,
    TooManyOrders,
)
from foretell.domain.errors.storage import StoreUnavailable
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
ORDER_ID = a_word("order")
SHORTFALL = Shortfall("0", "0xe1", 5, 4, -1, 2, 9)


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


NOT_THE_CLIENTS = [kind for kind in KINDS if issubclass(kind, (Unavailable, Upstream))]


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
    assert (status == 401) == issubclass(kind, Unauthenticated)


FORBIDDEN = {"secret", "passphrase", "private_key", "key", "password", "hmac", "master_key"}


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_no_refusal_is_made_of_a_secret(kind: type[ForetellError]) -> None:
    assert not set(inspect.signature(kind).parameters) & FORBIDDEN


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
        """A refusal that no table knows."""

    assert row_of({}, Unlisted("why")) == (status, None)


class Parent(Conflict):
    """A refusal with a row."""


class Child(Parent):
    """A refusal without one, or with half of one."""


@pytest.mark.parametrize(
    ("table", "told"),
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
def test_the_nearest_row_says_what_it_says_and_the_next_one_the_rest(
    table: dict[type[ForetellError], RefusalRow], told: tuple[int, str | None]
) -> None:
    assert row_of(table, Child("why")) == told


# What clients of the ecosystem look for, letter by letter.
TRADING_WORDS: list[tuple[ForetellError, int, str]] = [
    (UnknownKey("?"), 401, "Unauthorized/Invalid api key"),
    (RevokedKey("?"), 401, "Unauthorized/Invalid api key"),
    (WrongPassphrase("?"), 401, "Unauthorized/Invalid api key"),
    (ClockSkew("0", NOW_S), 401, "Unauthorized/Invalid api key"),
    (MissingHeader("X"), 401, "Unauthorized/Invalid api key"),
    (L2SignatureMismatch(1, "00"), 401, "Unauthorized/Invalid api key"),
    (L1SignatureMismatch("0x"), 401, "Invalid L1 Request headers"),
    (NonceNotMonotonic(1, 2), 400, "Could not create api key"),
    (NoSuchCredentials("?"), 400, "Could not derive api key!"),
    (MalformedOrder("?"), 400, "Invalid order payload"),
    (MalformedSignature("?"), 400, "Invalid order payload"),
    (SignerMismatch("0x"), 400, "Invalid order payload"),
    (
        PriceOffTick(ORDER_ID, 333, 1_000, 100),
        400,
        f"order {ORDER_ID} is invalid. Price (0.333) breaks minimum tick size rule: 0.01",
    ),
    (
        SizeBelowMinimum(ORDER_ID, 4_990_000, 5_000_000),
        400,
        f"order {ORDER_ID} is invalid. Size (4.99) lower than the minimum: 5",
    ),
    (OrderDuplicated(ORDER_ID), 400, f"order {ORDER_ID} is invalid. Duplicated."),
    (OrderPlacedBefore(ORDER_ID), 400, f"order {ORDER_ID} is invalid. Duplicated."),
    (InsufficientBalance(SHORTFALL), 400, "not enough balance / allowance"),
    (InsufficientAllowance(SHORTFALL), 400, "not enough balance / allowance"),
    (ReservedByOpenOrders(SHORTFALL), 400, "not enough balance / allowance"),
    (InvalidExpiration("?"), 400, "invalid expiration"),
    (PostOnlyWouldCross(), 400, "invalid post-only order: order crosses book"),
    (
        FillOrKillUnfilled(),
        400,
        "order couldn't be fully filled. FOK orders are fully filled or killed.",
    ),
    (
        FillAndKillUnmatched(),
        400,
        (
            "no orders found to match with FAK order. FAK orders are partially filled or killed if"
            " no match is found."
        ),
    ),
    (UnknownMarket("1"), 404, "No orderbook exists for the requested token id"),
    (
        MarketClosed("0x", "resolved"),
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
    (OrderVersionMismatch, 400, "order_version_mismatch"),
    (OwnerMismatch, 400, "the order owner has to be the owner of the API KEY"),
    (
        SignerNotCaller,
        400,
        "the order signer address has to be the address of the API KEY",
    ),
    (InvalidOrderNonce, 400, "invalid nonce"),
    (OrderCanceledOnChain, 400, "order was canceled on chain"),
    (InvalidTokenId, 400, "Invalid token id"),
    (InvalidSide, 400, "Invalid side"),
    (BatchTooLong, 400, "Payload exceeds the limit"),
    (TooManyOrders, 400, "Too many orders in payload: 7, max allowed: 7"),
    (TooManyCancels, 400, "Too many orders in payload, max allowed: 7"),
    (InvalidOrderId, 400, "Invalid orderID"),
    (InvalidOrderFilter, 400, "invalid order params payload"),
    (InvalidTradeFilter, 400, "Invalid trade params payload"),
    (InvalidMarketId, 400, "Invalid market"),
    (MarketNotFound, 404, "market not found"),
    (InvalidAssetType, 400, "Invalid asset type"),
    (EngineRestarting, 425, "the matching engine is restarting"),
]


@pytest.mark.parametrize(("kind", "status", "told"), LETTER_BY_LETTER)
def test_a_trading_client_finds_the_words_of_every_route(
    kind: type[ForetellError], status: int, told: str
) -> None:
    seen, body = trading_body(a_refusal(kind))
    assert (seen, plain(body)["error"]) == (status, told)


def test_a_wallet_that_signed_wrongly_is_told_in_the_words_of_its_level() -> None:
    status, body = trading_l1_body(MissingHeader("SERVICE_NONCE"))
    assert (status, plain(body)["error"]) == (401, "Invalid L1 Request headers")
    assert plain(body)["details"] == {"header": "SERVICE_NONCE"}


def test_a_trading_refusal_carries_its_numbers_only_where_it_has_some() -> None:
    _, body = trading_body(InsufficientBalance(SHORTFALL))
    assert plain(body)["details"]["need"] == 5
    _, body = trading_body(PostOnlyWouldCross())
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
    status, body = worker_body(MalformedHex("creator", "an address"))
    told = plain(body)["error"]
    assert (status, told["code"]) == (400, "validation_error")


def test_a_worker_refusal_tells_its_numbers() -> None:
    _, body = worker_body(CreatorNotWhitelisted("0x01"))
    assert plain(body)["error"]["details"] == {"creator": "0x01"}
    _, body = worker_body(EngineStopped("why"))
    assert plain(body)["error"]["details"] is None


def test_relayer_and_data_refusals_begin_with_a_word_for_machines() -> None:
    status, body = relayer_body(UnknownKey("no such API key"))
    assert (status, plain(body)["error"]) == (401, "unauthorized: no such API key")
    status, body = relayer_body(StoreUnavailable("why"))
    assert plain(body)["error"] == "store_unavailable: the database is unavailable: why"
    status, body = data_body(StoreUnavailable("why"))
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
        (UnknownRoute("Not Found"), (404, "not found error")),
        (MalformedQuery("limit", "an integer"), (422, "validation error")),
        (MalformedBody("?"), (400, "bad request")),
        (StoreUnavailable("?"), (503, "server error")),
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
    refusal = MarketClosed(an_address("market"), "resolved")
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
