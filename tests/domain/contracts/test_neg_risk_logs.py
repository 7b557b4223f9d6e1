"""Decoding of the neg-risk adapter's logs."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_word, an_address

from foretell.domain.contracts.log_decoder import decode_log
from foretell.domain.contracts.logs import (
    ChainLog,
    ContractKind,
    EventPayoutRedeemed,
    EventSetsMerged,
    EventSetsSplit,
    PositionsConverted,
)
from foretell.domain.portfolio.positions import ACQUISITIONS, conversion

HOLDER, WORD = an_address("holder"), a_word("condition")
HOLDER_TOPIC = "0x" + "00" * 12 + HOLDER[2:]


def topic(signature: str) -> str:
    return "0x" + keccak(signature.encode()).hex()


def decoded(signature: str, topics: list[str], data: bytes) -> ChainLog | None:
    return decode_log(ContractKind.NEG_RISK_ADAPTER, [topic(signature), *topics], "0x" + data.hex())


def test_each_log_is_decoded_with_its_holder_and_amounts() -> None:
    seven = encode(["uint256"], [7])
    amounts = encode(["uint256[]", "uint256"], [[3, 4], 3])

    assert decoded("PositionSplit(address,bytes32,uint256)", [HOLDER_TOPIC, WORD], seven) == (
        EventSetsSplit(HOLDER, WORD, 7)
    )
    assert decoded("PositionsMerge(address,bytes32,uint256)", [HOLDER_TOPIC, WORD], seven) == (
        EventSetsMerged(HOLDER, WORD, 7)
    )
    assert decoded(
        "PayoutRedemption(address,bytes32,uint256[],uint256)", [HOLDER_TOPIC, WORD], amounts
    ) == EventPayoutRedeemed(HOLDER, WORD, (3, 4), 3)
    assert decoded(
        "PositionsConverted(address,bytes32,uint256,uint256)",
        [HOLDER_TOPIC, WORD, "0x" + "00" * 31 + "05"],
        seven,
    ) == PositionsConverted(HOLDER, WORD, 5, 7)


@pytest.mark.parametrize("amounts", [[], [1], [1, 2, 3]])
def test_a_redemption_has_an_amount_for_each_outcome(amounts: list[int]) -> None:
    data = encode(["uint256[]", "uint256"], [amounts, 1])

    assert (
        decoded("PayoutRedemption(address,bytes32,uint256[],uint256)", [HOLDER_TOPIC, WORD], data)
        is None
    )


@given(st.integers(0, 10**15), st.integers(1, 60), st.integers(0, 60))
def test_a_conversion_has_neither_profit_nor_loss(units: int, given: int, received: int) -> None:
    changes = conversion(units, given, received)

    brought = sum(change.money_units for change in changes.given)
    spent = sum(change.money_units for change in changes.received)
    assert brought == (given - 1) * units + spent
    assert {change.size_units for change in (*changes.given, *changes.received)} == {units}
    assert all(0 <= change.money_units <= units for change in (*changes.given, *changes.received))
    assert {change.kind in ACQUISITIONS for change in changes.given} == {False}
    assert all(change.kind in ACQUISITIONS for change in changes.received)
