"""The journals of engines: in folders of the data folder, or in PostgreSQL, as the settings say."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from foretell.domain.errors.storage import InvalidShardMap, JournalFailed, ShardCountChanged
from foretell.domain.values.sharding import TREASURY, ShardNumber, shard_numbers
from foretell.journal.postgres.leases import JournalPlace, find_endpoint
from foretell.journal.shard_map import ShardMap, in_one_database, load_shard_map
from foretell.settings import Settings


def engine_name(shard: ShardNumber) -> str:
    """Return the name of an engine, or of the treasury, in paths of sockets."""
    return "treasury" if shard == TREASURY else f"engine-{shard}"


def embedded_journal_folder(settings: Settings) -> Path:
    """Return the journal folder of an engine in the process that serves trading."""
    return settings.data / "journal"


def journal_folder(settings: Settings, shard: ShardNumber) -> Path:
    """Return the folder of the journal of an engine, or of the treasury."""
    return settings.data / f"journal-{'treasury' if shard == TREASURY else shard}"


def journal_place(settings: Settings, shard: ShardNumber) -> JournalPlace:
    """Return where PostgreSQL keeps the journal of an engine, or of the treasury."""
    if shard == TREASURY:
        return JournalPlace(settings.database, shard, settings.shards)
    return _shard_map(settings).place(shard)


async def check_shard_count(settings: Settings) -> None:
    """Refuse another number of shards than that of the journals.

    A database that does not answer is not checked here: engines check it again when they start.
    """
    if settings.journal == "postgres":
        for place in {place.url: place for place in _places(settings)}.values():
            with contextlib.suppress(JournalFailed):
                await find_endpoint(place)
        return
    kept = max(_stored_shards(settings.data), default=-1) + 1
    if kept > settings.shards:
        raise ShardCountChanged(kept, settings.shards)


def _places(settings: Settings) -> list[JournalPlace]:
    shards = [journal_place(settings, shard) for shard in shard_numbers(settings.shards)]
    return [*shards, journal_place(settings, TREASURY)] if settings.shards > 1 else shards


def _stored_shards(data: Path) -> Iterator[int]:
    """Yield the numbers of the shards with journals in a data folder."""
    for folder in data.glob("journal-*"):
        if found := re.fullmatch(r"journal-(\d+)", folder.name):
            yield int(found[1])


def _shard_map(settings: Settings) -> ShardMap:
    if settings.shard_map is None:
        return in_one_database(settings.database, settings.shards)
    shards = load_shard_map(settings.shard_map)
    if shards.shard_count != settings.shards:
        cause = f"it has {shards.shard_count} shards, and FORETELL_SHARDS is {settings.shards}"
        raise InvalidShardMap(settings.shard_map.name, cause)
    return shards
