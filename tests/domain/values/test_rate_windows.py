from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.values.rate_windows import (
    BUCKETS_PER_WINDOW,
    RateLimit,
    RateWindow,
    parse_limits,
    place_in_all_ms,
    windows_of,
)

TEN_S = 10_000
GRAIN_MS = TEN_S // BUCKETS_PER_WINDOW

gaps_ms = st.lists(st.integers(0, 3_000), min_size=1, max_size=200)
limits = st.integers(1, 30)


class ExactWindow:
    """A slow window that remembers every request."""

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self.times: deque[int] = deque(maxlen=limit.requests)

    def take(self, now_ms: int) -> int:
        at_ms = max(now_ms, *self.times) if self.times else now_ms
        if len(self.times) == self.limit.requests:
            at_ms = max(at_ms, self.times[0] + self.limit.window_ms)
        self.times.append(at_ms)
        return at_ms


def admitted_at(window: RateWindow, now_ms: int, requests: int = 1) -> int:
    at_ms = window.place_ms(now_ms, requests)
    window.take(at_ms, requests)
    return at_ms


@given(requests=limits, gaps=gaps_ms)
def test_no_span_of_the_windows_length_has_more_than_the_limit(
    requests: int, gaps: list[int]
) -> None:
    window, now_ms, times = RateWindow(RateLimit(requests, TEN_S)), 0, []
    for gap in gaps:
        now_ms += gap
        times.append(admitted_at(window, now_ms))
    assert times == sorted(times)
    for at, first in enumerate(times[: -requests or None]):
        if at + requests < len(times):
            assert times[at + requests] >= first + TEN_S


@given(requests=limits, gaps=gaps_ms)
def test_a_request_is_late_by_at_most_one_bucket_for_each_window_that_it_waited(
    requests: int, gaps: list[int]
) -> None:
    window, exact = RateWindow(RateLimit(requests, TEN_S)), ExactWindow(RateLimit(requests, TEN_S))
    now_ms = 0
    for number, gap in enumerate(gaps):
        now_ms += gap
        late_ms = admitted_at(window, now_ms) - exact.take(now_ms)
        assert 0 <= late_ms <= GRAIN_MS * (number // requests)


@given(requests=limits, start_ms=st.integers(0, 10**12))
def test_the_limit_is_admitted_at_once_and_the_next_one_a_window_later(
    requests: int, start_ms: int
) -> None:
    window = RateWindow(RateLimit(requests, TEN_S))
    assert [admitted_at(window, start_ms) for _ in range(requests)] == [start_ms] * requests
    assert window.remaining(start_ms) == 0
    assert window.place_ms(start_ms) == start_ms + TEN_S
    assert window.place_ms(start_ms + TEN_S) == start_ms + TEN_S


@given(requests=st.integers(1, 50), batch=st.integers(1, 80))
def test_a_batch_counts_each_of_its_requests_and_at_most_the_whole_window(
    requests: int, batch: int
) -> None:
    window = RateWindow(RateLimit(requests, TEN_S))
    window.take(0, batch)
    assert window.remaining(0) == max(0, requests - batch)
    assert window.place_ms(0, batch) == (0 if 2 * batch <= requests else TEN_S)


def test_a_batch_waits_until_there_is_room_for_all_of_it() -> None:
    window = RateWindow(RateLimit(10, TEN_S))
    for at_ms in (0, 1000, 2000):
        window.take(at_ms, 3)
    assert [window.place_ms(2000, count) for count in (1, 2, 4, 5, 10)] == [
        2000,
        TEN_S,
        TEN_S,
        TEN_S + 1000,
        TEN_S + 2000,
    ]


def test_places_that_are_taken_in_the_future_keep_their_order() -> None:
    window = RateWindow(RateLimit(2, TEN_S))
    assert [admitted_at(window, now_ms) for now_ms in (0, 0, 0, 5, 6)] == [
        0,
        0,
        10_000,
        10_000,
        20_000,
    ]
    assert window.remaining(7) == 0
    window.take(0)
    assert window.place_ms(7) >= 20_000


def test_what_is_left_and_the_time_of_the_reset_follow_the_clock() -> None:
    window = RateWindow(RateLimit(3, TEN_S))
    assert (window.remaining(0), window.reset_ms(0)) == (3, 0)
    window.take(0)
    window.take(4_000, 2)
    assert (window.remaining(4_000), window.reset_ms(4_000)) == (0, TEN_S)
    assert (window.remaining(TEN_S), window.reset_ms(TEN_S)) == (1, 4_000)
    assert (window.remaining(14_000), window.reset_ms(20_000)) == (3, 0)


@given(st.integers(1, 10_000))
def test_the_buckets_of_a_window_are_bounded(gap_ms: int) -> None:
    window = RateWindow(RateLimit(10**6, TEN_S))
    for number in range(1_000):
        window.take(number * gap_ms)
    assert len(window._buckets) <= BUCKETS_PER_WINDOW + 2


def test_all_windows_must_admit_a_request() -> None:
    windows = windows_of([RateLimit(2, TEN_S), RateLimit(3, 60_000)])
    for now_ms in (0, 0, TEN_S):
        at_ms = place_in_all_ms(windows, now_ms, 1)
        assert at_ms == now_ms
        for window in windows:
            window.take(at_ms)
    assert place_in_all_ms(windows, TEN_S, 1) == 60_000
    assert place_in_all_ms((), 5, 1) == 5


def test_changed_limits_keep_the_counts_of_windows_of_the_same_length() -> None:
    earlier = windows_of([RateLimit(2, TEN_S), RateLimit(9, 60_000)])
    earlier[0].take(0, 2)
    short, day = windows_of([RateLimit(3, TEN_S), RateLimit(5, 3_600_000)], earlier)
    assert short is earlier[0]
    assert (short.limit, short.remaining(0)) == (RateLimit(3, TEN_S), 1)
    assert (day.limit, day.remaining(0)) == (RateLimit(5, 3_600_000), 5)
    short.set_requests(1)
    assert short.remaining(0) == 0
    assert short.place_ms(0) == TEN_S


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("200/10s", [RateLimit(200, 10_000)]),
        ("2400/10s, 24000/10min", [RateLimit(2400, 10_000), RateLimit(24000, 600_000)]),
        ("1/24h", [RateLimit(1, 86_400_000)]),
        ("off", []),
    ],
)
def test_limits_are_read_and_written_as_text(text: str, limits: list[RateLimit]) -> None:
    assert list(parse_limits(text)) == limits
    assert ", ".join(limit.text for limit in limits) == (text if limits else "")


@pytest.mark.parametrize(
    "text", ["", "200", "200/s", "0/10s", "5/0s", "1/25h", "1000000001/1s", "1/10s,", "٣/10s"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_limits(text)


def test_a_window_has_room_below_its_limit_and_not_before_the_last_request() -> None:
    window = RateWindow(RateLimit(2, TEN_S))
    window.take(500)
    assert [window.has_room(now_ms) for now_ms in (499, 500)] == [False, True]
    window.take(500)
    assert not window.has_room(500)


def test_a_process_admits_its_share_of_a_window() -> None:
    window = RateWindow(RateLimit(10, TEN_S))
    assert window.admits(0, 10)
    window.share, window.elsewhere = 4, 6
    window.take(0, 3)
    assert [window.admits(0, requests) for requests in (1, 2)] == [True, False]
    assert window.remaining(0) == 1
    assert window.admits(TEN_S, 4)
    assert not window.admits(-1, 1)
