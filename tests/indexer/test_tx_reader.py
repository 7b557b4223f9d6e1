from collections.abc import Sequence

import pytest
from tests.indexer.chain_script import (
    ANN,
    BOB,
    CAROL,
    CONDITION,
    FEE_RECEIVER,
    NO,
    ORACLE,
    TOKENS_CONTRACT,
    YES,
    ChainScript,
    Fill,
    ScriptResult,
    a_scripted_market,
)
from tests.rigs.values import COLLATERAL_CONTRACT, EXCHANGE, a_word

from foretell.domain.contracts.logs import OrderFilledLog, PositionsMerged, PositionSplit
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import NO_POSITION, Payout, Position, TradePrice
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.domain.values.tokens import collection_id, token_id
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.state import NO_MOVE, UNLIMITED_UNITS
from foretell.store.index.activities import ActivityKind


@pytest.fixture
def script() -> ChainScript:
    return a_scripted_market()


def test_a_condition_names_its_two_tokens(script: ChainScript) -> None:
    (condition,) = ScriptResult(script).rows.conditions
    assert (condition.block_number, condition.log_index) == (1, 0)
    assert (condition.condition_id, condition.oracle) == (CONDITION, ORACLE)
    assert (condition.token_yes, condition.token_no) == (YES, NO)


def test_a_split_mints_both_tokens_at_one_half(script: ChainScript) -> None:
    script.split(ANN, 101)
    read = ScriptResult(script)
    assert read.held(ANN, COLLATERAL, YES, NO) == (899, 101, 101)
    assert read.held(TOKENS_CONTRACT, COLLATERAL) == (101,)
    assert read.position(ANN, YES) == Position(101, 51, 101, 51)
    assert read.position(ANN, NO) == Position(101, 50, 101, 50)
    assert read.acts() == [(ANN, ActivityKind.SPLIT, None, None, 101, 101)]
    assert read.state.locked[CONDITION] == 101


def test_a_merge_realizes_both_tokens_at_one_half(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.next_tx()
    script.merge(ANN, 40)
    read = ScriptResult(script)
    assert read.held(ANN, COLLATERAL, YES, NO) == (940, 60, 60)
    assert read.position(ANN, YES) == Position(60, 30, 100, 50)
    assert read.acts()[1:] == [(ANN, ActivityKind.MERGE, None, None, 40, 40)]
    assert read.state.locked[CONDITION] == 60


def test_a_trade_moves_a_token_from_seller_to_buyer(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.next_block()
    script.pay(ZERO_ADDRESS, BOB, 500)
    script.trade(taker=Fill(BOB, Side.BUY, YES, 50, 30), maker=Fill(ANN, Side.SELL, YES, 50, 30))
    read = ScriptResult(script)
    assert read.position(BOB, YES) == Position(50, 30, 50, 30)
    assert read.position(ANN, YES) == Position(50, 25, 100, 50, 5)
    assert read.held(BOB, COLLATERAL, YES) == (470, 50)
    assert read.acts()[1:] == [
        (ANN, ActivityKind.TRADE, YES, Side.SELL, 50, 30),
        (BOB, ActivityKind.TRADE, YES, Side.BUY, 50, 30),
    ]
    assert [fill.is_taker for fill in read.rows.fills] == [False, True]
    assert [fill.counterparty for fill in read.rows.fills] == [BOB, EXCHANGE]
    assert [act.is_taker for act in read.rows.activities] == [False, False, True]


def test_a_mint_is_two_purchases_and_no_split_of_a_wallet(script: ChainScript) -> None:
    script.pay(ZERO_ADDRESS, BOB, 500)
    script.mint(taker=Fill(ANN, Side.BUY, YES, 50, 30), maker=Fill(BOB, Side.BUY, NO, 50, 20))
    read = ScriptResult(script)
    assert read.position(ANN, YES) == Position(50, 30, 50, 30)
    assert read.position(BOB, NO) == Position(50, 20, 50, 20)
    assert [act[1] for act in read.acts()] == [ActivityKind.TRADE] * 2
    assert read.state.locked[CONDITION] == 50
    assert read.position(EXCHANGE, YES) == NO_POSITION
    assert read.held(EXCHANGE, COLLATERAL, YES, NO) == (0, 0, 0)


def test_a_merging_match_is_two_sales_and_no_merge_of_a_wallet(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.move(ANN, BOB, 100, [NO])
    script.next_block()
    script.unmint(taker=Fill(ANN, Side.SELL, YES, 50, 30), maker=Fill(BOB, Side.SELL, NO, 50, 20))
    read = ScriptResult(script)
    assert read.position(ANN, YES) == Position(50, 25, 100, 50, 5)
    assert read.position(BOB, NO) == Position(50, 25, 0, 0, -5)
    assert [act[1] for act in read.acts()] == [ActivityKind.SPLIT, *[ActivityKind.TRADE] * 2]
    assert read.state.locked[CONDITION] == 50


def test_fees_reduce_the_received_amount_and_reach_the_fee_receiver(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.next_block()
    script.pay(ZERO_ADDRESS, BOB, 500)
    script.trade(
        taker=Fill(BOB, Side.BUY, YES, 50, 30, fee_units=2),
        maker=Fill(ANN, Side.SELL, YES, 50, 30, fee_units=1),
    )
    read = ScriptResult(script)
    assert read.position(BOB, YES) == Position(48, 30, 48, 30)
    assert read.position(ANN, YES) == Position(50, 25, 100, 50, 4)
    assert read.position(FEE_RECEIVER, YES) == Position(2, 1)
    assert read.held(FEE_RECEIVER, COLLATERAL, YES) == (1, 2)
    assert [fill.fee_units for fill in read.rows.fills] == [1, 2]


def test_fees_of_a_mint_reach_the_fee_receiver(script: ChainScript) -> None:
    script.pay(ZERO_ADDRESS, BOB, 500)
    script.mint(
        taker=Fill(ANN, Side.BUY, YES, 50, 30, fee_units=3),
        maker=Fill(BOB, Side.BUY, NO, 50, 20),
    )
    read = ScriptResult(script)
    assert read.position(ANN, YES) == Position(47, 30, 47, 30)
    assert read.position(FEE_RECEIVER, YES) == Position(3, 1)


def test_a_transfer_counts_at_one_half_before_any_trade(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.next_tx()
    script.move(ANN, BOB, 11)
    read = ScriptResult(script)
    assert read.position(BOB, YES) == Position(11, 5)
    assert read.position(ANN, YES) == Position(89, 44, 100, 50)


def test_a_transfer_counts_at_the_last_trade(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.next_block()
    script.trade(taker=Fill(BOB, Side.BUY, YES, 50, 40), maker=Fill(ANN, Side.SELL, YES, 50, 40))
    script.next_tx()
    script.move(BOB, CAROL, 10)
    read = ScriptResult(script)
    assert read.position(CAROL, YES) == Position(10, 8)
    assert read.state.price_by_token[YES] == TradePrice(40, 50)


def test_a_move_to_oneself_changes_nothing(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.next_tx()
    script.move(ANN, ANN, 10)
    read = ScriptResult(script)
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
def test_a_redemption_pays_each_token_its_part_of_the_payout(
    script: ChainScript,
    numerators: tuple[int, int],
    burned: Sequence[tuple[AssetId, int]],
    payout: int,
    gains: tuple[int, int],
) -> None:
    script.split(ANN, 100)
    script.next_block()
    script.resolve(*numerators)
    script.next_tx()
    script.redeem(ANN, burned, payout)
    read = ScriptResult(script)
    realized = (read.position(ANN, YES).realized_units, read.position(ANN, NO).realized_units)
    assert realized == gains
    assert read.state.locked[CONDITION] == 100 - payout
    assert [act[4:] for act in read.acts()[1:]] == [
        (sum(units for _, units in burned), payout) for _ in burned[:1]
    ]


def test_a_payout_is_recorded_once_with_its_place(script: ChainScript) -> None:
    script.resolve(3, 1)
    (report,) = ScriptResult(script).rows.payouts
    assert (report.block_number, report.log_index, report.timestamp_s) == (2, 0, 1002)
    assert (report.payout, report.tx_hash) == (Payout(3, 1), script.tx_hash)


def test_spending_reduces_the_spenders_allowance(script: ChainScript) -> None:
    script.allow(ANN, TOKENS_CONTRACT, 150)
    script.allow(ANN, EXCHANGE, 40)
    script.split(ANN, 100)
    script.next_tx()
    script.pay(ZERO_ADDRESS, BOB, 500)
    script.mint(taker=Fill(ANN, Side.BUY, YES, 50, 30), maker=Fill(BOB, Side.BUY, NO, 50, 20))
    allowances = ScriptResult(script).state.allowances
    assert allowances[ANN, TOKENS_CONTRACT, True] == 50
    assert allowances[ANN, EXCHANGE, True] == 10
    assert allowances[BOB, EXCHANGE, True] == 0


def test_selling_uses_no_allowance_of_collateral(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.allow(ANN, EXCHANGE, 40)
    script.next_tx()
    script.trade(taker=Fill(BOB, Side.BUY, YES, 50, 30), maker=Fill(ANN, Side.SELL, YES, 50, 30))
    assert ScriptResult(script).state.allowances[ANN, EXCHANGE, True] == 40


@pytest.mark.parametrize("units", [UNLIMITED_UNITS, 2**64, 2**256 - 1])
def test_an_unlimited_allowance_never_shrinks(script: ChainScript, units: int) -> None:
    script.allow(ANN, TOKENS_CONTRACT, units)
    script.split(ANN, 100)
    assert ScriptResult(script).state.allowances[ANN, TOKENS_CONTRACT, True] == UNLIMITED_UNITS


def test_allowances_are_not_computed_when_the_collateral_announces_spending(
    script: ChainScript,
) -> None:
    script.allow(ANN, TOKENS_CONTRACT, 150)
    script.split(ANN, 100)
    script.allow(ANN, TOKENS_CONTRACT, 50)
    contracts = IndexedContracts(
        COLLATERAL_CONTRACT, TOKENS_CONTRACT, frozenset({EXCHANGE}), announces_spending=True
    )
    assert ScriptResult(script, contracts).state.allowances[ANN, TOKENS_CONTRACT, True] == 50


def test_an_approval_covers_all_tokens_or_none(script: ChainScript) -> None:
    script.allow_tokens(ANN, EXCHANGE, is_approved=True)
    assert ScriptResult(script).state.allowances[ANN, EXCHANGE, False] == UNLIMITED_UNITS
    script.allow_tokens(ANN, EXCHANGE, is_approved=False)
    assert ScriptResult(script).state.allowances[ANN, EXCHANGE, False] == 0


def test_allowances_of_unknown_spenders_are_not_kept(script: ChainScript) -> None:
    script.allow(ANN, BOB, 5)
    script.allow_tokens(ANN, BOB, is_approved=True)
    assert ScriptResult(script).changes.allowances == []


def test_tokens_passed_on_before_their_fill_is_logged_leave_an_empty_position(
    script: ChainScript,
) -> None:
    """A buyer with code may pass on the tokens it bought while the exchange still settles."""
    script.pay(ZERO_ADDRESS, BOB, 500)
    script.split(ANN, 100)
    script.next_block()
    buy, sell = Fill(BOB, Side.BUY, YES, 50, 30), Fill(ANN, Side.SELL, YES, 50, 30)
    script.move(ANN, BOB, 50, operator=EXCHANGE)
    script.move(BOB, CAROL, 50)
    script.filled(sell, BOB)
    script.filled(buy, EXCHANGE)
    read = ScriptResult(script)
    assert read.position(BOB, YES) == Position(0, 0, 50, 30)
    assert read.position(CAROL, YES).size_units == 50


def test_a_split_inside_a_split_explains_its_own_tokens(script: ChainScript) -> None:
    """The receiver's code splits again before the first split is logged."""
    script.move(ZERO_ADDRESS, ANN, 10, (YES, NO))
    script.split(ANN, 10)
    script.merge(ANN, 20)
    script.log_split(ANN, 10)
    read = ScriptResult(script)
    assert read.position(ANN, YES) == Position(0, 0, 20, 10)
    assert [act[1] for act in read.acts()] == [
        ActivityKind.SPLIT,
        ActivityKind.MERGE,
        ActivityKind.SPLIT,
    ]


def test_attack_m1_a_split_whose_tokens_did_not_move_is_counted_and_stops_nothing(
    script: ChainScript,
) -> None:
    script.log_split(ANN, 10)
    script.split(BOB, 10)
    read = ScriptResult(script)
    assert read.state.ignored == {NO_MOVE: 2}
    assert read.position(BOB, YES).size_units == 10


def test_a_split_of_zero_units_is_no_act(script: ChainScript) -> None:
    script.split(ANN, 0)
    read = ScriptResult(script)
    assert read.acts() == []
    assert read.changes.positions == []


DEEP = collection_id(CONDITION, 1)


def test_an_outcome_that_is_split_further_counts_as_given_away(script: ChainScript) -> None:
    script.split(ANN, 100)
    script.next_tx()
    script.move(ANN, ZERO_ADDRESS, 40)
    script.log(
        TOKENS_CONTRACT,
        PositionSplit(ANN, COLLATERAL_CONTRACT, DEEP, a_word("other"), (1, 2), 40),
    )
    read = ScriptResult(script)
    assert token_id(COLLATERAL_CONTRACT, DEEP) == int(YES)
    assert read.position(ANN, YES) == Position(60, 30, 100, 50)
    assert read.state.locked[CONDITION] == 100
    assert read.state.ignored == {"positions under a parent collection": 1}


def test_an_outcome_that_is_merged_back_counts_as_received(script: ChainScript) -> None:
    script.move(ZERO_ADDRESS, ANN, 40)
    script.log(
        TOKENS_CONTRACT,
        PositionsMerged(ANN, COLLATERAL_CONTRACT, DEEP, a_word("other"), (1, 2), 40),
    )
    assert ScriptResult(script).position(ANN, YES) == Position(40, 20)


def test_an_outcome_burned_by_a_deeper_split_is_not_part_of_a_redemption(
    script: ChainScript,
) -> None:
    script.split(ANN, 100)
    script.next_tx()
    script.resolve(1, 0)
    script.move(ANN, ZERO_ADDRESS, 100)
    script.log(
        TOKENS_CONTRACT,
        PositionSplit(ANN, COLLATERAL_CONTRACT, DEEP, a_word("other"), (1, 2), 100),
    )
    script.redeem(ANN, [(NO, 100)], 0)
    read = ScriptResult(script)
    assert read.acts()[1:] == [(ANN, ActivityKind.REDEEM, None, None, 100, 0)]
    assert read.position(ANN, YES).realized_units == 0


def test_a_fill_of_no_tokens_has_no_price(script: ChainScript) -> None:
    script.log(EXCHANGE, OrderFilledLog(a_word("order"), ANN, EXCHANGE, Side.BUY, YES, 0, 0, 0))
    assert YES not in ScriptResult(script).state.price_by_token


def test_a_balance_never_leaves_its_column(script: ChainScript) -> None:
    script.pay(ZERO_ADDRESS, BOB, 2**63)
    script.pay(BOB, CAROL, 5)
    script.pay(ZERO_ADDRESS, CAROL, 2**63 - 1)
    assert ScriptResult(script).held(BOB, COLLATERAL) == (0,)
    assert ScriptResult(script).held(CAROL, COLLATERAL) == (2**63 - 1,)
