"""The journal in PostgreSQL: its lease, and commits with an unknown outcome."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.journal.rig import Cable, Fault, a_cable, delay_request, lose_answer, lose_request
from tests.rigs.journals import SHARD_COUNT, PostgresJournals, a_candidate, query, writing, written
from tests.rigs.postgres import PostgresServer

from foretell.domain.errors.storage import (
    JournalDamaged,
    JournalFailed,
    JournalFormUnknown,
    LeaseHeld,
    LeaseLost,
    ShardCountChanged,
)
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.port import Entry
from foretell.journal.postgres.connections import connect, connected
from foretell.journal.postgres.journal import PostgresJournal, lead, open_journal
from foretell.journal.postgres.leases import Candidate, JournalPlace
from foretell.journal.postgres.rows import Row, are_durable, read_entries

pytestmark = pytest.mark.anyio

SHARD = ShardNumber(0)
SHORT_S = 2.0
"""A lease that ends soon."""
RENEWED_S = 6.0
"""A lease that a busy machine renews in time."""
LONG_S = 20.0
"""A lease of which the part that its holder does not use is longer than a busy machine takes to notice its end."""
PATIENCE_S = 60.0
"""How long it is tried to take a lease: on a busy machine the first try for a short one may fail."""
HELD_S = 30.0
RELEASED_WITHIN_S = 20.0
"""Less than a lease that is held lasts."""
LEFT = "SELECT extract(epoch FROM until - clock_timestamp())::float8 FROM journal.lease"
TAKEN = """
UPDATE journal.lease SET epoch = epoch + 1, holder = 'other', until = now() + interval '1 minute'
"""
SLEEPING = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
WAITING = """
SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()
"""
EMPTY_COMMIT = "SELECT pg_logical_emit_message(true, 'probe', '')"
SLOW_FUNCTION = """
CREATE FUNCTION journal.slow() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN PERFORM pg_sleep(3); RETURN NULL; END $$
"""


@pytest.fixture
def shards(journal_url: str) -> PostgresJournals:
    return PostgresJournals(journal_url)


@pytest.fixture
def cable(journal_url: str) -> Iterator[Cable]:
    with a_cable(journal_url) as cable:
        yield cable


@pytest.fixture
def a_standby_is_missing(journal_url: str) -> Iterator[Callable[[], None]]:
    """Make durable commits wait for a standby that is not there, until the test is over."""

    def miss() -> None:
        query(journal_url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        query(journal_url, "SELECT pg_reload_conf()")
        while not a_commit_waits(journal_url):
            pass

    yield miss
    await_no_standby(journal_url)


def a_commit_waits(url: str) -> bool:
    """Return whether a commit waits for a standby; the server applies a reload in its own time."""
    commit = threading.Thread(target=query, args=(url, EMPTY_COMMIT))
    commit.start()
    while commit.is_alive():
        if waiting := query(url, WAITING):
            query(url, "SELECT pg_cancel_backend($1)", waiting[0]["pid"])
            commit.join()
            return True
    return False


def kept(url: str, shard: int = 0) -> list[tuple[int, bytes]]:
    return [
        (row["sequence"], row["payload"])
        for row in query(
            url,
            "SELECT sequence, payload FROM journal.record WHERE shard = $1 ORDER BY sequence",
            shard,
        )
    ]


async def read(shards: PostgresJournals) -> list[bytes]:
    """Return the payloads of a journal, as a start reads them."""
    async with contextlib.AsyncExitStack() as stack:
        journal = shards.open("j")
        stack.push_async_callback(journal.close)
        return [entry.payload for entry in journal.entries()]


async def until_it_sleeps(url: str) -> None:
    """Wait until a statement sleeps in the server."""
    async with asyncio.timeout(60):
        while not query(url, SLEEPING):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)


async def until_it_waits(url: str) -> int:
    """Wait until a commit waits for a standby, and return its process id."""
    async with asyncio.timeout(60):
        while not (waiting := query(url, WAITING)):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
    return int(waiting[0]["pid"])


async def cancel_the_wait(url: str) -> None:
    """Cancel a commit's wait for a standby, as an operator may; the commit stands."""
    process = await until_it_waits(url)
    query(url, "SELECT pg_cancel_backend($1)", process)
    async with asyncio.timeout(60):
        while query(url, f"{WAITING} AND pid = $1", process):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)


def await_no_standby(url: str) -> None:
    """Make commits wait for no standby any more, including those that wait now."""
    query(url, "ALTER SYSTEM RESET synchronous_standby_names")
    query(url, "SELECT pg_reload_conf()")


async def opened(url: str, lease_s: float) -> PostgresJournal:
    return await asyncio.to_thread(
        open_journal,
        JournalPlace(url, SHARD, SHARD_COUNT),
        a_candidate(lease_s),
        patience_s=PATIENCE_S,
    )


# Commits whose outcome is unknown.


@pytest.mark.parametrize("fault", [lose_request, lose_answer, delay_request])
async def test_a_batch_of_unknown_outcome_is_in_the_journal_once_when_acknowledged(
    journal_url: str, cable: Cable, fault: Fault
) -> None:
    journal = PostgresJournals(cable.url, HELD_S).open("j")
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"before"))
        cable.spoil(b"in doubt", fault)
        await calls.until_synced(journal.append(b"in doubt"))
        assert kept(journal_url) == [(1, b"before"), (2, b"in doubt")]
        await calls.until_synced(journal.append(b"after"))
    assert calls.failures == []
    assert kept(journal_url) == [(1, b"before"), (2, b"in doubt"), (3, b"after")]


async def test_a_batch_that_arrives_after_it_was_written_again_is_refused(
    journal_url: str, cable: Cable
) -> None:
    journal = PostgresJournals(cable.url, HELD_S).open("j")
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"before"))
        cable.spoil(b"late", delay_request)
        await calls.until_synced(journal.append(b"late"))
        assert b"INSERT 0 0" in await asyncio.to_thread(cable.deliver)
        await calls.until_synced(journal.append(b"after"))
    assert kept(journal_url) == [(1, b"before"), (2, b"late"), (3, b"after")]


async def test_a_batch_that_the_server_warns_of_counts_once_a_new_epoch_has_begun(
    journal_url: str, shards: PostgresJournals
) -> None:
    """The server warns so when an operator cancels the wait for a synchronous standby."""
    journal = shards.open("j")
    query(
        journal_url,
        """CREATE FUNCTION journal.warn() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'might not have been replicated'; RETURN NULL; END $$""",
    )
    query(
        journal_url,
        "CREATE TRIGGER warns AFTER INSERT ON journal.record EXECUTE FUNCTION journal.warn()",
    )
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"doubtful"))
    ((epoch,),) = query(journal_url, "SELECT epoch FROM journal.record")
    ((reached,),) = query(journal_url, "SELECT epoch FROM journal.lease")
    assert reached == epoch + 1


async def test_a_batch_is_not_acknowledged_while_every_wait_for_the_standby_is_canceled(
    journal_url: str, a_standby_is_missing: Callable[[], None]
) -> None:
    journal = await opened(journal_url, lease_s=30.0)
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"before"))
        a_standby_is_missing()
        sequence = journal.append(b"doubtful")
        for _ in range(3):
            await cancel_the_wait(journal_url)
        await until_it_waits(journal_url)
        assert kept(journal_url) == [(1, b"before"), (2, b"doubtful")]
        assert calls.synced == [1]
        await_no_standby(journal_url)
        await calls.until_synced(sequence)
    assert kept(journal_url) == [(1, b"before"), (2, b"doubtful")]
    assert calls.failures == []


async def test_a_journal_survives_a_short_outage_of_its_database(
    journal_url: str, cable: Cable
) -> None:
    journal = PostgresJournals(cable.url, HELD_S).open("j")
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"before"))
        cable.cut()
        sequence = journal.append(b"during")
        await asyncio.sleep(0.1)
        assert calls.synced == [1]
        cable.mend()
        await calls.until_synced(sequence)
    assert kept(journal_url) == [(1, b"before"), (2, b"during")]


async def test_a_second_command_of_one_id_ends_the_journal(
    journal_url: str, shards: PostgresJournals
) -> None:
    journal = shards.open("j")
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"order", b"h" * 32))
        journal.append(b"order again", b"h" * 32)
        failure = await calls.until_failed()
    assert str(failure) == "the journal has failed: UniqueViolationError, SQLSTATE 23505"
    assert kept(journal_url) == [(1, b"order")]


async def test_a_command_id_is_free_in_another_shard(shards: PostgresJournals) -> None:
    for name in ("one", "other"):
        journal = shards.open(name)
        async with writing(journal) as calls:
            await calls.until_synced(journal.append(b"order", b"h" * 32))


@pytest.mark.parametrize(
    ("setting", "kept_setting"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")],
)
async def test_a_commit_waits_for_the_disk_whatever_the_cluster_is_set_to(
    journal_url: str, setting: str, kept_setting: str
) -> None:
    name = journal_url.rpartition("/")[2].partition("?")[0]
    query(journal_url, f"ALTER DATABASE {name} SET synchronous_commit = {setting}")
    connection = await connect(journal_url)
    assert await connection.fetchval("SHOW synchronous_commit") == kept_setting
    await connection.close()
    query(journal_url, f"ALTER DATABASE {name} RESET synchronous_commit")


# The lease.


async def test_a_writer_that_lost_the_lease_writes_nothing_more_and_fails_once(
    journal_url: str, shards: PostgresJournals
) -> None:
    journal = shards.open("j")
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"mine"))
        query(journal_url, TAKEN)
        journal.append(b"fenced")
        assert isinstance(await calls.until_failed(), LeaseLost)
        journal.append(b"fenced too")
    assert (calls.synced, len(calls.failures)) == ([1], 1)
    assert kept(journal_url) == [(1, b"mine")]


async def test_an_idle_holder_notices_that_another_has_the_lease(journal_url: str) -> None:
    async with writing(PostgresJournals(journal_url, SHORT_S).open("j", PATIENCE_S)) as calls:
        query(journal_url, TAKEN)
        assert isinstance(await calls.until_failed(), LeaseLost)
    assert len(calls.failures) == 1


async def test_a_holder_that_is_cut_off_stops_before_its_lease_ends(
    journal_url: str, cable: Cable
) -> None:
    journal = PostgresJournals(cable.url, LONG_S).open("j")
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"before"))
        cable.cut()
        journal.append(b"cut off")
        assert isinstance(await calls.until_failed(), JournalFailed)
        reported_at = time.monotonic()
        ((left_s,),) = query(journal_url, LEFT)
        assert left_s + time.monotonic() - reported_at > 0
    assert calls.synced == [1]


async def test_a_lease_that_was_lost_before_the_start_is_reported_at_the_start(
    journal_url: str,
) -> None:
    journal = PostgresJournals(journal_url, SHORT_S).open("j", PATIENCE_S)
    query(journal_url, TAKEN)
    await asyncio.sleep(SHORT_S)
    async with writing(journal) as calls:
        assert isinstance(await calls.until_failed(), LeaseLost)


async def test_a_long_replay_that_blocks_the_loop_keeps_the_lease(journal_url: str) -> None:
    shards = PostgresJournals(journal_url, RENEWED_S)
    await written(shards.open("j"), [b"%d" % number for number in range(8)])
    journal = shards.open("j")
    for _ in journal.entries():
        time.sleep(RENEWED_S / 6)  # noqa: ASYNC251 - that is what a replay does
    with pytest.raises(LeaseHeld):
        PostgresJournals(journal_url).open("j")
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"replayed"))


async def test_a_refusal_names_the_leader(journal_url: str) -> None:
    place = JournalPlace(journal_url, ShardNumber(3), SHARD_COUNT)
    journal = open_journal(place, a_candidate(endpoint="10.0.0.7:8000"))
    with pytest.raises(LeaseHeld, match=r"shard 3 is led by 10\.0\.0\.7:8000"):
        open_journal(place, a_candidate())
    await journal.close()


async def test_a_lease_without_renewals_is_taken_when_it_ends(
    journal_url: str, cable: Cable
) -> None:
    first = await opened(cable.url, SHORT_S)
    await asyncio.to_thread(cable.cut)
    second = await opened(journal_url, HELD_S)
    async with writing(second) as calls:
        await calls.until_synced(second.append(b"second"))
    await first.close()


async def test_a_waiting_process_leads_as_soon_as_the_lease_is_released(journal_url: str) -> None:
    place = JournalPlace(journal_url, SHARD, SHARD_COUNT)
    first = await lead(place, a_candidate(lease_s=HELD_S))
    waiting = asyncio.ensure_future(lead(place, a_candidate(lease_s=HELD_S)))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    async with writing(first):
        first.append(b"first")
    async with asyncio.timeout(RELEASED_WITHIN_S):
        second = await waiting
    assert [entry.payload for entry in second.entries()] == [b"first"]
    await second.close()


async def test_a_process_that_stops_waiting_takes_no_lease(journal_url: str) -> None:
    place = JournalPlace(journal_url, SHARD, SHARD_COUNT)
    first = await lead(place, a_candidate())
    waiting = asyncio.ensure_future(lead(place, a_candidate(lease_s=HELD_S)))
    await asyncio.sleep(0.1)
    waiting.cancel()
    await first.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await PostgresJournals(journal_url).open("j").close()


async def test_a_batch_under_way_lets_the_lease_be_renewed_and_not_be_taken(
    journal_url: str,
) -> None:
    first = await opened(journal_url, RENEWED_S)
    batch = await asyncpg.connect(journal_url.replace("+asyncpg", ""))
    await batch.execute("BEGIN")
    await batch.execute("SELECT FROM journal.lease FOR KEY SHARE")
    await asyncio.sleep(1.5 * RENEWED_S)
    with pytest.raises(LeaseHeld):
        await asyncio.to_thread(PostgresJournals(journal_url).open, "j")
    await first.close()
    taking = asyncio.ensure_future(opened(journal_url, RENEWED_S))
    await asyncio.sleep(SHORT_S)
    assert not taking.done()
    await batch.execute("COMMIT")
    await batch.close()
    await (await taking).close()


async def test_a_process_that_takes_the_lease_waits_for_the_batch_under_way_and_sees_it(
    journal_url: str,
) -> None:
    journal = PostgresJournals(journal_url, lease_s=60).open("j")
    query(journal_url, SLOW_FUNCTION)
    query(
        journal_url,
        "CREATE TRIGGER slow AFTER INSERT ON journal.record EXECUTE FUNCTION journal.slow()",
    )
    async with writing(journal) as calls:
        journal.append(b"slow")
        await until_it_sleeps(journal_url)
        query(journal_url, "UPDATE journal.lease SET until = clock_timestamp()")
        second = await opened(journal_url, HELD_S)
        assert [entry.payload for entry in second.entries()] == [b"slow"]
        await calls.until_synced(1)
    await second.close()


async def test_a_database_that_cannot_be_reached_refuses_the_start() -> None:
    with pytest.raises(JournalFailed, match="ConnectionRefusedError"):
        PostgresJournals("postgresql://nobody@127.0.0.1:1/nothing").open("j")


async def test_an_id_that_took_a_lease_may_take_it_again(journal_url: str) -> None:
    """The answer to its first attempt may have been lost."""
    candidate = Candidate(b"the same", "here")
    place = JournalPlace(journal_url, SHARD, SHARD_COUNT)
    first, again = open_journal(place, candidate), open_journal(place, candidate)
    await first.close()
    await again.close()


# The tables.


async def test_journals_that_begin_at_once_create_the_tables_once(journal_url: str) -> None:
    shards = PostgresJournals(journal_url)
    journals = await asyncio.gather(
        *(asyncio.to_thread(shards.open, f"j{number}") for number in range(4))
    )
    for journal in journals:
        await journal.close()


async def test_another_number_of_shards_is_refused(
    journal_url: str, shards: PostgresJournals
) -> None:
    await shards.open("j").close()
    with pytest.raises(ShardCountChanged, match="created with 8 shards, and 9 are configured"):
        open_journal(JournalPlace(journal_url, SHARD, SHARD_COUNT + 1), a_candidate())


async def test_tables_of_a_later_version_are_refused(
    journal_url: str, shards: PostgresJournals
) -> None:
    await shards.open("j").close()
    query(journal_url, "UPDATE journal.form SET version = 2")
    with pytest.raises(JournalFormUnknown, match="have version 2"):
        shards.open("j")


# Reading.

PAYLOADS = [b"payload %d" % number for number in range(50)]


@pytest.mark.parametrize("batch_records", [1, 7, 50, 51])
async def test_batches_of_any_size_make_one_journal(
    journal_url: str, shards: PostgresJournals, batch_records: int
) -> None:
    await written(shards.open("j"), PAYLOADS)
    assert list(read_entries(journal_url, SHARD, batch_records=batch_records)) == [
        Entry(sequence, payload) for sequence, payload in enumerate(PAYLOADS, 1)
    ]


async def test_a_batch_ends_where_it_has_enough_bytes(
    journal_url: str, shards: PostgresJournals
) -> None:
    await written(shards.open("j"), PAYLOADS)
    entries = read_entries(journal_url, SHARD, batch_bytes=25)
    assert [entry.payload for entry in entries] == PAYLOADS


async def test_reading_that_is_abandoned_leaves_no_thread(
    journal_url: str, shards: PostgresJournals
) -> None:
    await written(shards.open("j"), PAYLOADS)
    entries = read_entries(journal_url, SHARD, batch_records=5)
    assert next(entries) == Entry(1, PAYLOADS[0])
    del entries
    assert "journal reader" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "DELETE FROM journal.record WHERE sequence = 20",
            "at sequence 20: sequence 20 is missing",
        ),
        ("DELETE FROM journal.record WHERE sequence = 1", "at sequence 1: sequence 1 is missing"),
        ("DELETE FROM journal.record WHERE sequence > 45", "sequence 50 was synced and is missing"),
        ("DELETE FROM journal.record", "sequence 50 was synced and is missing"),
        (
            "UPDATE journal.record SET payload = payload || 'x' WHERE sequence = 30",
            "at sequence 30: the record is damaged",
        ),
        (
            "UPDATE journal.record SET chain = 'x' WHERE sequence = 30",
            "at sequence 30: the record is damaged",
        ),
        (
            "UPDATE journal.record SET sequence = 60 WHERE sequence = 5",
            "at sequence 5: sequence 5 is missing",
        ),
    ],
)
async def test_damage_is_reported_with_its_sequence(
    journal_url: str, shards: PostgresJournals, statement: str, words: str
) -> None:
    await written(shards.open("j"), PAYLOADS)
    query(journal_url, statement)
    with pytest.raises(JournalDamaged, match=words):
        await read(shards)


async def test_reading_begins_only_after_an_entry_that_is_there(
    journal_url: str, shards: PostgresJournals
) -> None:
    await written(shards.open("j"), PAYLOADS)
    query(journal_url, "DELETE FROM journal.record WHERE sequence <= 20")
    with pytest.raises(JournalDamaged, match="at sequence 20: the previous record is missing"):
        list(read_entries(journal_url, SHARD, 20))
    assert len(list(read_entries(journal_url, SHARD, 21))) == 29


async def test_entries_of_a_database_that_cannot_be_reached_are_refused() -> None:
    with pytest.raises(JournalFailed, match="ConnectionRefusedError"):
        next(read_entries("postgresql://nobody@127.0.0.1:1/nothing", SHARD))


async def test_a_server_with_fewer_entries_than_before_is_refused(
    journal_url: str, shards: PostgresJournals
) -> None:
    """A primary that was replaced may answer for another moment."""
    await written(shards.open("j"), [b"one", b"two"])
    async with contextlib.AsyncExitStack() as stack:
        journal = shards.open("j")
        stack.push_async_callback(journal.close)
        query(journal_url, "DELETE FROM journal.record WHERE sequence = 2")
        with pytest.raises(JournalFailed, match="ends at 1, and must end at 2 or later"):
            list(journal.entries())


async def test_rows_that_differ_from_those_written_end_the_journal(
    journal_url: str, shards: PostgresJournals
) -> None:
    await written(shards.open("j"), [b"theirs"])
    ours = Row(1, b"id", b"our chain", b"ours")
    async with connected(journal_url) as connection:
        with pytest.raises(JournalFailed, match="another process wrote to shard 0"):
            await are_durable(connection, SHARD, [ours])


@settings(max_examples=12, deadline=None)
@given(
    runs=st.lists(
        st.lists(st.binary(min_size=1, max_size=3_000), max_size=12), min_size=1, max_size=3
    )
)
async def test_any_payloads_in_any_number_of_runs_are_read_again(
    postgres: PostgresServer, runs: list[list[bytes]]
) -> None:
    query(postgres.database_url, "DROP SCHEMA IF EXISTS journal CASCADE")
    shards = PostgresJournals(postgres.database_url)
    for payloads in runs:
        await written(shards.open("j"), payloads)
    assert [entry.payload for entry in read_entries(postgres.database_url, SHARD)] == list(
        itertools.chain(*runs)
    )
