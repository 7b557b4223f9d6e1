"""Receivers of the adapter's tokens that call it again: one lock covers all its functions."""

from typing import Any

import pytest
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.signing import UNIT
from tests.contracts.wallets import SIGNATURE_YES, answer, answer_receipts, call_of, wallet

STORE_SUCCESS = bytes.fromhex("5f55")
QUESTIONS = 3
ENTRIES = ("split", "merge", "redeem", "convert", "release", "sweep")


@pytest.fixture
def event(neg_risk: NegRisk) -> NegRisk:
    neg_risk.open_sealed_event(QUESTIONS)
    return neg_risk


def entry_of(event: NegRisk, name: str) -> bytes:
    """Return a call that succeeds when nothing else runs."""
    adapter, market = event.adapter, event.market()
    calls: dict[str, tuple[Any, ...]] = {
        "split": ("splitPosition(bytes32,uint256)", event.condition(0), UNIT),
        "merge": ("mergePositions(bytes32,uint256)", event.condition(1), UNIT),
        "redeem": ("redeemPositions", event.condition(2), [0, 0]),
        "convert": ("convertPositions", market, 0b10, UNIT),
        "release": ("releaseUnclaimed", market, 0),
        "sweep": ("sweep", event.world.collateral.address),
    }
    return adapter.calldata(*calls[name])


def a_caller(event: NegRisk, calldata: bytes) -> str:
    """Return an account that makes the call when it receives tokens, and stores whether it succeeded."""
    who = event.holder("caller", 100 * UNIT)
    for index in (0, 1):
        event.split(who, index, 10 * UNIT)
    body = call_of(event.adapter.address, calldata)[:-1] + STORE_SUCCESS
    code = wallet(answer(SIGNATURE_YES), body + answer_receipts(), calldata)
    event.world.evm.rpc("anvil_setCode", who, "0x" + code.hex())
    return who


def has_entered(event: NegRisk, who: str) -> bool:
    return int(event.world.evm.rpc("eth_getStorageAt", who, "0x0", "latest"), 16) != 0


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_call_enters_the_adapter_while_it_converts(event: NegRisk, entry: str) -> None:
    who = a_caller(event, entry_of(event, entry))
    event.adapter.send("convertPositions", event.market(), 0b001, UNIT, sender=who)
    assert not has_entered(event, who)
    assert event.held(who, 1) == (11 * UNIT, 10 * UNIT)


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_call_enters_the_adapter_while_it_splits(event: NegRisk, entry: str) -> None:
    who = a_caller(event, entry_of(event, entry))
    event.split(who, 0, UNIT)
    assert not has_entered(event, who)


@pytest.mark.parametrize(
    "name", ["convertPositions", "redeemPositions", "releaseUnclaimed", "sweep"]
)
def test_the_lock_of_a_split_covers_each_function(event: NegRisk, name: str) -> None:
    """A call that would do nothing but succeed is refused all the same."""
    entries = {
        "convertPositions": "convert",
        "redeemPositions": "redeem",
        "releaseUnclaimed": "release",
        "sweep": "sweep",
    }
    who = a_caller(event, entry_of(event, entries[name]))
    if name == "redeemPositions":
        event.answer(2, 0)
    if name == "releaseUnclaimed":
        converter = event.holder("converter", 100 * UNIT)
        for index in range(QUESTIONS):
            event.split(converter, index, UNIT)
        event.adapter.send("convertPositions", event.market(), 1, UNIT, sender=converter)
    event.split(who, 0, UNIT)
    assert not has_entered(event, who)


def test_conversions_of_several_accounts_add_up(event: NegRisk) -> None:
    """What all of them left is released, not what the last one left."""
    for number, amount in enumerate((3, 5, 7)):
        who = event.holder(f"converter {number}", 100)
        event.split(who, 0, amount)
        event.adapter.send("convertPositions", event.market(), 0b001, amount, sender=who)
    assert event.adapter.call("converted", event.market(), QUESTIONS) == 15
    for index in range(QUESTIONS):
        event.answer(index, 0)
    before = event.collateral_of(event.vault)
    anybody = event.world.evm.actor("anybody").address
    event.adapter.send("releaseUnclaimed", event.market(), QUESTIONS, sender=anybody)
    assert event.collateral_of(event.vault) - before == 15
