from dataclasses import replace

import pytest
from tests.rigs.clock import Clock

from foretell.chain.sending_account import AttemptTimes
from foretell.domain.evm.raw_transaction import Fees
from foretell.domain.evm.transaction import SentTx, TxAttempt, TxStatus
from foretell.domain.values.hexadecimal import Address, Bytes32

FIRST = Bytes32("0x" + "01" * 32)
SECOND = Bytes32("0x" + "02" * 32)
ACCOUNT = Address("0x" + "aa" * 20)
TX = SentTx(
    tx_id="pay-1",
    sender=ACCOUNT,
    account_nonce=1,
    target=ACCOUNT,
    calldata=b"",
    gas=21_000,
    status=TxStatus.SENT,
    attempts=(TxAttempt(FIRST, b"", Fees(2, 1), 0),),
    created_at_ms=0,
    updated_at_ms=0,
)


@pytest.fixture
def times(clock: Clock) -> AttemptTimes:
    return AttemptTimes(clock.now_ms)


@pytest.mark.parametrize("status", [TxStatus.PENDING, TxStatus.SENT])
def test_an_attempt_of_an_earlier_process_is_due_at_once(
    times: AttemptTimes, status: TxStatus
) -> None:
    assert times.is_due(replace(TX, status=status))
    assert not times.is_stuck(FIRST)


@pytest.mark.parametrize(("status", "due_after_s"), [(TxStatus.PENDING, 1), (TxStatus.SENT, 10)])
def test_an_attempt_is_due_again_some_seconds_after_its_rebroadcast(
    times: AttemptTimes, clock: Clock, status: TxStatus, due_after_s: int
) -> None:
    times.record_rebroadcast(FIRST)
    clock.move_s(due_after_s - 0.5)
    assert not times.is_due(replace(TX, status=status))
    clock.move_s(0.5)
    assert times.is_due(replace(TX, status=status))


@pytest.mark.parametrize("status", [TxStatus.PENDING, TxStatus.SENT])
def test_the_pause_after_broadcasts_in_vain_doubles_and_ends_with_one_that_is_accepted(
    times: AttemptTimes, clock: Clock, status: TxStatus
) -> None:
    tx, least_s = replace(TX, status=status), 1 if status is TxStatus.PENDING else 10
    for pause_s in (1, 2, 4, 8, 16, 30, 30):
        times.record_rebroadcast(FIRST)
        check_due_after(times, clock, tx, max(pause_s, least_s))
    times.record_rebroadcast(FIRST)
    times.record_accepted(FIRST)
    check_due_after(times, clock, tx, least_s)
    times.record_rebroadcast(FIRST)
    check_due_after(times, clock, tx, least_s)


def check_due_after(times: AttemptTimes, clock: Clock, tx: SentTx, seconds: int) -> None:
    clock.move_s(seconds - 0.5)
    assert not times.is_due(tx)
    clock.move_s(0.5)
    assert times.is_due(tx)


def test_what_waits_is_due_soon_when_the_node_takes_another_that_it_refused(
    times: AttemptTimes, clock: Clock
) -> None:
    for _ in range(6):
        for each in (FIRST, SECOND):
            times.record_rebroadcast(each)
    times.record_accepted(SECOND)
    check_due_after(times, clock, replace(TX, status=TxStatus.PENDING), 1)
    for each in (FIRST, SECOND, FIRST):
        times.record_rebroadcast(each)
    times.record_accepted(SECOND)
    check_due_after(times, clock, replace(TX, status=TxStatus.PENDING), 2)


def test_the_pause_after_replacements_in_vain_doubles(times: AttemptTimes, clock: Clock) -> None:
    times.record_accepted(FIRST)
    clock.move_s(20)
    for pause_s in (1, 2, 4, 8, 16, 30, 30):
        times.record_vain_bump(FIRST)
        times.record_accepted(FIRST)
        clock.move_s(pause_s - 0.5)
        assert not times.is_stuck(FIRST)
        clock.move_s(0.5)
        assert times.is_stuck(FIRST)


def test_an_attempt_is_stuck_twenty_seconds_after_a_node_first_accepted_it(
    times: AttemptTimes, clock: Clock
) -> None:
    times.record_accepted(FIRST)
    clock.move_s(19)
    times.record_accepted(FIRST)
    assert not times.is_stuck(FIRST)
    clock.move_s(1)
    assert times.is_stuck(FIRST)


@pytest.mark.parametrize(("seconds", "is_past"), [(-1, False), (-3_600, True)])
def test_a_clock_that_is_set_back_keeps_no_attempt_waiting(
    times: AttemptTimes, clock: Clock, seconds: int, *, is_past: bool
) -> None:
    times.record_accepted(FIRST)
    times.record_rebroadcast(FIRST)
    clock.move_s(seconds)
    assert (times.is_due(TX), times.is_stuck(FIRST)) == (is_past, is_past)
    assert times.is_old(replace(TX, attempts=(a_later_attempt(clock, seconds),))) == is_past


def a_later_attempt(clock: Clock, seconds: int) -> TxAttempt:
    """Return an attempt that was made before the clock moved by so much."""
    return replace(TX.newest, created_at_ms=clock.now_ms() - seconds * 1000)


def test_a_forgotten_attempt_is_due_and_not_stuck(times: AttemptTimes, clock: Clock) -> None:
    times.record_accepted(FIRST)
    times.record_rebroadcast(FIRST)
    clock.move_s(60)
    times.forget(FIRST)
    assert times.is_due(TX)
    assert not times.is_stuck(FIRST)


def test_only_the_times_of_waiting_attempts_are_kept(times: AttemptTimes, clock: Clock) -> None:
    times.record_accepted(FIRST)
    times.record_accepted(SECOND)
    clock.move_s(20)
    times.keep_only({SECOND})
    assert (times.is_stuck(FIRST), times.is_stuck(SECOND)) == (False, True)
