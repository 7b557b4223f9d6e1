"""Application of an observation of the chain."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.digest import digest
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
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

from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, ObserveChain, TradeSeen
from foretell.domain.exchange.effects import BookChanged, CloseReason, OrderClosed, TradeAdvanced
from foretell.domain.exchange.ledger import COLLATERAL, Account, AssetId, LiveOrder
from foretell.domain.exchange.observe_chain import split_observation
from foretell.domain.exchange.state import Placement, State
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32

ALICE, BOB = an_address("alice"), an_address("bob")
YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
MATCHED, MINED, CONFIRMED = TradeStatus.MATCHED, TradeStatus.MINED, TradeStatus.CONFIRMED
RETRYING, FAILED = TradeStatus.RETRYING, TradeStatus.FAILED
PLENTY = 10**6 * TOKEN


def closed(outcome: Outcome) -> list[Bytes32]:
    gone = [each for each in outcome.effects if isinstance(each, OrderClosed)]
    assert {each.reason for each in gone} <= {CloseReason.UNDERFUNDED}
    return [each.order_id for each in gone]


def advanced(outcome: Outcome) -> list[tuple[TradeStatus, str]]:
    return [
        (each.status, each.tx_hash) for each in outcome.effects if isinstance(each, TradeAdvanced)
    ]


def three_bids() -> tuple[State, list[Bytes32]]:
    """Return a state in which three bids of alice reserve 5, 4 and 3 of collateral."""
    state, ids = a_trading_state(), []
    for price_ticks in (50, 40, 30):
        placing = a_placing(a_buy(price_ticks=price_ticks))
        apply(state, placing)
        ids.append(placing.order_id)
    return state, ids


def a_balance(units: int, wallet: Address = ALICE, asset: AssetId = COLLATERAL) -> BalanceSeen:
    return BalanceSeen(wallet, asset, units)


def test_the_latest_observed_balance_counts() -> None:
    state = State()
    apply(state, an_observation([a_balance(5), a_balance(7, BOB, YES)]))
    apply(state, an_observation([a_balance(3)]))
    assert state.ledger.look_up(ALICE, COLLATERAL).confirmed_units == 3
    assert state.ledger.look_up(BOB, YES).confirmed_units == 7


def test_the_latest_observed_allowance_counts() -> None:
    state = State()
    seen = AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=5)
    apply(state, an_observation(allowances=[seen]))
    assert state.ledger.allowance_units(ALICE, EXCHANGE, COLLATERAL) == 5
    assert state.ledger.allowance_units(ALICE, EXCHANGE, YES) == 0


def test_the_block_of_the_observation_is_kept() -> None:
    state = a_state(an_observation(block_number=9, block_hash=a_word("block 9")))
    assert (state.observed_block, state.observed_hash) == (9, a_word("block 9"))


def test_a_balance_that_covers_its_orders_is_set_without_reading_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A maker may have thousands of orders and appear in every block."""
    state, ids = three_bids()
    reads: list[Account] = []
    orders = Account.orders

    def read(account: Account) -> list[LiveOrder]:
        reads.append(account)
        return orders(account)

    monkeypatch.setattr(Account, "orders", read)
    assert closed(apply(state, an_observation([BalanceSeen(ALICE, COLLATERAL, 12 * TOKEN)]))) == []
    assert reads == []
    short = an_observation([BalanceSeen(ALICE, COLLATERAL, 12 * TOKEN - 1)])
    assert closed(apply(state, short)) == ids[2:]
    assert reads == [state.ledger.account(ALICE, COLLATERAL)]


@pytest.mark.case("E-04")
@pytest.mark.parametrize(
    ("units", "gone"),
    [
        (12 * TOKEN, []),
        (12 * TOKEN - 1, [2]),
        (9 * TOKEN, [2]),
        (9 * TOKEN - 1, [2, 1]),
        (5 * TOKEN, [2, 1]),
        (5 * TOKEN - 1, [2, 1, 0]),
        (0, [2, 1, 0]),
    ],
)
def test_the_newest_orders_are_closed_until_the_balance_covers_the_rest(
    units: int, gone: list[int]
) -> None:
    state, ids = three_bids()
    outcome = apply(state, an_observation([a_balance(units)]))
    assert closed(outcome) == [ids[index] for index in gone]
    assert state.ledger.look_up(ALICE, COLLATERAL).reserved_units <= units


@pytest.mark.parametrize(("units", "gone"), [(12 * TOKEN, []), (9 * TOKEN, [2]), (0, [2, 1, 0])])
def test_the_newest_orders_are_closed_until_the_allowance_covers_the_rest(
    units: int, gone: list[int]
) -> None:
    state, ids = three_bids()
    seen = AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=units)
    assert closed(apply(state, an_observation(allowances=[seen]))) == [ids[index] for index in gone]


def test_a_changed_book_is_published_once_after_all_closes() -> None:
    state, _ = three_bids()
    outcome = apply(state, an_observation([a_balance(0)]))
    [change] = [each for each in outcome.effects if isinstance(each, BookChanged)]
    assert [each.level for each in change.changes] == [
        LevelSize(price, 0) for price in (30, 40, 50)
    ]
    assert outcome.effects[-1] == change


def test_a_lower_balance_of_one_asset_closes_no_order_of_another() -> None:
    state, _ = three_bids()
    assert closed(apply(state, an_observation([a_balance(0, asset=YES)]))) == []
    assert closed(apply(state, an_observation([a_balance(0, BOB)]))) == []


def test_a_revoked_allowance_of_tokens_closes_the_sell_orders() -> None:
    state = a_trading_state()
    placings = [a_placing(a_sell("alice", 60)), a_placing(a_sell("alice", 60, is_yes=False))]
    for placing in placings:
        apply(state, placing)
    seen = AllowanceSeen(ALICE, EXCHANGE, is_collateral=False, units=0)
    gone = closed(apply(state, an_observation(allowances=[seen])))
    assert sorted(gone) == sorted(placing.order_id for placing in placings)


def test_a_revoked_allowance_of_one_exchange_closes_no_order_of_another() -> None:
    other = an_open_market("other", exchange=NEG_RISK_EXCHANGE)
    state = a_trading_state()
    apply(state, other)
    elder = a_placing(a_buy())
    newer = a_placing(a_buy(market="other", exchange=NEG_RISK_EXCHANGE), market=other)
    apply(state, elder)
    apply(state, newer)
    seen = AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=0)
    assert closed(apply(state, an_observation(allowances=[seen]))) == [elder.order_id]
    assert list(state.live_orders) == [newer.order_id]


def a_match() -> tuple[State, str]:
    """Return a state in which alice bought ten tokens of bob for five, and the trade's id."""
    state = a_trading_state()
    apply(state, a_placing(a_sell()))
    result = apply(state, a_placing(a_buy())).result
    assert isinstance(result, Placement)
    return state, result.trade_ids[0]


def held(state: State, wallet: Address, asset: AssetId) -> int:
    account = state.ledger.look_up(wallet, asset)
    return account.confirmed_units + account.credit_units - account.debit_units


def holdings(state: State) -> list[int]:
    return [held(state, wallet, asset) for wallet in (ALICE, BOB) for asset in (COLLATERAL, YES)]


SETTLED = [
    a_balance(PLENTY - 5 * TOKEN),
    a_balance(PLENTY + 10 * TOKEN, asset=YES),
    a_balance(PLENTY + 5 * TOKEN, BOB),
    a_balance(PLENTY - 10 * TOKEN, BOB, YES),
]
UNSETTLED = [
    a_balance(PLENTY, wallet, asset) for wallet in (ALICE, BOB) for asset in (COLLATERAL, YES)
]
AFTER = [PLENTY - 5 * TOKEN, PLENTY + 10 * TOKEN, PLENTY + 5 * TOKEN, PLENTY - 10 * TOKEN]


def test_no_unit_is_counted_twice_or_missed_when_a_trade_is_mined() -> None:
    state, trade_id = a_match()
    assert holdings(state) == AFTER
    outcome = apply(state, an_observation(SETTLED, trades=[TradeSeen(trade_id, MINED, "0x01")]))
    assert holdings(state) == AFTER
    assert advanced(outcome) == [(MINED, "0x01")]
    account = state.ledger.look_up(ALICE, YES)
    assert (account.credit_units, account.debit_units) == (0, 0)


def test_no_unit_is_counted_twice_or_missed_in_a_reorg() -> None:
    state, trade_id = a_match()
    apply(state, an_observation(SETTLED, trades=[TradeSeen(trade_id, MINED, "0x01")]))
    outcome = apply(
        state, an_observation(UNSETTLED, trades=[TradeSeen(trade_id, RETRYING, "0x01")])
    )
    assert holdings(state) == AFTER
    assert advanced(outcome) == [(RETRYING, "0x01")]
    apply(state, an_observation(SETTLED, trades=[TradeSeen(trade_id, CONFIRMED, "0x02")]))
    assert holdings(state) == AFTER
    assert state.unsettled_trades == {}


@pytest.mark.parametrize("first", [MATCHED, RETRYING])
def test_a_failed_trade_moves_nothing(first: TradeStatus) -> None:
    state, trade_id = a_match()
    apply(state, a_settlement(trade_id, first))
    outcome = apply(state, a_settlement(trade_id, FAILED))
    assert holdings(state) == [PLENTY] * 4
    assert advanced(outcome) == [(FAILED, "0x01")]
    assert state.unsettled_trades == {}


def test_a_trade_that_failed_after_it_was_mined_moves_nothing() -> None:
    state, trade_id = a_match()
    apply(state, an_observation(SETTLED, trades=[TradeSeen(trade_id, MINED, "0x01")]))
    outcome = apply(state, an_observation(UNSETTLED, trades=[TradeSeen(trade_id, FAILED, "0x01")]))
    assert holdings(state) == [PLENTY] * 4
    assert advanced(outcome) == [(RETRYING, "0x01"), (FAILED, "0x01")]


def test_orders_that_sell_the_credits_of_a_failed_trade_are_closed() -> None:
    state = a_state(
        an_open_market(),
        some_funds("alice", "bob"),
        an_observation([a_balance(0, asset=YES)]),
    )
    apply(state, a_placing(a_sell()))
    result = apply(state, a_placing(a_buy())).result
    assert isinstance(result, Placement)
    resold = a_placing(a_sell("alice", 60))
    apply(state, resold)
    outcome = apply(state, a_settlement(result.trade_ids[0], FAILED))
    assert closed(outcome) == [resold.order_id]
    assert held(state, ALICE, YES) == 0


def test_a_trade_seen_late_advances_step_by_step() -> None:
    state, trade_id = a_match()
    outcome = apply(state, an_observation(SETTLED, trades=[TradeSeen(trade_id, CONFIRMED, "0x01")]))
    assert advanced(outcome) == [(MINED, "0x01"), (CONFIRMED, "0x01")]


def test_a_trade_mined_in_another_transaction_is_retried_first() -> None:
    state, trade_id = a_match()
    apply(state, an_observation(SETTLED, trades=[TradeSeen(trade_id, MINED, "0x01")]))
    outcome = apply(state, a_settlement(trade_id, MINED, "0x02"))
    assert advanced(outcome) == [(RETRYING, "0x02"), (MINED, "0x02")]
    assert state.unsettled_trades[trade_id].tx_hash == "0x02"
    assert holdings(state) == AFTER


@pytest.mark.parametrize("status", [MINED, RETRYING])
def test_a_status_that_was_seen_before_has_no_effect(status: TradeStatus) -> None:
    state, trade_id = a_match()
    apply(state, a_settlement(trade_id, status))
    before = digest(state)
    assert apply(state, a_settlement(trade_id, status)).effects == []
    assert digest(state) == before


@pytest.mark.parametrize("status", TradeStatus)
def test_an_unknown_trade_is_ignored(status: TradeStatus) -> None:
    state, _ = a_match()
    before = digest(state)
    assert apply(state, a_settlement("unknown", status)).effects == []
    assert digest(state) == before


@pytest.mark.parametrize(
    ("end", "status"), list(itertools.product([CONFIRMED, FAILED], TradeStatus))
)
def test_a_trade_in_a_final_status_does_not_advance(end: TradeStatus, status: TradeStatus) -> None:
    state, trade_id = a_match()
    apply(state, a_settlement(trade_id, end))
    before = digest(state)
    assert apply(state, a_settlement(trade_id, status, "0x02")).effects == []
    assert digest(state) == before


@pytest.mark.parametrize("status", [MATCHED, RETRYING, MINED])
def test_a_trade_never_returns_to_matched(status: TradeStatus) -> None:
    state, trade_id = a_match()
    apply(state, a_settlement(trade_id, status))
    before = digest(state)
    assert apply(state, a_settlement(trade_id, MATCHED, "0x02")).effects == []
    assert digest(state) == before


ENTRIES = st.integers(0, 7)


@given(balances=ENTRIES, allowances=ENTRIES, trades=ENTRIES, entries_max=st.integers(1, 9))
def test_parts_have_each_entry_once_in_order_and_keep_to_the_limit(
    balances: int, allowances: int, trades: int, entries_max: int
) -> None:
    whole = an_observation(
        [a_balance(units) for units in range(balances)],
        [
            AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=units)
            for units in range(allowances)
        ],
        [TradeSeen(str(number), MINED, "0x01") for number in range(trades)],
    )
    parts = split_observation(whole, entries_max)
    sizes = [len(part.balances) + len(part.allowances) + len(part.trades) for part in parts]
    assert max(sizes) <= entries_max
    assert len(parts) == max(1, -(-sum(sizes) // entries_max))
    assert [(part.part, part.parts) for part in parts] == [
        (number, len(parts)) for number in range(1, len(parts) + 1)
    ]
    assert tuple(itertools.chain(*(part.balances for part in parts))) == whole.balances
    assert tuple(itertools.chain(*(part.allowances for part in parts))) == whole.allowances
    assert tuple(itertools.chain(*(part.trades for part in parts))) == whole.trades


def a_settling(trade_id: str) -> ObserveChain:
    """Return the observation of a second block with the trade."""
    return an_observation(
        SETTLED,
        [AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=PLENTY)],
        [TradeSeen(trade_id, CONFIRMED, "0x01")],
        block_number=2,
        block_hash=a_word("block 2"),
    )


@pytest.mark.parametrize("entries_max", range(1, 8))
def test_an_observation_in_parts_has_the_effect_of_the_whole(entries_max: int) -> None:
    (state, trade_id), (other, _) = a_match(), a_match()
    at_once = apply(other, a_settling(trade_id))
    *before, last = split_observation(a_settling(trade_id), entries_max)
    assert [apply(state, part).effects for part in before] == [[]] * len(before)
    assert apply(state, last).effects == at_once.effects
    assert digest(state) == digest(other)


def test_an_observation_takes_effect_with_its_last_part() -> None:
    state, trade_id = a_match()
    for part in split_observation(a_settling(trade_id), 1)[:-1]:
        apply(state, part)
    assert holdings(state) == AFTER
    assert state.ledger.look_up(ALICE, YES).confirmed_units == PLENTY
    assert state.unsettled_trades[trade_id].status is MATCHED
    assert (state.observed_block, state.observed_hash) == (1, a_word("block 1"))


@pytest.mark.parametrize("entries_max", [1, 2, 6])
def test_a_first_part_replaces_the_parts_that_wait(entries_max: int) -> None:
    (state, trade_id), (other, _) = a_match(), a_match()
    for part in split_observation(an_observation(UNSETTLED), 1)[:-1]:
        apply(state, part)
    for part in split_observation(a_settling(trade_id), entries_max):
        apply(state, part)
    apply(other, a_settling(trade_id))
    assert digest(state) == digest(other)


def test_a_part_without_those_before_it_is_an_assertion_error() -> None:
    state, trade_id = a_match()
    first, _, third, *_ = split_observation(a_settling(trade_id), 1)
    apply(state, first)
    with pytest.raises(AssertionError):
        apply(state, third)
