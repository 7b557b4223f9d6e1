from dataclasses import replace

import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World, deploy_exchange, match_args
from tests.contracts.signing import BUY, ERC1271, OWN_V2, UNIT, Order
from tests.contracts.wallets import (
    RECEIPT_YES,
    SIGNATURE_YES,
    WALLET_ADDRESS,
    a_wallet,
    answer,
    call_of,
    wallet,
)

ERC165 = "01ffc9a7"
ERC1155_RECEIVER = "4e2312e0"


@pytest.mark.parametrize(
    ("interface", "supported"),
    [(ERC165, True), (ERC1155_RECEIVER, True), ("ffffffff", False), ("00000000", False)],
)
def test_supports_interface(world: World, interface: str, supported: bool) -> None:  # noqa: FBT001 - the column of a table
    answered = world.exchange.call("supportsInterface", bytes.fromhex(interface))
    assert answered is supported


def test_a_position_sent_by_an_account_is_refused(world: World) -> None:
    """Such a position could never be withdrawn."""
    holder = world.makers[0].address
    with reverts("UnexpectedTransfer"):
        world.ctf.send(
            "safeTransferFrom", holder, world.exchange.address, world.yes, 1, b"", sender=holder
        )


def test_a_batch_of_positions_sent_by_an_account_is_refused(world: World) -> None:
    holder = world.makers[0].address
    tokens = [world.yes, world.no]
    with reverts("UnexpectedTransfer"):
        world.ctf.send(
            "safeBatchTransferFrom",
            *(holder, world.exchange.address, tokens, [1, 1], b""),
            sender=holder,
        )


@pytest.mark.parametrize(
    ("name", "args"),
    [("onERC1155Received", (1, 1)), ("onERC1155BatchReceived", ([1, 2], [1, 1]))],
)
def test_only_conditional_tokens_are_received(
    world: World, name: str, args: tuple[object, ...]
) -> None:
    outsider, exchange = world.evm.actor("outsider").address, world.exchange
    with reverts("NotConditionalTokens"):
        exchange.call(name, exchange.address, outsider, *args, b"", sender=outsider)
    assert exchange.call(name, exchange.address, outsider, *args, b"", sender=world.ctf.address)


def test_positions_that_the_splitter_moves_are_received(world: World) -> None:
    splitter = world.proxy_factory.address
    exchange = deploy_exchange(world, splitter=splitter)
    received = ("onERC1155Received", splitter, splitter, world.yes, 1, b"")
    assert exchange.call(*received, sender=world.ctf.address).hex() == "f23a6e61"
    with reverts("UnexpectedTransfer"):
        world.exchange.call(*received, sender=world.ctf.address)


def bid_of_wallet(world: World) -> Order:
    """Return a bid that the wallet accepts."""
    return Order(
        maker=WALLET_ADDRESS,
        signer=WALLET_ADDRESS,
        token_id=world.yes,
        maker_amount=50 * UNIT,
        taker_amount=100 * UNIT,
        side=BUY,
        signature_type=ERC1271,
        profile=OWN_V2,
    )


def wallet_bid(world: World, on_receipt: bytes, data: bytes = b"") -> Order:
    """Return a bid of a wallet with this answer to receipts."""
    a_wallet(world, wallet(answer(SIGNATURE_YES), on_receipt, data))
    return bid_of_wallet(world)


def test_a_receiver_cannot_raise_a_nonce_during_a_match(world: World) -> None:
    reentry = world.exchange.calldata("incrementNonce")
    bid = reentering_bid(world, reentry)
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    world.match(ask, [bid], Fill(100 * UNIT, (50 * UNIT,)))
    assert world.exchange.call("nonces", bid.maker) == 0


@pytest.mark.parametrize("name", ["cancelOrder", "cancelOrders"])
def test_a_receiver_cannot_cancel_during_a_match(world: World, name: str) -> None:
    resting = replace(bid_of_wallet(world), salt=9)
    argument = {"cancelOrder": resting.fields, "cancelOrders": [resting.fields]}[name]
    bid = reentering_bid(world, world.exchange.calldata(name, argument))
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    world.match(ask, [bid], Fill(100 * UNIT, (50 * UNIT,)))
    assert world.exchange.call("orderStatus", world.hash(resting)) == (False, 0)


def test_a_receiver_with_the_operator_role_cannot_match_during_a_match(world: World) -> None:
    inner_bid = world.buy(world.makers[1], world.yes, UNIT, 50)
    inner_ask = world.sell(world.makers[2], world.yes, UNIT, 50)
    args = match_args(inner_bid, [inner_ask], Fill(UNIT // 2, (UNIT,)))
    bid = reentering_bid(world, world.exchange.calldata("matchOrders", *args))
    world.exchange.send("addOperator", bid.maker, sender=world.admin)
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    world.match(ask, [bid], Fill(100 * UNIT, (50 * UNIT,)))
    assert world.exchange.call("orderStatus", world.hash(inner_ask)) == (False, 0)


def reentering_bid(world: World, calldata: bytes) -> Order:
    """Return a bid of a wallet that calls the exchange on receipt."""
    calls = call_of(world.exchange.address, calldata)
    return wallet_bid(world, calls + answer(RECEIPT_YES), calldata)
