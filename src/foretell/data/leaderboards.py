"""Who leads: by gain or by volume, over a time, in a category; and the largest single wins.

Builders are listed under the same prefix. Nothing counts what they bring, so their lists are empty,
whatever orders may say of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from foretell.data.context import DataContext
from foretell.data.responses import BuilderRow, TraderRow, WinRow
from foretell.domain.values.hexadecimal import checksum_address
from foretell.edge.query import Query
from foretell.edge.rendering import amount, blob_url
from foretell.store.queries.leaderboards import (
    RankingScope,
    StandingOrder,
    load_standings,
    load_wins,
)

ROWS_PER_PAGE_MAX: Final = 50
OFFSET_MAX: Final = 1000

CATEGORIES: Final = (
    "OVERALL",
    "POLITICS",
    "SPORTS",
    "CRYPTO",
    "FINANCE",
    "CULTURE",
    "MENTIONS",
    "WEATHER",
    "ECONOMICS",
    "TECH",
)
SECONDS_BY_PERIOD: Final[Mapping[str, int | None]] = MappingProxyType(
    {"DAY": 86_400, "WEEK": 7 * 86_400, "MONTH": 30 * 86_400, "ALL": None}
)
PERIODS: Final = tuple(SECONDS_BY_PERIOD)
ORDER_BY_WORD: Final = {"PNL": StandingOrder.GAIN, "VOL": StandingOrder.VOLUME}
ORDERS: Final = tuple(ORDER_BY_WORD)


async def list_traders(context: DataContext, query: Query) -> list[TraderRow]:
    """Return a page of the leaderboard, or one wallet's row of it.

    Nobody has a name yet, so no row has the one that is asked for.
    """
    race = _race(context, query)
    order = ORDER_BY_WORD[query.choice("orderBy", "PNL", ORDERS)]
    limit = query.integer("limit", 25, 1, ROWS_PER_PAGE_MAX)
    offset = query.integer("offset", 0, 0, OFFSET_MAX)
    wallet, name = query.optional_wallet("user"), query.text("userName")
    query.check_known()
    if name is not None:
        return []
    async with context.database.reading() as tx:
        standings = await load_standings(tx, race, order, limit=limit, offset=offset, wallet=wallet)
    return [
        TraderRow(
            rank=str(standing.rank),
            proxy_wallet=checksum_address(standing.wallet),
            user_name=None,
            vol=amount(standing.volume_units),
            pnl=amount(standing.gain_units),
            profile_image=None,
            x_username=None,
            verified_badge=None,
        )
        for standing in standings
    ]


async def list_wins(context: DataContext, query: Query) -> list[WinRow]:
    """Return a page of the positions that were closed with the largest gains."""
    race = _race(context, query)
    limit = query.integer("limit", 20, 1, ROWS_PER_PAGE_MAX)
    offset = query.integer("offset", 0, 0, OFFSET_MAX)
    query.check_known()
    async with context.database.reading() as tx:
        wins = await load_wins(tx, race, limit=limit, offset=offset)
    return [
        WinRow(
            win_rank=str(offset + index),
            proxy_wallet=checksum_address(win.wallet),
            user_name=None,
            event_title=win.event_title,
            slug=win.slug,
            icon=None if win.icon is None else blob_url(context.blob_base_url, win.icon),
            event_slug=win.event_slug,
            initial_value=amount(win.spent_units),
            final_value=amount(win.spent_units + win.realized_units),
            pnl=amount(win.realized_units),
            profile_image=None,
        )
        for index, win in enumerate(wins, start=1)
    ]


def list_builders(query: Query) -> list[BuilderRow]:
    """Return the leaderboard of builders, on which there is nobody."""
    query.choice("timePeriod", "DAY", PERIODS)
    query.integer("limit", 25, 0, ROWS_PER_PAGE_MAX)
    query.integer("offset", 0, 0, OFFSET_MAX)
    query.check_known()
    return []


def list_builder_volumes(query: Query) -> list[BuilderRow]:
    """Return what builders brought over time, which is nothing."""
    query.choice("timePeriod", "DAY", PERIODS)
    query.check_known()
    return []


def _race(context: DataContext, query: Query) -> RankingScope:
    category = query.choice("category", "OVERALL", CATEGORIES)
    seconds = SECONDS_BY_PERIOD[query.choice("timePeriod", "DAY", PERIODS)]
    return RankingScope(
        since_s=None if seconds is None else context.now_s - seconds,
        main_category=None if category == "OVERALL" else category.lower(),
    )
