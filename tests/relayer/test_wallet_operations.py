"""Operations that older clients know: splits, conversions, approvals, the deployment of a wallet."""

from typing import Any

import httpx
import pytest
from tests.relayer.rig import UNIT, Body, OwnerClient, RelayerRig, changed, error_of
from tests.rigs.sandbox import SandboxMarket
from tests.rigs.values import a_word

from foretell.domain.contracts.calldata import Approve, ClientCall, SetApprovalForAll, SplitPosition
from foretell.domain.contracts.neg_risk import CONVERT_POSITIONS, SPLIT_SETS
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.store.outbox.relays import load_relays_of

pytestmark = pytest.mark.anyio

IS_APPROVED = contract_function("isApprovedForAll(address,address)", "(bool)")
ZERO_HASH = "0x" + "0" * 64


async def operate(owner: OwnerClient, route: str, body: Body) -> httpx.Response:
    return await owner.post(f"/operations/{route}", body)


def short_body(owner: OwnerClient) -> dict[str, Any]:
    """Return the short body of a deployment."""
    full = owner.create_body()
    params = full["signatureParams"]
    return {**params, "owner": full["from"], "signature": full["signature"]}


def call_of(rig: RelayerRig, market: SandboxMarket, route: str) -> tuple[Address, ClientCall]:
    """Return the contract and the call of an operation."""
    deployment = rig.sandbox.deployment
    split = SplitPosition(deployment.collateral, market.condition_id, UNIT)
    calls: dict[str, tuple[Address, ClientCall]] = {
        "split-position": (deployment.conditional_tokens, split),
        "approve": (deployment.collateral, Approve(deployment.exchange, 7)),
        "set-approval": (
            deployment.conditional_tokens,
            SetApprovalForAll(deployment.exchange, is_approved=True),
        ),
    }
    return calls[route]


ROUTES = ["split-position", "approve", "set-approval"]


async def test_a_split_gives_the_wallet_complete_sets(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    await holder.fund(5 * UNIT)
    before = await holder.collateral_units()
    deployment = rig.sandbox.deployment
    allow = Approve(deployment.conditional_tokens, UNIT)
    async with rig.working():
        body = await holder.call_body(deployment.collateral, allow)
        assert (await operate(holder, "approve", body)).status_code == 200
        target, call = call_of(rig, market, "split-position")
        answer = await operate(holder, "split-position", await holder.call_body(target, call))
    assert answer.status_code == 200, answer.text
    assert answer.json()["confirmations"] >= 1
    assert await holder.collateral_units() == before - UNIT


async def test_an_approval_is_set_for_the_tokens_of_the_wallet(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    target, call = call_of(rig, market, "set-approval")
    async with rig.working():
        answer = await operate(holder, "set-approval", await holder.call_body(target, call))
    assert answer.status_code == 200, answer.text
    data = "0x" + IS_APPROVED.encode(holder.safe, rig.sandbox.deployment.exchange).hex()
    said = await rig.sandbox.rpc.call("eth_call", {"to": target, "data": data}, "latest")
    assert int(said, 16) == 1


@pytest.mark.parametrize("route", ROUTES)
async def test_an_operation_calls_the_function_of_its_route(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str
) -> None:
    for other in ROUTES:
        target, call = call_of(rig, market, other)
        if other == route:
            target = holder.safe
        answer = await operate(holder, route, await holder.call_body(target, call))
        status, words = error_of(answer)
        assert (status, words.partition(":")[0]) in {
            (400, "invalid_field to"),
            (400, "invalid_field data"),
        }


async def test_a_conversion_is_a_call_of_the_adapter(rig: RelayerRig, holder: OwnerClient) -> None:
    """An event that does not exist has nothing to convert: the trial run reverts, and nothing is sent."""
    events = rig.context.rules.events
    assert events is not None
    nonce, before = await holder.next_nonce(), await rig.relayer_wei()
    convert = CONVERT_POSITIONS.encode(bytes.fromhex(a_word("no event")[2:]), 1, UNIT)
    split = SPLIT_SETS.encode(bytes.fromhex(a_word("no condition")[2:]), UNIT)
    tokens = rig.sandbox.deployment.conditional_tokens
    answers = [
        await operate(holder, "convert-position", holder.body(target, data, nonce))
        for target, data in ((tokens, convert), (events.adapter, split), (events.adapter, convert))
    ]
    assert [error_of(each)[0] for each in answers] == [400, 400, 502]
    assert await rig.relayer_wei() == before


async def test_a_wallet_is_deployed_once_by_the_short_body(rig: RelayerRig) -> None:
    owner = await rig.owner("an owner")
    async with rig.working():
        first = await owner.post("/wallet/safe", short_body(owner))
    assert first.status_code == 200, first.text
    assert first.json()["confirmations"] >= 1
    assert await rig.sandbox.reader.code(owner.safe)
    again = await owner.post("/wallet/safe", short_body(owner))
    assert again.json() == {"txHash": ZERO_HASH, "confirmations": 0}


@pytest.mark.parametrize(
    ("field", "value"),
    [("owner", "0x"), ("payment", "1"), ("paymentToken", "0x" + "1" * 40), ("signature", "0x12")],
)
async def test_a_short_body_with_a_wrong_field_is_refused(
    rig: RelayerRig, field: str, value: str
) -> None:
    owner = await rig.owner("an owner")
    answer = await owner.post("/wallet/safe", changed(short_body(owner), field, value))
    assert answer.status_code == 400
    other = await rig.owner("another owner")
    foreign = await other.post("/wallet/safe", short_body(owner))
    assert foreign.json()["code"] == "owner_address_mismatch"


async def test_the_payload_of_a_wallet_names_the_sending_account(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    query = {"address": owner.address, "type": "SAFE"}
    expected = {
        "address": checksum_address(rig.context.sender.address),
        "nonce": await owner.next_nonce(),
    }
    payload = await rig.http.get("/relay-payload", params=query)
    assert payload.json() == expected
    assert (await owner.get("/v1/account/transactions/params", **query)).json() == expected
    refused = await rig.http.get("/relay-payload", params=query | {"type": "PASSKEY"})
    assert refused.status_code == 400


async def test_a_transaction_is_shown_to_its_owner_in_short(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    target, call = call_of(rig, market, "approve")
    body = await holder.call_body(target, call, metadata="a private label")
    transaction_id = await holder.submitted(body)
    path = f"/v1/account/transactions/{transaction_id}"
    shown = (await holder.get(path)).json()
    assert shown["transaction_id"] == transaction_id
    assert (shown["state"], shown["error_msg"]) == ("STATE_EXECUTED", None)
    other = await rig.owner("another account")
    hidden = await other.get(path)
    assert (hidden.status_code, hidden.json()["code"]) == (404, "transaction_not_found")


async def test_an_owner_s_transactions_are_public_without_their_labels(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    target, call = call_of(rig, market, "approve")
    await holder.submitted(await holder.call_body(target, call, metadata="a private label"))
    own = (await holder.get("/transactions")).json()
    public = (await rig.http.get("/transactions", params={"address": holder.address})).json()
    assert own[0]["metadata"] == "a private label"
    assert public == [each | {"metadata": ""} for each in own]
    assert (await rig.http.get("/transactions")).status_code == 401


async def test_an_owner_has_a_budget_of_gas_for_a_day(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    async with rig.database.reading() as tx:
        used = sum(each.gas for each in await load_relays_of(tx, holder.address, 100))
    target, call = call_of(rig, market, "approve")
    body = await holder.call_body(target, call)
    rig.change(relay_gas_per_owner_max=used + 1)
    refused = await holder.submit(body)
    assert (refused.status_code, refused.json()["code"]) == (429, "owner_gas_reached")
    details = refused.json()["details"]
    assert (details["used"], details["most"]) == (used, used + 1)
    rig.change(relay_gas_per_owner_max=used + details["needed"])
    assert (await holder.submit(body)).status_code == 200
