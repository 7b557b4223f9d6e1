from pathlib import Path

import pytest

from foretell.domain.errors.storage import InvalidShardMap
from foretell.domain.values.sharding import ShardNumber, shard_numbers
from foretell.journal.postgres.leases import JournalPlace
from foretell.journal.shard_map import in_one_database, load_shard_map

ONE = "postgresql+asyncpg://one.example/foretell"
TWO = "postgresql+asyncpg://me:secret@two.example/foretell"


def a_map(folder: Path, text: str) -> Path:
    path = folder / "shards.toml"
    path.write_text(text)
    return path


def databases(shard_count: int, *shards: str, url: str = TWO) -> str:
    tables = [f'[[databases]]\nurl = "{url}"\nshards = {each}\n' for each in shards]
    return f"shard_count = {shard_count}\n" + "".join(tables)


def test_without_a_map_one_database_keeps_every_shard() -> None:
    shards = in_one_database(ONE, 3)
    assert [shards.place(shard) for shard in shard_numbers(3)] == [
        JournalPlace(ONE, shard, 3) for shard in shard_numbers(3)
    ]


def test_a_map_names_the_database_of_each_shard(tmp_path: Path) -> None:
    text = databases(3, "[0, 2]", url=ONE) + databases(3, "[1]").partition("\n")[2]
    shards = load_shard_map(a_map(tmp_path, text))
    assert shards.url_by_shard == (ONE, TWO, ONE)
    assert shards.place(ShardNumber(1)) == JournalPlace(TWO, ShardNumber(1), 3)


def test_a_map_never_shows_a_password() -> None:
    shards = in_one_database(TWO, 2)
    assert "secret" not in f"{shards} {shards.place(ShardNumber(0))}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (databases(2, "[0]"), "shard 1 is named 0 times"),
        (databases(2, "[0, 1]", "[1]"), "shard 1 is named 2 times"),
        (databases(2, "[0, 1, 7]"), "shard 7 is named, and the last of 2 shards is 1"),
        (databases(1, "[0]", url="sqlite+aiosqlite:///x"), "every url must begin with postgresql"),
        (databases(0), ">= 1"),
        (databases(1025), "<= 1024"),
        ("shard_count = 1", "missing required field `databases`"),
        (databases(1, "[0]") + "extra = 1", "unknown field `extra`"),
        ("shard_count", "Expected '='"),
    ],
)
def test_a_map_that_does_not_name_each_shard_once_is_refused(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(InvalidShardMap) as refusal:
        load_shard_map(a_map(tmp_path, text))
    assert "the shard map shards.toml cannot be used" in str(refusal.value)
    assert words in str(refusal.value)


def test_a_map_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidShardMap, match="No such file or directory"):
        load_shard_map(tmp_path / "shards.toml")
