"""Requests of a treasury to a shard, over journals in files."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.engine.rig import handle
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import NOW_MS, a_word, an_address, an_observation

from foretell.domain.errors.exchange import EngineRestarting, TreasuryUnavailable
from foretell.domain.exchange.allocations import AllocationTotal, AllocationTotals, Total, total_of
from foretell.engine.allocations.reports import ChangedAllocations, report_allocations
from foretell.engine.protocol.requests import (
    EngineReply,
    EngineRequest,
    FundReply,
    FundRequest,
    JoinReply,
    JoinRequest,
    ReportReply,
    ReportRequest,
    ReturnReply,
    ReturnRequest,
    TakeReply,
    TakeRequest,
)
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio

NORTH = "north"
WALLETS = [an_address(f"trader {number}") for number in range(5)]
GIVEN = [AllocationTotal(wallet, total_of(10)) for wallet in WALLETS]
NOTHING = total_of(0)
WHOLE = AllocationTotals(WALLETS[0], total_of(10), NOTHING, NOTHING)
REPORT = ReportReply(NORTH, 1, a_word("block 1"), 1, [WHOLE], 3, is_whole=True)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """A shard that has joined, with ten units of each of some wallets."""
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), lambda: NOW_MS)
    await engine.start()
    assert await handle(engine, JoinRequest(NORTH)) == JoinReply()
    assert await handle(engine, TakeRequest(NORTH, GIVEN)) == TakeReply()
    yield engine
    await engine.close()


async def report(engine: Engine, request: ReportRequest) -> ReportReply:
    return await report_allocations(engine, None, request)


def units_held(engine: Engine) -> int:
    return engine.state.allocations.look_up(WALLETS[0]).units


async def test_joining_again_changes_nothing(engine: Engine) -> None:
    sequence = engine.sequence
    await handle(engine, JoinRequest(NORTH))
    assert engine.sequence == sequence


def a_return(units: int, given: int = 10, shard: str = NORTH) -> ReturnRequest:
    total = AllocationTotal(WALLETS[0], total_of(given))
    return ReturnRequest(shard, total, total_of(units), is_forced=False)


async def test_free_units_are_returned(engine: Engine) -> None:
    expected = ReturnReply(AllocationTotal(WALLETS[0], Total("4")))
    assert await handle(engine, a_return(4)) == expected
    assert units_held(engine) == 6


async def test_a_grant_in_flight_is_returned_too(engine: Engine) -> None:
    expected = ReturnReply(AllocationTotal(WALLETS[0], Total("25")))
    assert await handle(engine, a_return(25, given=30)) == expected
    assert units_held(engine) == 5


@pytest.mark.parametrize(
    "sent", [JoinRequest("south"), TakeRequest("south", GIVEN), a_return(4, shard="south")]
)
async def test_a_request_for_another_shard_is_refused(engine: Engine, sent: EngineRequest) -> None:
    assert isinstance(sent, JoinRequest | TakeRequest | ReturnRequest)
    with pytest.raises(TreasuryUnavailable, match="this engine is shard 'north'"):
        await handle(engine, sent)
    assert units_held(engine) == 10


async def test_allocations_are_reported_in_parts_of_bounded_length(engine: Engine) -> None:
    parts = [
        await report_allocations(engine, None, ReportRequest(start), per_report_max=2)
        for start in (0, 2, 4, 6)
    ]
    assert [part.count for part in parts] == [5] * 4
    wallets = [[each.wallet for each in part.allocations] for part in parts]
    assert wallets == [WALLETS[:2], WALLETS[2:4], WALLETS[4:], []]


async def test_allocations_are_reported_as_of_the_block_that_was_observed(engine: Engine) -> None:
    await engine.submit(an_observation())
    reported = await report(engine, ReportRequest(0, a_word("block 1")))
    assert (reported.block_number, len(reported.allocations)) == (1, 5)


async def test_no_allocations_are_reported_as_of_another_block(engine: Engine) -> None:
    reported = await report(engine, ReportRequest(0, a_word("block 1")))
    assert (reported.block_number, reported.allocations) == (0, [])


async def test_an_engine_that_reads_its_journal_reports_nothing(tmp_path: Path) -> None:
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), lambda: NOW_MS)
    with pytest.raises(EngineRestarting):
        await report(engine, ReportRequest(0))
    await engine.close()


@pytest.mark.parametrize(
    "sent",
    [
        JoinRequest(NORTH),
        TakeRequest(NORTH, GIVEN),
        a_return(4),
        ReportRequest(3, a_word("block 1"), 7),
        FundRequest(NORTH, WALLETS[0], total_of(10**30)),
    ],
)
async def test_a_request_about_allocations_crosses_a_socket(sent: EngineRequest) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=EngineRequest) == sent


@pytest.mark.parametrize(
    "reply", [JoinReply(), TakeReply(), ReturnReply(GIVEN[0]), REPORT, FundReply(GIVEN[0])]
)
async def test_a_reply_about_allocations_crosses_a_socket(reply: EngineReply) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(reply), type=EngineReply) == reply


@pytest.fixture
def changed(engine: Engine) -> ChangedAllocations:
    """The shard's allocations that change from now on."""
    changed = ChangedAllocations()
    engine.subscribe(changed.on_committed)
    return changed


async def since(engine: Engine, changed: ChangedAllocations, sequence: int) -> ReportReply:
    return await report_allocations(engine, changed, ReportRequest(0, since=sequence))


async def test_of_reported_allocations_only_changed_ones_are_reported_again(
    engine: Engine, changed: ChangedAllocations
) -> None:
    await handle(engine, a_return(1))
    before = await since(engine, changed, engine.sequence)
    await handle(engine, TakeRequest(NORTH, [AllocationTotal(WALLETS[3], total_of(11))]))
    await handle(engine, a_return(2))
    after = await since(engine, changed, before.sequence)
    assert (before.allocations, after.is_whole, after.count) == ([], False, 2)
    assert {each.wallet for each in after.allocations} == {WALLETS[0], WALLETS[3]}


async def test_a_change_that_is_not_durable_yet_is_reported_once_it_is(
    engine: Engine, changed: ChangedAllocations
) -> None:
    await handle(engine, a_return(1))
    sequence = engine.sequence
    _, reported = await asyncio.gather(
        handle(engine, a_return(2)), since(engine, changed, sequence)
    )
    assert reported.allocations == [
        AllocationTotals(WALLETS[0], total_of(10), total_of(2), NOTHING),
    ]
    assert changed.since(sequence) == [WALLETS[0]]


@pytest.mark.parametrize("sequence", [0, 1, 10**6])
async def test_a_request_for_more_than_is_remembered_gets_a_whole_report(
    engine: Engine, changed: ChangedAllocations, sequence: int
) -> None:
    await handle(engine, a_return(1))
    reported = await since(engine, changed, sequence)
    assert (reported.is_whole, reported.count) == (True, 5)


async def test_a_host_that_saw_no_command_yet_makes_a_whole_report(
    engine: Engine, changed: ChangedAllocations
) -> None:
    assert (await since(engine, changed, engine.sequence)).is_whole


async def test_more_changes_than_one_reply_holds_cause_a_whole_report(
    engine: Engine, changed: ChangedAllocations
) -> None:
    await handle(engine, a_return(1))
    sequence = engine.sequence
    await handle(
        engine, TakeRequest(NORTH, [AllocationTotal(wallet, total_of(11)) for wallet in WALLETS])
    )
    request = ReportRequest(0, since=sequence)
    reported = await report_allocations(engine, changed, request, per_report_max=2)
    assert (reported.is_whole, reported.count, len(reported.allocations)) == (True, 5, 2)


async def test_changes_as_of_another_block_are_not_reported(
    engine: Engine, changed: ChangedAllocations
) -> None:
    await handle(engine, a_return(1))
    request = ReportRequest(0, a_word("block 1"), since=engine.sequence - 1)
    reported = await report_allocations(engine, changed, request)
    assert (reported.block_number, reported.allocations) == (0, [])


async def test_a_report_names_the_start_of_its_shard(engine: Engine) -> None:
    one, other = ChangedAllocations(), ChangedAllocations()
    reports = [await since(engine, each, 0) for each in (one, one, other)]
    ids = [each.start_id for each in reports]
    assert ids[0] == ids[1] != ids[2]
