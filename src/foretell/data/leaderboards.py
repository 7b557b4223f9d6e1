"""Leaderboards by gain or volume, for a period and a category, and the largest single wins.

Lists of builders with the same prefix are placeholders, and empty even if orders name builders: see `builder_volumes`.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from foretell.data.context import DataContext
from foretell.data.parameters import ANY_USER, SKIPPED
from foretell.data.responses import BuilderRow, TraderRow, WinRow
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.domain.values.slugs import SLUG_CHARS_MAX, normalize_slug
from foretell.edge.parameters import choice, integer, text
from foretell.edge.query import Query
from foretell.edge.rendering import amount, blob_url
from foretell.store.database import Transaction
from foretell.store.queries.leaderboards import (
    WINS_PER_PAGE_MAX,
    WINS_SKIPPED_MAX,
    Ranking,
    RankingOrder,
    RankingScope,
    load_ranking_of,
    load_rankings,
    load_wins,
)
from foretell.store.trading.profiles import PublicProfile, load_named, load_profiles

OVERALL: Final = "OVERALL"
ORDERS: Final[Mapping[str, RankingOrder]] = MappingProxyType(
    {"PNL": RankingOrder.GAIN, "VOL": RankingOrder.VOLUME}
)
PERIODS: Final = (Period.DAY.name, Period.WEEK.name, Period.MONTH.name, Period.ALL.name)
ROWS_PER_PAGE_MAX: Final = 50

CATEGORY: Final = text(
    "category",
    f"a main category of markets, or {OVERALL}, which is the default",
    chars_max=SLUG_CHARS_MAX,
)
PERIOD: Final = choice(
    "timePeriod", "what counts: the last day, week or month, or all", PERIODS, "DAY"
)
SORT: Final = choice("orderBy", "what ranks: the gain, or the volume", tuple(ORDERS), "PNL")
TRADERS_LIMIT: Final = integer("limit", 25, 1, ROWS_PER_PAGE_MAX, "rows of the page")
WINS_LIMIT: Final = integer("limit", 20, 1, WINS_PER_PAGE_MAX, "rows of the page")
BUILDERS_LIMIT: Final = integer("limit", 25, 0, ROWS_PER_PAGE_MAX, "rows of the page")
OFFSET: Final = integer("offset", 0, 0, 1000, SKIPPED)
WINS_OFFSET: Final = integer("offset", 0, 0, WINS_SKIPPED_MAX, SKIPPED)
USER_NAME: Final = text("userName", "name of a wallet's owner")

TRADERS_PARAMETERS: Final = (CATEGORY, PERIOD, SORT, TRADERS_LIMIT, OFFSET, ANY_USER, USER_NAME)
WINS_PARAMETERS: Final = (CATEGORY, PERIOD, WINS_LIMIT, WINS_OFFSET)
BUILDERS_PARAMETERS: Final = (PERIOD, BUILDERS_LIMIT, OFFSET)
BUILDER_VOLUMES_PARAMETERS: Final = (PERIOD,)


async def list_traders(context: DataContext, query: Query) -> list[TraderRow]:
    """Return a page of the leaderboard, or the rows of one wallet, or of the wallets of a name's owner."""
    scope = _read_scope(query)
    order = ORDERS[query.read(SORT)]
    limit, offset = query.read(TRADERS_LIMIT), query.read(OFFSET)
    wallet, name = query.read(ANY_USER), query.read(USER_NAME)
    query.check_known()
    is_of_one = wallet is not None or name is not None
    async with context.database.public_reading() as tx:
        if is_of_one:
            found = [
                await load_ranking_of(tx, scope, order, each)
                for each in await _wallets(tx, wallet, name)
            ]
            ranked = sorted((each for each in found if each), key=lambda each: each.rank)
            standings: Sequence[Ranking] = ranked[offset : offset + limit]
        else:
            standings = await load_rankings(tx, scope, order, limit=limit, offset=offset)
        profiles = await load_profiles(tx, {standing.wallet for standing in standings})
    return [
        TraderRow(
            rank=str(standing.rank),
            proxy_wallet=checksum_address(standing.wallet),
            user_name=_name(profiles, standing.wallet),
            vol=amount(standing.volume_units),
            pnl=amount(standing.gain_units),
            profile_image=_image(profiles, standing.wallet),
            x_username=None,
            verified_badge=None,
        )
        for standing in standings
    ]


async def _wallets(
    tx: Transaction, wallet: Address | None, name: str | None
) -> Collection[Address]:
    """Return the wallets that are asked for: one, those of a name's owner, or those that are both."""
    if name is None:
        return set() if wallet is None else {wallet}
    owner = await load_named(tx, name)
    named = set() if owner is None else {owner.address, owner.safe}
    return named if wallet is None else named & {wallet}


async def list_wins(context: DataContext, query: Query) -> list[WinRow]:
    """Return a page of the positions that were closed with the largest gains."""
    scope = _read_scope(query)
    limit, offset = query.read(WINS_LIMIT), query.read(WINS_OFFSET)
    query.check_known()
    async with context.database.public_reading() as tx:
        wins = await load_wins(tx, scope, limit=limit, offset=offset)
        profiles = await load_profiles(tx, {win.wallet for win in wins})
    return [
        WinRow(
            win_rank=str(offset + index),
            proxy_wallet=checksum_address(win.wallet),
            user_name=_name(profiles, win.wallet),
            event_title=win.event_title,
            slug=win.slug,
            icon=None if win.icon is None else blob_url(context.blob_base_url, win.icon),
            event_slug=win.event_slug,
            initial_value=amount(win.spent_units),
            final_value=amount(win.spent_units + win.realized_units),
            pnl=amount(win.realized_units),
            profile_image=_image(profiles, win.wallet),
        )
        for index, win in enumerate(wins, start=1)
    ]


def _name(profiles: Mapping[Address, PublicProfile], wallet: Address) -> str | None:
    return profiles[wallet].name or None if wallet in profiles else None


def _image(profiles: Mapping[Address, PublicProfile], wallet: Address) -> str | None:
    return profiles[wallet].image or None if wallet in profiles else None


def list_builders(query: Query) -> list[BuilderRow]:
    """Return the leaderboard of builders, which is empty."""
    query.check(BUILDERS_PARAMETERS)
    return []


def list_builder_volumes(query: Query) -> list[BuilderRow]:
    """Return the volumes of builders over time, which are empty."""
    query.check(BUILDER_VOLUMES_PARAMETERS)
    return []


def _read_scope(query: Query) -> RankingScope:
    category = query.read(CATEGORY) or OVERALL
    main_category = None if category.upper() == OVERALL else category.lower()
    if main_category is not None and normalize_slug(main_category) != main_category:
        raise MalformedQuery("category", f"{OVERALL}, or a main category such as politics")
    return RankingScope(Period[query.read(PERIOD)], main_category)
