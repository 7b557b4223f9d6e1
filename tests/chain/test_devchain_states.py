"""H3: large states of the sandbox's chain, read and written beside the event loop."""

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.chain.chains import is_paid_in, started
from typing_extensions import override

from foretell.bench.rigs.ports import free_port
from foretell.chain import devchain
from foretell.chain.devchain import (
    DUMP_SHARE_MAX,
    MEMORY_BYTES_MAX,
    STATES_KEPT,
    DevChain,
    DevChainOptions,
)
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox import state_bound, state_files
from foretell.chain.sandbox.chain_process import process_running
from foretell.chain.sandbox.saved_state import AT_END, DAMAGED, IN_PLACE, LOADED, NEWEST
from foretell.chain.sandbox.state_files import OLDER_USED, keep_dump, prepare_state
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.domain.errors.chain import (
    ChainStartTooSlow,
    ChainStateDamaged,
    ChainStateTooLarge,
    ChainUnavailable,
    DevChainStillRuns,
    RpcRefused,
)

pytestmark = pytest.mark.anyio

PAYER = SANDBOX_ACCOUNTS[0].address
PAYEE = "0x" + "4e" * 20
TRANSACTIONS = 1_000
STARTS = 5
NEVER_S = 86_400.0
TAKEN_S = 1.0
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"


@pytest.fixture
def options(devchain_options: DevChainOptions, tmp_path: Path) -> DevChainOptions:
    folder = tmp_path / "chain"
    folder.mkdir()
    return replace(devchain_options, folder=folder, port=free_port(), is_kept=True)


@pytest.fixture
def in_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have children read and write every state, and nothing in this process."""
    monkeypatch.setattr(state_files, "THREAD_BYTES_MAX", -1)
    monkeypatch.setattr(state_files, "carry_out", None)


def a_state(transactions: int) -> bytes:
    info = {"transaction_hash": "0x01", "traces": [{"trace": "x" * 100}] * 100, "nonce": 1}
    transaction = {"info": info, "receipt": {"status": "0x1"}, "block_number": 3}
    return json.dumps({"accounts": {}, "transactions": [transaction] * transactions}).encode()


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not happened():  # noqa: ASYNC110 - files and processes notify no one
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("states_kept", [STATES_KEPT, 12])
async def test_the_chain_replaces_fewer_blocks_than_it_keeps_states(
    options: DevChainOptions, states_kept: int
) -> None:
    options = replace(options, states_kept=states_kept)
    async with started(options) as rpc:
        for _ in range(2 * states_kept):
            await rpc.send("evm_mine")
        await rpc.send("anvil_reorg", states_kept - 1, [])
        await rpc.send("evm_mine")
        with pytest.raises(RpcRefused):
            await rpc.send("anvil_reorg", 2 * states_kept, [])


@pytest.mark.usefixtures("in_children")
async def test_attack_h3_a_large_state_is_prepared_by_a_child_process(tmp_path: Path) -> None:
    """The serving process decoded and encoded all of it at a renewal, while orders waited."""
    (tmp_path / AT_END).write_bytes(a_state(TRANSACTIONS))
    prepared = await prepare_state(tmp_path)
    assert prepared.file is not None
    without = prepared.file.read_bytes()
    assert prepared.state_bytes == len(without) < len(a_state(TRANSACTIONS)) / 10
    whole = json.loads(a_state(TRANSACTIONS))
    for transaction in whole["transactions"]:
        transaction["info"]["traces"] = []
    assert json.loads(without) == whole


@pytest.mark.parametrize("state", [b"{}", a_state(0), b'{"transactions":[]}', b'{"block":1}'])
@pytest.mark.parametrize("thread_bytes_max", [-1, 10**9])
async def test_a_state_is_loaded_as_it_is_but_for_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: bytes, thread_bytes_max: int
) -> None:
    monkeypatch.setattr(state_files, "THREAD_BYTES_MAX", thread_bytes_max)
    (tmp_path / AT_END).write_bytes(state)
    file, _ = await prepare_state(tmp_path)
    assert file is not None
    assert json.loads(file.read_bytes()) == json.loads(state)


@pytest.mark.usefixtures("in_children")
async def test_attack_h3_a_damaged_state_that_a_child_finds_is_named(tmp_path: Path) -> None:
    (tmp_path / AT_END).write_bytes(a_state(1)[:-1])
    with capture_logs() as logs, pytest.raises(ChainStateDamaged):
        await prepare_state(tmp_path)
    assert [each["renamed"] for each in logs] == [AT_END + DAMAGED]
    assert "consequence" not in logs[0]


async def test_attack_h3_the_line_of_a_damaged_state_says_that_an_older_one_is_used(
    tmp_path: Path,
) -> None:
    (tmp_path / AT_END).write_bytes(a_state(1))
    os.utime(tmp_path / AT_END, (1, 1))
    (tmp_path / IN_PLACE).write_bytes(a_state(2)[:-1])
    with capture_logs() as logs:
        file, _ = await prepare_state(tmp_path)
    assert file is not None
    (line,) = logs
    assert (line["event"], line["renamed"]) == ("chain state damaged", IN_PLACE + DAMAGED)
    assert line["consequence"] == OLDER_USED


@pytest.mark.usefixtures("in_children")
async def test_attack_h3_a_chain_whose_states_are_stored_by_children_goes_on_after_a_kill(
    options: DevChainOptions,
) -> None:
    chain = DevChain(options)
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            await rpc.send("eth_sendTransaction", {"from": PAYER, "to": PAYEE, "value": "0x5"})
        await until(lambda: is_paid_in(options.folder / NEWEST, PAYEE))
        os.kill(int((options.folder / "anvil.pid").read_text()), signal.SIGKILL)
        await chain.stop()
        await chain.start()
        async with Rpc(chain.rpc_url) as rpc:
            assert await rpc.call("eth_getBalance", PAYEE, "latest") == "0x5"
    finally:
        await chain.stop()


@pytest.mark.parametrize("thread_bytes_max", [-1, 10**9])
async def test_a_node_that_gives_no_dump_changes_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thread_bytes_max: int
) -> None:
    monkeypatch.setattr(state_files, "THREAD_BYTES_MAX", thread_bytes_max)
    (tmp_path / NEWEST).write_bytes(b"the one before")
    with pytest.raises(ChainUnavailable):
        await keep_dump(tmp_path, f"http://127.0.0.1:{free_port()}", 0)
    assert (tmp_path / NEWEST).read_bytes() == b"the one before"


@pytest.mark.parametrize("thread_bytes_max", [-1, 10**9])
async def test_a_folder_that_cannot_be_written_is_a_failure_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thread_bytes_max: int
) -> None:
    """A supervisor waits for one that passes, such as a full disk."""
    monkeypatch.setattr(state_files, "THREAD_BYTES_MAX", thread_bytes_max)
    (tmp_path / AT_END).write_bytes(a_state(1))
    (tmp_path / LOADED).mkdir()
    with pytest.raises(IsADirectoryError, match=LOADED):
        await prepare_state(tmp_path)


class SlowDumps(DevChain):
    """A chain whose dumps seem to take long."""

    def __init__(self, options: DevChainOptions, taken_s: float = TAKEN_S) -> None:
        super().__init__(options)
        self.dumps = 0
        self.taken_s = taken_s

    @override
    async def _dump(self, rpc: Rpc) -> float:
        await super()._dump(rpc)
        self.dumps += 1
        return self.taken_s


async def test_attack_h3_the_pause_between_dumps_grows_with_their_time(
    options: DevChainOptions,
) -> None:
    chain = SlowDumps(options)
    await chain.start()
    try:
        await until(lambda: chain.dumps == 1)
        assert chain.dump_pause_s == TAKEN_S / DUMP_SHARE_MAX
    finally:
        await chain.stop()


async def test_attack_h3_a_pause_ends_when_the_chain_takes_much_more_memory(
    options: DevChainOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two dumps of a busy chain it once grew up to its bound, and ended."""
    chain = SlowDumps(options, NEVER_S * DUMP_SHARE_MAX)
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            await rpc.send("evm_mine")
            await until(lambda: chain.dumps == 1)
            monkeypatch.setattr(devchain, "MEMORY_GROWTH_BYTES_MAX", -MEMORY_BYTES_MAX)
            chain._memory_bound_bytes = 0
            await rpc.send("evm_mine")
            await until(lambda: chain.dumps == 2)
            await rpc.send("evm_mine")
            await until(lambda: chain.dumps == 3)
        assert chain.dump_pause_s == NEVER_S
    finally:
        await chain.stop()


async def test_attack_h3_a_state_that_is_too_large_is_refused_with_the_cure(
    options: DevChainOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain ended at its bound of memory, with a code that said nothing."""
    monkeypatch.setattr(state_bound, "STATE_BYTES_MAX", 10)
    (options.folder / AT_END).write_bytes(a_state(1))
    with pytest.raises(ChainStateTooLarge, match=r"at most 10 are loaded: move the data folder"):
        await DevChain(options).start()
    assert {each.name for each in options.folder.iterdir()} == {AT_END}


async def test_attack_h3_a_chain_whose_state_could_not_be_loaded_again_goes_on(
    options: DevChainOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once ended itself, and each later start refused its state."""
    chain = SlowDumps(replace(options, is_instant=True, renewed_after_bytes=1), 0.0)
    pid_file = options.folder / "anvil.pid"
    await chain.start()
    try:
        first = pid_file.read_text()
        with capture_logs() as logs:
            monkeypatch.setattr(state_bound, "STATE_BYTES_MAX", 10)
            async with Rpc(chain.rpc_url) as rpc:
                for dumps in (2, 3):
                    await rpc.send("evm_mine")
                    await until(lambda dumps=dumps: chain.dumps >= dumps)  # type: ignore[misc]
                assert pid_file.read_text() == first
        assert [each["log_level"] for each in logs if "too large" in each["event"]] == ["error"]
        assert not (options.folder / LOADED).exists()
    finally:
        await chain.stop()


@pytest.mark.parametrize(("state_bytes", "lines"), [(80, 0), (81, 1), (100, 1)])
async def test_a_state_that_is_nearly_too_large_is_named_at_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_bytes: int, lines: int
) -> None:
    monkeypatch.setattr(state_bound, "STATE_BYTES_MAX", 100)
    with capture_logs() as logs:
        state_bound.check_loaded(tmp_path, state_bytes)
    assert [each["log_level"] for each in logs] == ["error"] * lines


class FailingDumps(DevChain):
    """A chain whose dumps fail."""

    @override
    async def _dump(self, rpc: Rpc) -> float:
        raise ChainUnavailable("anvil_dumpState", "its reader ended with -9")


async def test_attack_h3_the_pause_after_a_dump_that_failed_doubles(
    options: DevChainOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing dump, which takes much memory, was tried again every two seconds."""
    chain = FailingDumps(options)
    chain.dump_pause_s = 0.02
    monkeypatch.setattr(devchain, "DUMP_PAUSE_S", 0.02)
    monkeypatch.setattr(devchain, "DUMP_PAUSE_S_MAX", 0.16)
    await chain.start()
    try:
        chain._memory_bound_bytes = -1
        await until(lambda: chain.dump_pause_s == 0.16)
        assert chain._memory_bound_bytes > 0
    finally:
        await chain.stop()


async def test_a_stop_does_not_wait_long_for_a_dump_of_a_node_that_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a frozen chain the end of a process took two minutes."""
    monkeypatch.setattr(state_files, "THREAD_RECEIVE_S", 0.2)
    asked, over = asyncio.Event(), asyncio.Event()

    async def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    dumping = asyncio.create_task(keep_dump(tmp_path, f"http://127.0.0.1:{port}", 0))
    try:
        await asyncio.wait_for(asked.wait(), 60)
        dumping.cancel()
        done, _ = await asyncio.wait({dumping}, timeout=60)
        assert done
    finally:
        over.set()
        server.close()


async def test_attack_h3_a_chain_that_starts_too_slowly_is_refused_with_the_cure(
    options: DevChainOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A large state once took longer than the deadline, which was a traceback without a word."""
    silent = tmp_path / "anvil"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o700)
    monkeypatch.setattr(devchain, "START_DEADLINE_S", 0.2)
    (options.folder / AT_END).write_bytes(a_state(TRANSACTIONS))
    monkeypatch.setattr(devchain, "LOAD_BYTES_PER_S_MIN", 1e6)
    with pytest.raises(ChainStartTooSlow, match="or move the data folder away") as refused:
        await DevChain(replace(options, anvil=silent)).start()
    assert isinstance(refused.value, OSError), "a supervisor starts it again"


async def test_an_earlier_chain_that_does_not_end_is_named(
    options: DevChainOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devchain, "EARLIER_DEADLINE_S", 0.2)
    earlier = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STUBBORN, str(options.folder / AT_END)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert earlier.stdout is not None
        await asyncio.wait_for(earlier.stdout.readline(), 60)
        (options.folder / "anvil.pid").write_text(str(earlier.pid))
        with pytest.raises(DevChainStillRuns, match=f"process {earlier.pid}"):
            await DevChain(options).start()
    finally:
        earlier.kill()
        await earlier.wait()


async def test_attack_h3_a_copied_folder_ends_no_chain_of_the_one_it_was_copied_from(
    options: DevChainOptions,
) -> None:
    """The path of the copy may be a part of the other one, whose process the copied file names."""
    elsewhere = Path(f"/elsewhere{options.folder}") / AT_END
    other = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STUBBORN, str(elsewhere)), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert other.stdout is not None
        await asyncio.wait_for(other.stdout.readline(), 60)
        (options.folder / "anvil.pid").write_text(str(other.pid))
        assert process_running(options.folder / "anvil.pid", str(options.folder / AT_END)) is None
        assert process_running(options.folder / "anvil.pid", str(elsewhere)) == other.pid
    finally:
        other.kill()
        await other.wait()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_of_the_first_blocks_of_all_starts_the_oldest_is_loaded(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    blocks = [
        {"header": {"number": "0x0", "timestamp": "0x9"}, "transactions": []},
        {"header": {"number": "0x0", "timestamp": "0x10"}, "transactions": []},
        {"header": {"number": "0x1", "timestamp": "0xa"}, "transactions": [7]},
    ]
    state = {"blocks": [blocks[place] for place in order]}
    (tmp_path / AT_END).write_text(json.dumps(state))
    file, _ = await prepare_state(tmp_path)
    assert file is not None
    found = json.loads(file.read_bytes())["blocks"]
    assert sorted(found, key=str) == sorted([blocks[0], blocks[2]], key=str)


async def test_attack_m1_a_chain_that_was_started_often_has_the_first_block_that_its_second_follows(
    options: DevChainOptions,
) -> None:
    """A new database began at a first block of another start, and could index nothing after it."""
    chain = DevChain(options)
    for _ in range(STARTS):
        await chain.start()
        try:
            async with Rpc(chain.rpc_url) as rpc:
                await rpc.send("evm_mine")
                first, second = [
                    await rpc.send("eth_getBlockByNumber", number, False)  # noqa: FBT003
                    for number in ("0x0", "0x1")
                ]
                assert second["parentHash"] == first["hash"]
        finally:
            await chain.stop()
    assert first_blocks(options.folder / AT_END) <= 2, "its own and the one that was loaded"


def first_blocks(state: Path) -> int:
    blocks = json.loads(state.read_bytes())["blocks"]
    return sum(block["header"]["number"] == "0x0" for block in blocks)
