from collections.abc import Sequence

import pytest
from tests.indexer.story import (
    ANN,
    BOB,
    CAROL,
    CONDITION,
    FEE_RECEIVER,
    NO,
    ORACLE,
    TOKENS_CONTRACT,
    YES,
    Fill,
    Read,
    Story,
    a_told_market,
)
from tests.rigs.values import COLLATERAL_CONTRACT, EXCHANGE, a_word

from foretell.domain.contracts.logs import OrderFilledLog, PositionsMerged, PositionSplit
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import NO_POSITION, Payout, Position, TradePrice
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.domain.values.tokens import collection_id, token_id
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.state import UNLIMITED_UNITS
from foretell.store.index.activities import ActivityKind


@pytest.fixture
def story() -> Story:
    return a_told_market()


def test_a_condition_names_its_two_tokens(story: Story) -> None:
    (condition,) = Read(story).records.conditions
    assert (condition.block_number, condition.log_index) == (1, 0)
    assert (condition.condition_id, condition.oracle) == (CONDITION, ORACLE)
    assert (condition.token_yes, condition.token_no) == (YES, NO)


def test_a_split_makes_both_tokens_at_one_half(story: Story) -> None:
    story.split(ANN, 101)
    read = Read(story)
    assert read.held(ANN, COLLATERAL, YES, NO) == (899, 101, 101)
    assert read.held(TOKENS_CONTRACT, COLLATERAL) == (101,)
    assert read.position(ANN, YES) == Position(101, 51, 101, 51)
    assert read.position(ANN, NO) == Position(101, 50, 101, 50)
    assert read.acts() == [(ANN, ActivityKind.SPLIT, None, None, 101, 101)]
    assert read.state.locked[CONDITION] == 101


def test_a_merge_realizes_both_tokens_at_one_half(story: Story) -> None:
    story.split(ANN, 100)
    story.next_tx()
    story.merge(ANN, 40)
    read = Read(story)
    assert read.held(ANN, COLLATERAL, YES, NO) == (940, 60, 60)
    assert read.position(ANN, YES) == Position(60, 30, 100, 50)
    assert read.acts()[1:] == [(ANN, ActivityKind.MERGE, None, None, 40, 40)]
    assert read.state.locked[CONDITION] == 60


def test_a_trade_moves_a_token_from_seller_to_buyer(story: Story) -> None:
    story.split(ANN, 100)
    story.next_block()
    story.pay(ZERO_ADDRESS, BOB, 500)
    story.trade(taker=Fill(BOB, Side.BUY, YES, 50, 30), maker=Fill(ANN, Side.SELL, YES, 50, 30))
    read = Read(story)
    assert read.position(BOB, YES) == Position(50, 30, 50, 30)
    assert read.position(ANN, YES) == Position(50, 25, 100, 50, 5)
    assert read.held(BOB, COLLATERAL, YES) == (470, 50)
    assert read.acts()[1:] == [
        (ANN, ActivityKind.TRADE, YES, Side.SELL, 50, 30),
        (BOB, ActivityKind.TRADE, YES, Side.BUY, 50, 30),
    ]
    assert [fill.is_taker for fill in read.records.fills] == [False, True]
    assert [fill.counterparty for fill in read.records.fills] == [BOB, EXCHANGE]
    assert [act.is_taker for act in read.records.activities] == [False, False, True]


def test_a_mint_is_two_purchases_and_nobodys_split(story: Story) -> None:
    story.pay(ZERO_ADDRESS, BOB, 500)
    story.mint(taker=Fill(ANN, Side.BUY, YES, 50, 30), maker=Fill(BOB, Side.BUY, NO, 50, 20))
    read = Read(story)
    assert read.position(ANN, YES) == Position(50, 30, 50, 30)
    assert read.position(BOB, NO) == Position(50, 20, 50, 20)
    assert [act[1] for act in read.acts()] == [ActivityKind.TRADE] * 2
    assert read.state.locked[CONDITION] == 50
    assert read.position(EXCHANGE, YES) == NO_POSITION
    assert read.held(EXCHANGE, COLLATERAL, YES, NO) == (0, 0, 0)


def test_a_merging_match_is_two_sales_and_nobodys_merge(story: Story) -> None:
    story.split(ANN, 100)
    story.move(ANN, BOB, 100, [NO])
    story.next_block()
    story.unmint(taker=Fill(ANN, Side.SELL, YES, 50, 30), maker=Fill(BOB, Side.SELL, NO, 50, 20))
    read = Read(story)
    assert read.position(ANN, YES) == Position(50, 25, 100, 50, 5)
    assert read.position(BOB, NO) == Position(50, 25, 0, 0, -5)
    assert [act[1] for act in read.acts()] == [ActivityKind.SPLIT, *[ActivityKind.TRADE] * 2]
    assert read.state.locked[CONDITION] == 50


def test_fees_reduce_what_is_received_and_reach_the_fee_receiver(story: Story) -> None:
    story.split(ANN, 100)
    story.next_block()
    story.pay(ZERO_ADDRESS, BOB, 500)
    story.trade(
        taker=Fill(BOB, Side.BUY, YES, 50, 30, fee_units=2),
        maker=Fill(ANN, Side.SELL, YES, 50, 30, fee_units=1),
    )
    read = Read(story)
    assert read.position(BOB, YES) == Position(48, 30, 48, 30)
    assert read.position(ANN, YES) == Position(50, 25, 100, 50, 4)
    assert read.position(FEE_RECEIVER, YES) == Position(2, 1)
    assert read.held(FEE_RECEIVER, COLLATERAL, YES) == (1, 2)
    assert [fill.fee_units for fill in read.records.fills] == [1, 2]


def test_fees_of_a_mint_reach_the_fee_receiver(story: Story) -> None:
    story.pay(ZERO_ADDRESS, BOB, 500)
    story.mint(
        taker=Fill(ANN, Side.BUY, YES, 50, 30, fee_units=3),
        maker=Fill(BOB, Side.BUY, NO, 50, 20),
    )
    read = Read(story)
    assert read.position(ANN, YES) == Position(47, 30, 47, 30)
    assert read.position(FEE_RECEIVER, YES) == Position(3, 1)


def test_a_transfer_counts_at_one_half_before_any_trade(story: Story) -> None:
    story.split(ANN, 100)
    story.next_tx()
    story.move(ANN, BOB, 11)
    read = Read(story)
    assert read.position(BOB, YES) == Position(11, 5)
    assert read.position(ANN, YES) == Position(89, 44, 100, 50)


def test_a_transfer_counts_at_the_last_trade(story: Story) -> None:
    story.split(ANN, 100)
    story.next_block()
    story.trade(taker=Fill(BOB, Side.BUY, YES, 50, 40), maker=Fill(ANN, Side.SELL, YES, 50, 40))
    story.next_tx()
    story.move(BOB, CAROL, 10)
    read = Read(story)
    assert read.position(CAROL, YES) == Position(10, 8)
    assert read.state.price_by_token[YES] == TradePrice(40, 50)


def test_a_move_to_oneself_changes_nothing(story: Story) -> None:
    story.split(ANN, 100)
    story.next_tx()
    story.move(ANN, ANN, 10)
    read = Read(story)
    assert read.position(ANN, YES) == Position(100, 50, 100, 50)
    assert read.held(ANN, YES) == (100,)


@pytest.mark.parametrize(
    ("numerators", "burned", "payout", "gains"),
    [
        ((1, 0), [(YES, 100), (NO, 100)], 100, (50, -50)),
        ((0, 1), [(NO, 100)], 100, (0, 50)),
        ((1, 0), [(NO, 100)], 0, (0, -50)),
        ((1, 1), [(YES, 100), (NO, 100)], 100, (0, 0)),
        ((1, 0), [], 0, (0, 0)),
    ],
)
def test_a_redemption_pays_each_token_its_part(
    story: Story,
    numerators: tuple[int, int],
    burned: Sequence[tuple[AssetId, int]],
    payout: int,
    gains: tuple[int, int],
) -> None:
    story.split(ANN, 100)
    story.next_block()
    story.resolve(*numerators)
    story.next_tx()
    story.redeem(ANN, burned, payout)
    read = Read(story)
    realized = (read.position(ANN, YES).realized_units, read.position(ANN, NO).realized_units)
    assert realized == gains
    assert read.state.locked[CONDITION] == 100 - payout
    assert [act[4:] for act in read.acts()[1:]] == [
        (sum(units for _, units in burned), payout) for _ in burned[:1]
    ]


def test_a_payout_is_recorded_once_with_its_place(story: Story) -> None:
    story.resolve(3, 1)
    (report,) = Read(story).records.payouts
    assert (report.block_number, report.log_index, report.timestamp_s) == (2, 0, 1002)
    assert (report.payout, report.tx_hash) == (Payout(3, 1), story.tx_hash)


def test_a_spender_uses_up_what_it_was_allowed(story: Story) -> None:
    story.allow(ANN, TOKENS_CONTRACT, 150)
    story.allow(ANN, EXCHANGE, 40)
    story.split(ANN, 100)
    story.next_tx()
    story.pay(ZERO_ADDRESS, BOB, 500)
    story.mint(taker=Fill(ANN, Side.BUY, YES, 50, 30), maker=Fill(BOB, Side.BUY, NO, 50, 20))
    allowances = Read(story).state.allowances
    assert allowances[ANN, TOKENS_CONTRACT, True] == 50
    assert allowances[ANN, EXCHANGE, True] == 10
    assert allowances[BOB, EXCHANGE, True] == 0


def test_selling_uses_no_allowance_of_collateral(story: Story) -> None:
    story.split(ANN, 100)
    story.allow(ANN, EXCHANGE, 40)
    story.next_tx()
    story.trade(taker=Fill(BOB, Side.BUY, YES, 50, 30), maker=Fill(ANN, Side.SELL, YES, 50, 30))
    assert Read(story).state.allowances[ANN, EXCHANGE, True] == 40


@pytest.mark.parametrize("units", [UNLIMITED_UNITS, 2**64, 2**256 - 1])
def test_an_unlimited_allowance_never_shrinks(story: Story, units: int) -> None:
    story.allow(ANN, TOKENS_CONTRACT, units)
    story.split(ANN, 100)
    assert Read(story).state.allowances[ANN, TOKENS_CONTRACT, True] == UNLIMITED_UNITS


def test_a_collateral_that_announces_spending_is_believed(story: Story) -> None:
    story.allow(ANN, TOKENS_CONTRACT, 150)
    story.split(ANN, 100)
    story.allow(ANN, TOKENS_CONTRACT, 50)
    contracts = IndexedContracts(
        COLLATERAL_CONTRACT, TOKENS_CONTRACT, frozenset({EXCHANGE}), announces_spending=True
    )
    assert Read(story, contracts).state.allowances[ANN, TOKENS_CONTRACT, True] == 50


def test_all_tokens_are_allowed_or_none(story: Story) -> None:
    story.allow_tokens(ANN, EXCHANGE, is_approved=True)
    assert Read(story).state.allowances[ANN, EXCHANGE, False] == UNLIMITED_UNITS
    story.allow_tokens(ANN, EXCHANGE, is_approved=False)
    assert Read(story).state.allowances[ANN, EXCHANGE, False] == 0


def test_allowances_of_strangers_are_not_kept(story: Story) -> None:
    story.allow(ANN, BOB, 5)
    story.allow_tokens(ANN, BOB, is_approved=True)
    assert Read(story).changes.allowances == []


def test_tokens_passed_on_before_their_fill_is_logged_leave_nothing_behind(story: Story) -> None:
    """A buyer with code may pass on what it bought while the exchange still settles."""
    story.pay(ZERO_ADDRESS, BOB, 500)
    story.split(ANN, 100)
    story.next_block()
    buy, sell = Fill(BOB, Side.BUY, YES, 50, 30), Fill(ANN, Side.SELL, YES, 50, 30)
    story.move(ANN, BOB, 50, operator=EXCHANGE)
    story.move(BOB, CAROL, 50)
    story.filled(sell, BOB)
    story.filled(buy, EXCHANGE)
    read = Read(story)
    assert read.position(BOB, YES) == Position(0, 0, 50, 30)
    assert read.position(CAROL, YES).size_units == 50


def test_a_split_inside_a_split_explains_its_own_tokens(story: Story) -> None:
    """The receiver's code splits again before the first split is logged."""
    story.move(ZERO_ADDRESS, ANN, 10, (YES, NO))
    story.split(ANN, 10)
    story.merge(ANN, 20)
    story.log_split(ANN, 10)
    read = Read(story)
    assert read.position(ANN, YES) == Position(0, 0, 20, 10)
    assert [act[1] for act in read.acts()] == [
        ActivityKind.SPLIT,
        ActivityKind.MERGE,
        ActivityKind.SPLIT,
    ]


def test_a_split_without_its_tokens_means_that_logs_are_missing(story: Story) -> None:
    story.log_split(ANN, 10)
    with pytest.raises(ChainInconsistent):
        Read(story)


def test_a_split_of_nothing_is_nothing(story: Story) -> None:
    story.split(ANN, 0)
    read = Read(story)
    assert read.acts() == []
    assert read.changes.positions == []


DEEP = collection_id(CONDITION, 1)


def test_an_outcome_split_further_is_given_away(story: Story) -> None:
    story.split(ANN, 100)
    story.next_tx()
    story.move(ANN, ZERO_ADDRESS, 40)
    story.log(
        TOKENS_CONTRACT,
        PositionSplit(ANN, COLLATERAL_CONTRACT, DEEP, a_word("other"), (1, 2), 40),
    )
    read = Read(story)
    assert token_id(COLLATERAL_CONTRACT, DEEP) == int(YES)
    assert read.position(ANN, YES) == Position(60, 30, 100, 50)
    assert read.state.locked[CONDITION] == 100
    assert read.state.ignored == {"positions under a parent collection": 1}


def test_an_outcome_merged_back_is_received(story: Story) -> None:
    story.move(ZERO_ADDRESS, ANN, 40)
    story.log(
        TOKENS_CONTRACT,
        PositionsMerged(ANN, COLLATERAL_CONTRACT, DEEP, a_word("other"), (1, 2), 40),
    )
    assert Read(story).position(ANN, YES) == Position(40, 20)


def test_an_outcome_burned_by_a_deeper_split_is_not_part_of_a_redemption(story: Story) -> None:
    story.split(ANN, 100)
    story.next_tx()
    story.resolve(1, 0)
    story.move(ANN, ZERO_ADDRESS, 100)
    story.log(
        TOKENS_CONTRACT,
        PositionSplit(ANN, COLLATERAL_CONTRACT, DEEP, a_word("other"), (1, 2), 100),
    )
    story.redeem(ANN, [(NO, 100)], 0)
    read = Read(story)
    assert read.acts()[1:] == [(ANN, ActivityKind.REDEEM, None, None, 100, 0)]
    assert read.position(ANN, YES).realized_units == 0


def test_a_fill_of_no_tokens_has_no_price(story: Story) -> None:
    story.log(EXCHANGE, OrderFilledLog(a_word("order"), ANN, EXCHANGE, Side.BUY, YES, 0, 0, 0))
    assert YES not in Read(story).state.price_by_token


def test_a_balance_never_leaves_its_column(story: Story) -> None:
    story.pay(ZERO_ADDRESS, BOB, 2**63)
    story.pay(BOB, CAROL, 5)
    story.pay(ZERO_ADDRESS, CAROL, 2**63 - 1)
    assert Read(story).held(BOB, COLLATERAL) == (0,)
    assert Read(story).held(CAROL, COLLATERAL) == (2**63 - 1,)
