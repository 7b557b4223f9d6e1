import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import an_address

from foretell.domain.exchange.commands import BarWallet
from foretell.domain.exchange.wallets.wallet_bars import (
    CAUSE_CHARS_MAX,
    DAY_MS,
    BarOptions,
    Offence,
    WalletBar,
    bar_after,
    barred_by_operator,
    bars_of,
    day_of,
    ended,
    ended_by_operator,
    kept,
    postponed,
    probed,
    unpaying_wallet,
)
from foretell.domain.values.call_trace import FailedCall

ALICE, BOB, TOKEN, EXCHANGE = map(an_address, ("alice", "bob", "token", "exchange"))
NOW = 400 * DAY_MS
OPTIONS = BarOptions(gas_per_day_max=1_000)
REVERTING = Offence(ALICE, is_reverting=True, gas=900, cause="reverts when mined")
UNPAYING = Offence(ALICE, is_reverting=False, gas=900, cause="reverts when mined")


def barred(known: WalletBar | None = None, at_ms: int = NOW) -> WalletBar:
    bar = bar_after(known, REVERTING, 900, at_ms, OPTIONS)
    assert bar is not None
    return bar


def test_a_wallet_whose_code_fails_is_barred_at_once() -> None:
    bar = barred()
    assert (bar.is_barred, bar.cause, bar.offences) == (True, "reverts when mined", 1)
    assert bar.probe_at_ms == NOW + OPTIONS.probe_delay_ms


@pytest.mark.parametrize(
    ("gas_per_day_max", "gas_of_day", "is_barred"),
    [(1_000, 1_000, False), (1_000, 1_001, True), (0, 10**9, False)],
)
def test_a_wallet_that_cannot_pay_is_barred_once_it_costs_more_than_it_may(
    gas_per_day_max: int, gas_of_day: int, *, is_barred: bool
) -> None:
    bar = bar_after(None, UNPAYING, gas_of_day, NOW, BarOptions(gas_per_day_max=gas_per_day_max))
    assert (bar is not None) is is_barred
    assert bar is None or bar.cause == f"its failed settlements cost {gas_of_day} gas in a day"


@given(times=st.integers(1, 60))
def test_the_time_to_a_probe_doubles_with_each_offence_up_to_a_bound(times: int) -> None:
    bar = barred()
    for _ in range(times - 1):
        bar = barred(ended(probed(bar)))
    wanted = min(OPTIONS.probe_delay_ms * 2 ** (times - 1), OPTIONS.probe_delay_ms_max)
    assert bar.probe_at_ms == NOW + wanted
    assert (bar.offences, bar.probes) == (times, times - 1)


def test_an_offence_of_long_ago_is_forgotten() -> None:
    assert barred(ended(barred()), NOW + OPTIONS.forgotten_ms - 1).offences == 2
    assert barred(ended(barred()), NOW + OPTIONS.forgotten_ms).offences == 1


def test_each_probe_has_an_id_of_its_own_and_an_offence_makes_one_on_its_way_count_nothing() -> (
    None
):
    bar = probed(barred())
    assert bar.probe_tx_id == f"probe:{ALICE}:1"
    again = barred(bar)
    assert (again.probe_tx_id, probed(again).probe_tx_id) == (None, f"probe:{ALICE}:2")


def test_a_failed_probe_keeps_the_bar_and_one_that_said_nothing_is_sent_later() -> None:
    bar = probed(barred())
    failed = kept(bar, "x" * 1_000, NOW, OPTIONS)
    assert (failed.offences, failed.probe_tx_id, len(failed.cause)) == (2, None, CAUSE_CHARS_MAX)
    assert failed.probe_at_ms == NOW + 2 * OPTIONS.probe_delay_ms
    later = postponed(bar, NOW, OPTIONS)
    assert (later.offences, later.probe_at_ms) == (1, NOW + OPTIONS.probe_delay_ms)


def test_the_operator_s_bar_stays_and_its_end_forgets_offences() -> None:
    bar = barred_by_operator(barred(), ALICE, "asked by a court", NOW)
    assert (bar.probe_at_ms, bar.offences) == (None, 1)
    assert bar_after(bar, REVERTING, 900, NOW, OPTIONS) is None
    free = ended_by_operator(bar, ALICE, NOW)
    assert (free.is_barred, free.offences) == (False, 0)
    assert ended_by_operator(None, BOB, NOW).wallet == BOB
    assert barred_by_operator(None, BOB, "x", NOW).offences == 0


def test_an_engine_is_brought_up_to_the_rows_and_a_bar_without_one_stays() -> None:
    carol, dave = an_address("carol"), an_address("dave")
    known = {BOB: "old", carol: "restored", dave: "same"}
    rows = [
        barred(),
        barred()._replace(wallet=BOB, cause="new"),
        barred()._replace(wallet=dave, cause="same"),
        ended(barred()._replace(wallet=an_address("erin"))),
    ]
    assert bars_of(known, rows, 5) == [
        BarWallet(5, ALICE, is_barred=True, cause="reverts when mined"),
        BarWallet(5, BOB, is_barred=True, cause="new"),
    ]
    assert bars_of(known, [ended(rows[1])], 5) == [BarWallet(5, BOB, is_barred=False, cause="new")]


@pytest.mark.parametrize(
    ("failed", "payer"),
    [
        ([], None),
        ([FailedCall(EXCHANGE, 900_000), FailedCall(TOKEN, 800_000, ALICE)], ALICE),
        ([FailedCall(EXCHANGE, 900_000), FailedCall(TOKEN, 800_000, EXCHANGE)], None),
        ([FailedCall(EXCHANGE, 900_000), FailedCall(TOKEN, 99_999, ALICE)], None),
        ([FailedCall(EXCHANGE, 900_000), FailedCall(BOB, 800_000, ALICE)], None),
        ([FailedCall(TOKEN, 900_000, ALICE), FailedCall(BOB, 800_000)], None),
    ],
)
def test_only_a_transfer_that_failed_first_shows_who_could_not_pay(
    failed: list[FailedCall], payer: str | None
) -> None:
    assert unpaying_wallet(failed, {ALICE, BOB}, {TOKEN}) == payer


def test_a_day_is_one_of_utc() -> None:
    assert (day_of(NOW - 1), day_of(NOW)) == (399, 400)
