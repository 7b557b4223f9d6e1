"""Decisions of settlement: delays, tries, and the fills that leave a trade."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_word, an_address

from foretell.domain.exchange.matching import Fill, MatchType
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.settlement import (
    ENDED_REASONS,
    FailingFill,
    FailureReport,
    RefusedOrder,
    Settlement,
    SettlementOptions,
    batch_id_of,
    doubled_ms,
    end_of,
    failed_settlement,
    is_batch,
    named_settlement,
    refused_settlement,
    report_of_failing,
    report_of_reverting,
    report_of_sequential,
    reverting_wallet,
    settlement_after_batch,
    settlement_after_mined_revert,
    settlement_after_revert,
    smallest_fill,
    taken_apart,
    taker_ended,
    waiting_settlement,
)
from foretell.domain.exchange.trade import Trade
from foretell.domain.values.call_trace import FailedCall
from foretell.domain.values.hexadecimal import Address, Bytes32

OPTIONS = SettlementOptions()
NOW_MS = 5_000
A, B, C = (a_word(name) for name in "abc")

settlements = st.builds(
    Settlement,
    trade_id=st.just("trade"),
    tx_id=st.none() | st.just("settle:trade:1"),
    attempts=st.integers(0, 20),
    retry_at_ms=st.integers(0, 10**13),
    failure=st.none() | st.text(max_size=20),
    refusals=st.integers(0, 100),
    is_given_up=st.just(value=False),
)
failing_fills = st.lists(
    st.builds(
        FailingFill,
        st.text("0123456789abcdef", min_size=4, max_size=4),
        st.sampled_from(["InvalidNonce", "InsufficientAllowance"]),
        is_ended=st.booleans(),
        is_blamed=st.booleans(),
    ),
    min_size=1,
    max_size=20,
    unique_by=lambda failing: failing.maker_order_id,
)


def a_fill(order_id: Bytes32, price_ticks: int = 40, side: Side = Side.SELL) -> Fill:
    return Fill(
        maker_order_id=order_id,
        maker=an_address("maker"),
        owner="owner",
        side=side,
        is_yes=True,
        price_ticks=price_ticks,
        size_units=1_000,
        making_units=1_000,
        taking_units=400,
        match_type=MatchType.COMPLEMENTARY,
    )


def waiting(order_id: Bytes32) -> FailingFill:
    return FailingFill(order_id, "InsufficientAllowance", is_ended=False, is_blamed=True)


def ended(order_id: Bytes32) -> FailingFill:
    return FailingFill(order_id, "InvalidNonce", is_ended=True, is_blamed=True)


@pytest.mark.parametrize("attempts", range(12))
def test_the_delay_doubles_with_each_failed_try_up_to_its_bound(attempts: int) -> None:
    failed = failed_settlement(Settlement("trade", "tx", attempts), "x" * 1000, NOW_MS, OPTIONS)
    assert failed.retry_at_ms - NOW_MS == min(1_000 * 2**attempts, 60_000)
    assert failed.is_given_up == (attempts + 1 >= OPTIONS.attempts_max)
    assert (failed.tx_id, failed.attempts, len(failed.failure or "")) == (None, attempts + 1, 500)


def test_a_trade_is_tried_for_about_two_minutes() -> None:
    settlement, waited_ms = Settlement("trade"), 0
    while not settlement.is_given_up:
        waited_ms = settlement.retry_at_ms
        settlement = failed_settlement(settlement, "reverts", waited_ms, OPTIONS)
    assert waited_ms == 123_000


@pytest.mark.parametrize("refusals", range(9))
def test_a_refused_trade_waits_longer_each_time_up_to_a_bound(refusals: int) -> None:
    named = Settlement("trade", "settle:trade:1", 3, refusals=refusals)
    refused = refused_settlement(named, NOW_MS, OPTIONS)
    assert refused.retry_at_ms - NOW_MS == min(500 * 2**refusals, 30_000)
    assert (refused.tx_id, refused.attempts, refused.refusals) == (None, 3, refusals + 1)


@given(first=st.integers(1, 10**6), times=st.integers(0, 200), factor=st.integers(1, 10**6))
def test_a_delay_never_shrinks_and_never_exceeds_its_bound(
    first: int, times: int, factor: int
) -> None:
    bound = first * factor
    assert first <= doubled_ms(first, times, bound) <= doubled_ms(first, times + 1, bound) <= bound


@given(settlements)
def test_the_id_of_a_transaction_names_its_trade_and_its_try(settlement: Settlement) -> None:
    named = named_settlement(settlement)
    assert named.tx_id == f"settle:trade:{settlement.attempts + 1}"
    assert named._replace(tx_id=settlement.tx_id) == settlement


@given(settlements)
def test_a_trade_that_waits_for_another_loses_no_try(settlement: Settlement) -> None:
    after = waiting_settlement(settlement, NOW_MS, OPTIONS)
    assert after.retry_at_ms == NOW_MS + OPTIONS.wait_delay_ms
    assert (after.tx_id, after.attempts, after.refusals) == (None, settlement.attempts, 0)
    assert (after.failure, after.is_given_up) == (settlement.failure, False)


REFUSED = RefusedOrder("trade", A, 1, "InvalidNonce", is_blamed=True)


@given(settlements)
def test_a_trade_that_fills_leave_is_due_at_once_and_loses_no_try(settlement: Settlement) -> None:
    report = FailureReport((REFUSED,))
    after = settlement_after_revert(settlement, "reverts", report, NOW_MS, OPTIONS)
    assert report.releases_fills
    assert (after.tx_id, after.retry_at_ms) == (None, NOW_MS)
    assert (after.attempts, after.is_given_up) == (settlement.attempts, False)


@given(settlements)
def test_a_trade_that_is_over_is_given_up_at_any_try(settlement: Settlement) -> None:
    report = FailureReport((REFUSED,), "InvalidNonce")
    after = settlement_after_revert(settlement, "reverts", report, NOW_MS, OPTIONS)
    assert not report.releases_fills
    assert (after.tx_id, after.failure) == (None, "InvalidNonce")
    assert (after.attempts, after.is_given_up) == (settlement.attempts + 1, True)


@given(settlements)
def test_a_revert_that_no_order_explains_is_a_failed_try(settlement: Settlement) -> None:
    after = settlement_after_revert(settlement, "reverts", FailureReport(), NOW_MS, OPTIONS)
    assert after == failed_settlement(settlement, "reverts", NOW_MS, OPTIONS)


@given(settlements, st.integers(1, 30))
def test_no_trade_is_tried_more_often_than_allowed(settlement: Settlement, limit: int) -> None:
    options = dataclasses.replace(OPTIONS, attempts_max=limit)
    failed = failed_settlement(settlement, "reverts", NOW_MS, options)
    assert failed.is_given_up or failed.attempts < limit


@pytest.mark.parametrize("reason", sorted(ENDED_REASONS))
def test_a_final_reason_ends_an_order(reason: str) -> None:
    assert end_of(reason) == reason


@pytest.mark.parametrize("reason", [None, "", "InsufficientAllowance", "Paused"])
def test_no_other_reason_ends_an_order(reason: str | None) -> None:
    assert end_of(reason) is None


def test_a_trade_whose_taker_is_over_is_over_and_keeps_its_fills() -> None:
    report = taker_ended("trade", A, "OrderExpired")
    taker = RefusedOrder("trade", A, 0, "OrderExpired", is_blamed=True)
    assert report == FailureReport((taker,), "OrderExpired")


@pytest.mark.parametrize(
    ("failing", "has_passing", "parts", "over"),
    [
        ([waiting(A)], False, {}, None),
        ([waiting(A)], True, {A: 2}, None),
        ([ended(A)], False, {A: 0}, "InvalidNonce"),
        ([ended(A)], True, {A: 1}, None),
        ([ended(A), ended(B)], False, {A: 0, B: 0}, "InvalidNonce"),
        ([ended(A), waiting(B)], False, {A: 1}, None),
        ([ended(A), waiting(B), ended(C)], True, {A: 1, C: 1, B: 2}, None),
    ],
)
def test_failing_fills_leave_in_parts(
    failing: list[FailingFill],
    has_passing: bool,  # noqa: FBT001 - a parameter of the test
    parts: dict[Bytes32, int],
    over: str | None,
) -> None:
    report = report_of_failing("trade", failing, has_passing=has_passing)
    assert {each.order_id: each.part for each in report.refused} == parts
    assert report.final_cause == over


@given(failing=failing_fills, has_passing=st.booleans())
def test_every_failing_fill_leaves_a_trade_in_which_others_pass(
    failing: list[FailingFill],
    has_passing: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    report = report_of_failing("trade", failing, has_passing=has_passing)
    by_id = {each.maker_order_id: each for each in failing}
    assert len({each.order_id for each in report.refused}) == len(report.refused)
    assert all(
        (each.cause, each.is_blamed) == (by_id[each.order_id].cause, by_id[each.order_id].is_blamed)
        for each in report.refused
    )
    assert not has_passing or len(report.refused) == len(failing)
    is_over = not has_passing and all(each.is_ended for each in failing)
    assert (report.final_cause is not None) == is_over
    assert {each.part for each in report.refused} <= ({0} if is_over else {1, 2})


def test_fills_that_pass_only_without_each_other_leave_unblamed_as_one_part() -> None:
    fills = [a_fill(each) for each in (A, B, C)]
    report = report_of_sequential("trade", fills, {B: "InsufficientAllowance", C: "Overflow"})
    assert report == FailureReport(
        (
            RefusedOrder("trade", B, 1, "InsufficientAllowance", is_blamed=False),
            RefusedOrder("trade", C, 1, "Overflow", is_blamed=False),
        )
    )


@pytest.mark.parametrize("failing", [(), (A, B)], ids=["all pass", "none passes"])
def test_a_trade_is_tried_again_whole_when_no_fill_stands_out(failing: tuple[Bytes32, ...]) -> None:
    fills = [a_fill(A), a_fill(B)]
    report = report_of_sequential("trade", fills, dict.fromkeys(failing, "Reverted"))
    assert report == FailureReport()


@given(st.integers(1, 99), st.sampled_from(Side))
def test_the_smallest_fill_costs_whole_units_at_the_same_price(
    price_ticks: int, side: Side
) -> None:
    smallest = smallest_fill(a_fill(A, price_ticks, side), 100)
    paid, received = smallest.making_units, smallest.taking_units
    cost, size = (paid, received) if side is Side.BUY else (received, paid)
    assert size == smallest.size_units
    assert cost * 100 == size * price_ticks
    assert 0 < size <= 100
    assert (smallest.maker_order_id, smallest.price_ticks) == (A, price_ticks)


def test_while_earlier_trades_fail_only_orders_that_are_over_are_blamed() -> None:
    short = RefusedOrder("trade", B, 2, "InsufficientAllowance", is_blamed=True)
    report = FailureReport((REFUSED, short), "InvalidNonce").without_blame()
    assert report == FailureReport((REFUSED, short._replace(is_blamed=False)), "InvalidNonce")


def test_a_trade_is_taken_apart_into_its_fills_and_nobody_is_blamed() -> None:
    report = taken_apart("trade", [a_fill(A), a_fill(B), a_fill(C)], "reverted in block 7")
    leaving = [(each.order_id, each.part, each.is_blamed) for each in report.refused]
    assert leaving == [(B, 1, False), (C, 2, False)]
    assert report.releases_fills


TAKER, ALICE, BOB = (an_address(name) for name in ("taker", "alice", "bob"))


def a_trade_with(*makers: Address) -> Trade:
    fills = [
        msgspec.structs.replace(a_fill(order_id), maker=maker)
        for order_id, maker in zip((A, C, a_word("d")), makers, strict=False)
    ]
    return Trade(
        trade_id="trade",
        condition_id=a_word("market"),
        taker_order_id=B,
        taker=TAKER,
        taker_owner="owner",
        side=Side.BUY,
        is_yes=True,
        size_units=1_000,
        cost_units=400,
        taker_fill_units=400,
        matched_at_ms=NOW_MS,
        fills=tuple(fills),
        ticks_per_one=100,
    )


EXCHANGE = an_address("exchange")


@pytest.mark.parametrize(
    ("failed", "wallet"),
    [
        ([], None),
        ([FailedCall(EXCHANGE, 900_000)], None),
        ([FailedCall(EXCHANGE, 900_000), FailedCall(ALICE, 800_000)], ALICE),
        ([FailedCall(EXCHANGE, 900_000), FailedCall(TAKER, 200_000), FailedCall(BOB, 9)], TAKER),
        ([FailedCall(EXCHANGE, 900_000), FailedCall(ALICE, 99_999), FailedCall(BOB, 9)], None),
    ],
)
def test_the_first_wallet_on_the_failed_path_is_proven_if_it_had_gas_enough(
    failed: list[FailedCall], wallet: Address | None
) -> None:
    assert reverting_wallet(failed, {TAKER, ALICE, BOB}) == wallet


def test_a_makers_fills_leave_the_trade_that_it_reverted_with_their_blame() -> None:
    report = report_of_reverting(a_trade_with(ALICE, BOB, ALICE), ALICE, "burns gas")
    assert report == FailureReport(
        (
            RefusedOrder("trade", A, 1, "burns gas", is_blamed=True),
            RefusedOrder("trade", a_word("d"), 1, "burns gas", is_blamed=True),
        )
    )


@pytest.mark.parametrize(("wallet", "order_id"), [(TAKER, B), (ALICE, A)])
def test_a_taker_or_the_maker_of_every_fill_ends_the_trade_that_it_reverted(
    wallet: Address, order_id: Bytes32
) -> None:
    report = report_of_reverting(a_trade_with(ALICE), wallet, "burns gas")
    blamed = RefusedOrder("trade", order_id, 0, "burns gas", is_blamed=True)
    assert report == FailureReport((blamed,), "burns gas")


def test_a_trade_that_is_mined_in_vain_goes_on_at_once_without_the_fills_that_left() -> None:
    settlement = Settlement("trade", "settle:trade:8", OPTIONS.attempts_max - 1)
    apart = taken_apart("trade", [a_fill(A), a_fill(B)], "reverted")
    after = settlement_after_mined_revert(settlement, "reverted", apart, NOW_MS, OPTIONS)
    assert (after.attempts, after.is_given_up) == (OPTIONS.attempts_max, False)
    assert (after.tx_id, after.retry_at_ms) == (None, NOW_MS)


def test_a_trade_that_is_mined_in_vain_for_a_final_cause_is_given_up() -> None:
    ended = report_of_reverting(a_trade_with(ALICE), ALICE, "burns gas")
    first = Settlement("trade", "settle:trade:1")
    after = settlement_after_mined_revert(first, "reverted", ended, NOW_MS, OPTIONS)
    assert (after.attempts, after.is_given_up, after.failure) == (1, True, "burns gas")


def test_a_trade_that_is_mined_in_vain_for_no_known_cause_has_failed_a_try() -> None:
    first = Settlement("trade", "settle:trade:1")
    again = settlement_after_mined_revert(first, "reverted", FailureReport(), NOW_MS, OPTIONS)
    assert again == failed_settlement(first, "reverted", NOW_MS, OPTIONS)


def test_a_batch_is_named_by_its_first_trade_and_the_number_of_its_try() -> None:
    batch = [Settlement("one", attempts=2), Settlement("two", attempts=0)]
    assert batch_id_of(batch) == "batch:one:3"
    assert is_batch(batch_id_of(batch))
    assert not is_batch(named_settlement(batch[0]).tx_id or "")


@given(settlement=settlements)
def test_a_trade_that_failed_within_a_batch_is_due_at_once_and_not_given_up(
    settlement: Settlement,
) -> None:
    after = settlement_after_batch(settlement, "cause", NOW_MS, OPTIONS)
    assert after == Settlement(
        settlement.trade_id,
        attempts=settlement.attempts + 1,
        retry_at_ms=NOW_MS,
        failure="cause",
    )
