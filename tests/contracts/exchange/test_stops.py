"""Ends of many orders at once: by a nonce, by a time, and by switching a Safe's owner off."""

from dataclasses import replace
from typing import Any

import pytest
from coincurve import PrivateKey
from tests.contracts.evm import Actor, Contract, reverts, safe_artifact
from tests.contracts.market import Fill, World
from tests.contracts.packed import match_packed
from tests.contracts.safes import a_safe
from tests.contracts.signing import BUY, ERC1271, FOREIGN_V2, OWN_V1, OWN_V2, SAFE, UNIT, Order

BEFORE = "OrdersCancelledBefore(address,uint256)"
OWNER = "OwnerSigningChanged(address,bool)"
WHOLE = Fill(UNIT // 2, (UNIT,))
MS = 1_000
DAY_S = 24 * 3600
CALLS = pytest.mark.parametrize("call", [World.match, match_packed])


def now_ms(world: World) -> int:
    return world.evm.now() * MS


def cancel_before(world: World, maker: Actor, timestamp: int) -> Any:
    return world.exchange.send("cancelBefore", timestamp, sender=maker.address)


def test_increment_nonce_is_logged(world: World) -> None:
    maker = world.makers[0].address
    assert world.exchange.call("nonces", maker) == 0
    receipt = world.exchange.send("incrementNonce", sender=maker)
    assert world.exchange.logs(receipt, "NonceIncremented(address,uint256)") == [
        {"maker": maker, "nonce": 1}
    ]
    assert world.exchange.call("nonces", maker) == 1


@pytest.mark.parametrize("salt", [1, 2])
def test_increment_nonce_cancels_every_v1_order_of_the_caller(world: World, salt: int) -> None:
    maker = world.makers[0]
    ask = world.sell(maker, world.yes, UNIT, 50, salt=salt)
    world.exchange.send("incrementNonce", sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    with reverts("InvalidNonce"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


@CALLS
@pytest.mark.parametrize("profile", [OWN_V1, OWN_V2])
def test_a_taker_ends_its_orders_as_a_maker_does(world: World, profile: int, call: Any) -> None:
    time = now_ms(world)
    timestamp = time - 1 if profile == OWN_V2 else 0
    bid = world.buy(world.taker, world.yes, UNIT, 50, profile=profile, timestamp=timestamp)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    world.exchange.send("incrementNonce", sender=world.taker.address)
    cancel_before(world, world.taker, time)
    with reverts("InvalidNonce" if profile == OWN_V1 else "OrderFilledOrCancelled"):
        call(world, bid, [ask], WHOLE)


def test_increment_nonce_keeps_the_orders_of_other_makers(world: World) -> None:
    world.exchange.send("incrementNonce", sender=world.makers[0].address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    world.match(bid, [world.sell(world.makers[1], world.yes, UNIT, 50)], Fill(UNIT // 2, (UNIT,)))


@CALLS
def test_an_order_with_the_new_nonce_is_valid(world: World, call: Any) -> None:
    maker = world.makers[0]
    world.exchange.send("incrementNonce", sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(maker, world.yes, UNIT, 50, nonce=1)
    call(world, bid, [ask], WHOLE)


def test_an_order_with_a_nonce_of_the_future_is_refused(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    maker = world.makers[0]
    for raised in range(2):
        with reverts("InvalidNonce"):
            world.match(bid, [world.sell(maker, world.yes, UNIT, 50, nonce=raised + 1)], WHOLE)
        world.exchange.send("incrementNonce", sender=maker.address)


def test_a_v2_order_without_a_nonce_stays_valid(world: World) -> None:
    maker = world.makers[0]
    ask = world.sell(maker, world.yes, UNIT, 50, profile=OWN_V2)
    world.exchange.send("incrementNonce", sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_increment_nonce_has_the_selector_of_clients(world: World) -> None:
    assert world.exchange.calldata("incrementNonce").hex() == "627cdcb9"


@CALLS
@pytest.mark.parametrize("profile", [OWN_V2, FOREIGN_V2])
def test_l5_a_maker_ends_its_v2_orders_signed_before_a_time(
    world: World, profile: int, call: Any
) -> None:
    maker, time = world.makers[0], now_ms(world)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    earlier, at_it = (
        world.sell(maker, world.yes, UNIT, 50, profile=profile, timestamp=timestamp)
        for timestamp in (time - 1, time)
    )
    receipt = cancel_before(world, maker, time)
    assert world.exchange.logs(receipt, BEFORE) == [{"maker": maker.address, "timestamp": time}]
    assert world.exchange.call("cancelledBefore", maker.address) == time
    assert world.exchange.call("remaining", earlier.fields) == 0
    with reverts("OrderFilledOrCancelled"):
        world.exchange.call("validateOrder", earlier.fields)
    with reverts("OrderFilledOrCancelled"):
        call(world, bid, [earlier], WHOLE)
    call(world, bid, [at_it], WHOLE)


def test_l5_a_partly_filled_v2_order_ends_too(world: World) -> None:
    maker, time = world.makers[0], now_ms(world)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(maker, world.yes, UNIT, 50, profile=OWN_V2, timestamp=time - 1)
    match_packed(world, bid, [ask], Fill(UNIT // 4, (UNIT // 2,)))
    cancel_before(world, maker, time)
    with reverts("OrderFilledOrCancelled"):
        match_packed(world, bid, [ask], Fill(UNIT // 4, (UNIT // 2,)))


def test_l5_a_time_ends_no_v1_order_and_no_other_makers(world: World) -> None:
    maker = world.makers[0]
    cancel_before(world, maker, now_ms(world))
    bid = world.buy(world.taker, world.yes, 2 * UNIT, 50)
    asks = [
        world.sell(maker, world.yes, UNIT, 50, profile=OWN_V1),
        world.sell(world.makers[1], world.yes, UNIT, 50, profile=OWN_V2),
    ]
    world.match(bid, asks, Fill(UNIT, (UNIT, UNIT)))


def test_l5_the_time_only_grows(world: World) -> None:
    maker, time = world.makers[0], now_ms(world)
    cancel_before(world, maker, time)
    for again in (time, time - 1, 0):
        with reverts("InvalidTimestamp"):
            cancel_before(world, maker, again)
    cancel_before(world, maker, time + 1_000)
    assert world.exchange.call("cancelledBefore", maker.address) == time + 1_000


def test_l5_a_time_in_another_unit_ends_nothing(world: World) -> None:
    """Microseconds would end every order that the wallet signs in thousands of years."""
    for ahead in (now_ms(world) + (DAY_S + 60) * MS, now_ms(world) * MS, 2**256 - 1):
        with reverts("InvalidTimestamp"):
            cancel_before(world, world.makers[0], ahead)
    cancel_before(world, world.makers[0], now_ms(world) + (DAY_S - 60) * MS)


def test_a_nonce_and_a_time_do_not_change_each_other(world: World) -> None:
    maker, time = world.makers[0], now_ms(world)
    world.exchange.send("incrementNonce", sender=maker.address)
    cancel_before(world, maker, time)
    world.exchange.send("incrementNonce", sender=maker.address)
    assert world.exchange.call("nonces", maker.address) == 2
    assert world.exchange.call("cancelledBefore", maker.address) == time
    assert world.exchange.call("isOwnerSigning", maker.address)


def test_two_makers_with_equal_last_bytes_keep_their_own_words(world: World) -> None:
    maker = world.makers[0]
    twin = "0x" + "11" * 19 + maker.address[-2:]
    world.evm.fund(twin)
    world.exchange.send("incrementNonce", sender=twin)
    assert world.exchange.call("nonces", maker.address) == 0
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    world.match(bid, [world.sell(maker, world.yes, UNIT, 50)], WHOLE)


def test_the_stops_of_two_makers_last(world: World) -> None:
    """A second maker's stop must not hide the first one's."""
    for maker in world.makers[:5]:
        world.exchange.send("incrementNonce", sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    for maker in world.makers[:5]:
        with reverts("InvalidNonce"):
            world.match(bid, [world.sell(maker, world.yes, UNIT, 50)], WHOLE)


@pytest.fixture
def owner(world: World) -> Actor:
    return world.evm.actor("first owner")


@pytest.fixture
def safe(world: World, owner: Actor) -> Contract:
    contract = a_safe(world, owner)
    world.endow(contract.address, collateral=UNIT, sets=UNIT)
    return contract


def safe_bid(world: World, safe: Contract, owner: Actor, signature_type: int = SAFE) -> Order:
    signer = owner.address if signature_type == SAFE else safe.address
    fields: dict[str, Any] = {"maker": safe.address, "signer": signer, "profile": OWN_V2}
    return world.order(
        owner, BUY, world.yes, (UNIT // 2, UNIT), signature_type=signature_type, **fields
    )


@CALLS
def test_l7_a_safe_ends_what_its_first_owner_signs_alone(
    world: World, safe: Contract, owner: Actor, call: Any
) -> None:
    """The Safe may have other owners by now, or want more signatures than one."""
    bid = safe_bid(world, safe, owner)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    fill = Fill(UNIT, (UNIT // 2,))
    receipt = world.exchange.send("setOwnerSigning", False, sender=safe.address)  # noqa: FBT003
    assert world.exchange.logs(receipt, OWNER) == [
        {"safe": safe.address.lower(), "isAllowed": False}
    ]
    assert not world.exchange.call("isOwnerSigning", safe.address)
    with reverts("InvalidSigner"):
        call(world, ask, [bid], fill)
    with reverts("InvalidSigner"):
        world.exchange.call("validateOrder", bid.fields)
    world.exchange.send("setOwnerSigning", True, sender=safe.address)  # noqa: FBT003
    assert world.exchange.call("isOwnerSigning", safe.address)
    call(world, ask, [bid], fill)


def test_l7_the_switch_ends_orders_that_were_partly_filled(
    world: World, safe: Contract, owner: Actor
) -> None:
    bid = safe_bid(world, safe, owner)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    half = Fill(UNIT // 2, (UNIT // 4,))
    world.match(ask, [bid], half)
    world.exchange.send("setOwnerSigning", False, sender=safe.address)  # noqa: FBT003
    with reverts("InvalidSigner"):
        world.match(ask, [bid], half)


def test_l7_a_safe_without_owner_signing_signs_by_erc_1271(
    world: World, safe: Contract, owner: Actor
) -> None:
    """Its fallback handler judges by all of its owners and its threshold."""
    world.exchange.send("setOwnerSigning", False, sender=safe.address)  # noqa: FBT003
    bid = safe_bid(world, safe, owner, ERC1271)
    message = safe_message(world, safe, bid)
    bid = replace(bid, signature=owner_signature(owner, message))
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    world.match(ask, [bid], Fill(UNIT, (UNIT // 2,)))


def safe_message(world: World, safe: Contract, order: Order) -> bytes:
    """Return what the owners of a Safe sign for its handler to accept an order's hash."""
    signature = "getMessageHashForSafe(address,bytes)"
    handler = world.evm.at(safe.address, handler_abi())
    digest: bytes = handler.call(signature, safe.address, world.hash(order))
    return digest


def handler_abi() -> Any:
    path = "handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler"
    return safe_artifact(path).abi


def owner_signature(owner: Actor, digest: bytes) -> bytes:
    signed = PrivateKey(owner.key).sign_recoverable(digest, hasher=None)
    return signed[:64] + bytes([signed[64] + 27])
