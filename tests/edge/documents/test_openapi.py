from decimal import Decimal
from importlib.metadata import version
from typing import Any
from urllib.parse import urljoin

import httpx
import msgspec
import pytest
from litestar import Litestar, get, post
from litestar.handlers import HTTPRouteHandler
from msgspec import UNSET, UnsetType

from foretell.data.refusals import DOCUMENTED, data_body
from foretell.domain.errors.http import UnknownRecord
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.openapi import Api, document_of
from foretell.edge.documents.security import L2, L2_IF_SIGNED, OPERATOR
from foretell.edge.parameters import (
    boolean,
    choice,
    ignored,
    integer,
    optional_choice,
    required_conditions,
    units_or,
    wallet,
)


class Sum(msgspec.Struct):
    total: Decimal
    part: Decimal | None
    name: str
    note: str | UnsetType = UNSET
    kind: str = "plain"


pytestmark = pytest.mark.anyio


@get(
    ["/sums/all", "/sums/all-of-it"],
    opt=describe(
        Success(Sum, "The sum."),
        wallet("user", "who"),
        required_conditions("market", "which"),
        integer("limit", 5, 1, 9, "how many"),
        units_or("least", "from what on", default=1),
        boolean("all", "whether all", default=True),
        choice("side", "which side", ("BUY", "SELL"), "BUY"),
        optional_choice("kind", "which kind", ("A", "B")),
        ignored("mirror"),
        tag="Sums",
    ),
)
async def get_sums(request: AnyRequest) -> None:
    """Return sums."""


@get(
    "/sums/{sum_id:str}",
    opt=describe(
        Success(list[Sum], "The sums."), tag="Sums", security=L2, refusals=(UnknownRecord,)
    ),
)
async def get_sum(request: AnyRequest) -> None:
    """Return a sum."""


@get("/mine", opt=describe(Success(Sum, "Mine."), tag="Sums", security=L2_IF_SIGNED))
async def get_mine(request: AnyRequest) -> None:
    """Return the sum of the caller."""


@get("/kept", opt=describe(Success(Sum, "Kept."), tag="Sums", security=OPERATOR))
async def get_kept(request: AnyRequest) -> None:
    """Return the sum of the operator."""


def an_app(*others: HTTPRouteHandler) -> Litestar:
    api = Api("sums", "Sums", "All about sums.", DOCUMENTED)
    routes = [get_sums, get_sum, get_mine, get_kept, *others]
    return build_application(api=api, routes=routes, context=None, body_of=data_body)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return document_of(an_app())


@post("/made", opt=describe(Success(Sum, "Made."), tag="Sums"))
async def make_sum(request: AnyRequest) -> None:
    """Make a sum."""


@pytest.mark.parametrize(
    ("path", "allowed"), [("/mine", "GET, HEAD, OPTIONS"), ("/made", "OPTIONS, POST")]
)
async def test_options_names_the_methods_that_a_refusal_of_another_one_names(
    path: str, allowed: str
) -> None:
    transport = httpx.ASGITransport(an_app(make_sum))  # type: ignore[arg-type]  # as below
    async with httpx.AsyncClient(transport=transport, base_url="http://sums") as client:
        answers = [await client.request(method, path) for method in ("OPTIONS", "DELETE")]
    assert [answer.status_code for answer in answers] == [204, 405]
    assert [answer.headers["allow"] for answer in answers] == [allowed, allowed]


async def test_the_document_is_served_under_a_prefix() -> None:
    transport = httpx.ASGITransport(an_app())  # type: ignore[arg-type]  # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://sums") as client:
        served = await client.get("/schema/openapi.json")
    address = urljoin("http://host/clob/schema/openapi.json", served.json()["servers"][0]["url"])
    assert address == "http://host/clob/"


def test_the_document_has_the_version_of_the_package(document: dict[str, Any]) -> None:
    assert document["info"] == {
        "title": "Sums",
        "description": "All about sums.",
        "version": version("foretell"),
    }


def test_paths_of_one_handler_are_operations_of_their_own(document: dict[str, Any]) -> None:
    ids = {path: operations["get"]["operationId"] for path, operations in document["paths"].items()}
    assert ids == {
        "/kept": "get_kept",
        "/limits": "show_limits",
        "/mine": "get_mine",
        "/sums/all": "get_sums_sums_all",
        "/sums/all-of-it": "get_sums_sums_all_of_it",
        "/sums/{sum_id}": "get_sum",
    }


def test_parameters_are_described_as_they_are_declared_and_ignored_ones_are_not(
    document: dict[str, Any],
) -> None:
    parameters = document["paths"]["/sums/all"]["get"]["parameters"]
    described = {
        entry["name"]: (entry["required"], entry["description"], entry["schema"])
        for entry in parameters
    }
    assert described == {
        "user": (True, "who", {"type": "string"}),
        "market": (True, "which", {"type": "array", "items": {"type": "string"}}),
        "limit": (
            False,
            "how many",
            {"type": "integer", "default": 5, "minimum": 1, "maximum": 9},
        ),
        "least": (False, "from what on", {"type": "number", "default": 1, "minimum": 0}),
        "all": (False, "whether all", {"type": "boolean", "default": True}),
        "side": (
            False,
            "which side",
            {"type": "string", "enum": ["BUY", "SELL"], "default": "BUY"},
        ),
        "kind": (False, "which kind", {"type": "string", "enum": ["A", "B"]}),
        "strict": (
            False,
            "whether unknown parameters are refused",
            {"type": "boolean", "default": False},
        ),
    }
    [market] = [entry for entry in parameters if entry["name"] == "market"]
    assert (market["style"], market["explode"]) == ("form", False)


def test_a_parameter_of_the_path_is_required(document: dict[str, Any]) -> None:
    (parameter,) = document["paths"]["/sums/{sum_id}"]["get"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("sum_id", "path", True)


def test_decimals_are_described_as_numbers(document: dict[str, Any]) -> None:
    fields = document["components"]["schemas"]["Sum"]["properties"]
    assert fields["total"] == {"type": "number"}
    assert {"type": "number"} in fields["part"]["anyOf"]
    assert fields["name"] == {"type": "string"}


def test_a_field_that_is_always_sent_is_required_and_has_no_default(
    document: dict[str, Any],
) -> None:
    described = document["components"]["schemas"]["Sum"]
    assert described["required"] == ["total", "part", "name", "kind"]
    assert described["properties"]["kind"] == {"type": "string"}


def test_a_refusal_is_described_with_its_codes(document: dict[str, Any]) -> None:
    refused = document["paths"]["/sums/{sum_id}"]["get"]["responses"]
    assert refused["404"]["x-codes"] == ["not_found"]
    assert refused["404"]["content"] == {
        "application/json": {"schema": {"$ref": "#/components/schemas/DataError"}}
    }
    assert {"unknown_key", "l2_signature_mismatch"} <= set(refused["401"]["x-codes"])
    assert "retry-after" in refused["429"]["headers"]


@pytest.mark.deviation(21)
def test_a_signature_is_a_set_of_headers(document: dict[str, Any]) -> None:
    (required,) = document["paths"]["/sums/{sum_id}"]["get"]["security"]
    schemes = document["components"]["securitySchemes"]
    assert {schemes[name]["name"] for name in required} == {
        "SERVICE_ADDRESS",
        "SERVICE_SIGNATURE",
        "SERVICE_TIMESTAMP",
        "SERVICE_API_KEY",
        "SERVICE_PASSPHRASE",
    }


def test_a_signature_that_may_be_absent_is_one_of_two_choices(document: dict[str, Any]) -> None:
    unsigned, signed = document["paths"]["/mine"]["get"]["security"]
    assert unsigned == {}
    assert len(signed) == 5


def test_the_token_of_a_bearer_is_one_scheme(document: dict[str, Any]) -> None:
    kept = document["paths"]["/kept"]["get"]
    assert kept["security"] == [{"Operator": []}]
    scheme = document["components"]["securitySchemes"]["Operator"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert kept["responses"]["401"]["x-codes"] == ["wrong_operator_token"]
