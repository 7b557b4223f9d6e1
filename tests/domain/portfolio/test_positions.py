from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.positions import (
    ACQUISITIONS,
    NO_POSITION,
    ONE_HALF,
    Change,
    ChangeKind,
    Payout,
    Position,
    TradePrice,
    apply,
    apply_all,
    half_units,
    merge,
    purchase,
    redeemed_units,
    redemption,
    sale,
    split,
    transfer_in,
    transfer_out,
)
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX

UNIT = 10**6

sizes = st.integers(0, 10**12)
kinds = st.sampled_from(ChangeKind)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """Yield changes in which no token costs or brings more than one collateral."""
    kind, size = draw(kinds), draw(sizes)
    money = 0 if kind is ChangeKind.TRANSFER_OUT else draw(st.integers(0, size))
    return Change(kind, size, money)


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    """Yield changes that never dispose of more than the size."""
    held, history = 0, []
    for change in draw(st.lists(changes(), max_size=20)):
        size = change.size_units
        if change.kind not in ACQUISITIONS:
            size = min(size, held)
        history.append(Change(change.kind, size, min(size, change.money_units)))
        held += size if change.kind in ACQUISITIONS else -size
    return history


def applied(history: list[Change], position: Position = NO_POSITION) -> Position:
    for change in history:
        position = apply(position, change)
    return position


def money(history: list[Change], *kinds: ChangeKind) -> int:
    return sum(change.money_units for change in history if change.kind in kinds)


def size(history: list[Change], *kinds: ChangeKind) -> int:
    return sum(change.size_units for change in history if change.kind in kinds)


BOUGHT = (ChangeKind.BUY, ChangeKind.SPLIT, ChangeKind.CONVERT_IN)
PAID = (ChangeKind.SELL, ChangeKind.MERGE, ChangeKind.REDEEM, ChangeKind.CONVERT_OUT)


class ExactLedger:
    """The same formulas in fractions, without rounding."""

    def __init__(self) -> None:
        self.held, self.cost, self.realized = 0, Fraction(0), Fraction(0)
        self.given_away = Fraction(0)

    def apply(self, change: Change) -> None:
        if change.kind in ACQUISITIONS:
            self.held += change.size_units
            self.cost += change.money_units
            return
        average = self.cost / self.held if self.held else Fraction(0)
        out = change.size_units * average
        self.held -= change.size_units
        self.cost -= out
        if change.kind is ChangeKind.TRANSFER_OUT:
            self.given_away += out
        else:
            self.realized += change.money_units - out


def test_a_round_of_trades_by_hand() -> None:
    position = applied(
        [
            purchase(100 * UNIT, 40 * UNIT, 0),
            purchase(50 * UNIT, 35 * UNIT, 0),
            sale(60 * UNIT, 42 * UNIT, 0),
        ]
    )
    assert position == Position(
        size_units=90 * UNIT,
        cost_units=45 * UNIT,
        bought_units=150 * UNIT,
        spent_units=75 * UNIT,
        realized_units=12 * UNIT,
    )


def test_a_buyers_fee_takes_tokens_and_a_sellers_fee_collateral() -> None:
    bought = apply(NO_POSITION, purchase(100, 40, 2))
    assert (bought.size_units, bought.cost_units, bought.bought_units) == (98, 40, 98)
    sold = apply(bought, sale(98, 50, 5))
    assert (sold.size_units, sold.cost_units, sold.realized_units) == (0, 0, 5)


def test_a_split_and_a_merge_count_each_token_at_one_half() -> None:
    yes = applied([split(10, is_yes=True), merge(4, is_yes=True)])
    assert yes == Position(6, 3, 10, 5, 0)
    no = applied([split(7, is_yes=False), merge(7, is_yes=False)])
    assert no == Position(0, 0, 7, 3, 0)


def test_a_redemption_realizes_its_payment_beyond_cost() -> None:
    won = applied([purchase(10, 4, 0), redemption(10, 10)])
    lost = applied([purchase(10, 6, 0), redemption(10, 0)])
    assert (won.realized_units, lost.realized_units) == (6, -6)
    assert (won.cost_units, lost.cost_units) == (0, 0)


def test_transfers_move_cost_and_realize_nothing() -> None:
    came = apply(NO_POSITION, transfer_in(10, TradePrice(7, 20)))
    assert came == Position(size_units=10, cost_units=3)
    went = apply(came, transfer_out(4))
    assert went == Position(size_units=6, cost_units=1)


def test_a_token_never_traded_comes_in_at_one_half() -> None:
    assert transfer_in(11, ONE_HALF).money_units == 5


def test_cost_that_goes_out_is_rounded_up() -> None:
    position = apply(Position(size_units=3, cost_units=1), sale(1, 1, 0))
    assert position == Position(size_units=2, cost_units=0, realized_units=0)


@pytest.mark.parametrize(
    ("yes", "no", "paid", "payout", "parts"),
    [
        (10, 0, 10, Payout(1, 0), Payout(10, 0)),
        (0, 10, 0, Payout(1, 0), Payout(0, 0)),
        (0, 10, 10, Payout(0, 1), Payout(0, 10)),
        (10, 4, 10, Payout(1, 0), Payout(10, 0)),
        (3, 3, 2, Payout(1, 1), Payout(1, 1)),
        (3, 4, 3, Payout(1, 1), Payout(1, 2)),
        (5, 1, 2, Payout(2**63 - 1, 1), Payout(2, 0)),
    ],
)
def test_the_payment_of_a_redemption_is_divided_between_the_tokens(
    yes: int, no: int, paid: int, payout: Payout, parts: Payout
) -> None:
    assert redeemed_units(yes, no, paid, payout) == parts


@given(sizes, sizes, st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_parts_of_a_redemption_are_those_the_contract_rounds(
    yes: int, no: int, yes_numerator: int, no_numerator: int
) -> None:
    payout = Payout(yes_numerator, no_numerator + 1)
    whole = sum(payout)
    paid = yes * payout.yes // whole + no * payout.no // whole
    parts = redeemed_units(yes, no, paid, payout)
    assert parts == (yes * payout.yes // whole, no * payout.no // whole)


@given(sizes)
def test_the_halves_of_a_complete_set_are_the_whole(units: int) -> None:
    assert half_units(units, is_yes=True) + half_units(units, is_yes=False) == units


@given(histories())
def test_the_size_is_acquisitions_less_disposals(history: list[Change]) -> None:
    came = size(history, *ACQUISITIONS)
    assert applied(history).size_units == came - (size(history, *ChangeKind) - came)


@given(histories())
def test_cost_and_gain_account_for_all_the_money(history: list[Change]) -> None:
    exact = ExactLedger()
    for change in history:
        exact.apply(change)
    position = applied(history)
    spent = money(history, *ACQUISITIONS)
    brought = money(history, *PAID)
    given_away = spent - brought + position.realized_units - position.cost_units
    assert abs(given_away - exact.given_away) <= len(history)
    assert abs(position.cost_units - exact.cost) <= len(history)
    assert abs(position.realized_units - exact.realized) <= len(history)


@given(histories())
def test_bought_and_spent_units_exclude_transfers(history: list[Change]) -> None:
    position = applied(history)
    assert position.bought_units == size(history, *BOUGHT)
    assert position.spent_units == money(history, *BOUGHT)


@given(histories(), kinds.filter(lambda kind: kind not in ACQUISITIONS))
def test_closing_leaves_no_cost(history: list[Change], kind: ChangeKind) -> None:
    position = applied(history)
    closed = apply(position, Change(kind, position.size_units, 0))
    assert (closed.size_units, closed.cost_units) == (0, 0)


@given(histories(), sizes)
def test_disposals_never_raise_the_average_cost(history: list[Change], units: int) -> None:
    before = applied(history)
    after = apply(before, sale(min(units, before.size_units), 0, 0))
    assert after.cost_units * before.size_units <= before.cost_units * after.size_units


@given(histories())
def test_changes_that_can_happen_in_their_order_do(history: list[Change]) -> None:
    assert apply_all(NO_POSITION, history) == applied(history)


def test_tokens_passed_on_before_they_are_explained_come_in_first() -> None:
    position = apply_all(Position(1, 1, 1, 1), [transfer_out(10), purchase(10, 5, 0)])
    assert position == Position(size_units=1, cost_units=0, bought_units=11, spent_units=6)


@given(st.lists(changes(), max_size=8), histories())
def test_a_position_never_goes_below_zero(unlikely: list[Change], history: list[Change]) -> None:
    position = apply_all(applied(history), unlikely)
    assert position.size_units >= 0
    assert position.cost_units >= 0


@given(st.permutations([purchase(10, 5, 0), sale(6, 4, 0), transfer_in(2, ONE_HALF)]))
def test_one_transaction_ends_at_the_same_size_in_any_order(history: list[Change]) -> None:
    assert apply_all(NO_POSITION, history).size_units == 6


def test_sums_stop_at_the_largest_amount() -> None:
    full = Change(ChangeKind.BUY, AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX)
    position = applied([full, full])
    assert position == Position(
        AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX, 0
    )
    lost = applied([sale(AMOUNT_UNITS_MAX, 0, 0), full, sale(AMOUNT_UNITS_MAX, 0, 0)], position)
    assert lost.realized_units == -AMOUNT_UNITS_MAX
