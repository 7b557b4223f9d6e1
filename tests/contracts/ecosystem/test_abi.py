"""Selectors, topics and answers that clients and indexers of the ecosystem's contracts expect."""

import json
from importlib.resources import files
from typing import Any

import pytest
from tests.contracts.evm import own_artifact_fields, reverts
from tests.contracts.market import World
from tests.contracts.optimistic import Optimistic
from tests.contracts.signing import CHAIN_ID, OWN_V1, OWN_V2, UNIT, ZERO_WORD

from foretell.domain.values.hexadecimal import keccak256

V1 = (
    "(uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,"
    "uint8,uint8,bytes)"
)
EXCHANGE_SELECTORS = {
    f"cancelOrder({V1})": "a6dfcf86",
    f"cancelOrders({V1}[])": "fa950b48",
    "getOrderStatus(bytes32)": "46423aa7",
    "isValidNonce(address,uint256)": "0647ee20",
    "getMaxFeeRate()": "4a2a11f5",
    "domainSeparator()": "f698da25",
    "eip712Domain()": "84b0196e",
    "getSafeAddress(address)": "a287bdf1",
    "validateTokenId(uint256)": "34600901",
    "validateComplement(uint256,uint256)": "d82da838",
    "admins(address)": "429b62e5",
    "operators(address)": "13e7c9d8",
    "incrementNonce()": "627cdcb9",
}
EXCHANGE_TOPICS = {
    "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)": "d0a08e8c",
    "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)": (
        "d543adfd"
    ),
    "OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)": "63bf4d16",
    "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)": "174b3811",
    "FeeCharged(address,uint256,uint256)": "acffcc86",
    "FeeCharged(address,uint256)": "55bb3cad",
    "TokenRegistered(uint256,uint256,bytes32)": "bc9a2432",
}
ADAPTER_TOPICS = {
    "QuestionInitialized(bytes32,uint256,address,bytes,address,uint256,uint256)": "eee0897a",
    "QuestionResolved(bytes32,int256,uint256[])": "566c3fbd",
    "QuestionManuallyResolved(bytes32,uint256[])": "5909815f",
    "AncillaryDataUpdated(bytes32,address,bytes)": "0059e118",
}
SHARED_LOGS = 11
"""All logs of the v1 exchange but two, of wallet factories that change."""
OPERATOR_TOPICS = {
    "QuestionReported(bytes32,bytes32,bool)": "504306b4",
}
# From the sources that Polymarket and UMA published; those of the v2 exchange from its TypeScript client.
INDEXED = {
    "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)": [
        "orderHash",
        "maker",
        "taker",
    ],
    "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)": [
        "orderHash",
        "maker",
        "taker",
    ],
    "OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)": [
        "takerOrderHash",
        "takerOrderMaker",
    ],
    "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)": [
        "takerOrderHash",
        "takerOrderMaker",
    ],
    "FeeCharged(address,uint256)": ["receiver"],
    "FeeCharged(address,uint256,uint256)": ["receiver"],
    "TokenRegistered(uint256,uint256,bytes32)": ["token0", "token1", "conditionId"],
    "QuestionInitialized(bytes32,uint256,address,bytes,address,uint256,uint256)": [
        "questionID",
        "requestTimestamp",
        "creator",
    ],
    "QuestionResolved(bytes32,int256,uint256[])": ["questionID", "settledPrice"],
    "QuestionManuallyResolved(bytes32,uint256[])": ["questionID"],
    "AncillaryDataUpdated(bytes32,address,bytes)": ["questionID", "owner"],
    "QuestionReported(bytes32,bytes32,bool)": ["questionId"],
}


def signature(entry: dict[str, Any]) -> str:
    return f"{entry['name']}({','.join(kind(each) for each in entry['inputs'])})"


def kind(declared: dict[str, Any]) -> str:
    name = str(declared["type"])
    if not name.startswith("tuple"):
        return name
    return f"({','.join(map(kind, declared['components']))}){name.removeprefix('tuple')}"


def layout(entry: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the fields of a log, and whether they are indexed."""
    return [(each["name"], each["indexed"]) for each in entry["inputs"]]


def entries(contract: str, type_: str) -> dict[str, dict[str, Any]]:
    abi = own_artifact_fields(contract)["abi"]
    return {signature(entry): entry for entry in abi if entry["type"] == type_}


@pytest.mark.parametrize(("function", "selector"), EXCHANGE_SELECTORS.items())
def test_the_exchange_has_the_functions_of_clients(function: str, selector: str) -> None:
    assert keccak256(function.encode())[:4].hex() == selector
    assert function in entries("Exchange", "function")


@pytest.mark.parametrize(
    ("contract", "event", "topic"),
    [
        *(("Exchange", *each) for each in EXCHANGE_TOPICS.items()),
        *(("OptimisticResolutionAdapter", *each) for each in ADAPTER_TOPICS.items()),
        *(("NegRiskOperator", *each) for each in OPERATOR_TOPICS.items()),
    ],
)
def test_logs_with_a_topic_of_the_ecosystem_have_its_layout(
    contract: str, event: str, topic: str
) -> None:
    entry = entries(contract, "event")[event]
    assert keccak256(event.encode()).hex().startswith(topic)
    indexed = [each["name"] for each in entry["inputs"] if each["indexed"]]
    assert indexed == INDEXED[event]


def test_logs_of_the_v1_exchange_are_indexed_as_in_the_abi_that_its_client_ships() -> None:
    text = files("py_order_utils").joinpath("abi/Exchange.json").read_text()
    own = entries("Exchange", "event")
    theirs = {signature(entry): entry for entry in json.loads(text) if entry["type"] == "event"}
    shared = own.keys() & theirs.keys()
    assert len(shared) == SHARED_LOGS
    assert {each: layout(own[each]) for each in shared} == {
        each: layout(theirs[each]) for each in shared
    }


def test_the_views_of_the_v1_exchange_answer(world: World) -> None:
    exchange, maker = world.exchange, world.makers[0].address
    order = world.sell(world.makers[0], world.yes, UNIT, 50)
    exchange.send("cancelOrder", order.fields, sender=maker)
    assert exchange.call("getOrderStatus", world.hash(order)) == (True, 0)
    assert exchange.call("isValidNonce", maker, 0)
    exchange.send("incrementNonce", sender=maker)
    assert not exchange.call("isValidNonce", maker, 0)
    assert exchange.call("isValidNonce", maker, 1)
    assert exchange.call("getMaxFeeRate") == 1_000
    assert exchange.call("getSafeAddress", maker) == exchange.call("safeAddress", maker)
    assert exchange.call("operators", world.operator) == 1
    assert exchange.call("operators", world.admin) == 0
    assert exchange.call("admins", world.admin) == 1
    assert exchange.call("admins", world.operator) == 0


def test_tokens_and_complements_are_validated(world: World) -> None:
    exchange = world.exchange
    exchange.call("validateTokenId", world.no)
    exchange.call("validateComplement", world.yes, world.no)
    with reverts("InvalidTokenId"):
        exchange.call("validateTokenId", 7)
    with reverts("InvalidComplement"):
        exchange.call("validateComplement", world.yes, world.yes)
    with reverts("InvalidTokenId"):
        exchange.call("validateComplement", 0, 0)


def test_the_first_domain_is_described_by_erc_5267(world: World) -> None:
    exchange = world.exchange
    assert exchange.call("eip712Domain") == (
        b"\x0f",
        "CTF Exchange",
        "1",
        CHAIN_ID,
        exchange.address.lower(),
        ZERO_WORD,
        (),
    )
    first = exchange.call("domainSeparator(uint256)", OWN_V1)
    assert exchange.call("domainSeparator()") == first
    assert exchange.call("domainSeparator(uint256)", OWN_V2) != first


@pytest.mark.parametrize(
    "contract",
    [
        "DirectResolutionAdapter",
        "DirectResolutionOracle",
        "Exchange",
        "MarketRegistry",
        "NegRiskOperator",
        "OptimisticOracle",
        "OptimisticResolutionAdapter",
    ],
)
def test_contracts_with_an_admin_have_the_role_views(contract: str) -> None:
    views = {"admins(address)", "isAdmin(address)", "admin()"}
    assert views <= entries(contract, "function").keys()


def test_the_admin_of_the_optimistic_adapter_is_in_its_role_view(optimistic: Optimistic) -> None:
    assert optimistic.adapter.call("admins", optimistic.admin) == 1


@pytest.mark.parametrize("data", ["", "00", "a6dfcf", "deadbeef", "a6dfcf86"])
def test_calls_that_no_function_decodes_are_refused(world: World, data: str) -> None:
    call = bytes.fromhex(data)
    receipt = world.evm.attempt(world.operator, world.exchange.address, call)
    assert not receipt.is_success
