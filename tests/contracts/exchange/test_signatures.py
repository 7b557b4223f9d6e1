from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from coincurve import PrivateKey, PublicKey
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.evm import Contract, reverts
from tests.contracts.market import Fill, World, match_args
from tests.contracts.safes import a_safe
from tests.contracts.signing import (
    CHAIN_ID,
    ERC1271,
    OWN_V1,
    OWN_V2,
    SAFE,
    UNIT,
    ZERO,
    Order,
    signed,
)
from tests.contracts.wallets import (
    BURN,
    MEGABYTE,
    RECEIPT_YES,
    REVERT,
    REVERT_SAYING_YES,
    SIGNATURE_YES,
    STOP,
    a_wallet,
    answer,
    answer_while_empty,
    call_of,
    wallet,
)

from foretell.domain.values.hexadecimal import keccak256

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
SIGNATURE_BYTES_MAX = 512
REFUSAL_GAS_MAX = 500_000


@pytest.fixture
def bid(world: World) -> Order:
    """A buy order of the taker for Yes."""
    return world.buy(world.taker, world.yes, 100 * UNIT, 50)


def validate(world: World, order: Order) -> None:
    world.exchange.call("validateOrder", order.fields, sender=world.operator)


def wallet_bid(world: World, address: str, signature: bytes = b"") -> Order:
    """Return a buy order for Yes that a wallet accepts."""
    return Order(
        maker=address,
        signer=address,
        token_id=world.yes,
        maker_amount=50 * UNIT,
        taker_amount=100 * UNIT,
        side=0,
        signature_type=ERC1271,
        profile=OWN_V2,
        signature=signature,
    )


@pytest.mark.parametrize("profile", range(4))
def test_an_order_signed_by_its_maker_is_valid_under_every_profile(
    world: World, bid: Order, profile: int
) -> None:
    validate(world, world.sign(replace(bid, profile=profile), world.taker))


@pytest.mark.case("C-02")
@pytest.mark.parametrize(
    ("signed", "claimed"), [(one, other) for one in range(4) for other in range(4) if one != other]
)
def test_an_order_is_valid_only_under_the_profile_that_it_was_signed_for(
    world: World, bid: Order, signed: int, claimed: int
) -> None:
    order = world.sign(replace(bid, profile=signed), world.taker)
    with reverts("InvalidSignature"):
        validate(world, replace(order, profile=claimed))


@pytest.mark.case("C-02")
def test_an_order_signed_for_another_exchange_is_refused(world: World, bid: Order) -> None:
    order = replace(bid, signature=signed(bid, world.taker, ZERO).signature)
    with reverts("InvalidSignature"):
        validate(world, order)


@pytest.mark.parametrize(
    "changed",
    [
        {"salt": 2},
        {"token_id": 2},
        {"maker_amount": 1},
        {"taker_amount": 2**100},
        {"expiration": 2**40},
        {"fee_rate_bps": 1},
        {"side": 1, "taker_amount": 1},
    ],
)
def test_a_changed_field_invalidates_the_signature(
    world: World, bid: Order, changed: dict[str, Any]
) -> None:
    with reverts("InvalidSignature"):
        validate(world, replace(bid, **changed))


def recomposed(order: Order, *, flips_s: bool = False, v: int | None = None) -> Order:
    """Return the order with another encoding of its signature."""
    r, s, old_v = order.signature[:32], order.signature[32:64], order.signature[64]
    if flips_s:
        s = (CURVE_ORDER - int.from_bytes(s, "big")).to_bytes(32, "big")
        old_v = 55 - old_v
    return replace(order, signature=r + s + bytes([old_v if v is None else v]))


@pytest.mark.case("C-03")
def test_a_signature_with_high_s_is_refused(world: World, bid: Order) -> None:
    mirrored = recomposed(bid, flips_s=True)
    recovered = PrivateKey(world.taker.key).public_key.format(compressed=False)
    assert recovered_key(world.hash(bid), mirrored.signature) == recovered
    with reverts("InvalidSignature"):
        validate(world, mirrored)


def recovered_key(digest: bytes, signature: bytes) -> bytes:
    """Return the signer that a lenient verifier would recover from the signature."""
    recoverable = signature[:64] + bytes([signature[64] - 27])
    key = PublicKey.from_signature_and_message(recoverable, digest, hasher=None)
    return key.format(compressed=False)


@pytest.mark.parametrize("v", [0, 1, 2, 26, 29, 30, 31, 32, 255])
def test_v_has_two_values(world: World, bid: Order, v: int) -> None:
    with reverts("InvalidSignature"):
        validate(world, recomposed(bid, v=v))


@pytest.mark.parametrize(
    "cut",
    [slice(0, 0), slice(0, 64), slice(1, 65)],
)
def test_a_short_signature_is_refused(world: World, bid: Order, cut: slice) -> None:
    with reverts("InvalidSignature"):
        validate(world, replace(bid, signature=bid.signature[cut]))


@pytest.mark.parametrize("extra", [b"\0", bytes(447)])
def test_a_padded_signature_is_refused(world: World, bid: Order, extra: bytes) -> None:
    with reverts("InvalidSignature"):
        validate(world, replace(bid, signature=bid.signature + extra))


@pytest.mark.case("C-03")
@given(position=st.integers(0, 64), bit=st.integers(0, 7))
def test_an_order_has_one_signature(world: World, position: int, bit: int) -> None:
    """No bit of a signature can be changed: r and s are fixed, and v has two values."""
    order = world.buy(world.taker, world.yes, 100 * UNIT, 50)
    signature = bytearray(order.signature)
    signature[position] ^= 1 << bit
    with reverts("InvalidSignature"):
        validate(world, replace(order, signature=bytes(signature)))


@pytest.mark.parametrize("signature_type", [4, 255])
def test_other_signature_types_are_refused(world: World, bid: Order, signature_type: int) -> None:
    with reverts("InvalidSignatureType"):
        validate(world, world.sign(replace(bid, signature_type=signature_type), world.taker))


def test_the_safe_of_the_signer_may_be_the_maker(world: World) -> None:
    owner = world.makers[0]
    safe = a_safe(world, owner)
    world.endow(safe.address, collateral=50 * UNIT)
    order = world.buy(owner, world.yes, 100 * UNIT, 50, maker=safe.address, signature_type=SAFE)
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    world.match(ask, [order], Fill(100 * UNIT, (50 * UNIT,)))
    assert world.holdings(safe.address) == (0, 100 * UNIT, 0)


def test_safe_address_is_that_of_the_factory(world: World) -> None:
    exchange, factory = world.exchange, world.safe_factory
    owner = world.makers[0].address
    assert exchange.call("safeAddress", owner) == factory.call("computeProxyAddress", owner)
    assert exchange.call("safeFactory") == factory.address
    assert exchange.call("safeInitCodeHash") == factory.call("initCodeHash")


def test_a_wallet_that_is_not_the_signers_safe_is_refused(world: World) -> None:
    owner, other = world.makers[0], world.makers[1]
    safe = world.exchange.call("safeAddress", other.address)
    order = world.buy(owner, world.yes, 100 * UNIT, 50, maker=safe, signature_type=SAFE)
    with reverts("InvalidSigner"):
        validate(world, order)


def test_a_contract_wallet_may_be_the_maker(world: World) -> None:
    address = a_wallet(world)
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    before = world.holdings(address)
    world.match(ask, [wallet_bid(world, address)], Fill(100 * UNIT, (50 * UNIT,)))
    after = world.holdings(address)
    assert (after[0] - before[0], after[1] - before[1]) == (-50 * UNIT, 100 * UNIT)


def safe_message(order_hash: bytes, safe: Contract) -> bytes:
    """Return the digest that a Safe's owner signs so that the Safe accepts a hash."""
    separator = keccak256(
        encode(
            ["bytes32", "uint256", "address"],
            [
                keccak256(b"EIP712Domain(uint256 chainId,address verifyingContract)"),
                CHAIN_ID,
                safe.address,
            ],
        )
    )
    message = keccak256(encode(["bytes32"], [order_hash]))
    struct = keccak256(
        encode(["bytes32", "bytes32"], [keccak256(b"SafeMessage(bytes message)"), message])
    )
    return keccak256(b"\x19\x01" + separator + struct)


def test_a_real_safe_accepts_an_order_by_erc_1271(world: World) -> None:
    owner = world.makers[0]
    safe = a_safe(world, owner)
    order = wallet_bid(world, safe.address)
    digest = safe_message(world.hash(order), safe)
    raw = PrivateKey(owner.key).sign_recoverable(digest, hasher=None)
    signature = raw[:64] + bytes([raw[64] + 27])
    validate(world, replace(order, signature=signature))
    with reverts("InvalidSignature"):
        validate(world, replace(order, salt=2, signature=signature))


@pytest.mark.case("C-05")
@pytest.mark.parametrize(
    "on_signature",
    [
        pytest.param(REVERT, id="reverts"),
        pytest.param(REVERT_SAYING_YES, id="reverts saying yes"),
        pytest.param(STOP, id="says nothing"),
        pytest.param(answer(b"\xff" * 32), id="says no"),
        pytest.param(answer(keccak256(b"junk")), id="says junk"),
        pytest.param(answer(bytes(32)), id="says zero"),
        pytest.param(answer((1).to_bytes(32, "big")), id="says true"),
        pytest.param(answer(SIGNATURE_YES[:4] + b"\1" * 28), id="says yes and more"),
        pytest.param(answer(SIGNATURE_YES, "04"), id="says yes in four bytes"),
        pytest.param(answer(SIGNATURE_YES, MEGABYTE), id="says yes in a megabyte"),
        pytest.param(BURN, id="burns all gas"),
    ],
)
def test_a_hostile_wallet_is_refused_with_bounded_gas(world: World, on_signature: bytes) -> None:
    address = a_wallet(world, wallet(on_signature, answer(RECEIPT_YES)))
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    args = match_args(ask, [wallet_bid(world, address)], Fill(100 * UNIT, (50 * UNIT,)))
    calldata = world.exchange.calldata("matchOrders", *args)
    receipt = world.evm.attempt(world.operator, world.exchange.address, calldata)
    assert not receipt.is_success
    assert receipt.gas_used < REFUSAL_GAS_MAX
    with reverts("InvalidSignature"):
        world.exchange.send("matchOrders", *args, sender=world.operator)


def test_a_wallet_answer_with_extra_bytes_is_accepted(world: World) -> None:
    address = a_wallet(world, wallet(answer(SIGNATURE_YES, "40"), answer(RECEIPT_YES)))
    validate(world, wallet_bid(world, address))


@pytest.mark.case("C-05")
def test_a_wallet_that_withdraws_its_acceptance_is_not_filled(world: World) -> None:
    code = wallet(answer_while_empty(SIGNATURE_YES), answer(RECEIPT_YES))
    address = a_wallet(world, code)
    order = wallet_bid(world, address)
    validate(world, order)
    world.evm.rpc("anvil_setStorageAt", address, "0x0", "0x" + "11" * 32)
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    with reverts("InvalidSignature"):
        world.match(ask, [order], Fill(100 * UNIT, (50 * UNIT,)))


@pytest.mark.case("C-05")
def test_a_wallet_changes_no_state_during_its_check(world: World) -> None:
    reentry = world.exchange.calldata("incrementNonce")
    calls = call_of(world.exchange.address, reentry)
    code = wallet(calls + answer(SIGNATURE_YES), answer(RECEIPT_YES), reentry)
    address = a_wallet(world, code)
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    world.match(ask, [wallet_bid(world, address)], Fill(100 * UNIT, (50 * UNIT,)))
    assert world.exchange.call("nonces", address) == 0


def test_an_account_without_code_accepts_no_order(world: World) -> None:
    with reverts("InvalidSignature"):
        validate(world, wallet_bid(world, world.makers[0].address))


def test_a_contract_that_echoes_its_input_accepts_no_order(world: World) -> None:
    """The identity precompile answers with its input, which starts with the accepted value."""
    with reverts("InvalidSignature"):
        validate(world, wallet_bid(world, "0x" + "00" * 19 + "04"))


def test_a_wallet_is_not_called_for_a_v1_order(world: World) -> None:
    order = replace(wallet_bid(world, a_wallet(world), bytes(65)), profile=OWN_V1)
    with reverts("InvalidSignatureType"):
        validate(world, order)


def test_a_wallet_accepts_only_its_own_orders(world: World) -> None:
    order = replace(wallet_bid(world, a_wallet(world)), maker=world.makers[0].address)
    with reverts("InvalidSigner"):
        validate(world, order)


def test_the_greatest_signature_is_passed_to_the_wallet(world: World) -> None:
    order = wallet_bid(world, a_wallet(world), bytes(SIGNATURE_BYTES_MAX))
    validate(world, order)


@pytest.fixture
def forked(world: World) -> Iterator[None]:
    """The chain with another id, as after a contentious fork."""
    world.evm.rpc("anvil_setChainId", CHAIN_ID + 1)
    yield
    world.evm.rpc("anvil_setChainId", CHAIN_ID)


@pytest.mark.usefixtures("forked")
def test_no_signature_is_valid_after_the_chain_id_changed(world: World, bid: Order) -> None:
    """ChainSecurity, CTF exchange, 6.10: a cached domain separator on a fork."""
    with reverts("ChainChanged"):
        validate(world, bid)


@pytest.mark.usefixtures("forked")
def test_no_wallet_is_called_after_the_chain_id_changed(world: World) -> None:
    with reverts("ChainChanged"):
        validate(world, wallet_bid(world, a_wallet(world)))
