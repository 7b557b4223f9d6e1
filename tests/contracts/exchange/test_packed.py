"""Packed matches: the same checks and moves as `matchOrders`, from a fifth of the calldata."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.evm import Actor, Receipt, Reverted, reverts
from tests.contracts.market import APPROVED, Fill, World
from tests.contracts.packed import match_packed, record, records, word
from tests.contracts.safes import a_safe
from tests.contracts.signing import (
    BUY,
    ERC1271,
    FOREIGN_V1,
    FOREIGN_V2,
    OWN_V1,
    OWN_V2,
    PROXY,
    SAFE,
    SELL,
    UNIT,
    Order,
)
from tests.contracts.wallets import SIGNATURE_YES, a_wallet, answer, wallet

SIZE = 100 * UNIT
HALF = Fill(SIZE // 4, (SIZE // 2,))
WHOLE = Fill(SIZE // 2, (SIZE,))


@pytest.fixture
def bid(world: World) -> Order:
    return world.buy(world.taker, world.yes, SIZE, 50)


@pytest.fixture
def ask(world: World) -> Order:
    return world.sell(world.makers[0], world.yes, SIZE, 50)


def safe_order(world: World, owner: Actor, side: int, token: int) -> Order:
    """Return an order of a funded Safe, signed by its owner."""
    safe = a_safe(world, owner)
    world.endow(safe.address)
    world.collateral.send("mint", safe.address, SIZE, sender=world.minter)
    for wallet_call in (
        ("approve", world.exchange.address, SIZE),
        ("setApprovalForAll", world.exchange.address, APPROVED),
    ):
        contract = world.collateral if wallet_call[0] == "approve" else world.ctf
        contract.send(*wallet_call, sender=safe.address)
    fields = {"maker": safe.address, "signature_type": SAFE}
    return world.order(owner, side, token, (SIZE // 2, SIZE), **fields)


@pytest.mark.parametrize("taker_profile", [OWN_V1, OWN_V2, FOREIGN_V1, FOREIGN_V2])
@pytest.mark.parametrize("taker_side", [BUY, SELL])
@pytest.mark.parametrize("maker_side", [BUY, SELL])
def test_a_packed_match_moves_and_logs_what_match_orders_does(
    world: World, taker_side: int, maker_side: int, taker_profile: int
) -> None:
    place = {BUY: world.buy, SELL: world.sell}
    token = world.yes if taker_side != maker_side else world.no
    marks: dict[str, Any] = {"salt": 2**255 + 1}
    if taker_profile in {OWN_V2, FOREIGN_V2}:
        marks |= {"timestamp": 2**41, "metadata": b"m" * 32, "builder": b"b" * 32}
    else:
        marks |= {"expiration": world.evm.now() + 99, "taker": world.operator, "fee_rate_bps": 9}
    taker = place[taker_side](world.taker, world.yes, SIZE, 50, profile=taker_profile, **marks)
    maker = place[maker_side](world.makers[0], token, SIZE, 50, fee_rate_bps=100)
    fill = Fill(taker.maker_amount, (maker.maker_amount,), 0, (SIZE // 1_000,))
    seen = []
    for call in (World.match, match_packed):
        with world.evm.rolled_back():
            receipt: Receipt = call(world, taker, [maker], fill)
            wallets = (taker.maker, maker.maker, world.fee_receiver)
            seen.append(([world.holdings(each) for each in wallets], receipt.logs))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("call", [World.match, match_packed])
def test_twenty_makers_of_all_kinds_meet_one_taker(world: World, call: Any) -> None:
    bid = world.buy(world.taker, world.yes, 20 * UNIT, 50)
    asks = [
        world.sell(maker, world.yes, UNIT, 50, profile=index % 4)
        if index % 2
        else world.buy(maker, world.no, UNIT, 50, profile=index % 4)
        for index, maker in enumerate(world.makers)
    ]
    making = tuple(ask.maker_amount for ask in asks)
    before = world.holdings(world.taker.address)
    call(world, bid, asks, Fill(10 * UNIT, making))
    after = world.holdings(world.taker.address)
    assert (after[0] - before[0], after[1] - before[1]) == (-10 * UNIT, 20 * UNIT)


def test_the_maker_of_a_packed_safe_order_is_the_signers_safe(world: World, ask: Order) -> None:
    bid = safe_order(world, world.evm.actor("owner"), BUY, world.yes)
    match_packed(world, bid, [ask], WHOLE)
    assert world.holdings(bid.maker) == (SIZE // 2, SIZE, 0)


@pytest.mark.parametrize("bytes_", [0, 1, 32, 65, 512])
def test_a_wallet_judges_its_packed_signature(world: World, bid: Order, bytes_: int) -> None:
    """The wallet of this test answers yes exactly when it is asked with the signature's length."""
    address = a_wallet(world, wallet(answer(SIGNATURE_YES), answer_of_receipts()))
    ask = Order(address, address, world.yes, SIZE, SIZE // 2, SELL)
    ask = replace(ask, profile=OWN_V2, signature_type=ERC1271, signature=b"s" * bytes_)
    match_packed(world, bid, [ask], WHOLE)
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)


def answer_of_receipts() -> bytes:
    return answer(bytes.fromhex("f23a6e61").ljust(32, b"\0"))


def test_a_packed_signature_of_a_wallet_has_a_limit(world: World, bid: Order) -> None:
    address = a_wallet(world)
    ask = Order(address, address, world.yes, SIZE, SIZE // 2, SELL)
    ask = replace(ask, profile=OWN_V2, signature_type=ERC1271, signature=b"s" * 513)
    with reverts("InvalidSignature"):
        match_packed(world, bid, [ask], WHOLE)


@pytest.mark.parametrize("signature_type", [PROXY, ERC1271])
def test_other_signature_types_of_a_v1_order_are_refused(
    world: World, bid: Order, ask: Order, signature_type: int
) -> None:
    with reverts("InvalidSignatureType"):
        match_packed(world, bid, [replace(ask, signature_type=signature_type)], WHOLE)


@pytest.mark.parametrize(
    "changed",
    [
        {"salt": 2},
        {"maker_amount": SIZE + 1},
        {"taker_amount": SIZE // 2 - 1},
        {"expiration": 2**40},
        {"nonce": 0, "fee_rate_bps": 1},
        {"profile": FOREIGN_V1},
        {"signature": bytes(65)},
    ],
)
def test_a_record_that_differs_from_the_signed_order_has_no_valid_signature(
    world: World, bid: Order, ask: Order, changed: dict[str, Any]
) -> None:
    forged = replace(ask, **changed)
    with reverts("InvalidSignature"):
        match_packed(world, bid, [forged], HALF)
    with reverts("InvalidSignature"):
        match_packed(world, replace(bid, salt=7), [ask], HALF)


def test_a_forged_order_has_no_valid_signature_after_the_real_one_was_filled(
    world: World, bid: Order, ask: Order
) -> None:
    match_packed(world, bid, [ask], HALF)
    with reverts("InvalidSignature"):
        match_packed(world, bid, [replace(ask, salt=2)], HALF)


@pytest.mark.parametrize("call", [World.match, match_packed])
def test_a_later_fill_needs_no_signature_but_all_the_rest(
    world: World, bid: Order, ask: Order, call: Any
) -> None:
    """The order's hash was signed when it was filled first, and a key takes nothing back."""
    match_packed(world, bid, [ask], HALF)
    bare = [replace(order, signature=bytes(65)) for order in (bid, ask)]
    with world.evm.rolled_back():
        call(world, bare[0], [bare[1]], HALF)
        with reverts("OrderFilledOrCancelled"):
            call(world, bare[0], [bare[1]], HALF)
    world.exchange.send("cancelOrder", ask.fields, sender=ask.maker)
    with reverts("OrderFilledOrCancelled"):
        call(world, bare[0], [bare[1]], HALF)


@pytest.mark.parametrize("call", [World.match, match_packed])
def test_a_wallet_judges_every_fill(world: World, bid: Order, call: Any) -> None:
    """A wallet may take a signature back, so it is asked each time."""
    address = a_wallet(world)
    ask = Order(address, address, world.yes, SIZE, SIZE // 2, SELL)
    ask = replace(ask, profile=OWN_V2, signature_type=ERC1271, signature=b"s")
    call(world, bid, [ask], HALF)
    no = wallet(answer(bytes(32)), answer_of_receipts())
    world.evm.rpc("anvil_setCode", address, "0x" + no.hex())
    with reverts("InvalidSignature"):
        call(world, bid, [ask], HALF)


def test_packed_matches_are_for_operators_while_trading_goes_on(
    world: World, bid: Order, ask: Order
) -> None:
    packed = records(bid, [ask], WHOLE)
    with reverts("NotOperator"):
        world.exchange.send("matchPacked", packed, sender=world.admin)
    world.exchange.send("pauseTrading", sender=world.admin)
    with reverts("Paused"):
        world.exchange.send("matchPacked", packed, sender=world.operator)


@pytest.mark.parametrize("outcome", ["no", "question"])
def test_a_packed_match_of_another_token_has_no_valid_signature(
    world: World, bid: Order, ask: Order, outcome: str
) -> None:
    token = world.no if outcome == "no" else int.from_bytes(world.question)
    with reverts("InvalidSignature"):
        packed = word(token) + records(bid, [ask], WHOLE)[32:]
        world.exchange.send("matchPacked", packed, sender=world.operator)


def test_a_packed_match_of_a_token_that_is_not_registered_is_refused(world: World) -> None:
    bid = world.buy(world.taker, 7, SIZE, 50)
    with reverts("InvalidTokenId"):
        match_packed(world, bid, [world.sell(world.makers[0], 7, SIZE, 50)], WHOLE)


def send(world: World, data: bytes) -> None:
    world.evm.transact(world.operator, world.exchange.address, data)


def packed_call(world: World, *parts: bytes) -> bytes:
    selector = world.exchange.calldata("matchPacked", b"")[:4]
    body = b"".join(parts)
    return selector + word(32) + word(len(body)) + body


def test_records_without_a_maker_are_refused(world: World, bid: Order) -> None:
    with reverts("NoMakerOrders"):
        send(world, packed_call(world, word(world.yes), record(bid, 1, 0)))


def test_more_than_twenty_makers_are_refused(world: World) -> None:
    bid = world.buy(world.taker, world.yes, SIZE, 50)
    asks = [world.sell(world.makers[0], world.yes, UNIT, 50, salt=salt) for salt in range(21)]
    fill = Fill(21 * UNIT // 2, (UNIT,) * 21)
    with reverts("MalformedRecords"):
        match_packed(world, bid, asks, fill)


@pytest.mark.parametrize("cut", [-1, -32, 1, 31, 32, 159])
def test_a_length_that_is_not_the_records_is_refused(
    world: World, bid: Order, ask: Order, cut: int
) -> None:
    data = packed_call(world, records(bid, [ask], WHOLE))
    length = word(32 + 2 * 160 + cut)
    with pytest.raises(Reverted):
        send(world, data[:36] + length + data[68:] + bytes(max(cut, 0)))


@pytest.mark.parametrize("offset", [0, 31, 33, 64, 2**256 - 1])
def test_records_lie_where_encoders_put_them(
    world: World, bid: Order, ask: Order, offset: int
) -> None:
    data = packed_call(world, records(bid, [ask], WHOLE))
    with reverts("MalformedRecords"):
        send(world, data[:4] + word(offset) + data[36:])


@given(data=st.data())
def test_no_cut_or_changed_byte_moves_more_than_the_signed_orders_allow(
    world: World, data: st.DataObject
) -> None:
    """Whatever an operator writes, a match that goes through is one of the two signed orders."""
    bid = world.buy(world.taker, world.yes, SIZE, 50)
    ask = world.sell(world.makers[0], world.yes, SIZE, 50)
    whole = packed_call(world, records(bid, [ask], HALF))
    at = data.draw(st.integers(4, len(whole) - 1))
    changed = data.draw(st.sampled_from(("cut", "flip", "insert")))
    bit = 1 << data.draw(st.integers(0, 7))
    forged = {
        "cut": whole[:at],
        "flip": whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :],
        "insert": whole[:at] + bytes([bit]) + whole[at:],
    }[changed]
    with world.evm.rolled_back():
        wallets = [bid.maker, ask.maker]
        before = [world.holdings(each) for each in wallets]
        receipt = world.evm.attempt(world.operator, world.exchange.address, forged)
        moved = [
            tuple(now - was for now, was in zip(world.holdings(each), held, strict=True))
            for each, held in zip(wallets, before, strict=True)
        ]
    size = moved[0][1]
    assert receipt.is_success or size == 0
    assert 0 <= size <= SIZE
    assert moved == [(-size // 2, size, 0), (size // 2, -size, 0)]
