"""Volumes of builders: their leaderboard, and each day of theirs.

The routes of the same names under `/v1` are placeholders of the interface and stay empty (decision 36).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from foretell.data.context import DataContext
from foretell.data.leaderboards import BUILDERS_LIMIT, OFFSET, PERIOD
from foretell.data.responses import BuilderDayRow, BuilderRow
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.portfolio.builder_volumes import DAY_MS, first_day
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address, Bytes32, parse_bytes32
from foretell.domain.values.instants import iso_time
from foretell.edge.builders.keys import address_of_code
from foretell.edge.parameters import text
from foretell.edge.query import Query
from foretell.edge.rendering import amount
from foretell.store.database import Transaction
from foretell.store.public_reads.places import ReadKind
from foretell.store.queries.builder_volumes import load_builder_days, load_builder_ranking
from foretell.store.trading.profiles import load_profiles


def _parse_code(value: str | None) -> Bytes32 | None:
    try:
        return None if value is None else parse_bytes32(value, "builder")
    except MalformedHex as error:
        raise MalformedQuery("builder", "a builder's code: 0x and 64 hex digits") from error


BUILDER: Final = text("builder", "the builder's code; all builders if it is absent").convert(
    _parse_code
)

LEADERBOARD_PARAMETERS: Final = (PERIOD, BUILDERS_LIMIT, OFFSET)
VOLUME_PARAMETERS: Final = (PERIOD, BUILDER, BUILDERS_LIMIT, OFFSET)


async def rank_builders(context: DataContext, query: Query) -> list[BuilderRow]:
    """Return a page of the builders with the largest volumes in a period."""
    since_day = first_day(Period[query.read(PERIOD)], context.now_ms())
    limit, offset = query.read(BUILDERS_LIMIT), query.read(OFFSET)
    query.check_known()
    async with context.database.public_reading(ReadKind.SUM) as tx:
        ranking = await load_builder_ranking(tx, since_day, limit, offset)
        logo_by_code = await _load_logos(tx, {each.builder for each in ranking})
    return [
        BuilderRow(
            rank=str(each.rank),
            builder=each.builder,
            volume=amount(each.volume_units),
            active_users=each.users,
            verified=False,
            builder_logo=logo_by_code[each.builder],
        )
        for each in ranking
    ]


async def list_builder_days(context: DataContext, query: Query) -> list[BuilderDayRow]:
    """Return a page of the days of builders in a period, or of one builder, the newest first."""
    since_day = first_day(Period[query.read(PERIOD)], context.now_ms())
    builder = query.read(BUILDER)
    limit, offset = query.read(BUILDERS_LIMIT), query.read(OFFSET)
    query.check_known()
    async with context.database.public_reading(ReadKind.SUM) as tx:
        days = await load_builder_days(tx, since_day, builder, limit, offset)
        logo_by_code = await _load_logos(tx, {each.volume.builder for each in days})
    return [
        BuilderDayRow(
            dt=iso_time(day * DAY_MS),
            rank=str(volume.rank),
            builder=volume.builder,
            volume=amount(volume.volume_units),
            active_users=volume.users,
            verified=False,
            builder_logo=logo_by_code[volume.builder],
        )
        for day, volume in days
    ]


async def _load_logos(tx: Transaction, codes: Iterable[Bytes32]) -> Mapping[Bytes32, str]:
    """Return the image of the profile of each code's address, or an empty text without one."""
    address_by_code = {code: address_of_code(code) for code in codes}
    addresses = {each for each in address_by_code.values() if each is not None}
    image_by_address: dict[Address | None, str] = {
        address: profile.image for address, profile in (await load_profiles(tx, addresses)).items()
    }
    return {code: image_by_address.get(each, "") for code, each in address_by_code.items()}
