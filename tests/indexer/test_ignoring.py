"""Logs that concern no known condition are ignored and counted: see `tx_reader.py`."""

from collections.abc import Callable

import pytest
from tests.indexer.chain_script import (
    ANN,
    BOB,
    CONDITION,
    TOKENS_CONTRACT,
    YES,
    ChainScript,
    Fill,
    ScriptResult,
    a_scripted_market,
)
from tests.rigs.values import COLLATERAL_CONTRACT, EXCHANGE, a_word, an_address

from foretell.domain.contracts.logs import PayoutRedeemed, PositionSplit, SafeCreated
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32

TOO_MUCH = 2**63


@pytest.fixture
def script() -> ChainScript:
    return a_scripted_market()


def a_foreign_token(script: ChainScript) -> None:
    script.move(ANN, BOB, 5, [AssetId("77")])


def a_foreign_fill(script: ChainScript) -> None:
    script.filled(Fill(ANN, Side.BUY, AssetId("77"), 5, 5), EXCHANGE)


def a_condition_of_three(script: ChainScript) -> None:
    script.prepare(a_word("three"), slots=3)


def a_foreign_payout(script: ChainScript) -> None:
    script.resolve(1, 0, condition=a_word("foreign"))


def foreign_collateral(script: ChainScript) -> None:
    foreign = an_address("foreign collateral")
    script.log(TOKENS_CONTRACT, PositionSplit(ANN, foreign, ZERO_BYTES32, CONDITION, (1, 2), 5))


def a_foreign_condition(script: ChainScript) -> None:
    condition = a_word("foreign")
    script.log(
        TOKENS_CONTRACT,
        PositionSplit(ANN, COLLATERAL_CONTRACT, ZERO_BYTES32, condition, (1, 2), 5),
    )


def too_much_collateral(script: ChainScript) -> None:
    script.pay(ZERO_ADDRESS, BOB, TOO_MUCH)


def too_many_tokens(script: ChainScript) -> None:
    script.move(ANN, BOB, TOO_MUCH)


def too_large_a_split(script: ChainScript) -> None:
    script.log_split(ANN, TOO_MUCH)


def too_large_a_payout(script: ChainScript) -> None:
    script.log(
        TOKENS_CONTRACT,
        PayoutRedeemed(ANN, COLLATERAL_CONTRACT, ZERO_BYTES32, CONDITION, (1, 2), TOO_MUCH),
    )


def too_large_a_fill(script: ChainScript) -> None:
    script.filled(Fill(ANN, Side.BUY, YES, TOO_MUCH, 5), EXCHANGE)


@pytest.mark.case("E-03")
@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (a_foreign_token, "token of no known condition"),
        (a_foreign_fill, "fill of no known condition"),
        (a_condition_of_three, "condition that is not binary"),
        (a_foreign_payout, "payout of no known condition"),
        (foreign_collateral, "positions in another collateral"),
        (a_foreign_condition, "positions of no known condition"),
        (too_much_collateral, "amount of more than 63 bits"),
        (too_many_tokens, "amount of more than 63 bits"),
        (too_large_a_split, "amount of more than 63 bits"),
        (too_large_a_payout, "amount of more than 63 bits"),
        (too_large_a_fill, "amount of more than 63 bits"),
    ],
)
def test_a_log_about_nothing_known_is_ignored_and_counted(
    script: ChainScript, happens: Callable[[ChainScript], None], reason: str
) -> None:
    before = ScriptResult(script)
    happens(script)
    after = ScriptResult(script)
    assert after.state.ignored == {reason: 1}
    assert (after.rows, after.changes) == (before.rows, before.changes)


def test_logs_that_only_other_products_read_are_skipped(script: ChainScript) -> None:
    before = ScriptResult(script)
    script.log(an_address("factory"), SafeCreated(ANN, BOB))
    after = ScriptResult(script)
    assert (after.rows, after.changes) == (before.rows, before.changes)
    assert after.state.ignored == {}
