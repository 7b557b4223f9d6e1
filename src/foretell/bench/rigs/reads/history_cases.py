"""Reads of price histories: a point a day as charts ask for them, and as many points as there may be."""

from typing import Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from foretell.bench.rigs.reads.history import DAY_S, DAYS, NOW_S, Names, a_condition, a_token
from foretell.bench.rigs.reads.read_case import TRADING, ReadCase
from foretell.domain.portfolio.price_history import MINUTE_S, POINTS_MAX, points_of_each
from foretell.trading.handlers.price_history import TOKENS_PER_BATCH_MAX

_LATEST: Final = """(SELECT best_bid_ticks FROM quote_points
        WHERE condition_id = {} AND minute < end_s / 60 ORDER BY minute DESC LIMIT 1)"""


class Points(NamedTuple):
    """The ends of so many buckets, each a step after the other; the last one is not after the end of the history."""

    number: int
    step_s: int

    @property
    def last_s(self) -> int:
        """The end of the last bucket."""
        return NOW_S // self.step_s * self.step_s

    @property
    def first_s(self) -> int:
        """The end of the first bucket."""
        return self.last_s - (self.number - 1) * self.step_s

    def ends(self) -> str:
        """Return the SQL of the ends."""
        return f"""WITH RECURSIVE ends(end_s) AS (SELECT {self.first_s} UNION ALL
            SELECT end_s + {self.step_s} FROM ends WHERE end_s < {self.last_s})"""  # noqa: S608 - the rig's own numbers


DAILY: Final = Points(points_of_each(TOKENS_PER_BATCH_MAX), DAY_S)
MOST: Final = Points(POINTS_MAX, (DAYS - 10) * DAY_S // (POINTS_MAX * MINUTE_S) * MINUTE_S)
"""As many as a history may have, and nearly as long: by its first ten days each market has traded."""


def history_cases(names: Names) -> list[ReadCase]:
    """Return the reads of one token's history, of a batch for charts, and of the largest batch."""
    half = TOKENS_PER_BATCH_MAX // 2
    both = [a_token(each, is_yes=is_yes) for each in range(half) for is_yes in (True, False)]
    return [
        _history(names, DAILY),
        _history(names, MOST),
        _batch(f"batch-prices-history, {half} markets", both, half, DAILY),
        largest_batch(),
    ]


def largest_batch() -> ReadCase:
    """Return the read of as many markets and points as a batch may have."""
    markets = range(TOKENS_PER_BATCH_MAX)
    tokens = [a_token(each, is_yes=True) for each in markets]
    return _batch(f"batch-prices-history, {len(markets)} markets", tokens, len(markets), DAILY)


def _history(names: Names, points: Points) -> ReadCase:
    span = {"startTs": points.first_s, "endTs": points.last_s}
    query = {"market": names.token_id, **span, "fidelity": points.step_s // MINUTE_S}
    return ReadCase(
        f"prices-history, {points.number:,} points",
        TRADING,
        "/prices-history",
        urlencode(query),
        f"{points.ends()} SELECT end_s, {_LATEST.format(':market')} FROM ends",  # noqa: S608 - as above
        {"market": names.condition_id},
    )


def _batch(name: str, tokens: list[str], markets: int, points: Points) -> ReadCase:
    """Return the read of tokens of the markets with the first numbers, which are traded most."""
    span = {"start_ts": points.first_s, "end_ts": points.last_s}
    body = {"markets": tokens, **span, "fidelity": points.step_s // MINUTE_S}
    ids = ", ".join(f"'{a_condition(each)}'" for each in range(markets))
    latest = _LATEST.format("c.condition_id")
    sql = f"""{points.ends()} SELECT c.condition_id, end_s, {latest}
        FROM conditions c, ends WHERE c.condition_id IN ({ids}) ORDER BY c.condition_id, end_s"""  # noqa: S608 - as above
    return ReadCase(name, TRADING, "/batch-prices-history", "", sql, {}, msgspec.json.encode(body))
