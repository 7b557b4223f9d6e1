"""Changes of a shard's allocations by the treasury and by settled trades."""

import pytest
from tests.rigs.digest import digest
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_state,
    a_trading_state,
    an_address,
    an_observation,
    an_open_market,
    an_order_id,
    some_funds,
)

from foretell.domain.errors.exchange import InsufficientBalance
from foretell.domain.exchange.allocations import Allocation, AllocationTotal, total_of
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import (
    BalanceSeen,
    JoinTreasury,
    ReturnAllocation,
    TakeAllocations,
)
from foretell.domain.exchange.effects import (
    AllocationMoved,
    CloseReason,
    OrderClosed,
    TreasuryJoined,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.state import State
from foretell.domain.exchange.trade import TradeStatus

ALICE, BOB = an_address("alice"), an_address("bob")
JOINING = JoinTreasury(NOW_MS, "north")
MINED, RETRYING = TradeStatus.MINED, TradeStatus.RETRYING
CONFIRMED, FAILED = TradeStatus.CONFIRMED, TradeStatus.FAILED


def a_joined_state(*, given_units: int = 0) -> State:
    """Return a state with an open market, tokens and allowances, and alice's allocation."""
    state = a_state(an_open_market(), JOINING, some_funds("alice", "bob"))
    apply(state, a_taking(given_units))
    return state


def a_taking(total: int, shard: str = "north") -> TakeAllocations:
    return TakeAllocations(NOW_MS, shard, (AllocationTotal(ALICE, total_of(total)),))


def a_return(total: int, *, is_forced: bool = False) -> ReturnAllocation:
    return ReturnAllocation(NOW_MS, "north", ALICE, total_of(total), is_forced=is_forced)


def returned_units(outcome: Outcome) -> int:
    assert isinstance(outcome.result, AllocationTotal)
    assert outcome.result.wallet == ALICE
    return int(outcome.result.total)


def confirmed_units(state: State) -> int:
    return state.ledger.look_up(ALICE, COLLATERAL).confirmed_units


def spendable_units(state: State) -> int:
    return state.ledger.spendable_units(ALICE, EXCHANGE, COLLATERAL)


def a_match(given_units: int = 10 * TOKEN) -> tuple[State, str]:
    """Return a state in which alice bought for five of her ten tokens of collateral."""
    state = a_joined_state(given_units=given_units)
    apply(state, a_placing(a_sell("bob")))
    apply(state, a_placing(a_buy("alice")))
    return state, next(iter(state.unsettled_trades))


def test_without_a_treasury_collateral_is_the_balance_on_the_chain() -> None:
    state = a_trading_state("alice")
    assert not state.allocations.is_joined
    assert confirmed_units(state) == 10**6 * TOKEN


def test_with_a_treasury_a_balance_of_collateral_on_the_chain_does_not_count() -> None:
    state = a_joined_state()
    assert confirmed_units(state) == 0
    with pytest.raises(InsufficientBalance):
        apply(state, a_placing(a_buy("alice")))
    apply(state, a_placing(a_sell("alice")))


def test_a_shard_that_joins_counts_its_confirmed_collateral_as_settled() -> None:
    state = a_trading_state("alice")
    outcome = apply(state, JOINING)
    units = 10**6 * TOKEN
    assert outcome.effects == [
        TreasuryJoined("north", NOW_MS),
        AllocationMoved(ALICE, *Allocation(settled_units=units).totals(), NOW_MS),
    ]
    assert state.allocations.allocation_by_wallet == {ALICE: Allocation(settled_units=units)}
    assert confirmed_units(state) == units


def test_a_shard_joins_once() -> None:
    state = a_joined_state(given_units=5)
    before = digest(state)
    assert not apply(state, JOINING).is_change
    assert digest(state) == before


@pytest.mark.parametrize(
    "command", [JoinTreasury(NOW_MS, "south"), JoinTreasury(NOW_MS, ""), a_taking(5, "south")]
)
def test_a_command_for_another_shard_is_an_assertion_error(
    command: JoinTreasury | TakeAllocations,
) -> None:
    with pytest.raises(AssertionError):
        apply(a_joined_state(), command)


def test_a_return_from_a_shard_that_did_not_join_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError):
        apply(a_trading_state(), a_return(1))


@pytest.mark.parametrize(("totals", "units"), [([5], 5), ([5, 5], 5), ([5, 8], 8), ([8, 5], 8)])
def test_the_largest_given_total_counts(totals: list[int], units: int) -> None:
    state = a_joined_state()
    for total in totals:
        apply(state, a_taking(total))
    assert confirmed_units(state) == units


def test_a_total_that_was_taken_already_changes_nothing() -> None:
    state = a_joined_state(given_units=5)
    before = digest(state)
    assert apply(state, a_taking(4)) == Outcome(None, [], is_change=False)
    assert (
        apply(state, TakeAllocations(NOW_MS, "north", (AllocationTotal(BOB, total_of(0)),))).effects
        == []
    )
    assert digest(state) == before


@pytest.mark.parametrize(("total", "returned"), [(0, 0), (3, 3), (10, 10), (11, 10)])
def test_free_units_are_returned_up_to_the_requested_total(total: int, returned: int) -> None:
    state = a_joined_state(given_units=10)
    assert returned_units(apply(state, a_return(total))) == returned
    assert confirmed_units(state) == 10 - returned


def test_a_repeated_return_takes_effect_once() -> None:
    state = a_joined_state(given_units=10)
    assert apply(state, a_return(4)).effects == [
        AllocationMoved(ALICE, *Allocation(10, 4, 0).totals(), NOW_MS)
    ]
    again = apply(state, a_return(4))
    assert returned_units(again) == 4
    assert not again.is_change


def test_an_unknown_wallet_returns_nothing_and_gets_no_account() -> None:
    state = a_state(JOINING)
    before = digest(state)
    assert returned_units(apply(state, a_return(4, is_forced=True))) == 0
    assert digest(state) == before


def test_reserved_units_are_not_returned() -> None:
    state = a_joined_state(given_units=6 * TOKEN)
    apply(state, a_placing(a_buy("alice")))
    assert returned_units(apply(state, a_return(6 * TOKEN))) == TOKEN
    assert len(state.live_orders) == 1
    assert spendable_units(state) == 0


def test_units_that_an_unsettled_trade_debits_are_not_returned() -> None:
    state, _ = a_match()
    assert returned_units(apply(state, a_return(10 * TOKEN))) == 5 * TOKEN


def test_units_that_an_unsettled_trade_credits_are_not_returned() -> None:
    state = a_joined_state(given_units=TOKEN)
    apply(state, TakeAllocations(NOW_MS, "north", (AllocationTotal(BOB, total_of(10 * TOKEN)),)))
    apply(state, a_placing(a_sell("alice")))
    apply(state, a_placing(a_buy("bob")))
    assert spendable_units(state) == 6 * TOKEN
    assert returned_units(apply(state, a_return(6 * TOKEN))) == TOKEN


def test_a_forced_return_closes_only_as_many_of_the_newest_orders_as_it_must() -> None:
    state = a_joined_state(given_units=15 * TOKEN)
    orders = [a_buy("alice", salt=str(salt)) for salt in (1, 2, 3)]
    for order in orders:
        apply(state, a_placing(order))
    outcome = apply(state, a_return(6 * TOKEN, is_forced=True))
    closed = [effect for effect in outcome.effects if isinstance(effect, OrderClosed)]
    assert [effect.order_id for effect in closed] == [
        an_order_id(order) for order in (orders[2], orders[1])
    ]
    assert {effect.reason for effect in closed} == {CloseReason.UNDERFUNDED}
    assert returned_units(outcome) == 6 * TOKEN
    assert confirmed_units(state) == 9 * TOKEN


def test_a_repeated_forced_return_closes_no_more_orders() -> None:
    state = a_joined_state(given_units=10 * TOKEN)
    apply(state, a_placing(a_buy("alice", salt="1")))
    apply(state, a_placing(a_buy("alice", salt="2")))
    apply(state, a_return(5 * TOKEN, is_forced=True))
    assert not apply(state, a_return(5 * TOKEN, is_forced=True)).is_change
    assert len(state.live_orders) == 1


@pytest.mark.parametrize("status", [MINED, CONFIRMED])
def test_a_settled_trade_changes_the_allocation_and_leaves_as_much_to_spend(
    status: TradeStatus,
) -> None:
    state, trade_id = a_match()
    assert spendable_units(state) == 5 * TOKEN
    apply(state, a_settlement(trade_id, status))
    assert state.allocations.look_up(ALICE) == Allocation(10 * TOKEN, 0, -5 * TOKEN)
    assert confirmed_units(state) == spendable_units(state) == 5 * TOKEN


def test_a_trade_that_a_reorg_reverted_is_removed_from_the_allocation() -> None:
    state, trade_id = a_match()
    apply(state, a_settlement(trade_id, MINED))
    apply(state, a_settlement(trade_id, RETRYING))
    assert state.allocations.look_up(ALICE) == Allocation(10 * TOKEN, 0, 0)
    assert (confirmed_units(state), spendable_units(state)) == (10 * TOKEN, 5 * TOKEN)


@pytest.mark.parametrize("before", [[], [RETRYING], [MINED]])
def test_a_failed_trade_releases_what_it_would_have_debited(
    before: list[TradeStatus],
) -> None:
    state, trade_id = a_match()
    for status in before:
        apply(state, a_settlement(trade_id, status))
    apply(state, a_settlement(trade_id, FAILED))
    assert state.allocations.look_up(ALICE) == Allocation(10 * TOKEN, 0, 0)
    assert spendable_units(state) == 10 * TOKEN


def test_a_trade_mined_again_in_another_transaction_is_counted_once() -> None:
    state, trade_id = a_match()
    apply(state, a_settlement(trade_id, MINED, "0x01"))
    apply(state, a_settlement(trade_id, MINED, "0x02"))
    assert state.allocations.look_up(ALICE).settled_units == -5 * TOKEN


def test_without_a_treasury_a_settled_trade_opens_no_allocation() -> None:
    state = a_trading_state()
    apply(state, a_placing(a_sell("bob")))
    apply(state, a_placing(a_buy("alice")))
    apply(state, a_settlement(next(iter(state.unsettled_trades)), MINED))
    assert state.allocations.allocation_by_wallet == {}


def test_with_a_treasury_a_balance_of_tokens_still_comes_from_the_chain() -> None:
    state = a_joined_state()
    token = an_open_market().token_yes
    apply(state, an_observation([BalanceSeen(ALICE, token, 7), BalanceSeen(ALICE, COLLATERAL, 7)]))
    assert state.ledger.look_up(ALICE, token).confirmed_units == 7
    assert confirmed_units(state) == 0
