"""Completeness of the documents: each operation of each API says all that a client needs."""

import functools
import re
from dataclasses import replace
from typing import Any

import httpx
import jsonschema_rs
import pytest
from tests.edge.documents.apis import (
    APIS,
    BUILD_APPS,
    OPERATIONS,
    DocumentedOperation,
    operations_of,
)
from tests.edge.test_documented_parameters import CONTEXTS, GONE
from tests.rigs.applications import an_app, openapi_document
from tests.rigs.trading import MASTER_KEY, TradingRig
from tests.rigs.values import CHAIN_ID, NOW_MS
from tests.web.contexts import OPERATOR_TOKEN, TOKEN, a_configuration

from foretell.edge.auth import KeyRing
from foretell.web.context import WebContext
from foretell.web.operation import OperatorView
from foretell.web.sandbox_wallets import SandboxWallets

pytestmark = pytest.mark.anyio

NEVER_SUCCEED = {
    "get_unknown",
    "get_best_quote",
    "refuse_rfq_rfq_request",
    "refuse_rfq_rfq_quote",
    "refuse_rfq_rfq_request_accept",
    "refuse_rfq_rfq_quote_approve",
    "refuse_rfq_cancel_rfq_request",
    "refuse_rfq_cancel_rfq_quote",
}
"""Operations whose records do not exist here: they refuse every request."""
WITHOUT_BODY = {
    "create_builder_key",
    "delete_builder_key",
    "create_key",
    "create_readonly_key",
    "revoke_key",
    "cancel_all",
    "drop_notifications",
}
"""Operations that change something and read no body."""
SUCCESSES = {"200", "207"}
WITHOUT_EXAMPLE = {"convert_position"}
"""Operations that no test carries out: the relayer's tests have no event."""
SIGNED_OR_NAMED = {"show_transactions", "show_account_params"}
"""Operations that look at the named owner before the signature."""
OF_BYTES = {"show_blob", "show_item", "export_rows"}
"""Operations that answer with a file."""
UNREACHABLE: dict[str, Any] = CONTEXTS | {
    "relayer": replace(
        CONTEXTS["relayer"],  # type: ignore[type-var]  # a context of a product is a dataclass
        key_ring=KeyRing(GONE, MASTER_KEY, [CHAIN_ID], lambda: NOW_MS),
    ),
    "web": WebContext(
        {},
        a_configuration(),
        "",
        SandboxWallets(GONE, CHAIN_ID, TOKEN, ["web"]),
        OperatorView(GONE, GONE, OPERATOR_TOKEN, lambda: NOW_MS),
    ),
}
"""The contexts of all APIs but trading, of which nothing but the keys can be reached."""
SUCCEEDING = [each for each in OPERATIONS if each.operation_id not in NEVER_SUCCEED]
WITH_EXAMPLE = [each for each in SUCCEEDING if each.operation_id not in OF_BYTES | WITHOUT_EXAMPLE]
CHANGING = [
    each
    for each in OPERATIONS
    if each.method != "GET" and not each.operation_id.startswith("refuse_rfq")
]


@functools.cache
def validator(api: str, kind: str, operation_id: str) -> Any:
    """Return the validator of an answer's status, or of the request's body."""
    (operation,) = [each for each in operations_of(api) if each.operation_id == operation_id]
    holder = operation.content["requestBody"] if kind == "request" else operation.responses[kind]
    ((_, media),) = holder["content"].items()
    components = openapi_document(BUILD_APPS[api])["components"]
    return jsonschema_rs.Draft202012Validator({**media["schema"], "components": components})


def examples_of(operation: DocumentedOperation) -> dict[str, Any]:
    """Return the examples of an operation: of its body, and of each status."""
    holders = {**operation.responses, "request": operation.content.get("requestBody", {})}
    return {
        kind: media["example"]
        for kind, holder in holders.items()
        for media in holder.get("content", {}).values()
        if "example" in media
    }


EXAMPLES = [
    pytest.param(operation, kind, example, id=f"{operation} {kind}")
    for operation in OPERATIONS
    for kind, example in examples_of(operation).items()
    if not operation.content.get("requestBody", {}).get("content", {}).get("multipart/form-data")
]


@pytest.mark.parametrize("api", APIS)
def test_operations_have_different_names(api: str) -> None:
    names = [operation.operation_id for operation in operations_of(api)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_an_operation_says_what_it_does(operation: DocumentedOperation) -> None:
    assert {"operationId", "summary", "description", "tags"} <= set(operation.content)
    assert operation.content["tags"] != [""]
    assert operation.content["description"].endswith(".")


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_each_parameter_says_what_it_means(operation: DocumentedOperation) -> None:
    parameters = operation.content.get("parameters", ())
    assert [each["name"] for each in parameters if not each.get("description")] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_no_two_parameters_have_one_description(operation: DocumentedOperation) -> None:
    about = [each["description"] for each in operation.content.get("parameters", ())]
    assert sorted(about) == sorted(set(about))


@pytest.mark.parametrize("operation", SUCCEEDING, ids=str)
def test_an_operation_has_a_successful_answer_with_a_schema(operation: DocumentedOperation) -> None:
    (success,) = SUCCESSES & operation.responses.keys()
    (media,) = operation.responses[success]["content"].values()
    assert media["schema"]


@pytest.mark.parametrize("operation", WITH_EXAMPLE, ids=str)
def test_a_successful_answer_has_an_example(operation: DocumentedOperation) -> None:
    assert SUCCESSES & examples_of(operation).keys()


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_attack_l5_an_operation_has_the_refusals_that_every_route_has(
    operation: DocumentedOperation,
) -> None:
    assert {"429", "500", "503"} <= set(operation.responses)
    reads = operation.method == "GET" or "requestBody" in operation.content
    assert not reads or "400" in operation.responses


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_refusal_has_a_schema_and_its_codes(operation: DocumentedOperation) -> None:
    refusals = {
        status: each
        for status, each in operation.responses.items()
        if status not in {*SUCCESSES, "304"}
    }
    assert all(each["x-codes"] for each in refusals.values())
    assert all(each["content"]["application/json"]["schema"] for each in refusals.values())


@pytest.mark.parametrize("operation", CHANGING, ids=str)
def test_an_operation_that_reads_a_body_describes_it(operation: DocumentedOperation) -> None:
    assert ("requestBody" in operation.content) == (operation.operation_id not in WITHOUT_BODY)


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.api != "creation"], ids=str
)
def test_an_operation_that_needs_a_signature_may_refuse_it(operation: DocumentedOperation) -> None:
    assert ("401" in operation.responses) == ("security" in operation.content)


@pytest.mark.parametrize(("operation", "kind", "example"), EXAMPLES)
def test_an_example_fits_its_schema(
    operation: DocumentedOperation, kind: str, example: Any
) -> None:
    errors = validator(operation.api, kind, operation.operation_id).iter_errors(example)
    assert [error.message for error in errors] == []


def signed(api: str) -> set[str]:
    """Return the operations that the document shows as signed."""
    return {
        each.operation_id
        for each in operations_of(api)
        if "security" in each.content and {} not in each.content["security"]
    }


async def refused_unsigned(api: str, http: httpx.AsyncClient) -> set[str]:
    """Return the operations that refuse an unsigned request as such."""
    answers = {
        each.operation_id: await http.request(each.method, re.sub(r"\{\w+\}", "1", each.path))
        for each in operations_of(api)
    }
    return {name for name, answer in answers.items() if answer.status_code == 401}


async def test_exactly_the_signed_operations_of_trading_refuse_unsigned_requests(
    rig: TradingRig,
) -> None:
    assert await refused_unsigned("trading", rig.client) == signed("trading")


@pytest.mark.deviation(21)
@pytest.mark.parametrize("api", sorted(UNREACHABLE))
async def test_exactly_the_signed_operations_refuse_unsigned_requests(api: str) -> None:
    app = an_app(BUILD_APPS[api], UNREACHABLE[api])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{api}") as http:
        assert await refused_unsigned(api, http) - SIGNED_OR_NAMED == signed(api) - SIGNED_OR_NAMED
