from decimal import Decimal
from importlib.metadata import version
from typing import Any
from urllib.parse import urljoin

import httpx
import msgspec
import pytest
from litestar import Litestar, get

from foretell.edge.codec import AnyRequest
from foretell.edge.openapi import DecimalsAreNumbers, json_responses, openapi_config, operation_with
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


pytestmark = pytest.mark.anyio


@get(
    ["/sums/all", "/sums/all-of-it"],
    responses=json_responses(Sum, "The sum."),
    operation_class=operation_with(
        wallet("user", "who"),
        required_conditions("market", "which"),
        integer("limit", 5, 1, 9, "how many"),
        units_or("least", "from what on", default=1),
        boolean("all", "whether all", default=True),
        choice("side", "which side", ("BUY", "SELL"), "BUY"),
        optional_choice("kind", "which kind", ("A", "B")),
        ignored("mirror"),
    ),
)
async def get_sums(request: AnyRequest) -> None:
    """Return sums."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    app = Litestar(
        [get_sums],
        openapi_config=openapi_config("Sums", "All about sums."),
        plugins=[DecimalsAreNumbers()],
    )
    return app.openapi_schema.to_schema()


async def test_the_document_is_served_under_a_prefix_and_no_page_fetches_third_party_scripts() -> (
    None
):
    app = Litestar([get_sums], openapi_config=openapi_config("Sums", "All about sums."))
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://sums") as client:
        served = await client.get("/schema/openapi.json")
        page = await client.get("/schema")
    address = urljoin("http://host/clob/schema/openapi.json", served.json()["servers"][0]["url"])
    assert address == "http://host/clob/"
    assert "<script" not in page.text


def test_the_document_has_the_version_of_the_package(document: dict[str, Any]) -> None:
    assert document["info"] == {
        "title": "Sums",
        "description": "All about sums.",
        "version": version("foretell"),
    }


def test_paths_of_one_handler_are_operations_of_their_own(document: dict[str, Any]) -> None:
    ids = {path: operations["get"]["operationId"] for path, operations in document["paths"].items()}
    assert ids == {
        "/sums/all": "get_sums_sums_all",
        "/sums/all-of-it": "get_sums_sums_all_of_it",
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


def test_decimals_are_described_as_numbers(document: dict[str, Any]) -> None:
    fields = document["components"]["schemas"]["Sum"]["properties"]
    assert fields["total"] == {"type": "number"}
    assert {"type": "number"} in fields["part"]["oneOf"]
    assert fields["name"] == {"type": "string"}
