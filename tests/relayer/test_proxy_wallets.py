"""Proxy wallets through the relayer: calls that the owner signed, through the relay hub."""

from typing import Any, Final

import pytest
from eth_account.messages import encode_defunct
from tests.relayer.rig import Body, OwnerClient, RelayerRig, changed, error_of
from tests.rigs.sandbox import SandboxMarket

from foretell.domain.contracts.calldata import (
    Approve,
    ClientCall,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.proxy_wallet import encode_proxy_calls
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import Address, checksum_address, keccak256

pytestmark = pytest.mark.anyio

UNIT: Final = 10**6
GAS: Final = "500000"


def wallet_of(owner: OwnerClient) -> Address:
    return owner.rig.sandbox.deployment.proxy_wallet_of(owner.address)


async def payload_of(owner: OwnerClient) -> dict[str, str]:
    params = {"address": checksum_address(owner.address), "type": "PROXY"}
    answer = await owner.rig.http.get("/relay-payload", params=params)
    payload: dict[str, str] = answer.json()
    return payload


async def proxied(owner: OwnerClient, *calls: InnerCall, **fields: Any) -> Body:
    """Return the body of calls, signed byte by byte as the ecosystem's clients sign them."""
    deployment = owner.rig.sandbox.deployment
    payload = await payload_of(owner)
    relay = fields.pop("relay", payload["address"])
    nonce = fields.pop("nonce", payload["nonce"])
    gas = fields.pop("gas", GAS)
    calldata = encode_proxy_calls(calls)
    hub, factory = (
        checksum_address(deployment.address(name))
        for name in (ContractName.RELAY_HUB, ContractName.PROXY_WALLET_FACTORY)
    )
    words = b"".join(int(each).to_bytes(32, "big") for each in ("0", "0", gas, nonce))
    message = b"rlx:" + _bytes(owner.address) + _bytes(factory) + calldata + words
    struct_hash = keccak256(message + _bytes(hub) + _bytes(relay))
    body = {
        "type": "PROXY",
        "from": checksum_address(owner.address),
        "to": factory,
        "proxyWallet": checksum_address(wallet_of(owner)),
        "data": "0x" + calldata.hex(),
        "nonce": nonce,
        "signature": owner.sign(encode_defunct(struct_hash)),
        "signatureParams": {
            "gasPrice": "0",
            "gasLimit": gas,
            "relayerFee": "0",
            "relayHub": hub,
            "relay": relay,
        },
        "metadata": "",
    }
    return body | fields


def _bytes(address: str) -> bytes:
    return bytes.fromhex(address[2:])


def call_of(target: Address, call: ClientCall) -> InnerCall:
    return InnerCall(target, call.encode())


def approving(rig: RelayerRig, units: int = 5) -> InnerCall:
    deployment = rig.sandbox.deployment
    return call_of(deployment.collateral, Approve(deployment.exchange, units))


def splitting(rig: RelayerRig, market: SandboxMarket) -> list[InnerCall]:
    deployment = rig.sandbox.deployment
    tokens, collateral = deployment.conditional_tokens, deployment.collateral
    return [
        call_of(collateral, Approve(tokens, 10 * UNIT)),
        call_of(tokens, SplitPosition(collateral, market.condition_id, 10 * UNIT)),
        call_of(tokens, SetApprovalForAll(deployment.exchange, is_approved=True)),
    ]


@pytest.fixture
async def holder(newcomer: OwnerClient) -> OwnerClient:
    """An owner whose proxy wallet, which nobody has deployed, has collateral."""
    sandbox = newcomer.rig.sandbox
    gift = Transfer(wallet_of(newcomer), 100 * UNIT).encode()
    await sandbox.call(sandbox.account(AccountRole.FAUCET), sandbox.deployment.collateral, gift)
    return newcomer


async def test_the_first_calls_create_the_wallet_and_are_executed_whole(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    wallet = wallet_of(holder)
    transaction_id = await holder.submitted(await proxied(holder, *splitting(rig, market)))
    await rig.settle()
    record = await rig.transaction(transaction_id)
    assert (record["state"], record["type"]) == ("STATE_CONFIRMED", "PROXY")
    assert record["proxyAddress"] == checksum_address(wallet)
    tokens = [(wallet, str(token)) for token in market.tokens]
    assert await rig.sandbox.reader.token_units(tokens) == [10 * UNIT] * 2
    answer = await rig.http.get("/deployed", params={"address": wallet, "type": "PROXY"})
    assert answer.json() == {"deployed": True}
    assert (await payload_of(holder))["nonce"] == "1"


async def test_calls_are_executed_in_order_and_once(rig: RelayerRig, holder: OwnerClient) -> None:
    await rig.automine(is_on=False)
    first = await proxied(holder, approving(rig, 5))
    transaction_id = await holder.submitted(first)
    assert await holder.submitted(first) == transaction_id
    second = await proxied(holder, approving(rig, 7))
    assert second["nonce"] == "1"
    transaction_id = await holder.submitted(second)
    await rig.automine(is_on=True)
    await rig.settle()
    assert (await rig.transaction(transaction_id))["state"] == "STATE_CONFIRMED"
    assert (await payload_of(holder))["nonce"] == "2"


async def refusal(owner: OwnerClient, body: Body) -> tuple[int, str]:
    """Return the status and the first words of a refusal that must cost no gas."""
    sent = await owner.rig.sent_count()
    status, words = error_of(await owner.submit(body))
    assert await owner.rig.sent_count() == sent
    return status, words.partition(":")[0]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("to", "0x" + "11" * 20, "to"),
        ("proxyWallet", "0x" + "11" * 20, "proxyWallet"),
        ("nonce", 0, "nonce"),
        ("value", "1", "value"),
        ("data", "0x", ""),
        ("data", "0x" + "11" * 20_000, "data"),
        ("signature", "0x", ""),
        ("signatureParams", None, "signatureParams"),
        ("signatureParams.gasPrice", "1", "signatureParams.gasPrice"),
        ("signatureParams.relayerFee", "1", "signatureParams.relayerFee"),
        ("signatureParams.gasLimit", "much", "signatureParams.gasLimit"),
        ("signatureParams.gasLimit", "499999", "signature"),
        ("signatureParams.relayHub", "0x" + "11" * 20, "signatureParams.relayHub"),
        ("signatureParams.relay", "0x" + "11" * 20, "signatureParams.relay"),
        ("metadata", "x" * 501, "metadata"),
    ],
)
async def test_a_wrong_field_is_named(
    rig: RelayerRig, holder: OwnerClient, field: str, value: object, words: str
) -> None:
    body = changed(await proxied(holder, approving(rig)), field, value)
    status, said = await refusal(holder, body)
    assert (status, words in said) == (400, True), said


async def test_what_another_key_signed_is_refused(rig: RelayerRig, holder: OwnerClient) -> None:
    stranger = await rig.owner("a stranger")
    foreign = await proxied(stranger, approving(rig))
    body = await proxied(holder, approving(rig)) | {"signature": foreign["signature"]}
    assert await refusal(holder, body) == (400, "invalid_field signature")


async def test_a_call_with_another_nonce_is_a_conflict(
    rig: RelayerRig, holder: OwnerClient
) -> None:
    status, _ = await refusal(holder, await proxied(holder, approving(rig), nonce="3"))
    assert status == 409


async def test_a_call_that_would_revert_is_refused_and_keeps_its_nonce(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    deployment = rig.sandbox.deployment
    split = SplitPosition(deployment.collateral, market.condition_id, 10 * UNIT)
    body = await proxied(holder, call_of(deployment.conditional_tokens, split))
    status, _ = await refusal(holder, body)
    assert status == 502
    await holder.submitted(await proxied(holder, approving(rig)))


@pytest.mark.parametrize("value_wei", [0, 1])
async def test_only_calls_that_trading_needs_are_sent(
    rig: RelayerRig, holder: OwnerClient, value_wei: int
) -> None:
    target = approving(rig).to if value_wei else Address("0x" + "11" * 20)
    body = await proxied(holder, InnerCall(target, approving(rig).calldata, value_wei))
    assert (await refusal(holder, body))[0] == 400
