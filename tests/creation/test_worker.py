import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs
from tests.creation.rig import CreationRig, CreatorClient
from tests.rigs.values import NOW_MS
from typing_extensions import override

from foretell.chain.reader import ProposerWhitelist, Reader
from foretell.chain.rpc import Rpc
from foretell.creation.attempts import PAUSE_S_MAX
from foretell.creation.challenge import EXPIRED_KEPT_MS
from foretell.creation.worker import run
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.values.hexadecimal import Address
from foretell.media.blobs import BlobStore
from foretell.runtime.backoff import JITTER

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0
FAILED = ("step failed and is repeated", "creation requests")


class FailingReader(Reader):
    """A chain that raises a failure while one is set."""

    failure: Exception | None = None
    asked = 0

    @override
    async def proposer_whitelist(
        self, creator: Address, at: str = "latest"
    ) -> ProposerWhitelist | None:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return await super().proposer_whitelist(creator, at)


def failing(rig: CreationRig, failure: Exception | None) -> FailingReader:
    reader = FailingReader(rig.sandbox.rpc, rig.sandbox.deployment)
    reader.failure = failure
    rig.change(reader=reader)
    return reader


async def status_and_message(creator: CreatorClient, request_id: str) -> tuple[str, str | None]:
    record = await creator.record(request_id)
    return record["status"], record["errorMessage"]


async def test_a_chain_that_does_not_answer_is_waited_for(creator: CreatorClient) -> None:
    rig = creator.rig
    request_id = await creator.prepare()
    async with Rpc("http://127.0.0.1:1", timeout_s=0.2) as dead:
        rig.change(reader=Reader(dead, rig.sandbox.deployment))
        await rig.runner.run_once()
        waiting = await status_and_message(creator, request_id)
    rig.change(reader=rig.sandbox.reader)
    await rig.settle()

    assert waiting == ("prepare_running", None)
    assert await status_and_message(creator, request_id) == ("prepared", None)


@pytest.mark.spec(64)
async def test_after_the_deadline_the_request_fails_with_the_cause_of_its_wait(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    request_id = await creator.prepare()
    async with Rpc("http://127.0.0.1:1", timeout_s=0.2) as dead:
        rig.change(reader=Reader(dead, rig.sandbox.deployment))
        rig.clock.at_ms += rig.options.prepare_deadline_ms
        await rig.runner.run_once()
        in_time = await status_and_message(creator, request_id)
        rig.clock.at_ms += rig.options.prepare_deadline_ms + 1
        await rig.runner.run_once()

    status, message = await status_and_message(creator, request_id)
    assert in_time == ("prepare_running", None)
    assert status == "failed"
    assert message is not None
    assert message.startswith("chain_unavailable: the node gave no valid response")
    assert message.endswith("(gave up after 1800 s)")
    assert "127.0.0.1" not in message


async def test_the_time_without_a_process_does_not_count_as_waiting(creator: CreatorClient) -> None:
    rig = creator.rig
    request_id = await creator.prepare()
    rig.clock.at_ms += 100 * rig.options.prepare_deadline_ms
    await rig.restart()
    failing(rig, ChainInconsistent("the node starts too"))
    await rig.runner.run_once()

    assert await status_and_message(creator, request_id) == ("prepare_running", None)


async def test_pauses_grow_while_the_chain_fails(creator: CreatorClient) -> None:
    rig = creator.rig
    request_id = await creator.prepare()
    reader = failing(rig, ChainInconsistent("it moved"))

    asked_after_s = []
    for second in range(100):
        asked = reader.asked
        await rig.runner.run_once()
        asked_after_s += [second] if reader.asked > asked else []
        rig.clock.at_ms += 1000
    reader.failure = None
    rig.clock.at_ms += int(PAUSE_S_MAX * 1000)
    await rig.settle()

    pauses_s = [later - earlier for earlier, later in pairwise(asked_after_s)]
    longest_s = [1, 2, 4, 8, 16, PAUSE_S_MAX, PAUSE_S_MAX]
    assert len(pauses_s) >= len(longest_s)
    assert all(
        most * (1 - JITTER) <= pause <= most
        for pause, most in zip(pauses_s, longest_s, strict=False)
    )
    assert await status_and_message(creator, request_id) == ("prepared", None)


async def test_a_fault_of_the_server_stops_no_other_request_and_is_not_published(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    reader = failing(rig, RuntimeError("a secret of ours"))
    faulty = await creator.prepare()
    await rig.runner.run_once()
    reader.failure = None
    other = await creator.prepare(creator.payload(slug="other", binaryQuestion="Other?"))
    await rig.runner.run_once()
    assert await status_and_message(creator, faulty) == ("prepare_running", None)
    assert await status_and_message(creator, other) == ("prepared", None)

    reader.failure = RuntimeError("a secret of ours")
    rig.clock.at_ms += rig.options.prepare_deadline_ms + 1
    await rig.runner.run_once()

    status, message = await status_and_message(creator, faulty)
    assert (status, message) == ("failed", "internal_error: internal error (gave up after 900 s)")


@pytest.fixture
def blocked_folder(tmp_path: Path) -> Path:
    place = tmp_path / "a file"
    place.write_text("where a folder should be")
    return place


@pytest.mark.case("F-10")
async def test_a_request_waits_for_a_failing_storage_and_then_fails_with_it(
    creator: CreatorClient, blocked_folder: Path
) -> None:
    rig = creator.rig
    blobs = rig.context.blobs
    mended = await creator.prepare()
    broken = await creator.prepare(creator.payload(slug="other", binaryQuestion="Other?"))
    rig.change(blobs=BlobStore(blocked_folder))
    await rig.runner.run_once()
    waiting = await status_and_message(creator, mended)
    rig.change(blobs=blobs)
    await rig.settle()
    assert await status_and_message(creator, mended) == ("prepared", None)
    assert await status_and_message(creator, broken) == ("prepared", None)

    third = await creator.prepare(creator.payload(slug="third", binaryQuestion="Third?"))
    rig.change(blobs=BlobStore(blocked_folder))
    rig.clock.at_ms += rig.options.prepare_deadline_ms + 1
    await rig.runner.run_once()

    status, message = await status_and_message(creator, third)
    assert waiting == ("prepare_running", None)
    assert status == "failed"
    assert message is not None
    assert message.startswith("storage_unavailable: ")


@pytest.mark.spec(64)
async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a condition that other tasks fulfil."""
    async with asyncio.timeout(DEADLINE_S):
        while not await holds():  # noqa: ASYNC110 - the condition has no event to wait for
            await asyncio.sleep(0.02)


def is_in(creator: CreatorClient, request_id: str, status: str) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return (await status_and_message(creator, request_id))[0] == status

    return holds


async def test_the_worker_advances_requests_and_resumes_them_after_a_stop(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    working = asyncio.create_task(run(rig.context))
    request_id = await creator.prepare()
    await until(is_in(creator, request_id, "prepared"))
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await creator.finalize(request_id, await creator.paid(request_id))
    await rig.restart()

    working = asyncio.create_task(run(rig.context))
    await until(is_in(creator, request_id, "finalize_running"))
    while not await is_in(creator, request_id, "metadata_update_pending")():
        await rig.sandbox.mine()
        await asyncio.sleep(0.05)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)

    record = await creator.record(request_id)
    updates = await creator.execute(record["metadataUpdateTxPlan"])
    assert (await creator.finalize(request_id, updates)).json()["status"] == "finalized"


async def test_the_worker_continues_after_a_failed_pass(creator: CreatorClient) -> None:
    rig = creator.rig

    async def rename(was: str, now: str) -> None:
        async with rig.database.writing() as tx:
            await tx.execute(sa.text(f"ALTER TABLE {was} RENAME TO {now}"))

    request_id = await creator.prepare()
    await rename("requests", "elsewhere")
    with capture_logs() as logs:
        working = asyncio.create_task(run(rig.context))

        async def has_failed() -> bool:
            return FAILED in [(each["event"], each.get("loop")) for each in logs]

        await until(has_failed)
    await rename("elsewhere", "requests")

    await until(is_in(creator, request_id, "prepared"))
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


async def test_the_worker_forgets_challenges_that_expired_long_ago(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    challenge = (await creator.ask(creator.payload())).json()
    rig.clock.at_ms = NOW_MS + CHALLENGE_LIFETIME_MS + EXPIRED_KEPT_MS + 1
    working = asyncio.create_task(run(rig.context))

    async def is_gone() -> bool:
        query = {"requestId": challenge["requestId"]}
        return (await rig.http.get("/pending", params=query)).status_code == 404

    await until(is_gone)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
