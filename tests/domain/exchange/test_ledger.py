"""The ledger: balances, pending trades and reservations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import EXCHANGE, NEG_RISK_EXCHANGE, an_address, an_asset

from foretell.domain.errors.exchange import (
    InsufficientAllowance,
    InsufficientBalance,
    ReservedByOpenOrders,
)
from foretell.domain.exchange.ledger import COLLATERAL, Account, Ledger, LiveOrder, WalletAccounts

ALICE, BOB = an_address("alice"), an_address("bob")
YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
UNITS = st.integers(0, 10**12)


def a_ledger(confirmed: int = 100, allowance: int = 100, reserved: int = 0) -> Ledger:
    ledger = Ledger()
    ledger.account(ALICE, COLLATERAL).confirmed_units = confirmed
    ledger.allow(ALICE, EXCHANGE, allowance, of_collateral=True)
    ledger.account(ALICE, COLLATERAL).reserved_units = reserved
    return ledger


def spendable(ledger: Ledger) -> int:
    return ledger.spendable_units(ALICE, EXCHANGE, COLLATERAL)


def test_an_unknown_wallet_has_nothing() -> None:
    ledger = Ledger()
    assert spendable(ledger) == 0
    assert ledger.allowance_units(ALICE, EXCHANGE, COLLATERAL) == 0
    assert ledger.assets(ALICE) == []


def test_a_look_up_does_not_open_an_account() -> None:
    ledger = Ledger()
    ledger.look_up(ALICE, COLLATERAL).confirmed_units = 5
    assert spendable(ledger) == 0
    assert isinstance(ledger.shortfall(ALICE, EXCHANGE, COLLATERAL, 1), InsufficientBalance)
    assert ledger.assets(ALICE) == []


def test_an_account_stays_the_same_object_once_opened() -> None:
    ledger = Ledger()
    account = ledger.account(ALICE, YES)
    assert ledger.account(ALICE, YES) is account is ledger.look_up(ALICE, YES)
    assert ledger.account(ALICE, NO) is not account
    assert ledger.account(BOB, YES) is not account
    assert ledger.assets(ALICE) == [YES, NO]


@given(confirmed=UNITS, allowance=UNITS, reserved=UNITS, credit=UNITS, debit=UNITS)
def test_spendable_is_the_lesser_of_held_and_allowed_minus_reserved(
    confirmed: int, allowance: int, reserved: int, credit: int, debit: int
) -> None:
    ledger = a_ledger(confirmed, allowance, reserved)
    ledger.pend([(ALICE, COLLATERAL, credit)])
    ledger.pend([(ALICE, COLLATERAL, -debit)])
    held, allowed = confirmed + credit - debit, allowance - debit
    assert spendable(ledger) == min(held, allowed) - reserved


def test_tokens_just_bought_can_be_spent_at_once() -> None:
    ledger = Ledger()
    ledger.allow(ALICE, EXCHANGE, 10**9, of_collateral=False)
    ledger.pend([(ALICE, YES, 50)])
    assert ledger.spendable_units(ALICE, EXCHANGE, YES) == 50


def test_an_allowance_is_for_one_exchange_and_one_kind() -> None:
    ledger = a_ledger()
    assert ledger.allowance_units(ALICE, EXCHANGE, COLLATERAL) == 100
    assert ledger.allowance_units(ALICE, NEG_RISK_EXCHANGE, COLLATERAL) == 0
    assert ledger.allowance_units(ALICE, EXCHANGE, YES) == 0
    assert ledger.allowance_units(BOB, EXCHANGE, COLLATERAL) == 0


def test_an_allowance_of_tokens_is_for_all_tokens() -> None:
    ledger = a_ledger()
    ledger.allow(ALICE, EXCHANGE, 7, of_collateral=False)
    assert ledger.allowance_units(ALICE, EXCHANGE, YES) == 7
    assert ledger.allowance_units(ALICE, EXCHANGE, NO) == 7
    assert ledger.allowance_units(ALICE, EXCHANGE, COLLATERAL) == 100


@pytest.mark.parametrize(
    ("ledger", "refusal"),
    [
        (a_ledger(confirmed=99), InsufficientBalance),
        (a_ledger(confirmed=0, allowance=0), InsufficientBalance),
        (a_ledger(confirmed=99, reserved=99), InsufficientBalance),
        (a_ledger(allowance=99), InsufficientAllowance),
        (a_ledger(allowance=0, reserved=100), InsufficientAllowance),
        (a_ledger(reserved=1), ReservedByOpenOrders),
        (a_ledger(reserved=100), ReservedByOpenOrders),
    ],
)
def test_a_lack_of_funds_is_refused_by_its_cause(ledger: Ledger, refusal: type[Exception]) -> None:
    lack = ledger.shortfall(ALICE, EXCHANGE, COLLATERAL, 100)
    assert type(lack) is refusal
    assert "needs 100 base units of collateral: " in str(lack)


def test_a_lack_of_tokens_names_the_token() -> None:
    lack = a_ledger().shortfall(ALICE, EXCHANGE, NO, 100)
    assert isinstance(lack, InsufficientBalance)
    assert f"100 base units of token {NO}:" in str(lack)


def test_a_refusal_has_the_numbers_of_the_account() -> None:
    ledger = a_ledger(confirmed=90, allowance=80, reserved=70)
    ledger.pend([(ALICE, COLLATERAL, 5)])
    ledger.pend([(ALICE, COLLATERAL, -6)])
    assert ledger.shortfall(ALICE, EXCHANGE, COLLATERAL, 60).details == {
        "asset": COLLATERAL,
        "spender": EXCHANGE,
        "need": 60,
        "have": 90,
        "pending": -1,
        "reserved": 70,
        "allowance": 80,
    }


def test_orders_of_an_account_are_listed_newest_first_while_they_reserve() -> None:
    account, orders = Account(WalletAccounts(ALICE)), [LiveOrder() for _ in range(4)]
    account.confirmed_units = 100
    for number, order in enumerate(orders):
        account.reserve(order, 10 + number)
    assert (account.orders(), account.reserved_units) == (orders[::-1], 46)
    for gone, left in ((1, [3, 2, 0]), (3, [2, 0]), (0, [2]), (2, [])):
        account.release(orders[gone], 10 + gone)
        assert account.orders() == [orders[number] for number in left]
    assert account.reserved_units == 0


def test_no_more_is_released_than_was_reserved() -> None:
    account, order = Account(WalletAccounts(ALICE)), LiveOrder()
    account.confirmed_units = 50
    account.reserve(order, 50)
    with pytest.raises(AssertionError):
        account.release(order, 51)


def test_an_order_is_released_once() -> None:
    account, order = Account(WalletAccounts(ALICE)), LiveOrder()
    account.reserve(order, 0)
    account.release(order, 0)
    with pytest.raises(AssertionError, match="among the orders"):
        account.release(order, 0)


@pytest.mark.parametrize("reserved", [0, 50])
def test_no_more_is_reserved_than_the_wallet_holds(reserved: int) -> None:
    account = a_ledger(confirmed=100, reserved=reserved).account(ALICE, COLLATERAL)
    with pytest.raises(AssertionError, match="funds were checked"):
        account.reserve(LiveOrder(), 101 - reserved)


@given(st.lists(st.integers(-(10**9), 10**9)))
def test_pending_moves_that_settle_leave_no_trace(moves: list[int]) -> None:
    ledger = a_ledger(reserved=0)
    for units in moves:
        ledger.pend([(ALICE, COLLATERAL, units)])
    for units in moves:
        ledger.unpend([(ALICE, COLLATERAL, units)])
    account = ledger.account(ALICE, COLLATERAL)
    assert (account.credit_units, account.debit_units) == (0, 0)


@pytest.mark.parametrize("units", [1, -1])
def test_moves_that_did_not_pend_cannot_settle(units: int) -> None:
    with pytest.raises(AssertionError):
        Ledger().unpend([(ALICE, COLLATERAL, units)])


def test_only_balances_and_allowances_other_than_zero_are_listed() -> None:
    ledger = a_ledger()
    ledger.account(ALICE, YES)
    ledger.account(BOB, NO).confirmed_units = 1
    ledger.allow(ALICE, NEG_RISK_EXCHANGE, 0, of_collateral=True)
    ledger.allow(BOB, EXCHANGE, 5, of_collateral=False)
    assert ledger.accounts_held() == [(ALICE, COLLATERAL), (BOB, NO)]
    assert ledger.allowances_held() == [(ALICE, EXCHANGE, True), (BOB, EXCHANGE, False)]
    assert ledger.allowed_units(BOB, EXCHANGE, of_collateral=False) == 5


@pytest.mark.parametrize(
    ("need", "missing"), [(60, 0), (90, 0), (91, 1), (150, 60), (190, 100), (191, 0)]
)
def test_units_are_missing_only_where_a_higher_balance_would_help(need: int, missing: int) -> None:
    ledger = a_ledger(confirmed=100, allowance=200, reserved=10)
    assert ledger.missing_units(ALICE, EXCHANGE, COLLATERAL, need) == missing


def test_the_missing_units_make_the_order_possible() -> None:
    ledger = a_ledger(confirmed=100, allowance=200, reserved=10)
    ledger.pend([(ALICE, COLLATERAL, -50)])
    ledger.pend([(ALICE, COLLATERAL, 20)])
    missing = ledger.missing_units(ALICE, EXCHANGE, COLLATERAL, 90)
    assert missing == 30
    ledger.account(ALICE, COLLATERAL).confirmed_units += missing
    assert spendable(ledger) == 90
