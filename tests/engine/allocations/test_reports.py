"""What a treasury asks of a shard, over journals in files."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.rigs.values import NOW_MS, a_word, an_address, an_observation
from tests.trading.rig import SEGMENT_BYTES

from foretell.domain.errors.exchange import EngineRestarting, TreasuryUnavailable
from foretell.domain.exchange.allocations import SliceTotal, SliceTotals, Total, total_of
from foretell.engine.allocations import reports
from foretell.engine.allocations.reports import ChangedSlices, report_slices
from foretell.engine.answers import answer
from foretell.engine.protocol.requests import (
    Answer,
    Fund,
    Funded,
    GiveBack,
    GivenBack,
    Join,
    Joined,
    Question,
    ReportSlices,
    SlicesReported,
    Take,
    Taken,
)
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio

NORTH = "north"
WALLETS = [an_address(f"trader {number}") for number in range(5)]
GIVEN = [SliceTotal(wallet, total_of(10)) for wallet in WALLETS]
NOTHING = total_of(0)
WHOLE = SliceTotals(WALLETS[0], total_of(10), NOTHING, NOTHING)
REPORT = SlicesReported(NORTH, 1, a_word("block 1"), 1, [WHOLE], 3, is_whole=True)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """A shard that has joined, with ten units of each of some wallets."""
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), lambda: NOW_MS)
    await engine.start()
    assert await answer(engine, Join(NORTH)) == Joined()
    assert await answer(engine, Take(NORTH, GIVEN)) == Taken()
    yield engine
    await engine.close()


async def report(engine: Engine, question: ReportSlices) -> SlicesReported:
    return await report_slices(engine, None, question)


def units_held(engine: Engine) -> int:
    return engine.state.slices.look_up(WALLETS[0]).units


async def test_joining_again_changes_nothing(engine: Engine) -> None:
    sequence = engine.sequence
    await answer(engine, Join(NORTH))
    assert engine.sequence == sequence


def a_return(units: int, given: int = 10, shard: str = NORTH) -> GiveBack:
    total = SliceTotal(WALLETS[0], total_of(given))
    return GiveBack(shard, total, total_of(units), is_forced=False)


async def test_what_is_free_is_given_back(engine: Engine) -> None:
    expected = GivenBack(SliceTotal(WALLETS[0], Total("4")))
    assert await answer(engine, a_return(4)) == expected
    assert units_held(engine) == 6


async def test_what_is_still_on_its_way_is_given_back_too(engine: Engine) -> None:
    expected = GivenBack(SliceTotal(WALLETS[0], Total("25")))
    assert await answer(engine, a_return(25, given=30)) == expected
    assert units_held(engine) == 5


@pytest.mark.parametrize(
    "question", [Join("south"), Take("south", GIVEN), a_return(4, shard="south")]
)
async def test_what_is_meant_for_another_shard_is_refused(
    engine: Engine, question: Question
) -> None:
    assert isinstance(question, Join | Take | GiveBack)
    with pytest.raises(TreasuryUnavailable, match="known here as 'north'"):
        await answer(engine, question)
    assert units_held(engine) == 10


async def test_slices_are_reported_in_parts_that_have_a_bound(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "SLICES_PER_REPORT_MAX", 2)
    parts = [await report(engine, ReportSlices(start)) for start in (0, 2, 4, 6)]
    assert [part.count for part in parts] == [5] * 4
    wallets = [[each.wallet for each in part.slices] for part in parts]
    assert wallets == [WALLETS[:2], WALLETS[2:4], WALLETS[4:], []]


async def test_slices_are_reported_as_of_the_block_that_was_observed(engine: Engine) -> None:
    await engine.submit(an_observation())
    reported = await report(engine, ReportSlices(0, a_word("block 1")))
    assert (reported.block_number, len(reported.slices)) == (1, 5)


async def test_no_slices_are_reported_as_of_another_block(engine: Engine) -> None:
    reported = await report(engine, ReportSlices(0, a_word("block 1")))
    assert (reported.block_number, reported.slices) == (0, [])


async def test_an_engine_that_reads_its_journal_reports_nothing(tmp_path: Path) -> None:
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), lambda: NOW_MS)
    with pytest.raises(EngineRestarting):
        await report(engine, ReportSlices(0))
    await engine.close()


@pytest.mark.parametrize(
    "question",
    [
        Join(NORTH),
        Take(NORTH, GIVEN),
        a_return(4),
        ReportSlices(3, a_word("block 1"), 7),
        Fund(NORTH, WALLETS[0], total_of(10**30)),
    ],
)
async def test_a_question_about_slices_crosses_a_wire(question: Question) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(question), type=Question) == question


@pytest.mark.parametrize(
    "answered", [Joined(), Taken(), GivenBack(GIVEN[0]), REPORT, Funded(GIVEN[0])]
)
async def test_an_answer_about_slices_crosses_a_wire(answered: Answer) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(answered), type=Answer) == answered


@pytest.fixture
def changed(engine: Engine) -> ChangedSlices:
    """What is told of the shard's slices from now on."""
    changed = ChangedSlices()
    engine.hear(changed.hear)
    return changed


async def since(engine: Engine, changed: ChangedSlices, sequence: int) -> SlicesReported:
    return await report_slices(engine, changed, ReportSlices(0, since=sequence))


async def test_of_slices_that_were_reported_only_changed_ones_are_again(
    engine: Engine, changed: ChangedSlices
) -> None:
    await answer(engine, a_return(1))
    before = await since(engine, changed, engine.sequence)
    await answer(engine, Take(NORTH, [SliceTotal(WALLETS[3], total_of(11))]))
    await answer(engine, a_return(2))
    after = await since(engine, changed, before.sequence)
    assert (before.slices, after.is_whole, after.count) == ([], False, 2)
    assert {each.wallet for each in after.slices} == {WALLETS[0], WALLETS[3]}


async def test_what_is_not_durable_yet_is_reported_once_it_is(
    engine: Engine, changed: ChangedSlices
) -> None:
    await answer(engine, a_return(1))
    sequence = engine.sequence
    _, reported = await asyncio.gather(
        answer(engine, a_return(2)), since(engine, changed, sequence)
    )
    assert reported.slices == [
        SliceTotals(WALLETS[0], total_of(10), total_of(2), NOTHING),
    ]
    assert changed.since(sequence) == [WALLETS[0]]


@pytest.mark.parametrize("sequence", [0, 1, 10**6])
async def test_who_asks_for_more_than_is_remembered_is_told_everything(
    engine: Engine, changed: ChangedSlices, sequence: int
) -> None:
    await answer(engine, a_return(1))
    reported = await since(engine, changed, sequence)
    assert (reported.is_whole, reported.count) == (True, 5)


async def test_a_host_that_heard_nothing_yet_tells_everything(
    engine: Engine, changed: ChangedSlices
) -> None:
    assert (await since(engine, changed, engine.sequence)).is_whole


async def test_more_changes_than_one_answer_holds_are_told_with_everything(
    engine: Engine, changed: ChangedSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "SLICES_PER_REPORT_MAX", 2)
    await answer(engine, a_return(1))
    sequence = engine.sequence
    await answer(engine, Take(NORTH, [SliceTotal(wallet, total_of(11)) for wallet in WALLETS]))
    reported = await since(engine, changed, sequence)
    assert (reported.is_whole, reported.count, len(reported.slices)) == (True, 5, 2)


async def test_changes_as_of_another_block_are_not_reported(
    engine: Engine, changed: ChangedSlices
) -> None:
    await answer(engine, a_return(1))
    question = ReportSlices(0, a_word("block 1"), since=engine.sequence - 1)
    reported = await report_slices(engine, changed, question)
    assert (reported.block_number, reported.slices) == (0, [])
