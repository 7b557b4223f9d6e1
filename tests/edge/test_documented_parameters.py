"""Agreement of the OpenAPI documents with the parsing of query parameters, over all routes.

The database and the chain are unreachable: a request whose parameters are accepted ends in 503, or in
an answer that needs neither.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.rigs.applications import BuildApp, an_app, openapi_document
from tests.rigs.read_apis import Reader, a_data_context
from tests.rigs.values import NOW_MS, a_word, an_address
from typing_extensions import override

from foretell.creation import routes as creation
from foretell.creation.context import CreationContext, CreationOptions
from foretell.data import routes as data
from foretell.discovery import routes as discovery
from foretell.discovery.context import DiscoveryContext
from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.edge.documents.description import STRICT
from foretell.edge.parameters import Parameter
from foretell.edge.query import Query
from foretell.relayer import routes as relayer
from foretell.relayer.context import RelayerContext

pytestmark = pytest.mark.anyio

BUILD_APPS: dict[str, BuildApp] = {
    "creation": creation.build_app,
    "relayer": relayer.build_app,
    "data": data.build_app,
    "discovery": discovery.build_app,
}
REFUSED = {400, 422}

SAMPLES = {
    "type": "SAFE",
    "user": an_address("alice"),
    "address": an_address("alice"),
    "market": a_word("rain"),
    "q": "rain",
    "id": "1",
}
"""A valid value of each required parameter."""
NEEDED: dict[tuple[str, str], dict[str, str]] = {
    ("creation", "/pending"): {"creator": an_address("alice")},
    ("data", "/live-volume"): {"market": a_word("rain")},
}
"""Parameters that a route needs although each alone is optional."""
SUBSTITUTES: dict[tuple[str, ...], dict[str, str]] = {
    ("creation", "/pending", "creator"): {"requestId": "1"},
    ("data", "/live-volume", "market"): {"id": "1"},
}
"""Parameters that replace a needed one."""
PARTNERS: dict[str | tuple[str, ...], dict[str, str]] = {
    ("data", "/live-volume", "id"): {"market": ""},
    "filterType": {"filterAmount": "1"},
    "filterAmount": {"filterType": "CASH"},
}
"""Parameters that are valid only together, or only without another."""
CLAMPED = {
    "/events",
    "/events/keyset",
    "/series",
    "/teams",
    "/events/pagination",
    "/markets",
    "/markets/keyset",
    "/tags",
    "/public-search",
}
"""Routes of the discovery API, in which a larger limit counts as the largest."""
ANY_TEXT = {("relayer", "/deployed", "type")}
"""Parameters with choices whose value changes nothing: every text is accepted."""


class Case(NamedTuple):
    """A documented parameter of a route."""

    product: str
    path: str
    name: str
    schema: dict[str, Any]
    is_required: bool

    @override
    def __str__(self) -> str:
        return f"{self.product} {self.path} {self.name}"


def documented_cases() -> list[Case]:
    return [
        Case(product, path, entry["name"], entry["schema"], entry["required"])
        for product, build_app in BUILD_APPS.items()
        for path, operations in sorted(openapi_document(build_app)["paths"].items())
        for entry in operations.get("get", {}).get("parameters", ())
        if entry["in"] == "query"
    ]


EVERY_CASE = documented_cases()
CASES = [
    case for case in EVERY_CASE if case.name != STRICT.names[0] or case.path in {"/pending", "/oi"}
]
"""All but `strict`, which is the same parameter on every route."""
INTEGERS = [case for case in CASES if case.schema["type"] == "integer"]
LIMITED = [
    case for case in INTEGERS if not (case.path in CLAMPED and case.name.startswith("limit"))
]
CLAMPED_LIMITS = [case for case in INTEGERS if case not in LIMITED]
DEFAULTED = [case for case in CASES if "default" in case.schema]
ENUMS = [case for case in CASES if "enum" in case.schema]
CHOICES = [(case, choice) for case in ENUMS for choice in case.schema["enum"]]
NUMBERS = [case for case in CASES if case.schema["type"] == "number"]
BOOLEANS = [case for case in CASES if case.schema["type"] == "boolean"]
OPTIONAL = [case for case in CASES if not case.is_required]
REQUIRED = [case for case in CASES if case.is_required]
ROUTES = sorted({case[:2] for case in EVERY_CASE})


def test_the_file_of_an_export_is_one_of_its_rows_and_forms() -> None:
    paths = openapi_document(BUILD_APPS["data"])["paths"]
    file = paths["/export/{file}"]["get"]["parameters"][0]
    assert (file["name"], file["in"], file["required"]) == ("file", "path", True)
    assert {"trades.csv", "positions.jsonl", "ledger.parquet"} < set(file["schema"]["enum"])
    assert len(file["schema"]["enum"]) == 9


class Unreachable:
    """A database, a chain or a deployment that fails at every use."""

    is_sandbox = True

    def __getattr__(self, name: str) -> Any:
        raise StoreUnavailable(f"no {name}")


GONE: Any = Unreachable()
CONTEXTS = {
    "creation": CreationContext(
        database=GONE,
        deployment=GONE,
        reader=GONE,
        registrar=GONE,
        images=GONE,
        blobs=GONE,
        storage_key=b"",
        options=CreationOptions(),
        now_ms=lambda: NOW_MS,
        new_uuid=lambda: "",
        new_word=lambda: a_word(""),
    ),
    "relayer": RelayerContext(
        database=GONE,
        deployment=GONE,
        reader=GONE,
        sender=GONE,
        key_ring=GONE,
        now_ms=lambda: NOW_MS,
        new_uuid=lambda: "",
    ),
    "data": a_data_context(GONE, "", lambda: NOW_MS),
    "discovery": DiscoveryContext(database=GONE, blob_base_url=""),
}


class Reads:
    """The parameters that handlers have read, with their values."""

    def __init__(self) -> None:
        self.parameters: list[Parameter[Any]] = []
        self.value_by_name: dict[str, Any] = {}

    def spying(self, read: Callable[[Query, Parameter[Any]], Any]) -> Callable[..., Any]:
        def recorded(query: Query, parameter: Parameter[Any]) -> Any:
            value = read(query, parameter)
            self.parameters.append(parameter)
            self.value_by_name[parameter.names[0]] = value
            return value

        return recorded


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    reads = Reads()
    monkeypatch.setattr(Query, "read", reads.spying(Query.read))
    return reads


@functools.cache
def reader(product: str) -> Reader:
    return Reader(an_app(BUILD_APPS[product], CONTEXTS[product]))


IN_PATHS = {"file": "trades.csv"}
"""Parts of paths, where any number is none: a route that knows its parts reads no more then."""


async def status_of(product: str, path: str, parameters: dict[str, str]) -> int:
    """Return the status of a route with these parameters and those that it needs."""
    required = {
        case.name: SAMPLES[case.name]
        for case in REQUIRED
        if (case.product, case.path) == (product, path)
    }
    given = required | NEEDED.get((product, path), {}) | parameters
    answer = await reader(product).http.get(
        re.sub(r"\{(\w+)\}", lambda part: IN_PATHS.get(part[1], "1"), path),
        params={name: value for name, value in given.items() if value},
    )
    return answer.status_code


async def accepts(case: Case, value: str) -> bool:
    """Return whether the route accepts a value of the parameter, or its absence if it is empty."""
    partners = PARTNERS.get(case[:3], PARTNERS.get(case.name, {}))
    others = partners if value else SUBSTITUTES.get(case[:3], {})
    status = await status_of(case.product, case.path, {**others, case.name: value})
    assert status in REFUSED | {200, 404, 503}, status
    return status not in REFUSED


def test_every_product_documents_parameters() -> None:
    assert {case.product for case in CASES} == set(BUILD_APPS)
    assert len(CASES) > 170


@pytest.mark.parametrize("case", LIMITED, ids=str)
async def test_a_documented_range_is_the_accepted_range(case: Case) -> None:
    least, most = case.schema["minimum"], case.schema["maximum"]
    assert await accepts(case, str(least))
    assert await accepts(case, str(most))
    assert not await accepts(case, str(least - 1))
    assert not await accepts(case, str(most + 1))


@pytest.mark.parametrize("case", CLAMPED_LIMITS, ids=str)
async def test_a_clamped_limit_counts_as_the_documented_maximum(reads: Reads, case: Case) -> None:
    least, most = case.schema["minimum"], case.schema["maximum"]
    assert not await accepts(case, str(least - 1))
    assert await accepts(case, str(most + 1))
    assert reads.value_by_name[case.name] == most


@pytest.mark.parametrize("case", DEFAULTED, ids=str)
async def test_a_documented_default_is_the_value_without_the_parameter(
    reads: Reads, case: Case
) -> None:
    default = case.schema["default"]
    assert await accepts(case, "")
    absent = reads.value_by_name[case.name]
    assert await accepts(case, str(default))
    assert reads.value_by_name[case.name] == absent


@pytest.mark.parametrize(("case", "choice"), CHOICES, ids=str)
async def test_a_documented_choice_is_accepted(case: Case, choice: str) -> None:
    assert await accepts(case, choice)
    assert await accepts(case, choice.lower())


@pytest.mark.parametrize("case", ENUMS, ids=str)
async def test_any_other_word_than_a_documented_choice_is_refused(case: Case) -> None:
    accepts_all = (case.product, case.path, case.name) in ANY_TEXT
    assert await accepts(case, "nonsense") == accepts_all


@pytest.mark.parametrize("case", NUMBERS, ids=str)
async def test_a_documented_number_is_read_in_base_units(reads: Reads, case: Case) -> None:
    assert case.schema["minimum"] == 0
    assert await accepts(case, "1.5")
    assert reads.value_by_name[case.name] == UNITS_PER_TOKEN * 3 // 2
    assert not await accepts(case, "-0.5")


@pytest.mark.parametrize("case", BOOLEANS, ids=str)
async def test_a_documented_boolean_is_true_or_false(reads: Reads, case: Case) -> None:
    assert not await accepts(case, "maybe")
    assert await accepts(case, "true")
    assert reads.value_by_name[case.name] is True


@pytest.mark.parametrize("case", REQUIRED, ids=str)
async def test_a_route_refuses_to_miss_a_documented_required_parameter(case: Case) -> None:
    assert not await accepts(case, "")


@pytest.mark.parametrize("case", OPTIONAL, ids=str)
async def test_a_route_accepts_to_miss_a_documented_optional_parameter(case: Case) -> None:
    assert await accepts(case, "")


@pytest.mark.parametrize(("product", "path"), ROUTES)
async def test_a_route_reads_exactly_the_parameters_that_it_documents_or_hides(
    reads: Reads, product: str, path: str
) -> None:
    assert await status_of(product, path, {}) not in REFUSED
    documented = {case.name for case in EVERY_CASE if case[:2] == (product, path)}
    read = {each.names[0] for each in reads.parameters if each.is_documented}
    assert read == documented
