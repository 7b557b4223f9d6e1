"""Bodies in and out: bounded, typed, encoded without surprises."""

import contextlib
import importlib
import pkgutil
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar import Litestar, Request, Response, post
from litestar.datastructures import State

from foretell import creation, data, discovery, relayer, trading
from foretell.creation.refusals import worker_body
from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import InvalidInput
from foretell.domain.errors.http import BodiesBusy, MalformedBody
from foretell.edge.codec import (
    BODY_BUDGET,
    BODY_BYTES_MAX,
    BodyBudget,
    SecretObject,
    decode,
    json_response,
    read_body,
)
from foretell.edge.refusals import handlers
from foretell.trading.handlers.keys import CredentialsRecord
from foretell.trading.streams.requests import StreamAuth

BYTES_MAX = 8


class Fruit(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    pieces: int = 1


@post("/small", status_code=200)
async def small(request: Request[Any, Any, State]) -> Response[bytes]:
    return Response(await read_body(request, BYTES_MAX), media_type="application/octet-stream")


@post("/large", status_code=200)
async def large(request: Request[Any, Any, State]) -> Response[str]:
    return Response(str(len(await read_body(request))))


APP = Litestar([small, large], exception_handlers=handlers(worker_body), logging_config=None)


async def send(
    body: bytes | AsyncIterator[bytes], path: str = "/small", **headers: str
) -> httpx.Response:
    transport = httpx.ASGITransport(APP)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        return await client.post(path, content=body, headers=raw)


async def in_pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@pytest.mark.anyio
@pytest.mark.parametrize("body", [b"", b"x", b'{"a": 1}', b"\x00\xff" * 4])
async def test_a_body_within_its_limit_is_read_byte_for_byte(body: bytes) -> None:
    answer = await send(body)
    assert (answer.status_code, answer.content) == (200, body)


@pytest.mark.anyio
async def test_a_body_in_pieces_is_put_together() -> None:
    answer = await send(in_pieces(b"abc", b"", b"de", b"fgh"))
    assert (answer.status_code, answer.content) == (200, b"abcdefgh")


@pytest.mark.anyio
async def test_a_body_beyond_its_limit_is_refused() -> None:
    answer = await send(b"123456789")
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == f"the body is larger than {BYTES_MAX} bytes"


@pytest.mark.case("G-03")
@pytest.mark.anyio
@pytest.mark.parametrize("declared", ["1", "0", "-5", "8"])
async def test_a_body_that_grows_beyond_its_limit_is_refused_despite_its_declared_length(
    declared: str,
) -> None:
    answer = await send(in_pieces(b"12345678", b"9"), **{"content-length": declared})
    assert answer.status_code == 413


@pytest.mark.case("G-03")
@pytest.mark.anyio
@pytest.mark.parametrize("declared", ["x", "", "\u00b2", "1.5", "0x1"])
async def test_a_length_that_is_no_number_is_the_client_s_fault(declared: str) -> None:
    answer = await send(in_pieces(b"12"), **{"content-length": declared})
    assert answer.status_code == 400


@pytest.mark.case("G-03")
@pytest.mark.anyio
@pytest.mark.parametrize("declared", ["9", "1000000", "9" * 30, "9" * 5_000])
async def test_a_body_declared_beyond_its_limit_is_refused_before_it_is_read(
    declared: str,
) -> None:
    pieces = in_pieces(b"1")
    answer = await send(pieces, **{"content-length": declared})
    assert answer.status_code == 413
    assert [piece async for piece in pieces] == [b"1"], "no consumer has taken it"


@pytest.mark.anyio
async def test_a_body_has_a_default_limit() -> None:
    assert (await send(bytes(BODY_BYTES_MAX), "/large")).text == str(BODY_BYTES_MAX)
    assert (await send(bytes(BODY_BYTES_MAX + 1), "/large")).status_code == 413


@given(st.builds(Fruit, st.text(), st.integers(-(2**63), 2**64 - 1)))
def test_a_value_comes_back_from_json(fruit: Fruit) -> None:
    assert decode(msgspec.json.encode(fruit), Fruit) == fruit


def test_text_is_decoded_like_bytes() -> None:
    assert decode('{"name":"\u00e4pple"}', Fruit) == Fruit("\u00e4pple")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"{}", "missing required field `name`"),
        (b"[]", "Expected `object`"),
        (b"null", "Expected `object`"),
        (b'{"name":1}', r"Expected `str`.*\$.name"),
        (b'{"name":null}', r"Expected `str`.*\$.name"),
        (b'{"name":"a","pieces":"2"}', r"Expected `int`.*\$.pieces"),
        (b'{"name":"a","pieces":1.5}', r"Expected `int`.*\$.pieces"),
        (b'{"name":"a","pieces":NaN}', "malformed"),
        (b'{"name":"a","more":1}', "unknown field `more`"),
        (b'{"name":"a"}x', "malformed"),
        (b'{"name":"a",}', "malformed"),
        (b"{'name':'a'}", "malformed"),
        (b'{"name":"\xff"}', "utf-8"),
        (b'{"name":"\\ud800"}', "truncated"),
        (b"\xef\xbb\xbf{}", "malformed"),
        (b'{"name":' + b"[" * 100_000, "nested more than 32 deep"),
    ],
    ids=range(18),
)
def test_json_of_another_type_is_refused_with_the_place(raw: bytes, message: str) -> None:
    with pytest.raises(MalformedBody, match=message):
        decode(raw, Fruit)


@pytest.mark.case("F-04")
def test_json_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(MalformedBody):
        decode(b"[" * 1_000_000 + b"]" * 1_000_000, object)


@given(st.binary(max_size=50))
def test_all_bytes_are_decoded_or_refused(raw: bytes) -> None:
    with contextlib.suppress(MalformedBody):
        decode(raw, object)


@pytest.mark.parametrize("refusal", [MalformedBody, MalformedOrder])
def test_a_route_chooses_the_refusal(refusal: type[InvalidInput]) -> None:
    with pytest.raises(refusal):
        decode(b"{", Fruit, refusal)


def test_an_answer_is_json() -> None:
    answer = json_response({"name": "\u00e4pple", "pieces": [1, None, True]}, 201)
    assert answer.content == '{"name":"\u00e4pple","pieces":[1,null,true]}'.encode()
    assert (answer.status_code, answer.media_type) == (201, "application/json")
    assert json_response([]).status_code == 200


@pytest.mark.parametrize("text", ["0.000001", "0.1", "1234567890.123456", "3"])
def test_a_decimal_is_an_exact_number_in_an_answer(text: str) -> None:
    assert json_response([Decimal(text)]).content == f"[{text}]".encode()


@pytest.mark.anyio
async def test_attack_m3_a_body_that_its_client_cuts_off_is_no_bug_of_the_server() -> None:
    """It once wrote a trace of 26 lines, and counted as an answer of 500."""
    arriving = [
        {"type": "http.request", "body": b"abc", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/large",
        "raw_path": b"/large",
        "query_string": b"",
        "headers": [(b"content-length", b"9")],
    }

    async def receive() -> Any:
        return arriving.pop(0)

    async def send_on(message: Any) -> None:
        sent.append(message)

    await APP(scope, receive, send_on)  # type: ignore[arg-type]  # scopes typed closer

    assert sent[0]["status"] == 400
    assert BODY_BUDGET.bytes_held == 0


def test_attack_h5_bodies_that_arrive_have_one_budget_and_a_client_a_part_of_it() -> None:
    """2,000 connections with a body of a megabyte each once took two gigabytes."""
    budget = BodyBudget(bytes_max=10, client_bytes_max=6, reserved_bytes=0)
    budget.take("one", 6)
    with pytest.raises(BodiesBusy, match="all 6 bytes"):
        budget.take("one", 1)
    with pytest.raises(BodiesBusy, match="all 10 bytes"):
        budget.take("two", 5)
    budget.take("two", 4)
    budget.give_back("one", 6)
    budget.take("two", 2)
    assert budget.bytes_held == 6


def test_attack_h5_strangers_take_no_byte_that_is_reserved_for_known_keys() -> None:
    budget = BodyBudget(bytes_max=10, client_bytes_max=10, reserved_bytes=4)
    budget.take("stranger", 6)
    with pytest.raises(BodiesBusy, match="all 6 bytes"):
        budget.take("another", 1)
    budget.take("trader", 4, is_known=True)
    with pytest.raises(BodiesBusy, match="all 10 bytes"):
        budget.take("trader", 1, is_known=True)
    budget.give_back("trader", 4, is_known=True)
    with pytest.raises(BodiesBusy, match="all 6 bytes"):
        budget.take("another", 1)
    budget.give_back("stranger", 6)
    budget.take("trader", 10, is_known=True)
    budget.give_back("trader", 10, is_known=True)
    budget.take("another", 6)
    assert budget.bytes_held == 6


@pytest.mark.anyio
async def test_a_body_counts_until_it_is_read_whole() -> None:
    held = []

    async def arriving() -> AsyncIterator[bytes]:
        for _ in range(3):
            held.append(BODY_BUDGET.bytes_held)
            yield b"ab"

    assert (await send(arriving())).status_code == 200
    assert held[0] == 0
    assert BODY_BUDGET.bytes_held == 0


def test_every_shape_of_an_answer_with_a_secret_is_marked_as_such() -> None:
    for product in (trading, relayer, creation, data, discovery):
        for module in pkgutil.walk_packages(product.__path__, product.__name__ + "."):
            importlib.import_module(module.name)
    shapes, found = [msgspec.Struct], set()
    while shapes:
        new = shapes.pop().__subclasses__()
        shapes += new
        found |= {
            each
            for each in new
            if each.__module__.startswith("foretell.")
            and {"secret", "passphrase"} & set(each.__struct_fields__)
        }
    assert {each for each in found if not issubclass(each, SecretObject)} <= {StreamAuth}
    assert CredentialsRecord in found


def test_an_answer_with_a_secret_is_kept_by_no_cache() -> None:
    secret = json_response(CredentialsRecord("key", "secret", "passphrase"))
    assert dict(secret.headers) == {"cache-control": "no-store"}
    assert dict(json_response({"secret": "none"}).headers) == {}
