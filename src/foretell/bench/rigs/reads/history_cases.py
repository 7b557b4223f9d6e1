"""Reads of price histories: a point for each of the last days, as charts ask for them."""

from typing import Final
from urllib.parse import urlencode

import msgspec

from foretell.bench.rigs.reads.history import DAY_S, NOW_S, Names, a_condition, a_token
from foretell.bench.rigs.reads.price_histories import OPEN_MARKETS
from foretell.bench.rigs.reads.read_case import TRADING, ReadCase

DAYS: Final = 200
LAST_S: Final = NOW_S // DAY_S * DAY_S
FIRST_S: Final = LAST_S - (DAYS - 1) * DAY_S
_ENDS: Final = f"""WITH RECURSIVE ends(end_s) AS (SELECT {FIRST_S} UNION ALL
    SELECT end_s + {DAY_S} FROM ends WHERE end_s < {LAST_S})"""  # noqa: S608 - the rig's own numbers
_LATEST: Final = """(SELECT best_bid_ticks FROM quote_points
        WHERE condition_id = {} AND minute < end_s / 60 ORDER BY minute DESC LIMIT 1)"""
HISTORY: Final = f"{_ENDS} SELECT end_s, {_LATEST.format(':market')} FROM ends"  # noqa: S608 - as above
HISTORIES: Final = f"""{_ENDS} SELECT c.condition_id, end_s, {_LATEST.format("c.condition_id")}
    FROM conditions c, ends WHERE c.condition_id IN ({{}}) ORDER BY c.condition_id, end_s"""  # noqa: S608 - as above


def history_cases(names: Names) -> list[ReadCase]:
    """Return the read of a token's history, and that of both tokens of the markets that are traded most."""
    fidelity = DAY_S // 60
    query = {"market": names.token_id, "startTs": FIRST_S, "endTs": LAST_S, "fidelity": fidelity}
    tokens = [a_token(each, is_yes=is_yes) for each in OPEN_MARKETS for is_yes in (True, False)]
    body = {"markets": tokens, "start_ts": FIRST_S, "end_ts": LAST_S, "fidelity": fidelity}
    ids = ", ".join(f"'{a_condition(each)}'" for each in OPEN_MARKETS)
    return [
        ReadCase(
            f"prices-history, {DAYS} points",
            TRADING,
            "/prices-history",
            urlencode(query),
            HISTORY,
            {"market": names.condition_id},
        ),
        ReadCase(
            f"batch-prices-history, {len(tokens)} tokens",
            TRADING,
            "/batch-prices-history",
            "",
            HISTORIES.format(ids),
            {},
            msgspec.json.encode(body),
        ),
    ]
