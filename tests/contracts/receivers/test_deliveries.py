"""Receivers that refuse tokens, burn gas or change their mind stop no match (H-1)."""

from collections.abc import Sequence
from typing import Final

import pytest
from tests.contracts.evm import Receipt, reverts
from tests.contracts.gas import filled
from tests.contracts.market import Fill, World
from tests.contracts.packed import match_packed, records
from tests.contracts.signing import UNIT, Order
from tests.contracts.wallets import BURN, RECEIPT_YES, REVERT, answer

from foretell.settlement.match_call import match_gas

SIZE: Final = 100 * UNIT
MAKERS: Final = 20
REFUSED: Final = "DeliveryRefused(address,uint256,uint256)"
TWO_FACED: Final = bytes.fromhex("3a600c575f355f5260205ff35bfe")
"""Without a gas price, as in a simulation, it returns the selector that it was called with."""
GIVES_WAY: Final = answer(RECEIPT_YES)
HOSTILE: Final = {
    "reverts": REVERT,
    "reverts with a megabyte": bytes.fromhex("621000005ffd"),
    "burns all gas": BURN,
    "answers no": answer(bytes(32)),
    "changes its mind": TWO_FACED,
}


def set_code(world: World, address: str, code: bytes) -> None:
    world.evm.rpc("anvil_setCode", address, "0x" + code.hex())


def refusals(world: World, receipt: Receipt) -> list[tuple[str, int, int]]:
    logs = world.exchange.logs(receipt, REFUSED)
    return [(log["receiver"], log["tokenId"], log["amount"]) for log in logs]


def owed(world: World, account: str, token: int) -> int:
    amount: int = world.exchange.call("owedTokens", account, token)
    return amount


def bids_and_ask(world: World, makers: int) -> tuple[Order, list[Order]]:
    """Return bids of makers, and the ask of the taker that fills them all."""
    bids = [world.buy(maker, world.yes, SIZE, 50) for maker in world.makers[:makers]]
    return world.sell(world.taker, world.yes, makers * SIZE, 50), bids


def changes(
    world: World, taker: Order, makers: Sequence[Order]
) -> tuple[Receipt, list[tuple[int, ...]]]:
    """Match the orders, and return the receipt and the change of each wallet, the taker's first."""
    wallets = [order.maker for order in (taker, *makers)]
    before = [world.holdings(wallet) for wallet in wallets]
    receipt = match_packed(world, taker, list(makers), filled(taker, makers))
    after = [world.holdings(wallet) for wallet in wallets]
    return receipt, [
        tuple(now - was for now, was in zip(*pair, strict=True))
        for pair in zip(after, before, strict=True)
    ]


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_h1_a_maker_that_refuses_its_tokens_harms_itself_alone(world: World, code: bytes) -> None:
    ask, bids = bids_and_ask(world, 3)
    liar = bids[1].maker
    set_code(world, liar, code)
    receipt, moved = changes(world, ask, bids)
    paid = (-SIZE // 2, SIZE, 0)
    assert moved == [(3 * SIZE // 2, -3 * SIZE, 0), paid, (-SIZE // 2, 0, 0), paid]
    assert refusals(world, receipt) == [(liar, world.yes, SIZE)]
    assert owed(world, liar, world.yes) == SIZE == world.holdings(world.exchange.address)[1]


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_h1_a_taker_that_refuses_its_tokens_pays_its_makers(world: World, code: bytes) -> None:
    """The taker buys in two ways: from one maker directly, from the other by a complete set."""
    bid = world.buy(world.taker, world.yes, 2 * SIZE, 50)
    ask = world.sell(world.makers[0], world.yes, SIZE, 50)
    other = world.buy(world.makers[1], world.no, SIZE, 50)
    set_code(world, bid.maker, code)
    _, moved = changes(world, bid, [ask, other])
    assert moved == [(-SIZE, 0, 0), (SIZE // 2, -SIZE, 0), (-SIZE // 2, 0, SIZE)]
    assert owed(world, bid.maker, world.yes) == 2 * SIZE


def test_h1_twenty_receivers_that_burn_all_gas_fit_into_the_gas_of_a_match(world: World) -> None:
    ask, bids = bids_and_ask(world, MAKERS)
    for bid in bids:
        set_code(world, bid.maker, BURN)
    receipt, moved = changes(world, ask, bids)
    assert moved[0] == (MAKERS * SIZE // 2, -MAKERS * SIZE, 0)
    assert receipt.gas_used < match_gas(MAKERS)


def test_h1_a_fee_receiver_that_refuses_tokens_stops_no_match(world: World) -> None:
    bid = world.buy(world.taker, world.yes, SIZE, 50, fee_rate_bps=100)
    ask = world.sell(world.makers[0], world.yes, SIZE, 50, fee_rate_bps=100)
    set_code(world, world.fee_receiver, REVERT)
    world.match(bid, [ask], Fill(bid.maker_amount, (SIZE,), taker_fee=SIZE // 100))
    assert owed(world, world.fee_receiver, world.yes) == SIZE // 100


def test_h1_a_seller_without_its_tokens_still_reverts_the_match(world: World) -> None:
    """Nobody else gives them: a refusal is the receiver's, and this fault is the sender's."""
    ask, bids = bids_and_ask(world, 1)
    set_code(world, bids[0].maker, REVERT)
    world.ctf.send("setApprovalForAll", world.exchange.address, False, sender=ask.maker)  # noqa: FBT003
    with reverts("ERC1155: need operator approval for 3rd party transfers."):
        match_packed(world, ask, bids, filled(ask, bids))
    assert world.exchange.call("orderStatus", world.hash(ask)) == (False, 0)


def test_refused_tokens_are_for_the_one_that_refused_them(world: World) -> None:
    ask, bids = bids_and_ask(world, 2)
    liar, friend = bids[0].maker, world.evm.actor("friend").address
    set_code(world, liar, REVERT)
    match_packed(world, ask, bids, filled(ask, bids))
    exchange = world.exchange
    for caller in (friend, bids[1].maker, world.admin):
        with reverts("NothingOwed"):
            exchange.send("claimTokens", world.yes, friend, sender=caller)
    with reverts("NothingOwed"):
        exchange.send("claimTokens", world.no, friend, sender=liar)
    with reverts("NothingOwed"):
        exchange.send("claimTokens", world.yes, exchange.address, sender=liar)
    exchange.send("claimTokens", world.yes, friend, sender=liar)
    assert world.holdings(friend)[1] == SIZE
    assert (owed(world, liar, world.yes), world.holdings(exchange.address)[1]) == (0, 0)
    with reverts("NothingOwed"):
        exchange.send("claimTokens", world.yes, friend, sender=liar)


def test_a_claim_that_its_receiver_refuses_keeps_the_tokens(world: World) -> None:
    ask, bids = bids_and_ask(world, 1)
    liar = bids[0].maker
    set_code(world, liar, REVERT)
    match_packed(world, ask, bids, filled(ask, bids))
    with reverts(""):
        world.exchange.send("claimTokens", world.yes, liar, sender=liar)
    assert owed(world, liar, world.yes) == SIZE
    set_code(world, liar, GIVES_WAY)
    world.exchange.send("claimTokens", world.yes, liar, sender=liar)
    assert owed(world, liar, world.yes) == 0


def test_too_little_gas_for_a_delivery_is_no_refusal(world: World) -> None:
    """An operator that sends too little gas gets a revert, and takes no tokens from anybody."""
    ask, bids = bids_and_ask(world, 1)
    packed = records(ask, bids, filled(ask, bids))
    call = {
        "from": world.operator,
        "to": world.exchange.address,
        "gas": hex(150_000),
        "data": "0x" + world.exchange.calldata("matchPacked", packed).hex(),
    }
    with reverts("NotEnoughGas"):
        world.evm.rpc("eth_call", call, "latest")
