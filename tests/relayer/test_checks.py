from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.relayer.rig import (
    Body,
    OwnerClient,
    RelayerRig,
    an_approval,
    changed,
    error_of,
    personal_signature,
    with_v,
)
from tests.relayer.strange_safes import FAILS_QUIETLY, a_strange_safe, make_strange
from tests.rigs.values import a_key, an_address

from foretell.domain.contracts.sandbox_accounts import AccountRole, SandboxAccount
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import checksum_address

pytestmark = pytest.mark.anyio

ADD_OWNER: Final = contract_function("addOwnerWithThreshold(address,uint256)")
SWAP_OWNER: Final = contract_function("swapOwner(address,address,address)")
SENTINEL: Final = "0x" + "00" * 19 + "01"


async def approval_body(owner: OwnerClient, **fields: Any) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig), **fields)


async def refusal(owner: OwnerClient, body: Body) -> tuple[int, str]:
    """Return the status and the first words of a refusal that must cost no gas."""
    sent = await owner.rig.sent_count()
    status, words = error_of(await owner.submit(body))
    assert await owner.rig.sent_count() == sent
    return status, words.partition(":")[0]


@pytest.mark.case("C-06")
@pytest.mark.spec(86)
async def test_a_wallet_that_is_not_deployed_executes_nothing(newcomer: OwnerClient) -> None:
    body = await approval_body(newcomer)
    assert await refusal(newcomer, body) == (400, "invalid_field proxyWallet")


@pytest.mark.spec(86)
async def test_the_wallet_of_another_owner_executes_nothing(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    other = await rig.owner("another owner")
    await other.deploy()
    body = changed(await approval_body(owner), "proxyWallet", checksum_address(other.safe))
    assert await refusal(owner, body) == (400, "invalid_field proxyWallet")


@pytest.mark.spec(86)
async def test_an_account_without_code_is_no_wallet(owner: OwnerClient) -> None:
    body = changed(await approval_body(owner), "proxyWallet", checksum_address(owner.address))
    assert await refusal(owner, body) == (400, "invalid_field proxyWallet")


@pytest.mark.case("D-11", "C-06")
@pytest.mark.spec(86)
async def test_one_signature_of_two_is_not_enough(owner: OwnerClient) -> None:
    await owner.execute_alone(owner.safe, ADD_OWNER.encode(an_address("a second owner"), 2))
    body = await approval_body(owner)
    assert await refusal(owner, body) == (400, "invalid_field proxyWallet")


@pytest.mark.case("D-11", "C-06")
@pytest.mark.spec(86)
async def test_a_former_owner_does_not_control_the_wallet(owner: OwnerClient) -> None:
    heir = an_address("an heir")
    await owner.execute_alone(owner.safe, SWAP_OWNER.encode(SENTINEL, owner.address, heir))
    body = await approval_body(owner)
    assert await refusal(owner, body) == (400, "invalid_field proxyWallet")


@pytest.mark.case("C-06")
async def test_an_account_that_delegates_to_a_safe_is_no_wallet_and_still_signs_for_its_own(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    """By EIP-7702 an account has code and its key; the code of a Safe finds no owners in its storage."""
    safe_code = await rig.sandbox.rpc.call("eth_getStorageAt", owner.safe, "0x0", "latest")
    delegation = b"\xef\x01\x00" + bytes.fromhex(safe_code[-40:])
    await rig.sandbox.rpc.send("anvil_setCode", owner.address, "0x" + delegation.hex())
    body = await approval_body(owner)
    as_wallet = changed(body, "proxyWallet", checksum_address(owner.address))
    assert await refusal(owner, as_wallet) == (400, "invalid_field proxyWallet")
    await owner.submitted(body)
    await rig.settle()
    assert await owner.safe_nonce() == 1


@pytest.mark.parametrize("code", [b"\xfe", b"\x00", bytes.fromhex("60005260206000f3")])
async def test_a_contract_that_does_not_answer_like_a_safe_is_no_safe(
    rig: RelayerRig, owner: OwnerClient, code: bytes
) -> None:
    body = await approval_body(owner)
    await make_strange(rig.sandbox, owner.safe, code)
    assert await refusal(owner, body) == (400, "invalid_field proxyWallet")


async def test_a_wallet_with_a_nonce_beyond_the_limit_is_not_served(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    body = await approval_body(owner)
    code = a_strange_safe(owner.address, FAILS_QUIETLY, nonce=b"\xff" * 32)
    await make_strange(rig.sandbox, owner.safe, code)
    assert await refusal(owner, body) == (400, "invalid_field proxyWallet")
    assert await owner.next_nonce() == str(2**256 - 1)


def typed(owner: OwnerClient, body: Body) -> str:
    """Return a wallet's signature of the typed data itself."""
    data = bytes.fromhex(body["data"][2:])
    return owner.sign(owner.safe_message(body["to"], data, int(body["nonce"])))


def typed_bare(owner: OwnerClient, body: Body) -> str:
    signature = typed(owner, body)
    return with_v(signature, int(signature[-2:], 16) - 27)


def personal(owner: OwnerClient, body: Body) -> str:
    """Return a signature of the digest as a personal message."""
    data = bytes.fromhex(body["data"][2:])
    return personal_signature(owner, owner.safe_message(body["to"], data, int(body["nonce"])))


@pytest.mark.spec(89)
@pytest.mark.parametrize("sign", [typed, typed_bare, personal])
@pytest.mark.parametrize("name", ["one owner", "a second owner", "a third owner"])
async def test_both_ways_to_sign_are_accepted_and_valid_on_the_chain(
    rig: RelayerRig, sign: Callable[[OwnerClient, Body], str], name: str
) -> None:
    owner = await rig.owner(name)
    await owner.deploy()
    body = await approval_body(owner)
    await owner.submitted(body | {"signature": sign(owner, body)})
    await rig.settle()
    assert await owner.safe_nonce() == 1


@pytest.mark.spec(89)
@pytest.mark.parametrize("sign", [typed, typed_bare, personal])
async def test_a_signature_of_another_wallet_is_refused(
    rig: RelayerRig, owner: OwnerClient, sign: Callable[[OwnerClient, Body], str]
) -> None:
    other = OwnerClient(rig, SandboxAccount(AccountRole.TRADER, a_key("another account")))
    body = await approval_body(owner)
    data, nonce = bytes.fromhex(body["data"][2:]), int(body["nonce"])
    forged = personal_signature(other, owner.safe_message(body["to"], data, nonce))
    for signature in (forged, sign(other, body)):
        spoilt = body | {"signature": signature}
        assert await refusal(owner, spoilt) == (400, "invalid_field signature")


@pytest.mark.spec(89)
@pytest.mark.parametrize("v", [0, 1, 27, 28, 31, 32])
async def test_a_signature_with_a_wrong_last_byte_is_refused(owner: OwnerClient, v: int) -> None:
    body = await approval_body(owner)
    right = int(body["signature"][-2:], 16)
    spoilt = with_v(body["signature"], v + (v == right))
    assert await refusal(owner, body | {"signature": spoilt}) == (400, "invalid_field signature")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("to", "0x" + "00" * 19 + "05"),
        ("data", "0x"),
        ("nonce", "5"),
        ("signatureParams.operation", "1"),
        ("from", checksum_address(an_address("another account"))),
    ],
)
async def test_an_unsigned_change_is_refused(owner: OwnerClient, path: str, value: str) -> None:
    status, _ = await refusal(owner, changed(await approval_body(owner), path, value))
    assert status == 400


async def test_a_point_that_is_not_on_the_curve_signs_nothing(owner: OwnerClient) -> None:
    signature = "0x" + "ff" * 32 + "11" * 32 + "1b"
    body = await approval_body(owner, signature=signature)
    assert await refusal(owner, body) == (400, "invalid_field signature")


@pytest.mark.parametrize(
    ("path", "name"),
    [("to", "collateral"), ("proxyWallet", "factory")],
)
async def test_a_wallet_is_deployed_by_its_factory_at_its_own_address(
    rig: RelayerRig, newcomer: OwnerClient, path: str, name: str
) -> None:
    deployment = rig.sandbox.deployment
    address = {"collateral": deployment.collateral, "factory": deployment.safe_factory}[name]
    body = newcomer.create_body(**{path: checksum_address(address)})
    assert await refusal(newcomer, body) == (400, f"invalid_field {path}")


async def test_a_wallet_is_deployed_for_its_own_owner_only(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    other = await rig.owner("another newcomer")
    body = newcomer.create_body(signature=other.create_body()["signature"])
    assert await refusal(newcomer, body) == (400, "invalid_field signature")
