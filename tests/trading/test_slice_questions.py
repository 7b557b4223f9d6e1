"""What a treasury asks of a shard, over journals in files."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.build import NOW_MS, a_word, an_address, an_observation
from tests.trading.venue import SEGMENT_BYTES

from foretell.domain.matching_errors import EngineRestarting, TreasuryUnavailable
from foretell.domain.slices import SliceTotal, SliceTotals, Total, total_of
from foretell.journal.file import FileJournal
from foretell.trading import questions
from foretell.trading.engine import Engine
from foretell.trading.questions import (
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
    answer,
)

pytestmark = pytest.mark.anyio

NORTH = "north"
WALLETS = [an_address(f"trader {number}") for number in range(5)]
GIVEN = [SliceTotal(wallet, total_of(10)) for wallet in WALLETS]
NOTHING = total_of(0)
WHOLE = SliceTotals(WALLETS[0], total_of(10), NOTHING, NOTHING)
REPORT = SlicesReported(NORTH, 1, a_word("block 1"), 1, [WHOLE])


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
    reported = await answer(engine, question)
    assert isinstance(reported, SlicesReported)
    return reported


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
    monkeypatch.setattr(questions, "SLICES_PER_REPORT_MAX", 2)
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
        await answer(engine, ReportSlices(0))
    await engine.close()


@pytest.mark.parametrize(
    "question",
    [
        Join(NORTH),
        Take(NORTH, GIVEN),
        a_return(4),
        ReportSlices(3, a_word("block 1")),
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
