"""Requests from their first call to their end: stopped and resumed anywhere, with calls in any order."""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.creation.rig import DATABASE_FILE, CreationRig, CreatorClient
from tests.rigs.applications import serving
from tests.rigs.chain_snapshots import take_back
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_word

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.creation.payload import payload_hash
from foretell.domain.creation.request import REQUEST_TRANSITIONS, RequestStatus
from foretell.domain.values.hexadecimal import Address
from foretell.store.creation.markets import load_markets

pytestmark = pytest.mark.anyio

EDGES: Final = {(str(was), str(now)) for (was, _), now in REQUEST_TRANSITIONS.items()}
WALKS_MAX: Final = 12
STEPS_MAX: Final = 14
PROGRAM: Final = Path(__file__).parent / "persisting_creator.py"
CREATOR_DEADLINE_S: Final = 60.0


async def sent_by(rig: CreationRig, address: Address) -> int:
    return int(await rig.sandbox.rpc.call("eth_getTransactionCount", address, "latest"), 16)


async def sent_by_registrar(rig: CreationRig) -> int:
    return await sent_by(rig, rig.sandbox.account(AccountRole.REGISTRAR).address)


async def markets_count(rig: CreationRig) -> int:
    async with rig.database.reading() as tx:
        return len(await load_markets(tx))


class KilledCreator:
    """A creator's program that is killed with SIGKILL once at each of its notes, and started again."""

    def __init__(self, creator: CreatorClient, worker: str, payload: bytes) -> None:
        folder = creator.rig.folder
        self.notes = folder / "notes.json"
        (folder / "payload.json").write_bytes(payload)
        self._command = [
            sys.executable,
            str(PROGRAM),
            f"http://{worker}",
            creator.rig.sandbox.rpc_url,
            creator.account.private_key.hex(),
            str(folder / "payload.json"),
            str(self.notes),
        ]
        self.killed_at: list[str] = []

    async def run(self) -> str:
        """Return the status that the program reports at its end."""
        while True:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            try:
                async with asyncio.timeout(CREATOR_DEADLINE_S):
                    if (status := await self._status(process)) is not None:
                        return status
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def _status(self, process: asyncio.subprocess.Process) -> str | None:
        """Return the status at the end of the program, or None at a note that it was not killed at."""
        assert process.stdin is not None
        assert process.stdout is not None
        while step := (await process.stdout.readline()).decode().strip():
            if step == "finalized":
                return step
            if step not in self.killed_at:
                self.killed_at.append(step)
                return None
            process.stdin.write(b"\n")
        raise AssertionError(f"the program failed after {self.killed_at}")


@pytest.mark.case("F-08")
@pytest.mark.spec(79)
async def test_a_client_that_is_killed_at_each_note_resumes_from_id_payload_and_hashes(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    sent_before = await sent_by(rig, creator.account.address)
    raw = creator.payload()
    async with serving(rig.app) as worker:
        working = asyncio.create_task(work(rig))
        program = KilledCreator(creator, worker, raw)
        try:
            status = await program.run()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    notes = json.loads(program.notes.read_text())
    record = await creator.record(notes["requestId"])
    assert program.killed_at == [
        "begun",
        "opened",
        "prepared",
        "approve-direct-resolution-fee",
        "initialize-market-1",
        "confirmed 2",
        "finalizing",
        "update-metadata-1",
        "confirmed 3",
    ]
    assert (status, record["status"]) == ("finalized", "finalized")
    assert record["payloadHash"] == payload_hash(raw) == payload_hash(notes["payload"].encode())
    assert record["txs"] == notes["txs"]
    assert await sent_by(rig, creator.account.address) - sent_before == len(notes["txs"]) == 3
    assert await markets_count(rig) == 1


async def work(rig: CreationRig) -> None:
    """Run the worker's background work until it is cancelled."""
    while True:
        await rig.run_once()
        await asyncio.sleep(0.02)


@pytest.mark.case("F-08")
async def test_a_request_whose_process_stops_before_every_step_ends_as_any_other(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    before = await sent_by_registrar(rig)
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    request_id = challenge["requestId"]
    envelope = creator.sign(challenge)

    await rig.restart()
    await creator.send(raw, envelope)
    seen = [(await creator.record(request_id))["status"]]
    for _ in range(2):
        await rig.restart()
        await rig.run_once()
    seen.append((await creator.record(request_id))["status"])
    for item in (await creator.record(request_id))["prepared"]["txPlan"]:
        await creator.confirm(request_id, await creator.execute([item]))
        await rig.restart()
    await creator.finalize(request_id)
    seen.append((await creator.record(request_id))["status"])
    for _ in range(5):
        await rig.restart()
        await rig.run_once()
    record = await creator.record(request_id)
    seen.append(record["status"])
    await creator.confirm(request_id, await creator.execute(record["metadataUpdateTxPlan"]))
    await rig.restart()
    seen.append((await creator.finalize(request_id)).json()["status"])

    assert seen == [
        "prepare_running",
        "prepared",
        "finalize_running",
        "metadata_update_pending",
        "finalized",
    ]
    assert await sent_by_registrar(rig) - before == 1
    assert await markets_count(rig) == 1


async def killed_look(rig: CreationRig, after_s: float) -> None:
    """Start a pass of the background work and cancel it at some point."""
    looking = asyncio.create_task(rig.runner.run_once())
    await asyncio.sleep(after_s)
    looking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await looking
    await rig.restart()


@pytest.mark.case("F-08")
@pytest.mark.parametrize("after_ms", [0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48])
async def test_work_that_is_interrupted_anywhere_is_done_once(
    creator: CreatorClient, after_ms: int
) -> None:
    rig = creator.rig
    before = await sent_by_registrar(rig)
    request_id = await creator.prepare()
    for _ in range(3):
        await killed_look(rig, after_ms / 1000)
    await rig.settle()
    await creator.finalize(request_id, await creator.paid(request_id))
    for _ in range(6):
        await killed_look(rig, after_ms / 1000)
    await rig.settle()
    record = await creator.record(request_id)
    updates = await creator.execute(record["metadataUpdateTxPlan"])
    final = (await creator.finalize(request_id, updates)).json()

    assert (final["status"], final["creatorTxCount"]) == ("finalized", 3)
    assert await sent_by_registrar(rig) - before == 1
    assert await markets_count(rig) == 1


class Walk:
    """A request, and the calls that clients may make for it at any time."""

    def __init__(self, creator: CreatorClient, challenge: dict[str, Any], raw: bytes) -> None:
        self.creator = creator
        self.rig = creator.rig
        self.challenge = challenge
        self.raw = raw
        self.request_id = str(challenge["requestId"])
        self.paid: list[dict[str, str]] = []

    async def send(self) -> None:
        await self.creator.send(self.raw, self.creator.sign(self.challenge))

    async def send_tampered(self) -> None:
        envelope = self.creator.sign(self.challenge, nonce=a_word("other"))
        await self.creator.send(self.raw, envelope)

    async def run_once(self) -> None:
        await self.rig.run_once()

    async def restart(self) -> None:
        await self.rig.restart()

    async def pay(self) -> None:
        """Send the items of the plan that were not sent yet."""
        record = await self.creator.record(self.request_id)
        plan = record.get("prepared", {}).get("txPlan", []) + record["metadataUpdateTxPlan"]
        done = {tx["id"] for tx in self.paid}
        self.paid += await self.creator.execute([item for item in plan if item["id"] not in done])

    async def confirm(self) -> None:
        await self.creator.confirm(self.request_id, self.paid)

    async def confirm_nonsense(self) -> None:
        txs = [{"id": "initialize-market-1", "hash": a_word("nonsense")}]
        await self.creator.confirm(self.request_id, txs)

    async def finalize(self) -> None:
        await self.creator.finalize(self.request_id, self.paid)

    async def finalize_silently(self) -> None:
        await self.creator.finalize(self.request_id)

    async def finalize_as_another(self) -> None:
        other = self.rig.creator(self.rig.sandbox.trader())
        answer = await other.finalize(self.request_id, self.paid)
        assert answer.status_code == 404

    async def wait_long(self) -> None:
        self.rig.clock.at_ms += 10 * 60 * 1000


STEPS: Final = (
    "send",
    "send_tampered",
    "run_once",
    "restart",
    "pay",
    "confirm",
    "confirm_nonsense",
    "finalize",
    "finalize_silently",
    "finalize_as_another",
    "wait_long",
)
FORWARD: Final = (
    "send",
    "run_once",
    "pay",
    "finalize",
    "run_once",
    "run_once",
    "run_once",
    "pay",
    "finalize",
)


@contextlib.asynccontextmanager
async def a_studio(sandbox: Sandbox, empty_database: Path) -> AsyncIterator[CreationRig]:
    """Yield a rig of its own on the current chain, and revert the chain afterwards."""
    snapshot = await sandbox.rpc.send("evm_snapshot")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(empty_database, Path(folder) / DATABASE_FILE)
        rig = CreationRig(sandbox, Path(folder))
        await rig.start()
        try:
            yield rig
        finally:
            await rig.stop()
            await take_back(sandbox.rpc, snapshot)


def woven(detours: list[tuple[int, str]]) -> list[str]:
    """Return the steps of a request with other calls before some of them."""
    steps = [
        step
        for place, forward in enumerate(FORWARD)
        for step in [*(name for at, name in detours if at == place), forward]
    ]
    return steps + [name for at, name in detours if at >= len(FORWARD)]


@pytest.mark.case("F-08")
@pytest.mark.spec(54, 55)
@settings(max_examples=WALKS_MAX, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.lists(st.sampled_from(STEPS), max_size=STEPS_MAX),
        st.lists(
            st.tuples(st.integers(0, len(FORWARD)), st.sampled_from(STEPS)), max_size=STEPS_MAX
        ).map(woven),
    )
)
@example(steps=list(FORWARD))
async def test_calls_in_any_order_move_a_request_along_published_edges_only(
    sandbox: Sandbox, empty_database: Path, steps: list[str]
) -> None:
    async with a_studio(sandbox, empty_database) as rig:
        creator = rig.creator()
        before = await sent_by_registrar(rig)
        raw = creator.payload()
        walk = Walk(creator, (await creator.ask(raw)).json(), raw)
        was = "auth_pending"
        ended: dict[str, Any] | None = None
        for step in steps:
            await getattr(walk, step)()
            record = await creator.record(walk.request_id)
            now = record["status"]
            assert now == was or (was, now) in EDGES, (step, was, now)
            assert (record["errorMessage"] is None) == (now != "failed")
            assert ended is None or record == ended
            ended = record if now in {"finalized", "failed"} else None
            was = now
        assert RequestStatus(was)
        assert await markets_count(rig) == (1 if was == "finalized" else 0)
        assert await sent_by_registrar(rig) - before <= 1
