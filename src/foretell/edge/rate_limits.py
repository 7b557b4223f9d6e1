"""The rate limits: the table of the rows, and the routes that count in each.

A row is one or more sliding windows with a name. A request counts in every row that lists its
route, and waits until all of them admit it. The values here are those published; settings replace
them row by row.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.values.rate_windows import RateLimit, parse_limits

WAIT_S_MAX: Final = 15
"""The longest wait of a request: a whole window of 10 s, and some time for what came before."""


class LimitRow(NamedTuple):
    """A published limit: the API, its default, and the routes that count; all of the API if None."""

    api: str
    name: str
    default: str
    routes: tuple[str, ...] | None = None

    @property
    def key(self) -> str:
        """The name of the row in settings."""
        return f"{self.api} {self.name}".strip()


_EVENTS: Final = ("GET /events", "GET /events/keyset", "GET /events/pagination")
_MARKETS: Final = ("GET /markets", "GET /markets/keyset")
_CANCELS: Final = (
    "DELETE /order",
    "DELETE /orders",
    "DELETE /cancel-all",
    "DELETE /cancel-market-orders",
)

TABLE: Final = (
    LimitRow("trading", "GET /", "50/10s", ("GET /", "GET /ok")),
    LimitRow("trading", "GET /book", "200/10s", ("GET /book",)),
    LimitRow("trading", "POST /books", "80/10s", ("POST /books",)),
    LimitRow("trading", "GET /price", "200/10s", ("GET /price",)),
    LimitRow("trading", "POST /prices", "80/10s", ("POST /prices",)),
    LimitRow("trading", "GET /midpoint", "200/10s", ("GET /midpoint",)),
    LimitRow("trading", "GET /prices-history", "100/10s", ("GET /prices-history",)),
    LimitRow("trading", "POST /batch-prices-history", "80/10s", ("POST /batch-prices-history",)),
    LimitRow("trading", "GET /trades", "150/10s", ("GET /trades", "GET /data/trades")),
    LimitRow("trading", "POST /order", "2400/10s, 24000/10min", ("POST /order", "POST /orders")),
    LimitRow("trading", "DELETE /order", "2400/10s, 24000/10min", _CANCELS),
    LimitRow("trading", "", "5000/10s"),
    LimitRow("discovery", "GET /events", "500/10s", _EVENTS),
    LimitRow("discovery", "GET /markets", "300/10s", _MARKETS),
    LimitRow("discovery", "listings", "900/10s", _EVENTS + _MARKETS),
    LimitRow("discovery", "GET /tags", "200/10s", ("GET /tags",)),
    LimitRow("discovery", "GET /public-search", "350/10s", ("GET /public-search",)),
    LimitRow("discovery", "", "4000/10s"),
    LimitRow("creation", "POST /prepare-auth", "off", ("POST /prepare-auth",)),
    LimitRow("creation", "POST /prepare", "off", ("POST /prepare",)),
    LimitRow("creation", "POST /validate", "off", ("POST /validate",)),
    LimitRow("creation", "", "off"),
    LimitRow("relayer", "", "off"),
    LimitRow("data", "", "off"),
)
"""Every row, the narrower ones of an API first: a request waits for its rows in this order."""

CANCELS: Final = frozenset(f"trading {route}" for route in _CANCELS)
"""Cancels never wait for other requests: they count in the general row, and wait in their own row alone."""

BATCHES: Final = frozenset({"trading POST /orders", "trading DELETE /orders"})
"""Routes whose body is a list of orders, each of which counts."""

SIGNED: Final = frozenset(
    {
        *(f"trading {route}" for route in _CANCELS),
        "trading POST /order",
        "trading POST /orders",
        "trading POST /order/validate",
        "trading GET /trades",
        "trading GET /data/trades",
        "trading GET /data/orders",
        "trading GET /data/order/{order_id}",
        "trading GET /data/pre-migration-orders",
        "trading GET /balance-allowance",
        "trading GET /balance-allowance/update",
        "trading POST /heartbeats",
        "trading POST /v1/heartbeats",
        "trading GET /auth/api-keys",
        "trading DELETE /auth/api-key",
        "trading GET /auth/ban-status/closed-only",
        "trading POST /auth/readonly-api-key",
        "trading GET /auth/readonly-api-keys",
        "trading DELETE /auth/readonly-api-key",
        "trading POST /auth/builder-api-key",
        "trading GET /auth/builder-api-key",
        "trading DELETE /auth/builder-api-key",
        "trading GET /rewards/user",
        "trading GET /rewards/user/markets",
        "trading GET /rewards/user/total",
        "trading GET /rewards/user/percentages",
        "trading GET /rfq/data/requests",
        "trading GET /rfq/data/quotes",
        "trading GET /rfq/data/requester/quotes",
        "trading GET /rfq/data/quoter/quotes",
        "trading GET /rfq/data/best-quote",
        "trading POST /rfq/request",
        "trading POST /rfq/quote",
        "trading POST /rfq/request/accept",
        "trading POST /rfq/quote/approve",
        "trading DELETE /rfq/request",
        "trading DELETE /rfq/quote",
        "trading POST /data/orders",
        "trading GET /notifications",
        "trading GET /profile",
        "trading POST /profile",
        "trading DELETE /notifications",
        "trading GET /order-scoring",
        "trading POST /orders-scoring",
        "relayer POST /submit",
        "relayer POST /operations/redeem-position",
        "relayer POST /operations/merge-position",
        "relayer POST /operations/split-position",
        "relayer POST /operations/convert-position",
        "relayer POST /operations/approve",
        "relayer POST /operations/set-approval",
        "relayer POST /wallet/safe",
        "relayer GET /v1/account/transactions/params",
        "relayer GET /v1/account/transactions/{transaction_id}",
    }
)
"""Routes that verify an API key and count for its account, or for the address when it is not verified.

All other routes count for the address before they are carried out.
"""


class WaitingBounds(NamedTuple):
    """The most that may wait for its turn: for how long, of one client, and of all clients."""

    wait_ms: int = WAIT_S_MAX * 1000
    requests: int = 5_000
    held_bytes: int = 64 * 1024 * 1024
    all_requests: int = 10_000
    all_held_bytes: int = 256 * 1024 * 1024


class RateLimits(NamedTuple):
    """The limits of all APIs: the windows of each row by its key, and the bounds of waiting."""

    windows_by_row: Mapping[str, tuple[RateLimit, ...]]
    bounds: WaitingBounds = WaitingBounds()
    trusted_proxies: tuple[str, ...] = ()


DEFAULTS: Final[Mapping[str, tuple[RateLimit, ...]]] = MappingProxyType(
    {row.key: parse_limits(row.default) for row in TABLE}
)


NO_LIMITS: Final = RateLimits(MappingProxyType({}))


def rows_of(api: str) -> tuple[LimitRow, ...]:
    """Return the rows of an API, in the order of the table."""
    return tuple(row for row in TABLE if row.api == api)


def windows_with(changes: Mapping[str, str] | str) -> dict[str, tuple[RateLimit, ...]]:
    """Return the windows of all rows, some of them changed; the text `off` switches every row off.

    Raises ValueError for an unknown row or a malformed limit.
    """
    if isinstance(changes, str):
        if parse_limits(changes):
            raise ValueError("must be off, or limits by the names of their rows")
        return dict.fromkeys(DEFAULTS, ())
    unknown = sorted(changes.keys() - DEFAULTS.keys())
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no row; the rows are {', '.join(DEFAULTS)}")
    return {**DEFAULTS, **{row: parse_limits(text) for row, text in changes.items()}}
