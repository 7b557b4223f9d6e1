"""The map from each shard to the database that keeps its journal.

A map is a TOML file; without one, one database keeps all of them:

    shard_count = 4

    [[databases]]
    url = "postgresql+asyncpg://one.example/foretell"
    shards = [0, 1]

    [[databases]]
    url = "postgresql+asyncpg://two.example/foretell"
    shards = [2, 3]
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec

from foretell.domain.errors.storage import InvalidShardMap
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.postgres.connections import DRIVER
from foretell.journal.postgres.leases import JournalPlace

SHARD_COUNT_MAX: Final = 1024


@dataclass(frozen=True, slots=True, repr=False)
class ShardMap:
    """The database of each shard; a URL may hold a password, so its repr does not show them."""

    url_by_shard: tuple[str, ...]

    @property
    def shard_count(self) -> int:
        """The number of shards."""
        return len(self.url_by_shard)

    def place(self, shard: ShardNumber) -> JournalPlace:
        """Return the place of a shard's journal."""
        return JournalPlace(self.url_by_shard[shard], shard, self.shard_count)


class _Database(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    shards: list[int]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    shard_count: Annotated[int, msgspec.Meta(ge=1, le=SHARD_COUNT_MAX)]
    databases: list[_Database]


def in_one_database(url: str, shard_count: int = 1) -> ShardMap:
    """Return the map in which one database keeps every shard."""
    return ShardMap((url,) * shard_count)


def load_shard_map(path: Path) -> ShardMap:
    """Return the map of a file; refuse one that does not name each shard once."""
    try:
        file = msgspec.toml.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise InvalidShardMap(path.name, error.strerror or type(error).__name__) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidShardMap(path.name, str(error)) from error
    _check(path, file)
    url_by_shard = {shard: each.url for each in file.databases for shard in each.shards}
    return ShardMap(tuple(url_by_shard[shard] for shard in range(file.shard_count)))


def _check(path: Path, file: _File) -> None:
    times = Counter(shard for each in file.databases for shard in each.shards)
    wrong = [shard for shard in range(file.shard_count) if times[shard] != 1]
    if wrong:
        raise InvalidShardMap(
            path.name, f"shard {wrong[0]} is named {times[wrong[0]]} times; name it once"
        )
    if len(times) > file.shard_count:
        raise InvalidShardMap(
            path.name,
            f"shard {max(times)} is named, and the last of {file.shard_count} shards is {file.shard_count - 1}",
        )
    if not all(each.url.startswith(DRIVER) for each in file.databases):
        raise InvalidShardMap(path.name, f"every url must begin with {DRIVER}")
