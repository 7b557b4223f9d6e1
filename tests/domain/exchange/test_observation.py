"""Decisions about an observation, without I/O."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_state,
    a_trading_state,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.arrivals.chain_cancels import cancels_seen
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    CancelSeen,
    NonceSeen,
    SplitTrade,
    TradeSeen,
)
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.ledger import COLLATERAL, AssetId, Ledger
from foretell.domain.exchange.observation import (
    ChainReading,
    ObservationScope,
    RefusedFill,
    TradeSettlement,
    allowances_gone,
    allowances_seen,
    balances_gone,
    balances_seen,
    nonces_seen,
    observation_of,
    split_of,
    trade_seen,
    trades_seen,
)
from foretell.domain.exchange.state import State
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32

ALICE, BOB = an_address("alice"), an_address("bob")
YES = an_asset(is_yes=True)
WALLETS = st.sampled_from([ALICE, BOB])
ASSETS = st.sampled_from([COLLATERAL, YES, an_asset(is_yes=False)])
EXCHANGES = st.sampled_from([EXCHANGE, NEG_RISK_EXCHANGE])
UNITS = st.integers(0, 3)
SCOPE = ObservationScope([EXCHANGE], [], confirmations=2, blocks_unobserved_max=20)


def a_ledger(units_by_account: dict[tuple[Address, AssetId], int]) -> Ledger:
    ledger = Ledger()
    for (wallet, asset), units in units_by_account.items():
        ledger.account(wallet, asset).confirmed_units = units
    return ledger


def a_reading(**fields: Any) -> ChainReading:
    """Return a reading of block 9 that changed nothing."""
    empty = ChainReading(9, a_word("block 9"), False, (), (), (), (), ())  # noqa: FBT003 - a row
    return empty._replace(**fields)


def a_match() -> tuple[State, str]:
    """Return a state in which alice bought from bob, and the id of the trade."""
    state = a_trading_state()
    apply(state, a_placing(a_sell("bob")))
    apply(state, a_placing(a_buy("alice")))
    return state, next(iter(state.unsettled_trades))


@given(
    known=st.dictionaries(st.tuples(WALLETS, ASSETS), UNITS),
    rows=st.dictionaries(st.tuples(WALLETS, ASSETS), UNITS),
)
def test_a_complete_list_of_balances_brings_the_ledger_up_to_the_rows(
    known: dict[tuple[Address, AssetId], int], rows: dict[tuple[Address, AssetId], int]
) -> None:
    ledger = a_ledger(known)
    balances = [BalanceSeen(*account, units) for account, units in rows.items()]
    seen = balances_seen(ledger, balances, ())
    seen += balances_gone(ledger, [ALICE, BOB], rows.keys(), ())
    units_by_account = known | {(each.wallet, each.asset): each.units for each in seen}
    held = {account: units for account, units in units_by_account.items() if units}
    assert held == {account: units for account, units in rows.items() if units}
    assert all(known.get((each.wallet, each.asset), 0) != each.units for each in seen)


@given(
    known=st.dictionaries(st.tuples(WALLETS, ASSETS), UNITS),
    rows=st.dictionaries(st.tuples(WALLETS, ASSETS), UNITS),
)
def test_changed_balances_that_the_ledger_has_are_left_out(
    known: dict[tuple[Address, AssetId], int], rows: dict[tuple[Address, AssetId], int]
) -> None:
    balances = [BalanceSeen(*account, units) for account, units in rows.items()]
    seen = balances_seen(a_ledger(known), balances, ())
    assert seen == [
        each for each in balances if known.get((each.wallet, each.asset), 0) != each.units
    ]


def test_balances_of_foreign_assets_are_left_out() -> None:
    ledger = a_ledger({(ALICE, COLLATERAL): 5, (BOB, COLLATERAL): 5})
    balances = [BalanceSeen(ALICE, COLLATERAL, 7), BalanceSeen(ALICE, YES, 7)]
    assert balances_seen(ledger, balances, {COLLATERAL}) == [BalanceSeen(ALICE, YES, 7)]
    assert balances_gone(ledger, [ALICE, BOB], (), {COLLATERAL}) == []


@given(
    known=st.dictionaries(st.tuples(WALLETS, EXCHANGES, st.booleans()), UNITS),
    rows=st.dictionaries(st.tuples(WALLETS, EXCHANGES, st.booleans()), UNITS),
)
def test_a_complete_list_of_allowances_brings_the_ledger_up_to_the_rows(
    known: dict[tuple[Address, Address, bool], int], rows: dict[tuple[Address, Address, bool], int]
) -> None:
    ledger = Ledger()
    for (wallet, exchange, is_collateral), units in known.items():
        ledger.allow(wallet, exchange, units, of_collateral=is_collateral)
    allowances = [AllowanceSeen(*key, units) for key, units in rows.items()]
    both = [EXCHANGE, NEG_RISK_EXCHANGE]
    news = allowances_seen(ledger, allowances, both)
    for seen in news + allowances_gone(ledger.allowances_held(), rows.keys()):
        ledger.allow(seen.wallet, seen.exchange, seen.units, of_collateral=seen.is_collateral)
    assert {key: units for key, units in ledger.allowances() if units} == {
        key: units for key, units in rows.items() if units
    }


def test_allowances_of_other_spenders_and_known_ones_are_left_out() -> None:
    ledger = Ledger()
    ledger.allow(ALICE, EXCHANGE, 5, of_collateral=True)
    rows = [
        AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=5),
        AllowanceSeen(ALICE, EXCHANGE, is_collateral=False, units=6),
        AllowanceSeen(ALICE, BOB, is_collateral=True, units=7),
    ]
    assert allowances_seen(ledger, rows, [EXCHANGE]) == [rows[1]]


def test_cancels_of_live_orders_and_of_unknown_orders_are_seen_once() -> None:
    live, closed, unknown = (a_placing(a_buy("alice", 40, salt=salt)) for salt in "123")
    state = a_state(an_open_market(), some_funds("alice"), live, closed)
    state.close(state.live_orders[closed.order_id], CloseReason.CANCELED, NOW_MS)
    state.canceled_orders.add((EXCHANGE, a_word("seen before")))
    rows = [
        CancelSeen(EXCHANGE, live.order_id),
        CancelSeen(EXCHANGE, closed.order_id),
        CancelSeen(EXCHANGE, unknown.order_id),
        CancelSeen(EXCHANGE, a_word("seen before")),
        CancelSeen(NEG_RISK_EXCHANGE, a_word("seen before")),
    ]
    assert cancels_seen(state, rows) == [rows[0], rows[2], rows[4]]


@pytest.mark.parametrize(
    ("is_complete", "seen"),
    [
        (False, [NonceSeen(EXCHANGE, BOB, 3)]),
        (True, [NonceSeen(EXCHANGE, ALICE, 0), NonceSeen(EXCHANGE, BOB, 3)]),
    ],
)
def test_nonces_that_differ_are_seen_and_missing_ones_count_as_zero(
    *, is_complete: bool, seen: list[NonceSeen]
) -> None:
    state = State()
    state.maker_nonces = {(EXCHANGE, ALICE): 1, (EXCHANGE, BOB): 2, (NEG_RISK_EXCHANGE, BOB): 4}
    rows = [NonceSeen(EXCHANGE, BOB, 3), NonceSeen(NEG_RISK_EXCHANGE, BOB, 4)]
    assert nonces_seen(state, rows, is_complete=is_complete) == seen


MATCHED, MINED, CONFIRMED, RETRYING, FAILED = TradeStatus
SETTLEMENTS = {
    "waiting": TradeSettlement("t", "", None, is_failed=False, is_given_up=False),
    "failed": TradeSettlement("t", "", None, is_failed=True, is_given_up=False),
    "given up": TradeSettlement("t", "", None, is_failed=True, is_given_up=True),
    "mined": TradeSettlement("t", "0x1", 8, is_failed=False, is_given_up=False),
    "deep": TradeSettlement("t", "0x1", 7, is_failed=False, is_given_up=False),
    "mined after a failure": TradeSettlement("t", "0x1", 8, is_failed=True, is_given_up=False),
}


@pytest.mark.parametrize("known", [MATCHED, RETRYING, MINED])
@pytest.mark.parametrize(
    ("settlement", "status"),
    [
        ("failed", RETRYING),
        ("given up", FAILED),
        ("mined", MINED),
        ("deep", CONFIRMED),
        ("mined after a failure", MINED),
    ],
)
def test_the_settlement_gives_the_status_of_a_trade(
    known: TradeStatus, settlement: str, status: TradeStatus
) -> None:
    row = SETTLEMENTS[settlement]
    assert trade_seen(known, row, confirmed_block=7) == TradeSeen("t", status, row.tx_hash)


@pytest.mark.parametrize("known", [MATCHED, RETRYING])
def test_a_trade_that_waits_for_its_block_has_no_new_status(known: TradeStatus) -> None:
    assert trade_seen(known, SETTLEMENTS["waiting"], confirmed_block=7) is None


def test_a_mined_trade_without_a_block_after_a_reorg_is_retried() -> None:
    seen = trade_seen(MINED, SETTLEMENTS["waiting"], confirmed_block=7)
    assert seen == TradeSeen("t", RETRYING, "")


@pytest.mark.parametrize(
    ("tx_hash", "block_number", "is_seen"),
    [("0x1", 9, False), ("0x2", 9, True), ("0x1", 7, True)],
    ids=["the same", "another transaction", "deeper"],
)
def test_only_another_status_or_transaction_of_a_trade_is_seen(
    *, tx_hash: str, block_number: int, is_seen: bool
) -> None:
    state, trade_id = a_match()
    apply(state, a_settlement(trade_id, MINED, "0x1"))
    row = TradeSettlement(trade_id, tx_hash, block_number, is_failed=False, is_given_up=False)
    assert bool(trades_seen(state, [row], confirmed_block=7)) is is_seen


@pytest.mark.parametrize("blocks_behind", [0, 1, 19])
def test_a_reading_without_news_gives_no_observation(blocks_behind: int) -> None:
    state = a_state(an_observation(block_number=9 - blocks_behind))
    assert observation_of(state, a_reading(), SCOPE, NOW_MS) is None


def test_a_reading_without_news_gives_an_observation_once_the_engine_is_far_behind() -> None:
    state = a_state(an_observation(block_number=1))
    observation = observation_of(state, a_reading(), SCOPE._replace(blocks_unobserved_max=8), 5)
    assert observation == an_observation(at_ms=5, block_number=9, block_hash=a_word("block 9"))


def test_a_reading_that_replaces_the_observed_block_always_gives_an_observation() -> None:
    state = a_state(an_observation(block_number=9))
    assert observation_of(state, a_reading(is_complete=True), SCOPE, NOW_MS) is None
    observation = observation_of(state, a_reading(is_complete=True, replaces=True), SCOPE, NOW_MS)
    assert observation == an_observation(block_number=9, block_hash=a_word("block 9"))


def test_an_observation_has_all_news_of_a_reading() -> None:
    state, trade_id = a_match()
    balance, nonce = BalanceSeen(ALICE, YES, 1), NonceSeen(EXCHANGE, BOB, 1)
    allowance = AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=1)
    cancel = CancelSeen(EXCHANGE, a_word("order"))
    reading = a_reading(
        balances=[balance],
        allowances=[allowance],
        cancels=[cancel],
        nonces=[nonce],
        settlements=[TradeSettlement(trade_id, "0x1", 7, is_failed=False, is_given_up=False)],
    )
    observation = observation_of(state, reading, SCOPE, NOW_MS)
    assert observation == an_observation(
        [balance],
        [allowance],
        [TradeSeen(trade_id, CONFIRMED, "0x1")],
        block_number=9,
        block_hash=a_word("block 9"),
        cancels=(cancel,),
        nonces=(nonce,),
    )
    apply(state, observation)
    assert observation_of(state, reading._replace(settlements=()), SCOPE, NOW_MS) is None


def a_wide_match() -> tuple[State, str, list[Bytes32]]:
    """Return a state in which one taker met three makers, the trade, and the makers' orders."""
    makers = [a_placing(a_sell("bob", 40, 10 * TOKEN, salt=salt)) for salt in "123"]
    taker = a_placing(a_buy("alice", 50, 25 * TOKEN))
    state = a_state(an_open_market(), some_funds("alice", "bob"), *makers, taker)
    return state, next(iter(state.unsettled_trades)), [each.order_id for each in makers]


def test_fills_leave_a_trade_by_their_parts_and_blamed_live_orders_leave_the_book() -> None:
    state, trade_id, (first, second, third) = a_wide_match()
    refused = [
        RefusedFill(first, 0, is_blamed=True),
        RefusedFill(second, 1, is_blamed=False),
        RefusedFill(third, 2, is_blamed=True),
        RefusedFill(a_word("another trade's"), 2, is_blamed=False),
    ]
    split = split_of(state, state.unsettled_trades[trade_id], refused, NOW_MS)
    assert split == SplitTrade(NOW_MS, trade_id, ((second,), (third,)), (third,))


def test_a_split_that_was_applied_is_not_due_again() -> None:
    state, trade_id, (first, second, _) = a_wide_match()
    refused = [RefusedFill(first, 1, is_blamed=True), RefusedFill(second, 1, is_blamed=False)]
    split = split_of(state, state.unsettled_trades[trade_id], refused, NOW_MS)
    assert split is not None
    apply(state, split)
    assert split_of(state, state.unsettled_trades[trade_id], refused, NOW_MS) is None
