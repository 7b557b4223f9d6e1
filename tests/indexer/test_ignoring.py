"""Whatever does not concern us changes nothing and is counted: see `reading.py`."""

from collections.abc import Callable

import pytest
from tests.indexer.story import (
    ANN,
    BOB,
    CONDITION,
    TOKENS_CONTRACT,
    YES,
    Fill,
    Read,
    Story,
    a_told_market,
)
from tests.rigs.values import COLLATERAL_CONTRACT, EXCHANGE, a_word, an_address

from foretell.domain.contracts.logs import PayoutRedeemed, PositionSplit, SafeCreated
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32

TOO_MUCH = 2**63


@pytest.fixture
def story() -> Story:
    return a_told_market()


def a_foreign_token(story: Story) -> None:
    story.move(ANN, BOB, 5, [AssetId("77")])


def a_foreign_fill(story: Story) -> None:
    story.filled(Fill(ANN, Side.BUY, AssetId("77"), 5, 5), EXCHANGE)


def a_condition_of_three(story: Story) -> None:
    story.prepare(a_word("three"), slots=3)


def a_foreign_payout(story: Story) -> None:
    story.resolve(1, 0, condition=a_word("foreign"))


def foreign_collateral(story: Story) -> None:
    foreign = an_address("foreign collateral")
    story.log(TOKENS_CONTRACT, PositionSplit(ANN, foreign, ZERO_BYTES32, CONDITION, (1, 2), 5))


def a_foreign_condition(story: Story) -> None:
    condition = a_word("foreign")
    story.log(
        TOKENS_CONTRACT,
        PositionSplit(ANN, COLLATERAL_CONTRACT, ZERO_BYTES32, condition, (1, 2), 5),
    )


def too_much_collateral(story: Story) -> None:
    story.pay(ZERO_ADDRESS, BOB, TOO_MUCH)


def too_many_tokens(story: Story) -> None:
    story.move(ANN, BOB, TOO_MUCH)


def too_large_a_split(story: Story) -> None:
    story.log_split(ANN, TOO_MUCH)


def too_large_a_payout(story: Story) -> None:
    story.log(
        TOKENS_CONTRACT,
        PayoutRedeemed(ANN, COLLATERAL_CONTRACT, ZERO_BYTES32, CONDITION, (1, 2), TOO_MUCH),
    )


def too_large_a_fill(story: Story) -> None:
    story.filled(Fill(ANN, Side.BUY, YES, TOO_MUCH, 5), EXCHANGE)


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
def test_what_does_not_concern_us_is_ignored_and_counted(
    story: Story, happens: Callable[[Story], None], reason: str
) -> None:
    before = Read(story)
    happens(story)
    after = Read(story)
    assert after.state.ignored == {reason: 1}
    assert (after.records, after.changes) == (before.records, before.changes)


def test_logs_that_other_products_read_are_passed_over(story: Story) -> None:
    before = Read(story)
    story.log(an_address("factory"), SafeCreated(ANN, BOB))
    after = Read(story)
    assert (after.records, after.changes) == (before.records, before.changes)
    assert after.state.ignored == {}
