"""Deposit wallets through the relayer: creation, and batches of calls that the owner signed."""

from typing import Any, Final

import pytest
from eth_account.messages import encode_typed_data
from tests.relayer.rig import Body, OwnerClient, RelayerRig, changed, error_of
from tests.rigs.sandbox import SandboxMarket
from tests.rigs.values import a_key, an_address

from foretell.domain.contracts.calldata import (
    Approve,
    ClientCall,
    MergePositions,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
)
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, checksum_address

pytestmark = pytest.mark.anyio

UNIT: Final = 10**6
TYPES: Final = {
    "Call": [
        {"name": "target", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "data", "type": "bytes"},
    ],
    "Batch": [
        {"name": "wallet", "type": "address"},
        {"name": "nonce", "type": "uint256"},
        {"name": "deadline", "type": "uint256"},
        {"name": "calls", "type": "Call[]"},
    ],
}


def creation(owner: OwnerClient, factory: int = 0) -> Body:
    target = owner.rig.sandbox.deployment.deposit_wallet_factories[factory]
    return {
        "type": "WALLET-CREATE",
        "from": checksum_address(owner.address),
        "to": checksum_address(target),
    }


def wallet_of(owner: OwnerClient, factory: int = 0) -> Address:
    return owner.rig.sandbox.deployment.deposit_wallets_of(owner.address)[factory]


async def nonce_of(owner: OwnerClient, address: str = "") -> str:
    params = {"address": address or checksum_address(owner.address), "type": "WALLET"}
    answer = await owner.rig.http.get("/nonce", params=params)
    return str(answer.json()["nonce"])


def batch(owner: OwnerClient, *calls: tuple[Address, ClientCall], **fields: Any) -> Body:
    """Return the body of a batch, signed as the ecosystem's clients sign it."""
    factory = fields.pop("factory", 0)
    wallet = fields.pop("wallet", wallet_of(owner, factory))
    nonce = fields.pop("nonce", "0")
    deadline = str(owner.rig.clock.at_ms // 1000 + 10**8)
    deadline = fields.pop("deadline", deadline)
    sent = [
        {"target": checksum_address(target), "value": "0", "data": "0x" + call.encode().hex()}
        for target, call in calls
    ]
    message = encode_typed_data(
        {
            "name": "DepositWallet",
            "version": "1",
            "chainId": SANDBOX_CHAIN_ID,
            "verifyingContract": wallet,
        },
        TYPES,
        {
            "wallet": wallet,
            "nonce": int(nonce),
            "deadline": int(deadline),
            "calls": [each | {"value": 0} for each in sent],
        },
    )
    body = creation(owner, factory) | {
        "type": "WALLET",
        "nonce": nonce,
        "signature": owner.sign(message),
        "depositWalletParams": {"depositWallet": wallet, "deadline": deadline, "calls": sent},
    }
    return body | fields


@pytest.fixture
async def holder(newcomer: OwnerClient) -> OwnerClient:
    """An owner whose deposit wallet the relayer has created, with collateral."""
    await newcomer.submitted(creation(newcomer))
    await newcomer.rig.settle()
    sandbox = newcomer.rig.sandbox
    gift = Transfer(wallet_of(newcomer), 100 * UNIT).encode()
    await sandbox.call(sandbox.account(AccountRole.FAUCET), sandbox.deployment.collateral, gift)
    return newcomer


def splitting(rig: RelayerRig, market: SandboxMarket) -> list[tuple[Address, ClientCall]]:
    deployment = rig.sandbox.deployment
    tokens, collateral = deployment.conditional_tokens, deployment.collateral
    return [
        (collateral, Approve(tokens, 10 * UNIT)),
        (tokens, SplitPosition(collateral, market.condition_id, 10 * UNIT)),
        (tokens, SetApprovalForAll(deployment.exchange, is_approved=True)),
    ]


@pytest.mark.parametrize("factory", [0, 1])
async def test_a_wallet_is_created_without_a_signature(
    rig: RelayerRig, newcomer: OwnerClient, factory: int
) -> None:
    transaction_id = await newcomer.submitted(creation(newcomer, factory))
    await rig.settle()
    record = await rig.transaction(transaction_id)
    assert (record["state"], record["type"]) == ("STATE_CONFIRMED", "WALLET-CREATE")
    wallet = wallet_of(newcomer, factory)
    assert record["proxyAddress"] == checksum_address(wallet)
    answer = await rig.http.get("/deployed", params={"address": wallet, "type": "WALLET"})
    assert answer.json() == {"deployed": True}
    state = await rig.sandbox.reader.safe(wallet)
    assert state is not None
    assert state.is_owned_by(newcomer.address)


async def test_a_wallet_is_created_once(rig: RelayerRig, newcomer: OwnerClient) -> None:
    first = await newcomer.submitted(creation(newcomer))
    assert await newcomer.submitted(creation(newcomer)) == first
    await rig.settle()
    assert await newcomer.submitted(creation(newcomer)) == first
    sent = await rig.sent_count()
    await rig.settle()
    assert await rig.sent_count() == sent


async def test_a_batch_is_executed_whole(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    wallet = wallet_of(holder)
    assert await nonce_of(holder) == "0"
    transaction_id = await holder.submitted(batch(holder, *splitting(rig, market)))
    await rig.settle()
    assert (await rig.transaction(transaction_id))["state"] == "STATE_CONFIRMED"
    tokens = [(wallet, str(token)) for token in market.tokens]
    assert await rig.sandbox.reader.token_units(tokens) == [10 * UNIT] * 2
    assert await nonce_of(holder) == await nonce_of(holder, wallet) == "1"


async def test_batches_of_a_wallet_are_executed_in_order(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    deployment = rig.sandbox.deployment
    await rig.automine(is_on=False)
    await holder.submitted(batch(holder, *splitting(rig, market)))
    merge = MergePositions(deployment.collateral, market.condition_id, 4 * UNIT)
    second = batch(holder, (deployment.conditional_tokens, merge), nonce="1")
    assert await nonce_of(holder) == "1"
    transaction_id = await holder.submitted(second)
    await rig.automine(is_on=True)
    await rig.settle()
    assert (await rig.transaction(transaction_id))["state"] == "STATE_CONFIRMED"
    tokens = [(wallet_of(holder), str(token)) for token in market.tokens]
    assert await rig.sandbox.reader.token_units(tokens) == [6 * UNIT] * 2


async def test_the_same_batch_is_one_transaction(rig: RelayerRig, holder: OwnerClient) -> None:
    body = batch(holder, (rig.sandbox.deployment.collateral, Approve(exchange(rig), 5)))
    first = await holder.submitted(body)
    await rig.settle()
    sent = await rig.sent_count()
    assert await holder.submitted(body) == first
    assert await rig.sent_count() == sent


def exchange(rig: RelayerRig) -> Address:
    return rig.sandbox.deployment.exchange


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
        ("nonce", 0, "nonce"),
        ("nonce", "", "nonce"),
        ("signature", "0x" + "00" * 65, "malformed"),
        ("signature", "0x", "malformed"),
        ("depositWalletParams", None, "depositWalletParams"),
        (
            "depositWalletParams.depositWallet",
            "0x" + "11" * 20,
            "depositWalletParams.depositWallet",
        ),
        ("depositWalletParams.deadline", "1", "depositWalletParams.deadline"),
        ("depositWalletParams.deadline", "soon", "depositWalletParams.deadline"),
        ("depositWalletParams.calls", [], "depositWalletParams.calls"),
        ("depositWalletParams.calls", [1], "depositWalletParams.calls"),
        ("depositWalletParams.calls", "x", "depositWalletParams.calls"),
        ("depositWalletParams.calls", [{}] * 17, "depositWalletParams.calls"),
        ("depositWalletParams.calls", [{"value": "1"}], "depositWalletParams.calls[0].value"),
        ("metadata", "x" * 501, "metadata"),
    ],
)
async def test_a_wrong_field_of_a_batch_is_named(
    holder: OwnerClient, field: str, value: object, words: str
) -> None:
    collateral = holder.rig.sandbox.deployment.collateral
    body = changed(batch(holder, (collateral, Approve(exchange(holder.rig), 5))), field, value)
    status, said = await refusal(holder, body)
    assert (status, words in said or words == "malformed") == (400, True), said


async def test_a_batch_that_another_key_signed_is_refused(
    rig: RelayerRig, holder: OwnerClient
) -> None:
    stranger = await rig.owner("a stranger")
    call = (rig.sandbox.deployment.collateral, Approve(exchange(rig), 5))
    body = batch(holder, call) | {
        "signature": batch(stranger, call, wallet=wallet_of(holder))["signature"]
    }
    assert await refusal(holder, body) == (400, "invalid_field signature")
    foreign = batch(stranger, call, wallet=wallet_of(holder))
    assert await refusal(stranger, foreign) == (
        400,
        "invalid_field depositWalletParams.depositWallet",
    )


async def test_a_wallet_that_is_not_created_executes_nothing(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    body = batch(newcomer, (rig.sandbox.deployment.collateral, Approve(exchange(rig), 5)))
    assert await refusal(newcomer, body) == (
        400,
        "invalid_field depositWalletParams.depositWallet",
    )


async def test_a_batch_with_another_nonce_is_a_conflict(
    rig: RelayerRig, holder: OwnerClient
) -> None:
    call = (rig.sandbox.deployment.collateral, Approve(exchange(rig), 5))
    status, _ = await refusal(holder, batch(holder, call, nonce="3"))
    assert status == 409


async def test_a_batch_makes_served_calls_alone(rig: RelayerRig, holder: OwnerClient) -> None:
    stranger = address_of_key(a_key("a stranger"))
    call = (rig.sandbox.deployment.collateral, Approve(stranger, 5))
    status, _ = await refusal(holder, batch(holder, call))
    assert status == 400


async def test_a_batch_that_would_fail_is_not_sent(rig: RelayerRig, holder: OwnerClient) -> None:
    call = (rig.sandbox.deployment.collateral, Transfer(an_address("bob"), 10**9 * UNIT))
    assert await refusal(holder, batch(holder, call)) == (502, "execution_failed")


async def test_another_owner_s_wallet_is_not_created_by_an_owner(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    stranger = await rig.owner("a stranger")
    assert await refusal(stranger, creation(newcomer)) == (400, "owner_address_mismatch")
