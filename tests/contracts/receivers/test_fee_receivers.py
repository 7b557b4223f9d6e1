"""Fee receivers that refuse, burn gas, change their mind or call again harm nobody but themselves."""

from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.evm import reverts
from tests.contracts.gas import filled
from tests.contracts.market import Fill, World
from tests.contracts.packed import match_packed
from tests.contracts.receivers.test_deliveries import GIVES_WAY, HOSTILE, SIZE, owed, set_code
from tests.contracts.signing import BUY, ERC1271, OWN_V2, Order
from tests.contracts.wallets import (
    RECEIPT_YES,
    REVERT,
    SIGNATURE_YES,
    WALLET_ADDRESS,
    a_wallet,
    answer,
    call_of,
    wallet,
)

FEE = SIZE // 100
MATCHES = [World.match, match_packed]


def bids_of_complements(world: World, **fields: Any) -> tuple[Order, Order]:
    """Return a taker and a maker that mint complete sets, and pay their fees in tokens."""
    taker = world.buy(world.taker, world.yes, SIZE, 50, fee_rate_bps=100, **fields)
    return taker, world.buy(world.makers[0], world.no, SIZE, 50, fee_rate_bps=100, **fields)


def fees_of(taker: Order, maker: Order) -> Fill:
    return Fill(taker.maker_amount, (maker.maker_amount,), FEE, (FEE // 2,))


def held(world: World, *wallets: str) -> list[tuple[int, int, int]]:
    return [world.holdings(each) for each in wallets]


def refusing(receiver: str) -> str:
    """Return code of a collateral whose `transferFrom` answers no for one receiver, and else yes."""
    return f"0x60243573{receiver[2:]}14155f5260205ff3"


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("match", MATCHES)
def test_h1_fees_of_complete_sets_that_are_refused_are_kept(
    world: World, match: Any, code: bytes
) -> None:
    taker, maker = bids_of_complements(world)
    before = held(world, taker.maker, maker.maker)
    set_code(world, world.fee_receiver, code)
    match(world, taker, [maker], fees_of(taker, maker))
    after = held(world, taker.maker, maker.maker)
    moved = [
        tuple(now - was for now, was in zip(*pair, strict=True))
        for pair in zip(after, before, strict=True)
    ]
    assert moved == [(-SIZE // 2, SIZE - FEE, 0), (-SIZE // 2, 0, SIZE - FEE // 2)]
    assert owed(world, world.fee_receiver, world.yes) == FEE
    assert owed(world, world.fee_receiver, world.no) == FEE // 2
    assert world.holdings(world.exchange.address) == (0, FEE, FEE // 2)
    set_code(world, world.fee_receiver, GIVES_WAY)
    for token in (world.yes, world.no):
        receiver = (token, world.fee_receiver)
        world.exchange.send("claimTokens", *receiver, sender=world.fee_receiver)
    assert world.holdings(world.fee_receiver) == (0, FEE, FEE // 2)
    assert world.holdings(world.exchange.address) == (0, 0, 0)


@pytest.mark.parametrize("name", ["sweep", "claimTokens", "matchPacked"])
def test_a_fee_receiver_takes_no_more_by_calling_again(world: World, name: str) -> None:
    """While it gets the makers' fees, the exchange still holds that of the taker."""
    taker, maker = bids_of_complements(world)
    calls: dict[str, tuple[object, ...]] = {
        "sweep": (world.collateral.address,),
        "claimTokens": (world.yes, world.fee_receiver),
        "matchPacked": (b"",),
    }
    world.exchange.send("addOperator", world.fee_receiver, sender=world.admin)
    calldata = world.exchange.calldata(name, *calls[name])
    calling = call_of(world.exchange.address, calldata) + answer(RECEIPT_YES)
    set_code(world, world.fee_receiver, wallet(REVERT, calling, calldata))
    match_packed(world, taker, [maker], fees_of(taker, maker))
    assert world.holdings(world.fee_receiver) == (0, FEE, FEE // 2)
    assert world.holdings(world.exchange.address) == (0, 0, 0)


def test_a_receiver_cannot_sweep_what_makers_have_paid_in(world: World) -> None:
    """A taker that gets tokens directly, while the exchange holds the collateral of another maker."""
    calldata = world.exchange.calldata("sweep", world.collateral.address)
    calling = call_of(world.exchange.address, calldata) + answer(RECEIPT_YES)
    a_wallet(world, wallet(answer(SIGNATURE_YES), calling, calldata))
    bid = Order(WALLET_ADDRESS, WALLET_ADDRESS, world.yes, SIZE, 2 * SIZE, BUY)
    bid = replace(bid, signature_type=ERC1271, profile=OWN_V2)
    other = world.buy(world.makers[0], world.no, SIZE, 50)
    ask = world.sell(world.makers[1], world.yes, SIZE, 50)
    world.match(bid, [other, ask], filled(bid, [other, ask]))
    assert world.holdings(world.fee_receiver) == (0, 0, 0)
    assert world.holdings(world.exchange.address) == (0, 0, 0)


def test_an_admin_that_is_paid_changes_the_receiver_of_the_next_match_only(world: World) -> None:
    other = world.evm.actor("another receiver").address
    calldata = world.exchange.calldata("setFeeReceiver", other)
    calling = call_of(world.exchange.address, calldata) + answer(RECEIPT_YES)
    world.exchange.send("transferAdmin", world.fee_receiver, sender=world.admin)
    world.exchange.send("acceptAdmin", sender=world.fee_receiver)
    set_code(world, world.fee_receiver, wallet(REVERT, calling, calldata))
    taker, maker = bids_of_complements(world)
    match_packed(world, taker, [maker], fees_of(taker, maker))
    assert held(world, world.fee_receiver, other) == [(0, FEE, FEE // 2), (0, 0, 0)]
    taker, maker = bids_of_complements(world, salt=2)
    match_packed(world, taker, [maker], fees_of(taker, maker))
    assert held(world, world.fee_receiver, other) == [(0, FEE, FEE // 2), (0, FEE, FEE // 2)]


def test_a_frozen_fee_receiver_stops_fees_until_another_is_named(world: World) -> None:
    """Collateral has no second place to go: a match without a fee in it, and a new receiver, go on."""
    taker = world.sell(world.taker, world.yes, SIZE, 50, fee_rate_bps=100)
    maker = world.buy(world.makers[0], world.yes, SIZE, 50, fee_rate_bps=100)
    fill = Fill(SIZE // 2, (SIZE // 4,), FEE // 4, (FEE // 4,))
    code = world.evm.rpc("eth_getCode", world.collateral.address, "latest")
    world.evm.rpc("anvil_setCode", world.collateral.address, refusing(world.fee_receiver))
    with reverts("TransferFailed"):
        match_packed(world, taker, [maker], fill)
    world.evm.rpc("anvil_setCode", world.collateral.address, code)
    assert world.exchange.call("orderStatus", world.hash(taker)) == (False, 0)
    other = world.evm.actor("another receiver").address
    world.exchange.send("setFeeReceiver", other, sender=world.admin)
    match_packed(world, taker, [maker], fill)
    assert world.holdings(other) == (FEE // 4, FEE // 4, 0)
