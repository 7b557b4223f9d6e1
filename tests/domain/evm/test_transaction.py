from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.chain import TxIdReused
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.evm.raw_transaction import Fees, TxFields, sign_tx
from foretell.domain.evm.transaction import (
    FINISHED,
    TX_TRANSITIONS,
    UNFINISHED,
    MinedAttempt,
    OutgoingTx,
    SentTx,
    TxAttempt,
    TxMove,
    TxStatus,
    TxTrigger,
    advance_tx,
    bumped_fees,
    moved,
    next_move,
    opening_fees,
)
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address

KEY = bytes([7]) * 32
SENDER = address_of_key(KEY)
TARGET = Address("0x" + "cd" * 20)
CONFIRMATIONS = 2


def an_attempt(fees: Fees, target: Address = TARGET, calldata: bytes = b"\x01") -> TxAttempt:
    signed = sign_tx(TxFields(80002, 4, fees, 21000, target, calldata), KEY)
    return TxAttempt(signed.tx_hash, signed.raw, fees, 1000)


REAL = an_attempt(Fees(100, 10))
NOOP = an_attempt(Fees(200, 20), SENDER, b"")


def a_tx(status: TxStatus = TxStatus.PENDING, block_number: int | None = None) -> SentTx:
    return SentTx(
        tx_id="pay-1",
        sender=SENDER,
        account_nonce=4,
        target=TARGET,
        calldata=b"\x01",
        gas=21000,
        status=status,
        attempts=(REAL, NOOP),
        created_at_ms=1000,
        updated_at_ms=1000,
        mined_hash=None if block_number is None else REAL.tx_hash,
        block_number=block_number,
    )


PAIRS = list(product(TxStatus, TxTrigger))


@pytest.mark.parametrize(("status", "trigger"), [pair for pair in PAIRS if pair in TX_TRANSITIONS])
def test_a_listed_transition_leads_to_its_status(status: TxStatus, trigger: TxTrigger) -> None:
    assert advance_tx(status, trigger) is TX_TRANSITIONS[status, trigger]


@pytest.mark.parametrize(
    ("status", "trigger"), [pair for pair in PAIRS if pair not in TX_TRANSITIONS]
)
def test_any_other_step_is_refused(status: TxStatus, trigger: TxTrigger) -> None:
    with pytest.raises(IllegalTransition, match=trigger):
        advance_tx(status, trigger)


def test_a_finished_transaction_never_moves_again() -> None:
    assert {status for status, _ in TX_TRANSITIONS} == UNFINISHED
    assert not {status for status, _ in TX_TRANSITIONS} & FINISHED
    assert a_tx(TxStatus.CANCELED).is_finished
    assert not a_tx(TxStatus.REVERTED, 5).is_finished


def test_an_id_belongs_to_one_call() -> None:
    a_tx().check_same(OutgoingTx("pay-1", TARGET, b"\x01", gas=99))
    with pytest.raises(TxIdReused, match="pay-1"):
        a_tx().check_same(OutgoingTx("pay-1", TARGET, b"\x02"))
    with pytest.raises(TxIdReused):
        a_tx().check_same(OutgoingTx("pay-1", SENDER, b"\x01"))


def test_a_further_attempt_is_the_newest_and_keeps_the_failure_of_earlier_ones() -> None:
    first = SentTx("x", SENDER, 4, TARGET, b"\x01", 21000, TxStatus.SENT, (REAL,), 1, 1)
    assert not first.is_given_up
    second = first.with_attempt(NOOP, "intrinsic gas too low")
    assert second.newest is NOOP
    assert second.is_given_up
    assert second.failure == "intrinsic gas too low"
    assert second.with_attempt(REAL).failure == "intrinsic gas too low"


def seen(attempt: TxAttempt, block_number: int, *, is_success: bool = True) -> MinedAttempt:
    return MinedAttempt(attempt.tx_hash, block_number, is_success)


@pytest.mark.parametrize(
    ("status", "block_number", "sighting", "head", "trigger"),
    [
        (TxStatus.PENDING, None, None, 10, None),
        (TxStatus.SENT, None, seen(REAL, 10), 10, TxTrigger.MINE),
        (TxStatus.PENDING, None, seen(REAL, 10), 50, TxTrigger.MINE),
        (TxStatus.SENT, None, seen(REAL, 10, is_success=False), 10, TxTrigger.REVERT),
        (TxStatus.MINED, 10, seen(REAL, 10), 11, None),
        (TxStatus.MINED, 10, seen(REAL, 10), 12, TxTrigger.CONFIRM),
        (TxStatus.REVERTED, 10, seen(REAL, 10, is_success=False), 12, TxTrigger.CONFIRM),
        (TxStatus.MINED, 10, None, 12, TxTrigger.UNMINE),
        (TxStatus.REVERTED, 10, None, 12, TxTrigger.UNMINE),
        (TxStatus.MINED, 10, seen(REAL, 11), 13, TxTrigger.UNMINE),
        (TxStatus.MINED, 10, seen(REAL, 10, is_success=False), 13, TxTrigger.UNMINE),
        (TxStatus.REVERTED, 10, seen(REAL, 10), 13, TxTrigger.UNMINE),
        (TxStatus.SENT, None, seen(NOOP, 10), 11, None),
        (TxStatus.SENT, None, seen(NOOP, 10), 12, TxTrigger.CANCEL),
        (TxStatus.PENDING, None, seen(NOOP, 10), 12, TxTrigger.CANCEL),
        (TxStatus.MINED, 10, seen(NOOP, 10), 99, TxTrigger.UNMINE),
    ],
)
def test_the_sighting_of_an_attempt_gives_the_next_move(
    status: TxStatus,
    block_number: int | None,
    sighting: MinedAttempt | None,
    head: int,
    trigger: TxTrigger | None,
) -> None:
    move = next_move(a_tx(status, block_number), sighting, head, CONFIRMATIONS)
    assert (move and move.trigger) is trigger


sightings = st.none() | st.builds(
    MinedAttempt, st.sampled_from([REAL.tx_hash, NOOP.tx_hash]), st.integers(1, 9), st.booleans()
)


def settled(tx: SentTx, sighting: MinedAttempt | None, head: int) -> tuple[SentTx, int]:
    """Return the transaction after all moves of a sighting, and their number."""
    steps = 0
    while not tx.is_finished and (move := next_move(tx, sighting, head, CONFIRMATIONS)):
        tx, steps = moved(tx, move, 2000), steps + 1
    return tx, steps


@given(st.lists(st.tuples(sightings, st.integers(1, 12)), max_size=30))
def test_every_sequence_of_sightings_stays_on_the_table_and_ends(
    shown: list[tuple[MinedAttempt | None, int]],
) -> None:
    tx = a_tx(TxStatus.SENT)
    for sighting, head in shown:
        tx, steps = settled(tx, sighting, head)
        assert steps <= 3
        assert (tx.block_number is None) is (tx.status in {TxStatus.PENDING, TxStatus.SENT})
        assert (tx.failure is not None) is (tx.status in {TxStatus.REVERTED, TxStatus.FAILED})


def test_a_move_records_the_block_and_the_time() -> None:
    tx = moved(a_tx(TxStatus.SENT), TxMove(TxTrigger.MINE, REAL.tx_hash, 9), 7000)
    assert (tx.status, tx.mined_hash, tx.block_number, tx.updated_at_ms) == (
        TxStatus.MINED,
        REAL.tx_hash,
        9,
        7000,
    )


def test_the_cause_of_a_cancellation_stays_and_that_of_a_revert_goes_with_its_block() -> None:
    given_up = a_tx().with_attempt(NOOP, "intrinsic gas too low")
    assert moved(given_up, TxMove(TxTrigger.CANCEL), 1).failure == "intrinsic gas too low"
    used = TxMove(TxTrigger.CANCEL, failure="nonce 4 was used elsewhere")
    assert moved(given_up, used, 1).failure == "nonce 4 was used elsewhere"
    reverted = moved(a_tx(), TxMove(TxTrigger.REVERT, REAL.tx_hash, 9, "reverted in block 9"), 1)
    assert reverted.failure == "reverted in block 9"
    assert moved(reverted, TxMove(TxTrigger.UNMINE), 1).failure is None


def test_a_step_that_is_not_on_the_table_is_refused() -> None:
    with pytest.raises(IllegalTransition):
        moved(a_tx(TxStatus.CONFIRMED, 5), TxMove(TxTrigger.UNMINE), 1)


def test_the_first_attempt_leaves_room_for_the_base_fee_to_double() -> None:
    assert opening_fees(100, 7, 10_000) == Fees(207, 7)
    assert opening_fees(100, 7, 150) == Fees(150, 7)
    assert opening_fees(100, 70, 50) == Fees(50, 50)


fees_strategy = st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)).map(
    lambda pair: Fees(max(pair), min(pair))
)


@given(last=fees_strategy, market=fees_strategy, spare_wei=st.integers(0, 10**12))
def test_a_replacement_raises_both_fees_by_an_eighth_within_the_cap(
    last: Fees, market: Fees, spare_wei: int
) -> None:
    cap_wei = last.max_fee_wei * 9 // 8 + 1 + spare_wei
    fees = bumped_fees(last, market, cap_wei)
    assert fees is not None
    assert fees.priority_fee_wei <= fees.max_fee_wei <= cap_wei
    assert 8 * fees.max_fee_wei >= 9 * last.max_fee_wei
    assert 8 * fees.priority_fee_wei >= 9 * last.priority_fee_wei
    assert fees.max_fee_wei > last.max_fee_wei
    assert fees.priority_fee_wei > last.priority_fee_wei


@given(last=fees_strategy, market=fees_strategy)
def test_without_room_to_rise_there_is_no_replacement(last: Fees, market: Fees) -> None:
    assert bumped_fees(last, market, last.max_fee_wei) is None


@pytest.mark.parametrize(
    ("last", "market", "cap_wei", "expected"),
    [
        (Fees(800, 80), Fees(0, 0), 10_000, Fees(900, 90)),
        (Fees(801, 81), Fees(0, 0), 10_000, Fees(902, 92)),
        (Fees(0, 0), Fees(0, 0), 10_000, Fees(1, 1)),
        (Fees(800, 80), Fees(5000, 50), 10_000, Fees(5000, 90)),
        (Fees(800, 80), Fees(5000, 4999), 950, Fees(950, 950)),
        (Fees(800, 80), Fees(5000, 50), 900, Fees(900, 90)),
        (Fees(800, 80), Fees(5000, 50), 899, None),
    ],
)
def test_the_cap_has_the_last_word(
    last: Fees, market: Fees, cap_wei: int, expected: Fees | None
) -> None:
    assert bumped_fees(last, market, cap_wei) == expected
