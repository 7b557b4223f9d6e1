"""Deposit wallets on a chain: their addresses, their batches, and the orders that they accept."""

from dataclasses import replace
from typing import Final

import pytest
from tests.contracts.evm import Actor, Contract, own_artifact, reverts
from tests.contracts.market import World
from tests.contracts.signing import ERC1271, OWN_V2, PROFILES, UNIT, Order, typed_order

from foretell.domain.contracts.deposit_wallet import (
    CALL_BYTES_MAX,
    CALLS_PER_BATCH_MAX,
    WalletBatch,
    deposit_wallet_address,
)
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.exchange.signing.wallet_signatures import wallet_digest, wallet_signature
from foretell.domain.values.eip712 import CURVE_ORDER, sign_digest
from foretell.domain.values.hexadecimal import Address, keccak256, parse_address

CHAIN_ID: Final = 80002
BEACON: Final = Address("0x74a618ebdd62ff8579a8fe94f5b888d7623b9c35")
FACTORY: Final = Address("0x2ccdc6c5ddcd895afccd259f291de9b618a5ca6c")
YES: Final = bytes.fromhex("1626ba7e")
NO: Final = bytes.fromhex("ffffffff")
SENDER: Final = "0x" + "5e" * 20


@pytest.fixture
def owner(world: World) -> Actor:
    return world.evm.actor("owner of a deposit wallet")


@pytest.fixture
def factory(world: World) -> Contract:
    """The factory where clients expect it, and its beacon."""
    code = world.evm.deploy(own_artifact("DepositWallet"))
    world.evm.install(BEACON, own_artifact("DepositWalletBeacon"), code.address)
    return world.evm.install(FACTORY, own_artifact("DepositWalletFactory"), BEACON)


@pytest.fixture
def wallet(world: World, factory: Contract, owner: Actor) -> Contract:
    factory.send("deploy", owner.address, sender=SENDER)
    address = deposit_wallet_address(parse_address(owner.address), FACTORY, BEACON)
    return world.evm.at(address, own_artifact("DepositWallet").abi)


def execute(
    wallet: Contract,
    owner: Actor,
    *calls: InnerCall,
    nonce: int = 0,
    deadline_s: int = 2**40,
    signed_for: str = "",
) -> None:
    batch = WalletBatch(parse_address(signed_for or wallet.address), calls, nonce, deadline_s)
    signature = sign_digest(batch.digest(CHAIN_ID), owner.key)
    wallet.evm.transact(SENDER, wallet.address, batch.encode(signature))


def approving(world: World, units: int = 5) -> InnerCall:
    spender = world.exchange.address
    calldata = world.collateral.calldata("approve", spender, units)
    return InnerCall(parse_address(world.collateral.address), calldata)


def test_a_wallet_is_where_clients_derive_it(factory: Contract, owner: Actor) -> None:
    receipt = factory.send("deploy", owner.address, sender=SENDER)
    address = deposit_wallet_address(parse_address(owner.address), FACTORY, BEACON)
    assert factory.call("predictWalletAddress", owner.address) == address
    assert factory.call("BEACON") == BEACON
    assert factory.logs(receipt, "WalletDeployed(address,address)") == [
        {"wallet": address, "owner": owner.address}
    ]


def test_a_wallet_has_one_owner_and_answers_as_a_safe_does(wallet: Contract, owner: Actor) -> None:
    assert wallet.call("getOwners") == (owner.address,)
    assert (wallet.call("getThreshold"), wallet.call("nonce")) == (1, 0)
    assert all(wallet.call("supportsInterface", each) for each in (YES, bytes.fromhex("4e2312e0")))
    assert not wallet.call("supportsInterface", NO)


@pytest.mark.usefixtures("wallet")
def test_an_owner_has_one_wallet(factory: Contract, owner: Actor) -> None:
    with reverts("WalletExists"):
        factory.send("deploy", owner.address, sender=owner.address)


def test_nobody_is_no_owner(world: World, factory: Contract) -> None:
    with reverts("ZeroAddress"):
        factory.send("deploy", "0x" + "00" * 20, sender=SENDER)
    for name in ("DepositWalletBeacon", "DepositWalletFactory"):
        with reverts("ZeroAddress"):
            world.evm.deploy(own_artifact(name), "0x" + "00" * 20)


def test_anybody_may_send_a_batch_that_the_owner_signed_once(
    world: World, wallet: Contract, owner: Actor
) -> None:
    spender = world.exchange.address
    execute(wallet, owner, approving(world, 5), approving(world, 7))
    assert world.collateral.call("allowance", wallet.address, spender) == 7
    assert wallet.call("nonce") == 1
    with reverts("InvalidSignature"):
        execute(wallet, owner, approving(world, 5), approving(world, 7))
    execute(wallet, owner, approving(world, 9), nonce=1)
    assert world.collateral.call("allowance", wallet.address, spender) == 9


def test_a_batch_announces_its_digest_as_a_safe_does(
    world: World, wallet: Contract, owner: Actor
) -> None:
    batch = WalletBatch(parse_address(wallet.address), (approving(world),), 0, 2**40)
    signature = sign_digest(batch.digest(CHAIN_ID), owner.key)
    receipt = world.evm.transact(SENDER, wallet.address, batch.encode(signature))
    assert wallet.logs(receipt, "ExecutionSuccess(bytes32,uint256)") == [
        {"txHash": batch.digest(CHAIN_ID), "payment": 0}
    ]


def test_a_batch_has_a_deadline(world: World, wallet: Contract, owner: Actor) -> None:
    with reverts("BatchExpired"):
        execute(wallet, owner, approving(world), deadline_s=world.evm.now() - 1)


def test_a_batch_has_calls(wallet: Contract, owner: Actor) -> None:
    with reverts("NoCalls"):
        execute(wallet, owner)


def test_a_batch_of_another_signer_or_wallet_is_refused(
    world: World, wallet: Contract, owner: Actor
) -> None:
    with reverts("InvalidSignature"):
        execute(wallet, world.taker, approving(world))
    with reverts("InvalidSignature"):
        execute(wallet, owner, approving(world), signed_for=FACTORY)


def test_a_call_that_fails_undoes_the_whole_batch(
    world: World, wallet: Contract, owner: Actor
) -> None:
    target = parse_address(world.collateral.address)
    failing = InnerCall(target, world.collateral.calldata("transfer", SENDER, 1))
    batch = WalletBatch(parse_address(wallet.address), (approving(world), failing), 0, 2**40)
    signature = sign_digest(batch.digest(CHAIN_ID), owner.key)
    receipt = world.evm.attempt(SENDER, wallet.address, batch.encode(signature))
    assert not receipt.is_success
    assert world.collateral.call("allowance", wallet.address, world.exchange.address) == 0
    assert wallet.call("nonce") == 0


def test_a_call_cannot_execute_a_second_batch(world: World, wallet: Contract, owner: Actor) -> None:
    inner = WalletBatch(parse_address(wallet.address), (approving(world),), 1, 2**40)
    calldata = inner.encode(sign_digest(inner.digest(CHAIN_ID), owner.key))
    outer = WalletBatch(
        parse_address(wallet.address),
        (InnerCall(parse_address(wallet.address), calldata),),
        0,
        2**40,
    )
    signature = sign_digest(outer.digest(CHAIN_ID), owner.key)
    assert not world.evm.attempt(SENDER, wallet.address, outer.encode(signature)).is_success


def test_the_longest_batch_fits(world: World, wallet: Contract, owner: Actor) -> None:
    call = InnerCall(parse_address(SENDER), b"\1" * CALL_BYTES_MAX)
    batch = WalletBatch(parse_address(wallet.address), (call,) * CALLS_PER_BATCH_MAX, 0, 2**40)
    signature = sign_digest(batch.digest(CHAIN_ID), owner.key)
    receipt = world.evm.transact(SENDER, wallet.address, batch.encode(signature))
    assert receipt.gas_used < 20_000_000


def test_a_batch_of_one_call_costs_little(world: World, wallet: Contract, owner: Actor) -> None:
    batch = WalletBatch(parse_address(wallet.address), (approving(world),), 0, 2**40)
    signature = sign_digest(batch.digest(CHAIN_ID), owner.key)
    receipt = world.evm.transact(SENDER, wallet.address, batch.encode(signature))
    assert receipt.gas_used < 130_000


def test_a_wallet_takes_native_currency_and_spends_it(
    world: World, wallet: Contract, owner: Actor
) -> None:
    world.evm.rpc("anvil_setBalance", wallet.address, hex(10))
    execute(wallet, owner, InnerCall(parse_address(SENDER), b"", 10))
    assert int(world.evm.rpc("eth_getBalance", wallet.address, "latest"), 16) == 0


@pytest.fixture
def order(world: World, wallet: Contract, owner: Actor) -> Order:
    """A bid of a wallet that has collateral."""
    world.endow(wallet.address, collateral=1_000 * UNIT)
    bid = world.buy(owner, world.yes, 100 * UNIT, 50)
    plain = replace(
        bid,
        maker=wallet.address,
        signer=wallet.address,
        signature_type=ERC1271,
        profile=OWN_V2,
        signature=b"",
    )
    return signed_by(plain, owner, world)


def signed_by(order: Order, owner: Actor, world: World, *, wallet: str = "") -> Order:
    encoded = typed_order(order, PROFILES[order.profile], world.exchange.address)
    digest = wallet_digest(
        encoded.header, encoded.body, parse_address(wallet or order.maker), CHAIN_ID
    )
    signature = sign_digest(digest, owner.key)
    return replace(order, signature=wallet_signature(signature, encoded.header, encoded.body))


def test_the_exchange_accepts_an_order_of_a_wallet(world: World, order: Order) -> None:
    world.exchange.call("validateOrder", order.fields, sender=world.operator)


def test_a_wallet_accepts_its_owner_s_signature_alone(
    world: World, wallet: Contract, owner: Actor, order: Order
) -> None:
    digest, signature = world.hash(order), order.signature
    assert wallet.call("isValidSignature", digest, signature) == YES
    high_s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + high_s.to_bytes(32, "big") + bytes([55 - signature[64]])
    wrong = (
        b"",
        signature[:65],
        signature[:-1],
        signature + b"\0",
        signature[:-1] + b"\0",
        signature[:200] + bytes([signature[200] ^ 1]) + signature[201:],
        bytes(32) + signature[32:],
        twin + signature[65:],
        signed_by(order, world.taker, world).signature,
        signed_by(order, owner, world, wallet=FACTORY).signature,
        sign_digest(digest, owner.key) + signature[65:],
    )
    assert [wallet.call("isValidSignature", digest, each) for each in wrong] == [NO] * len(wrong)
    assert wallet.call("isValidSignature", keccak256(b"another"), signature) == NO


def test_the_code_of_the_wallets_alone_belongs_to_nobody(
    world: World, factory: Contract, order: Order
) -> None:
    assert factory.call("BEACON") == BEACON
    beacon = world.evm.at(BEACON, own_artifact("DepositWalletBeacon").abi)
    code = world.evm.at(beacon.call("implementation"), own_artifact("DepositWallet").abi)
    assert code.call("isValidSignature", world.hash(order), order.signature) == NO
