"""The limiter in virtual time, with the published limits."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.rigs.clock import VirtualLoop, run_virtually

from foretell.domain.errors.http import ClientGone, TooManyRequests
from foretell.domain.values.rate_windows import RateLimit
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import DEFAULTS, NO_LIMITS, RateLimits, WaitingBounds, windows_with
from foretell.edge.throttle import OVERHEAD_BYTES, Turn

PUBLISHED = RateLimits(DEFAULTS)
RAISED = RateLimits(
    windows_with({"discovery GET /events": "900/10s", "discovery GET /markets": "900/10s"})
)


STEP_S = 0.02
"""Requests that are due so soon are sent together."""


class Published(NamedTuple):
    """A row of the specification: a route that counts in it, and its windows."""

    api: str
    method: str
    path: str
    requests: int
    window_s: int = 10
    limits: RateLimits = PUBLISHED


def row(number: int, *fields: Any) -> Any:
    published = Published(*fields)
    name = f"{number} {published.method} {published.path} {published.window_s}s"
    return pytest.param(published, marks=pytest.mark.spec(number), id=name)


ROWS = [
    row(128, "trading", "GET", "/time", 5000),
    row(129, "trading", "GET", "/", 50),
    row(130, "trading", "GET", "/book", 200),
    row(131, "trading", "POST", "/books", 80),
    row(132, "trading", "GET", "/price", 200),
    row(133, "trading", "POST", "/prices", 80),
    row(134, "trading", "GET", "/midpoint", 200),
    row(135, "trading", "GET", "/prices-history", 100),
    row(136, "trading", "POST", "/batch-prices-history", 80),
    row(137, "trading", "GET", "/trades", 150),
    row(138, "trading", "POST", "/order", 2400),
    row(139, "trading", "DELETE", "/order", 2400),
    row(140, "discovery", "GET", "/events/7", 4000),
    row(141, "discovery", "GET", "/events", 500),
    row(142, "discovery", "GET", "/markets", 300),
    row(143, "discovery", "GET", "/events", 900, 10, RAISED),
    row(144, "discovery", "GET", "/tags", 200),
    row(145, "discovery", "GET", "/public-search", 350),
]
SUSTAINED = [
    row(138, "trading", "POST", "/order", 24_000, 600),
    row(139, "trading", "DELETE", "/order", 24_000, 600),
]


class Traffic:
    """One client that sends requests, and the times at which they were admitted or refused."""

    def __init__(self, api: str = "trading", limits: RateLimits = PUBLISHED, **named: Any) -> None:
        self.loop = VirtualLoop()
        self.limiter = RateLimiter(api, limits, self.loop.now_ms, **named)
        self.admitted_ms: list[int] = []
        self.refused: list[TooManyRequests] = []
        self.tasks: list[asyncio.Task[None]] = []

    def turn(self, method: str, path: str, body_bytes: int = 0) -> Turn:
        route = self.limiter.route(method, path)
        return Turn(self.limiter, route, "203.0.113.1", body_bytes)

    def send(self, method: str, path: str, client: str = "alice", requests: int = 1) -> Turn:
        turn = self.turn(method, path)
        try:
            if turn.take(client, requests):
                self.admitted_ms.append(self.loop.now_ms())
            else:
                self.tasks.append(self.loop.create_task(self._wait(turn)))
        except TooManyRequests as refusal:
            self.refused.append(refusal)
        return turn

    async def _wait(self, turn: Turn) -> None:
        try:
            await turn.admitted()
        except TooManyRequests as refusal:
            self.refused.append(refusal)
        else:
            self.admitted_ms.append(self.loop.now_ms())

    async def send_evenly(self, method: str, path: str, per_second: float, seconds: float) -> None:
        """Send requests at a steady rate."""
        for number in range(round(per_second * seconds)):
            due_s = number / per_second
            if due_s >= self.loop.time() + STEP_S:
                await asyncio.sleep(due_s - self.loop.time())
            self.send(method, path)

    async def finish(self) -> None:
        await asyncio.gather(*self.tasks)

    def admitted_before(self, seconds: float) -> int:
        return sum(at_ms < seconds * 1000 for at_ms in self.admitted_ms)

    def most_in(self, window_ms: int) -> int:
        """Return the most requests in any span of a length."""
        times, first, most = sorted(self.admitted_ms), 0, 0
        for at, time_ms in enumerate(times):
            while times[first] <= time_ms - window_ms:
                first += 1
            most = max(most, at - first + 1)
        return most

    def run(self, work: Any) -> None:
        run_virtually(work, self.loop)


@pytest.fixture
def traffic() -> Iterator[Traffic]:
    yield (traffic := Traffic())
    if not traffic.loop.is_closed():
        traffic.loop.close()


@pytest.mark.case("G-05")
@pytest.mark.parametrize("load", [1, 2, 10])
@pytest.mark.parametrize("published", ROWS)
def test_a_row_admits_its_limit_at_any_load(published: Published, load: int) -> None:
    """Within 2 %: what is offered or the limit, and never more than the limit in a window."""
    api, method, path, requests, window_s, limits = published
    traffic, windows = Traffic(api, limits), 2
    rate = load * requests / window_s

    async def play() -> None:
        await traffic.send_evenly(method, path, rate, windows * window_s)
        await traffic.finish()

    traffic.run(play())
    wanted = windows * requests
    assert traffic.admitted_before(windows * window_s) == pytest.approx(wanted, rel=0.02)
    assert traffic.most_in(window_s * 1000) <= requests


@pytest.mark.parametrize("load", [1, 2, 10])
@pytest.mark.parametrize("published", SUSTAINED)
def test_the_sustained_window_admits_its_limit_at_any_load(published: Published, load: int) -> None:
    api, method, path, requests, window_s, limits = published
    traffic, windows = Traffic(api, limits), 1 if load == 10 else 2

    async def play() -> None:
        await traffic.send_evenly(method, path, load * requests / window_s, windows * window_s)
        await traffic.finish()

    traffic.run(play())
    assert traffic.admitted_before(windows * window_s) == pytest.approx(
        windows * requests, rel=0.02
    )
    assert traffic.most_in(window_s * 1000) <= requests
    assert traffic.most_in(10_000) <= 2400


@pytest.mark.parametrize("published", ROWS)
def test_the_limit_is_admitted_at_once_and_the_next_request_a_window_later(
    published: Published,
) -> None:
    api, method, path, requests, window_s, limits = published
    traffic = Traffic(api, limits)

    async def play() -> None:
        for _ in range(requests):
            traffic.send(method, path)
        assert len(traffic.admitted_ms) == requests
        late = traffic.send(method, path)
        assert len(traffic.admitted_ms) == requests
        await traffic.finish()
        assert late.throttled_ms == window_s * 1000

    traffic.run(play())


@pytest.mark.spec(126)
@pytest.mark.parametrize("published", ROWS)
def test_a_burst_of_twice_the_limit_is_answered_in_full(published: Published) -> None:
    api, method, path, requests, _, limits = published
    traffic = Traffic(api, limits)

    async def play() -> None:
        for _ in range(2 * requests):
            traffic.send(method, path)
        await traffic.finish()

    traffic.run(play())
    assert traffic.refused == []
    assert len(traffic.admitted_ms) == 2 * requests
    assert traffic.admitted_ms == sorted(traffic.admitted_ms)


@pytest.mark.case("G-05")
@pytest.mark.spec(127)
@pytest.mark.parametrize("published", ROWS)
def test_windows_slide_so_that_no_edge_admits_two_bursts(published: Published) -> None:
    api, method, path, requests, window_s, limits = published
    traffic = Traffic(api, limits)

    async def play() -> None:
        await asyncio.sleep(0.99 * window_s)
        for _ in range(2):
            for _ in range(requests):
                traffic.send(method, path)
            await asyncio.sleep(0.02 * window_s)
        await traffic.finish()

    traffic.run(play())
    assert traffic.most_in(window_s * 1000) == requests


@pytest.mark.spec(143)
@pytest.mark.parametrize("last", ["/events", "/markets"])
def test_events_and_markets_share_the_limit_of_listings(last: str) -> None:
    traffic = Traffic("discovery", RAISED)

    async def play() -> None:
        for number in range(900):
            traffic.send("GET", ("/events", "/markets")[number % 2])
        assert len(traffic.admitted_ms) == 900
        traffic.send("GET", last)
        await traffic.finish()

    traffic.run(play())
    assert traffic.most_in(10_000) == 900
    assert len(traffic.admitted_ms) == 901


@pytest.mark.spec(138, 139)
@pytest.mark.parametrize(("method", "path"), [("POST", "/orders"), ("DELETE", "/orders")])
def test_a_batch_counts_its_orders(traffic: Traffic, method: str, path: str) -> None:
    async def play() -> None:
        for _ in range(160):
            traffic.send(method, path, requests=15)
        assert len(traffic.admitted_ms) == 160
        late = traffic.send(method, "/order")
        await traffic.finish()
        assert late.throttled_ms == 10_000

    traffic.run(play())


@pytest.mark.case("G-05")
@pytest.mark.spec(139)
def test_cancels_wait_in_their_own_row_alone() -> None:
    traffic = Traffic(limits=PUBLISHED._replace(bounds=WaitingBounds(all_requests=2_500)))

    async def play() -> None:
        for _ in range(4_800):
            traffic.send("POST", "/order")
        for _ in range(5_000):
            traffic.send("GET", "/time")
        assert traffic.send("GET", "/time").is_open is False
        assert traffic.refused != []
        admitted = len(traffic.admitted_ms)
        for _ in range(2_400):
            traffic.send("DELETE", "/order")
        assert len(traffic.admitted_ms) == admitted + 2_400
        late = traffic.send("DELETE", "/cancel-all")
        refused = len(traffic.refused)
        await asyncio.sleep(10.1)
        assert late.throttled_ms == 10_000
        assert len(traffic.refused) == refused
        await traffic.finish()

    traffic.run(play())


def test_cancels_count_in_the_general_row(traffic: Traffic) -> None:
    traffic.send("DELETE", "/order")
    (general,) = [use for use in traffic.limiter.use("alice") if use.row.key == "trading"]
    assert general.remaining == 4_999


def test_a_row_that_is_used_up_delays_no_other_row(traffic: Traffic) -> None:
    async def play() -> None:
        for _ in range(100):
            traffic.send("GET", "/")
        assert len(traffic.admitted_ms) == 50
        traffic.send("GET", "/book")
        traffic.send("GET", "/time")
        assert len(traffic.admitted_ms) == 52
        await traffic.finish()

    traffic.run(play())


def test_what_waits_for_its_row_still_counts_in_the_general_row_when_it_is_admitted() -> None:
    traffic = Traffic()

    async def play() -> None:
        for _ in range(4_800):
            traffic.send("POST", "/order")
        await asyncio.sleep(9.9)
        for _ in range(2_600):
            traffic.send("GET", "/time")
        await traffic.finish()

    traffic.run(play())
    assert len(traffic.admitted_ms) == 7_400
    assert traffic.most_in(10_000) <= 5_000


def test_attack_m5_clients_do_not_share_a_limit(traffic: Traffic) -> None:
    for client in ("alice", "bob"):
        for _ in range(50):
            traffic.send("GET", "/", client)
    assert len(traffic.admitted_ms) == 100


@pytest.mark.spec(126)
def test_beyond_the_longest_wait_a_request_is_refused_with_the_time_of_its_place(
    traffic: Traffic,
) -> None:
    async def play() -> None:
        for _ in range(101):
            traffic.send("GET", "/")
        (refusal,) = traffic.refused
        assert refusal.retry_after_s == 20
        await traffic.finish()
        await asyncio.sleep(19.9 - traffic.loop.time())
        admitted = len(traffic.admitted_ms)
        traffic.send("GET", "/")
        assert len(traffic.admitted_ms) == admitted
        await asyncio.sleep(refusal.retry_after_s - traffic.loop.time() + 0.001)
        traffic.send("GET", "/")
        assert traffic.loop.now_ms() - 1 in {20_000, traffic.admitted_ms[-1] - 1}

    traffic.run(play())


@pytest.mark.spec(138)
def test_a_used_up_sustained_window_refuses_with_a_true_time() -> None:
    traffic = Traffic()

    async def play() -> None:
        await traffic.send_evenly("POST", "/order", 240, 100)
        await traffic.finish()
        assert len(traffic.admitted_ms) == 24_000
        traffic.send("POST", "/order")
        (refusal,) = traffic.refused
        assert refusal.retry_after_s is not None
        assert refusal.retry_after_s == pytest.approx(600 - traffic.loop.time(), abs=6)
        await asyncio.sleep(refusal.retry_after_s)
        traffic.send("POST", "/order")
        assert len(traffic.admitted_ms) == 24_001

    traffic.run(play())


@pytest.mark.case("G-05")
@pytest.mark.parametrize(
    "bounds",
    [
        WaitingBounds(requests=3),
        WaitingBounds(held_bytes=3 * OVERHEAD_BYTES),
        WaitingBounds(all_requests=3),
        WaitingBounds(all_held_bytes=3 * OVERHEAD_BYTES),
    ],
    ids=["requests", "bytes", "requests of all", "bytes of all"],
)
def test_what_waits_is_bounded(bounds: WaitingBounds) -> None:
    traffic = Traffic(limits=PUBLISHED._replace(bounds=bounds))

    async def play() -> None:
        for _ in range(55):
            traffic.send("GET", "/")
        assert len(traffic.refused) == 2
        await traffic.finish()
        assert len(traffic.admitted_ms) == 53
        assert (traffic.limiter.others.requests, traffic.limiter.others.held_bytes) == (0, 0)

    traffic.run(play())


def test_the_bounds_of_one_client_leave_room_for_another() -> None:
    traffic = Traffic(limits=PUBLISHED._replace(bounds=WaitingBounds(requests=3)))

    async def play() -> None:
        for client in ("alice", "bob"):
            for _ in range(54):
                traffic.send("GET", "/", client)
        await traffic.finish()

    traffic.run(play())
    assert (len(traffic.admitted_ms), len(traffic.refused)) == (106, 2)


@pytest.mark.spec(149)
@pytest.mark.parametrize("api", ["data", "relayer", "creation"])
def test_an_api_without_limits_never_delays(api: str) -> None:
    traffic = Traffic(api)
    turn = traffic.send("GET", "/positions")
    for _ in range(49_999):
        traffic.send("GET", "/positions")
    assert len(traffic.admitted_ms) == 50_000
    assert turn.header_lines() == ()
    assert traffic.limiter.use("alice") == []
    traffic.loop.close()


@pytest.mark.spec(148)
@pytest.mark.parametrize("path", ["/prepare-auth", "/prepare"])
def test_an_operator_limits_the_opening_of_requests(path: str) -> None:
    limits = RateLimits(windows_with({f"creation POST {path}": "2/10s"}))
    traffic = Traffic("creation", limits)

    async def play() -> None:
        for _ in range(3):
            traffic.send("POST", path)
        assert len(traffic.admitted_ms) == 2
        await traffic.finish()

    traffic.run(play())
    assert traffic.admitted_ms == [0, 0, 10_000]


@pytest.mark.spec(146)
def test_changed_limits_apply_to_the_next_request_and_keep_the_counts(traffic: Traffic) -> None:
    for _ in range(50):
        traffic.send("GET", "/")
    traffic.limiter.change(RateLimits(windows_with({"trading GET /": "52/10s"})))
    for _ in range(2):
        traffic.send("GET", "/")
    assert len(traffic.admitted_ms) == 52
    (row,) = [use for use in traffic.limiter.use("alice") if use.row.key == "trading GET /"]
    assert (row.requests, row.remaining) == (52, 0)
    traffic.limiter.change(NO_LIMITS)
    assert [traffic.turn("GET", "/").take("alice") for _ in range(100)] == [True] * 100


def test_the_headers_are_those_of_the_window_with_the_fewest_requests_left(
    traffic: Traffic,
) -> None:
    turns = [traffic.send("POST", "/order") for _ in range(3)]
    assert dict(turns[-1].header_lines()) == {
        "ratelimit-limit": "2400",
        "ratelimit-remaining": "2397",
        "ratelimit-reset": "10",
    }
    for _ in range(2_000):
        traffic.send("GET", "/time")
    last = traffic.send("GET", "/time")
    assert dict(last.header_lines())["ratelimit-remaining"] == "2996"
    assert "ratelimit-limit: 5000\r\n" in last.header_text()


def test_a_request_whose_connection_closed_is_not_carried_out(traffic: Traffic) -> None:
    async def play() -> None:
        for _ in range(50):
            traffic.send("GET", "/")
        turn = traffic.turn("GET", "/")
        assert turn.take("alice") is False
        turn.is_abandoned = True
        with pytest.raises(ClientGone):
            await turn.admitted()

    traffic.run(play())


def test_what_waits_is_refused_when_the_process_stops(traffic: Traffic) -> None:
    async def play() -> None:
        for _ in range(52):
            traffic.send("GET", "/")
        await asyncio.sleep(1)
        traffic.limiter.close()
        await traffic.finish()
        assert traffic.limiter.others.requests == 0

    traffic.run(play())
    assert [refusal.retry_after_s for refusal in traffic.refused] == [1, 1]


@pytest.mark.case("C-15")
def test_the_client_that_was_idle_for_longest_makes_way() -> None:
    traffic = Traffic(clients_max=2)
    for client in ("alice", "bob", "alice", "carol"):
        traffic.send("GET", "/", client)
    remaining = {
        client: traffic.limiter.use(client)[0].remaining for client in ("alice", "bob", "carol")
    }
    assert remaining == {"alice": 48, "bob": 50, "carol": 49}
    assert len(traffic.limiter) == 2
    traffic.loop.close()


def test_a_wider_row_that_fills_while_a_request_waits_is_waited_for_within_a_bound() -> None:
    limits = {"trading GET /": (RateLimit(1, 10_000),), "trading": (RateLimit(10, 40_000),)}
    traffic = Traffic(limits=RateLimits(limits))

    async def play() -> None:
        traffic.send("GET", "/")
        traffic.send("GET", "/")
        await asyncio.sleep(9)
        for _ in range(9):
            traffic.send("GET", "/time")
        await traffic.finish()

    traffic.run(play())
    assert len(traffic.admitted_ms) == 10
    assert [refusal.retry_after_s for refusal in traffic.refused] == [30]
