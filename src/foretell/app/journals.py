"""The journals of engines: in folders of the data folder, or in PostgreSQL, as the settings say."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from foretell.domain.errors.storage import InvalidShardMap, JournalFailed
from foretell.domain.values.sharding import ALONE, TREASURY, ShardNumber, shard_numbers
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


async def check_places(settings: Settings) -> bool:
    """Refuse another number of shards than that of journals in PostgreSQL; return whether each database answered.

    One that does not answer is not checked here: engines check it again when they start.
    """
    have_answered = True
    if settings.journal == "postgres":
        for place in {place.url: place for place in _places(settings)}.values():
            try:
                await find_endpoint(place)
            except JournalFailed:
                have_answered = False
    return have_answered


def has_files(settings: Settings) -> bool:
    """Return whether journals are files; those of the engine in the trading process always are."""
    return settings.shards == 0 or settings.journal == "file"


def shard_count_candidates(
    settings: Settings, sequences: Mapping[str, int], readers: Collection[str]
) -> set[int]:
    """Return the numbers of shards that an installation of an earlier release may have, which noted none.

    `sequences` are those that the tables have of readers of journals, `readers` others that they know. Such a
    release could be started with one number after another; each is possible. There are none in a new installation.
    """
    numbers = {int(name.partition(":")[2]) for name in (*sequences, *readers) if ":" in name}
    has_embedded = False
    if has_files(settings):
        numbers |= set(_stored_shards(settings.data))
        has_embedded = embedded_journal_folder(settings).is_dir()
    found = {max(numbers) + 1} if numbers else set()
    if has_embedded and (sequences.get(ALONE.name) or not numbers):
        found.add(0)
    if not found and ALONE.name in sequences:
        return {0, 1}
    return found


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
