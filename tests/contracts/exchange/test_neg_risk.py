"""The exchange for tokens of neg-risk events."""

from dataclasses import replace

import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.resolution import PRICE_NO
from tests.contracts.signing import UNIT


@pytest.fixture
def event(neg_risk: NegRisk) -> NegRisk:
    """An event with a first question open for trading, and traders with sets of it."""
    neg_risk.open_event(2)
    register(neg_risk, 0)
    for trader in (neg_risk.world.taker, *neg_risk.world.makers[:2]):
        neg_risk.holder(trader_name(neg_risk, trader.address), 0)
        neg_risk.split(trader.address, 0, 100 * UNIT)
    return neg_risk


def trader_name(event: NegRisk, address: str) -> str:
    names = {event.world.taker.address: "taker"}
    names |= {maker.address: f"maker {place}" for place, maker in enumerate(event.world.makers)}
    return names[address]


def register(event: NegRisk, index: int) -> None:
    yes, no = event.tokens(index)
    event.exchange.send(
        "registerToken", yes, no, event.condition(index), sender=event.world.registrar
    )


@pytest.fixture
def trading(event: NegRisk) -> World:
    """The same world with the exchange for events."""
    return replace(event.world, exchange=event.exchange)


def test_it_trades_the_tokens_of_events(event: NegRisk, trading: World) -> None:
    yes, _ = event.tokens(0)
    bid = trading.buy(trading.taker, yes, 10 * UNIT, 60)
    ask = trading.sell(trading.makers[0], yes, 10 * UNIT, 60)
    trading.match(bid, [ask], Fill(6 * UNIT, (10 * UNIT,)))
    assert event.held(trading.taker.address, 0) == (110 * UNIT, 100 * UNIT)


def test_two_bids_create_sets_through_the_adapter(event: NegRisk, trading: World) -> None:
    yes, no = event.tokens(0)
    bid = trading.buy(trading.taker, yes, 10 * UNIT, 60)
    other = trading.buy(trading.makers[0], no, 10 * UNIT, 40)
    locked = event.locked
    trading.match(bid, [other], Fill(6 * UNIT, (4 * UNIT,)))
    assert event.held(trading.taker.address, 0) == (110 * UNIT, 100 * UNIT)
    assert event.held(trading.makers[0].address, 0) == (100 * UNIT, 110 * UNIT)
    assert event.locked == locked + 10 * UNIT


def test_two_asks_merge_sets_through_the_adapter(event: NegRisk, trading: World) -> None:
    yes, no = event.tokens(0)
    ask = trading.sell(trading.taker, yes, 10 * UNIT, 55)
    other = trading.sell(trading.makers[0], no, 10 * UNIT, 40)
    locked, before = event.locked, event.collateral_of(trading.taker.address)
    trading.match(ask, [other], Fill(10 * UNIT, (10 * UNIT,)))
    assert event.collateral_of(trading.taker.address) - before == 6 * UNIT
    assert event.locked == locked - 10 * UNIT


def test_it_registers_no_token_of_a_plain_condition(event: NegRisk) -> None:
    world = event.world
    condition = bytes.fromhex(world.condition[2:])
    with reverts("InvalidTokenId"):
        event.exchange.send("registerToken", world.yes, world.no, condition, sender=world.registrar)


@pytest.mark.case("C-02")
def test_an_order_for_one_exchange_is_invalid_at_the_other(event: NegRisk, trading: World) -> None:
    yes, _ = event.tokens(0)
    bid = trading.buy(trading.taker, yes, UNIT, 50)
    event.exchange.call("validateOrder", bid.fields)
    with reverts("InvalidSignature"):
        event.world.exchange.call("validateOrder", bid.fields)


def test_bought_positions_are_redeemed_through_the_adapter(event: NegRisk, trading: World) -> None:
    yes, no = event.tokens(0)
    bid = trading.buy(trading.taker, yes, 10 * UNIT, 60)
    other = trading.buy(trading.makers[0], no, 10 * UNIT, 40)
    trading.match(bid, [other], Fill(6 * UNIT, (4 * UNIT,)))
    event.answer(0, PRICE_NO)
    winner = trading.makers[0].address
    before = event.collateral_of(winner)
    event.adapter.send("redeemPositions", event.condition(0), [0, 110 * UNIT], sender=winner)
    assert event.collateral_of(winner) - before == 110 * UNIT
