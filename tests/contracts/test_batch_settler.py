"""Batches of matches: a match that fails harms itself alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from tests.contracts.batches import MATCH_GAS, Batches, Match, deploy_batches
from tests.contracts.evm import TX_GAS_MAX, own_artifact, reverts
from tests.contracts.gas import filled
from tests.contracts.market import Fill, World
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.signing import ERC1271, OWN_V2, UNIT
from tests.contracts.wallets import BURN, REVERT, answer, answer_receipts, call_of

from foretell.domain.values.hexadecimal import keccak256

SIZE: Final = 100 * UNIT
MATCHES: Final = 3
MATCHES_MAX: Final = 20
FAILED_TRADE: Final = (0, 0, 0)
PAID: Final = (-SIZE // 2, SIZE, 0)
TWO_FACED: Final = bytes.fromhex("3a6012575f3560e01c60e01b5f5260205ff35bfe")
"""Without a gas price, as in a simulation, it returns the selector that it was called with."""
HOSTILE: Final = {
    "burns all gas": BURN,
    "reverts": REVERT,
    "reverts with 64 KiB": bytes.fromhex("61ffff5ffd"),
    "reverts with a megabyte": bytes.fromhex("621000005ffd"),
    "returns 64 KiB": answer(b"\xff" * 32, "ffff"),
    "returns a megabyte": bytes.fromhex("621000005ff3"),
    "changes its mind": TWO_FACED,
}


@pytest.fixture
def batches(neg_risk: NegRisk) -> Batches:
    return deploy_batches(neg_risk)


def a_match(world: World, number: int, salt: int = 1) -> Match:
    """Return a match in which one wallet buys from another, each in this match alone."""
    bid = world.buy(world.makers[number], world.yes, SIZE, 50, salt=salt)
    ask = world.sell(world.makers[-1 - number], world.yes, SIZE, 50, salt=salt)
    return Match(ask, [bid], filled(ask, [bid]))


def a_hostile_match(world: World, number: int, code: bytes) -> Match:
    """Return such a match, where the buyer is a contract that judges its own signature by this code."""
    fair = a_match(world, number)
    (bid,) = fair.makers
    world.evm.rpc("anvil_setCode", bid.maker, "0x" + code.hex())
    judged = replace(bid, signature_type=ERC1271, profile=OWN_V2, signature=b"\1")
    return replace(fair, makers=[judged])


def matches(world: World, count: int = MATCHES) -> list[Match]:
    return [a_match(world, number) for number in range(count)]


def changes(batches: Batches, batch: Sequence[Match]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Settle a batch; return the changes of each buyer's holdings, and the matches that failed."""
    world = batches.world
    buyers = [match.makers[0].maker for match in batch]
    before = [world.holdings(buyer) for buyer in buyers]
    failed = batches.failed(batches.settle(batch))
    after = [world.holdings(buyer) for buyer in buyers]
    moved = [
        tuple(now - was for now, was in zip(*pair, strict=True))
        for pair in zip(after, before, strict=True)
    ]
    return moved, list(failed)


def test_a_batch_settles_each_of_its_matches(batches: Batches) -> None:
    batch = matches(batches.world, MATCHES_MAX // 2)
    assert changes(batches, batch) == ([PAID] * len(batch), [])


def test_a_batch_of_the_greatest_size_settles(batches: Batches) -> None:
    world = batches.world
    assert batches.settler.call("matchesMax") == MATCHES_MAX
    batch = [a_match(world, number % 10, salt=number + 1) for number in range(MATCHES_MAX)]
    assert not batches.failed(batches.settle(batch))


@pytest.mark.parametrize("place", range(MATCHES))
@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_h1_a_hostile_wallet_harms_its_own_match_alone(
    batches: Batches, code: bytes, place: int
) -> None:
    world = batches.world
    batch = matches(world)
    batch[place] = a_hostile_match(world, place, code)
    wanted = [FAILED_TRADE if number == place else PAID for number in range(MATCHES)]
    assert changes(batches, batch) == (wanted, [place])


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_h1_a_hostile_receiver_fails_no_match(batches: Batches, code: bytes) -> None:
    world = batches.world
    world.evm.rpc("anvil_setCode", world.makers[0].address, "0x" + code.hex())
    unfetched = (-SIZE // 2, 0, 0)
    assert changes(batches, matches(world)) == ([unfetched, PAID, PAID], [])


def test_h1_wallets_that_burn_everything_burn_their_shares_alone(batches: Batches) -> None:
    world = batches.world
    hostile = [a_hostile_match(world, number, BURN) for number in range(MATCHES - 1)]
    receipt = batches.settle([*hostile, a_match(world, MATCHES - 1)])
    assert list(batches.failed(receipt)) == [0, 1]
    assert receipt.gas_used < (MATCHES - 1) * MATCH_GAS + 300_000


def test_h1_a_wallet_that_changes_its_mind_passes_only_the_simulation(batches: Batches) -> None:
    world = batches.world
    batch = [a_hostile_match(world, 0, TWO_FACED), *matches(world)[1:]]
    arguments = batches.arguments(batch)
    assert batches.settler.call("settle", *arguments, sender=world.operator) == 0
    receipt = batches.settler.send("settle", *arguments, sender=world.operator)
    assert list(batches.failed(receipt)) == [0]


@pytest.mark.parametrize("entry", ["the settler", "the exchange"])
def test_a_receiver_that_enters_again_settles_nothing(batches: Batches, entry: str) -> None:
    """Not even as an operator, which could settle the same match by a call of its own."""
    world, attacker = batches.world, batches.world.makers[0].address
    other = a_match(world, MATCHES)
    world.exchange.send("addOperator", attacker, sender=world.admin)
    target, calldata = {
        "the settler": (
            batches.settler,
            batches.settler.calldata("settle", *batches.arguments([other], 400_000)),
        ),
        "the exchange": (world.exchange, batches.calldata(other)),
    }[entry]
    code = call_of(target.address, calldata) + answer_receipts() + calldata
    world.evm.rpc("anvil_setCode", attacker, "0x" + code.hex())
    before = world.holdings(other.makers[0].maker)
    assert not batches.failed(batches.settle(matches(world), 5_000_000))
    assert world.holdings(other.makers[0].maker) == before
    assert not batches.failed(batches.settle([other]))


def test_a_failed_match_is_logged_with_its_place_and_its_reason(batches: Batches) -> None:
    world = batches.world
    batch = matches(world)
    world.match(batch[1].taker, list(batch[1].makers), batch[1].fill)
    arguments = batches.arguments(batch)
    assert batches.settler.call("settle", *arguments, sender=world.operator) == 0b010
    reason = keccak256(b"OrderFilledOrCancelled()")[:4]
    assert batches.failed(batches.settle(batch)) == {1: reason}


def test_a_reason_is_cut_to_one_word(batches: Batches) -> None:
    world = batches.world
    words = bytes.fromhex("7f") + b"\xab" * 32 + bytes.fromhex("5f5260605ffd")
    world.evm.rpc("anvil_setCode", world.collateral.address, "0x" + words.hex())
    assert batches.failed(batches.settle(matches(world, 1))) == {0: b"\xab" * 32}


def test_a_later_match_may_need_an_earlier_one(batches: Batches) -> None:
    world = batches.world
    poor = world.trader("poor", collateral=SIZE // 2)
    bid, ask = (
        world.buy(poor, world.yes, SIZE, 50),
        world.sell(world.makers[0], world.yes, SIZE, 50),
    )
    resold, rebought = (
        world.sell(poor, world.yes, SIZE, 50),
        world.buy(world.makers[1], world.yes, SIZE, 50),
    )
    batch = [
        Match(bid, [ask], filled(bid, [ask])),
        Match(resold, [rebought], filled(resold, [rebought])),
    ]
    assert list(batches.failed(batches.settle(batch[::-1]))) == [0]
    assert not batches.failed(batches.settle(batch[1:]))
    assert world.holdings(poor.address) == (SIZE // 2, 0, 0)


def test_only_operators_of_the_exchange_send_batches(batches: Batches, neg_risk: NegRisk) -> None:
    world, settler = batches.world, batches.settler
    arguments = batches.arguments(matches(world))
    for stranger in (world.admin, world.makers[0].address, world.exchange.address):
        with reverts("NotOperator"):
            settler.call("settle", *arguments, sender=stranger)
    neg_risk.exchange.send("addOperator", world.makers[0].address, sender=world.admin)
    with reverts("NotOperator"):
        settler.call("settle", *arguments, sender=world.makers[0].address)


def test_an_exchange_that_does_not_know_the_settler_settles_nothing(batches: Batches) -> None:
    world = batches.world
    world.exchange.send("removeOperator", batches.settler.address, sender=world.admin)
    failed = batches.failed(batches.settle(matches(world)))
    assert failed == dict.fromkeys(range(MATCHES), keccak256(b"NotOperator()")[:4])


def test_nothing_settles_while_trading_is_paused(batches: Batches) -> None:
    world = batches.world
    world.exchange.send("pauseTrading", sender=world.admin)
    arguments = batches.arguments(matches(world))
    assert batches.settler.call("settle", *arguments, sender=world.operator) == 2**MATCHES - 1
    failed = batches.failed(batches.settle(matches(world)))
    assert failed == dict.fromkeys(range(MATCHES), keccak256(b"Paused()")[:4])


def test_it_settles_at_its_two_exchanges_alone(batches: Batches, neg_risk: NegRisk) -> None:
    world, settler = batches.world, batches.settler
    exchanges = tuple(each.address.lower() for each in (world.exchange, neg_risk.exchange))
    assert settler.call("exchanges") == exchanges
    _, *arguments = batches.arguments(matches(world))
    for target in (world.ctf.address, world.makers[0].address, settler.address):
        with reverts("UnknownExchange"):
            settler.call("settle", target, *arguments, sender=world.operator)


def test_it_settles_trades_of_events(batches: Batches, neg_risk: NegRisk) -> None:
    neg_risk.open_event(1)
    yes, no = neg_risk.tokens(0)
    world = replace(batches.world, exchange=neg_risk.exchange)
    world.exchange.send("registerToken", yes, no, neg_risk.condition(0), sender=world.registrar)
    traders = [world.evm.actor(name) for name in ("taker of an event", "maker of an event")]
    for trader, name in zip(traders, ("taker of an event", "maker of an event"), strict=True):
        assert neg_risk.holder(name, SIZE) == trader.address
    bid, other = world.buy(traders[0], yes, SIZE, 60), world.buy(traders[1], no, SIZE, 40)
    events = replace(batches, world=world)
    fill = Fill(bid.maker_amount, (other.maker_amount,))
    assert not events.failed(events.settle([Match(bid, [other], fill)]))
    assert neg_risk.held(traders[0].address, 0) == (SIZE, 0)


def test_a_batch_with_too_little_gas_settles_nothing_rather_than_a_part(batches: Batches) -> None:
    world = batches.world
    exchange, calls, _ = batches.arguments(matches(world))
    limits = [MATCH_GAS, MATCH_GAS, TX_GAS_MAX]
    with reverts("NotEnoughGas"):
        batches.settler.send("settle", exchange, calls, limits, sender=world.operator)
    assert world.exchange.call("orderStatus", world.hash(matches(world)[0].taker)) == (False, 0)


def test_every_match_has_a_gas_limit(batches: Batches) -> None:
    exchange, calls, limits = batches.arguments(matches(batches.world))
    with reverts("MismatchedArrayLengths"):
        batches.settler.call("settle", exchange, calls, limits[1:], sender=batches.world.operator)


def test_it_keeps_no_storage_and_may_spend_nothing(batches: Batches) -> None:
    world, address = batches.world, batches.settler.address
    batches.settle(matches(world))
    for slot in range(4):
        assert int(world.evm.rpc("eth_getStorageAt", address, hex(slot), "latest"), 16) == 0
    assert world.holdings(address) == (0, 0, 0)
    assert "payable" not in {
        entry.get("stateMutability") for entry in own_artifact("BatchSettler").abi
    }
