"""Builders of a history: each tenth trade has a taker whose order names one of ten, in turn."""

from collections import Counter, defaultdict
from typing import Any, Final

from foretell.domain.portfolio.builder_volumes import day_of
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, keccak256
from foretell.store.bulk import RowsByTable
from foretell.store.tables import builder_days, builder_totals, builder_users, orders
from foretell.store.wide_sums import HALF_BITS

BUILDERS: Final = 10
TRADES_PER_BROUGHT: Final = 10
BUILT: Final = (orders, builder_days, builder_users, builder_totals)
CODES: Final = tuple(f"0x{keccak256(b'builder %d' % number).hex()}" for number in range(BUILDERS))


class BroughtOrders:
    """The orders that builders brought, and the sums of what they traded."""

    def __init__(self) -> None:
        self._volume: Counter[tuple[str, int]] = Counter()
        self._fills: Counter[tuple[str, int]] = Counter()
        self._days_by_user: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)

    def bring(
        self, index: int, asset: tuple[str, str], taker: tuple[str, str], sizes: tuple[int, ...]
    ) -> list[tuple[Any, ...]]:
        """Return the row of the taker's order of a trade, if a builder brought it.

        `asset` is the condition and the token, `taker` the wallet and its side; `sizes` are the tokens, the collateral
        and the time in seconds.
        """
        if index % TRADES_PER_BROUGHT:
            return []
        code = CODES[index // TRADES_PER_BROUGHT % BUILDERS]
        (wallet, side), (units, cost, at_s) = taker, sizes
        at_ms = at_s * 1000
        key = code, day_of(at_ms)
        self._volume[key] += cost
        self._fills[key] += 1
        self._days_by_user[code, wallet][key[1]] += 1
        head = (f"order-{index}", index + 1, *asset, True, "key", wallet, wallet, side, "GTC")
        state = (50, 100, units, units, "MATCHED", None, at_ms, at_ms)
        signed = (str(index), ZERO_ADDRESS, cost, units, 0, 0, 0, 0, 0, b"")
        return [(*head, *state, *signed, None, None, None, code)]

    def sums(self) -> RowsByTable:
        """Return the sums of all orders, once the history has ended."""
        users, ended, known = Counter[Any](), Counter[Any](), Counter[str]()
        for (code, _), days in self._days_by_user.items():
            users.update((code, day) for day in days)
            ended[code, max(days)] += 1
            known[code] += 1
        volumes, fills = Counter[str](), Counter[str]()
        for key, units in self._volume.items():
            volumes[key[0]] += units
            fills[key[0]] += self._fills[key]
        return {
            builder_days: [
                (*key, *_halves(units), self._fills[key], users[key], ended[key])
                for key, units in self._volume.items()
            ],
            builder_users: [
                (*user, day, number)
                for user, days in self._days_by_user.items()
                for day, number in days.items()
            ],
            builder_totals: [
                (code, *_halves(units), fills[code], known[code]) for code, units in volumes.items()
            ],
        }


def _halves(units: int) -> tuple[int, int]:
    return divmod(units, 1 << HALF_BITS)
