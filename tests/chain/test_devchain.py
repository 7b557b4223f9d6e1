import asyncio
import gzip
import itertools
import json
import os
import signal
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.chain.chains import is_paid_in
from tests.conftest import NPM_FOLDER
from tests.rigs.chain_snapshots import wait_until_mined
from typing_extensions import override

from foretell.bench.rigs.ports import free_port
from foretell.chain.devchain import (
    CONFIRMING_BLOCKS,
    DUMP_PAUSE_S,
    DevChain,
    DevChainOptions,
    find_anvil,
)
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox import state_process
from foretell.chain.sandbox.saved_state import (
    AT_END,
    BEFORE,
    DAMAGED,
    IN_PLACE,
    LOADED,
    NEWEST,
    SavedState,
)
from foretell.chain.sandbox.state_files import prepare_state
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.domain.errors.chain import (
    ChainStateDamaged,
    ChainUnavailable,
    DevChainFailed,
    ProgramMissing,
)
from foretell.runtime.child_processes import supervise

pytestmark = pytest.mark.anyio

PAYER = SANDBOX_ACCOUNTS[0].address
PAYEE = "0x" + "4e" * 20
MINED = 100
NEVER_S = 3600.0
INCOMPRESSIBLE_BYTES = 100_000

MakeOptions = Callable[..., DevChainOptions]


@pytest.fixture
def make_options(devchain_options: DevChainOptions, tmp_path: Path) -> MakeOptions:
    def make(**changed: object) -> DevChainOptions:
        options = replace(devchain_options, folder=tmp_path / "chain", port=free_port())
        return replace(options, **changed)  # type: ignore[arg-type]  # each by its name

    return make


async def pay(rpc: Rpc) -> str:
    return str(await rpc.send("eth_sendTransaction", {"from": PAYER, "to": PAYEE, "value": "0x5"}))


async def wait_until(rpc: Rpc, wanted: int) -> None:
    async with asyncio.timeout(60):
        while int(await rpc.call("eth_blockNumber"), 16) < wanted:  # noqa: ASYNC110 - a node notifies no one
            await asyncio.sleep(0.05)


async def test_a_chain_mines_pending_transactions_and_their_confirmations_and_then_pauses(
    make_options: MakeOptions,
) -> None:
    chain = DevChain(make_options(is_instant=False))
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            await pay(rpc)
            await wait_until(rpc, 1 + CONFIRMING_BLOCKS)
            await asyncio.sleep(1.5)
            assert int(await rpc.call("eth_blockNumber"), 16) == 1 + CONFIRMING_BLOCKS
            assert await rpc.call("eth_getBalance", PAYEE, "latest") == "0x5"
    finally:
        await chain.stop()


async def test_a_view_is_answered_while_blocks_are_mined(
    make_options: MakeOptions,
) -> None:
    chain = DevChain(make_options())
    await chain.start()
    view = ("eth_call", {"to": PAYEE, "data": "0x"}, "latest")
    try:
        async with Rpc(chain.rpc_url) as rpc:

            async def call_often() -> list[str]:
                return [await rpc.send(*view) for _ in range(MINED)]

            async def mine() -> None:
                for _ in range(MINED):
                    await rpc.send("evm_mine")

            *answers, _ = await asyncio.gather(*(call_often() for _ in range(6)), mine())
    finally:
        await chain.stop()
    assert answers == [["0x"] * MINED] * 6


async def test_a_kept_chain_continues_from_its_saved_state(make_options: MakeOptions) -> None:
    options = make_options(is_kept=True)
    chain = DevChain(options)
    await chain.start()
    async with Rpc(chain.rpc_url) as rpc:
        await pay(rpc)
        await wait_until(rpc, 1)
    await chain.stop()
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            assert await rpc.call("eth_getBalance", PAYEE, "latest") == "0x5"
        names = {file.name for file in options.folder.iterdir()}
        assert (AT_END in names, LOADED in names) == (True, False)
    finally:
        await chain.stop()


async def test_attack_h3_a_killed_chain_goes_on_from_a_dump_even_if_the_last_one_is_damaged(
    make_options: MakeOptions,
) -> None:
    options = make_options(is_kept=True)
    chain = DevChain(options)
    await chain.start()
    async with Rpc(chain.rpc_url) as rpc:
        await pay(rpc)
        await wait_until(rpc, 1)
    newest, before = options.folder / NEWEST, options.folder / BEFORE
    for file in (newest, before):
        async with asyncio.timeout(60):
            while not is_paid_in(file, PAYEE):  # noqa: ASYNC110 - a file notifies no one
                await asyncio.sleep(0.05)
        async with Rpc(chain.rpc_url) as rpc:
            await rpc.send("evm_mine")
    os.kill(int((options.folder / "anvil.pid").read_text()), signal.SIGKILL)
    await chain.stop()
    newest.write_bytes(newest.read_bytes()[:-100])

    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            assert await rpc.call("eth_getBalance", PAYEE, "latest") == "0x5"
    finally:
        await chain.stop()
    assert (options.folder / f"{NEWEST}.damaged").exists()


async def test_attack_h3_a_chain_that_has_grown_goes_on_without_the_traces_of_old_transactions(
    make_options: MakeOptions,
) -> None:
    """A chain once ended at its bound of memory after 17,000 trades, most of it traces."""
    options = make_options(is_kept=True, renewed_after_bytes=20_000)
    chain = DevChain(options)
    chain.dump_pause_s = NEVER_S  # a renewal ends the chain, also in the middle of the payments
    await chain.start()
    first = pid_of(options)
    supervised = asyncio.create_task(supervise("chain", chain))
    try:
        async with Rpc(chain.rpc_url) as rpc:
            hashes = [await pay(rpc) for _ in range(MINED)]
            chain._memory_bound_bytes = -1  # the first dump is due
            async with asyncio.timeout(60):
                while pid_of(options) in {None, first}:  # noqa: ASYNC110 - a file notifies no one
                    await asyncio.sleep(0.05)
                while not await answers(rpc):  # noqa: ASYNC110 - it listens for nobody
                    await asyncio.sleep(0.05)
            receipts = [await rpc.send("eth_getTransactionReceipt", each) for each in hashes]
            assert [receipt["transactionHash"] for receipt in receipts] == hashes
            assert await rpc.call("eth_getBalance", PAYEE, "latest") == hex(5 * MINED)
            dump = bytes.fromhex((await rpc.send("anvil_dumpState")).removeprefix("0x"))
    finally:
        supervised.cancel()
        await asyncio.wait([supervised])
        await chain.stop()
    traces = [each["info"]["traces"] for each in json.loads(gzip.decompress(dump))["transactions"]]
    assert traces == [[]] * MINED


class PaidAfterDumps(DevChain):
    """A chain to which a payment is sent after each dump; `sent` are the hashes."""

    def __init__(self, options: DevChainOptions) -> None:
        super().__init__(options)
        self.sent: list[str] = []

    @override
    async def _dump(self, rpc: Rpc) -> float:
        taken_s = await super()._dump(rpc)
        tx_hash = await pay(rpc)
        await wait_until_mined(rpc)
        self.sent.append(tx_hash)
        return taken_s


async def test_transactions_that_wait_when_a_chain_is_started_again_are_sent_again(
    make_options: MakeOptions,
) -> None:
    """A dump has none of them; the one of the last dump was sent when that was made already."""
    options = make_options(
        is_kept=True, is_instant=False, pulse_s=NEVER_S, renewed_after_bytes=20_000
    )
    chain = PaidAfterDumps(options)
    await chain.start()
    first = pid_of(options)
    supervised = asyncio.create_task(supervise("chain", chain))
    try:
        async with Rpc(chain.rpc_url) as rpc:
            mined = [await pay(rpc) for _ in range(MINED)]
            await rpc.send("evm_mine")
            async with asyncio.timeout(60):
                while pid_of(options) in {None, first}:  # noqa: ASYNC110 - a file notifies no one
                    await asyncio.sleep(0.05)
                while not await answers(rpc):  # noqa: ASYNC110 - it listens for nobody
                    await asyncio.sleep(0.05)
                while await waiting(rpc) < 2:  # noqa: ASYNC110 - a node notifies no one
                    await asyncio.sleep(0.05)
            waited = list(chain.sent)
            await rpc.send("evm_mine")
            for each in (*mined, *waited):
                assert await rpc.send("eth_getTransactionReceipt", each), each
    finally:
        supervised.cancel()
        await asyncio.wait([supervised])
        await chain.stop()


async def test_a_chain_is_not_started_again_while_another_client_mines(
    make_options: MakeOptions,
) -> None:
    """The block of a payment after the last dump would be in no state."""
    options = make_options(is_kept=True, is_instant=True, renewed_after_bytes=20_000)
    chain = PaidAfterDumps(options)
    await chain.start()
    first = pid_of(options)
    try:
        async with Rpc(chain.rpc_url) as rpc:
            mined = [await pay(rpc) for _ in range(MINED)]
            async with asyncio.timeout(60):
                while len(chain.sent) < 3:  # noqa: ASYNC110 - the test's own list
                    await asyncio.sleep(0.05)
            for each in (*mined, *chain.sent):
                assert await rpc.send("eth_getTransactionReceipt", each), each
        assert pid_of(options) == first
    finally:
        await chain.stop()


async def test_a_waiting_transaction_that_the_chain_refuses_is_logged_by_its_hash(
    make_options: MakeOptions,
) -> None:
    """A batch of trades once was a line of 13,000 characters."""
    chain = DevChain(make_options())
    chain._waiting = ["0x00"]
    with capture_logs() as logs:
        await chain.start()
        await chain.stop()
    tx_hash = "0xbc36789e7a1e281436464229828f817d6612f7b477d66591ff96a9e064bcc98a"
    assert [(each["event"], each["tx"]) for each in logs] == [
        ("a waiting transaction is lost", tx_hash)
    ]


async def test_a_waiting_transaction_that_its_sender_has_sent_again_is_not_lost(
    make_options: MakeOptions,
) -> None:
    chain = DevChain(make_options(is_instant=False, pulse_s=NEVER_S))
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            sent = await pay(rpc)
            chain._waiting = [await rpc.send("eth_getRawTransactionByHash", sent)]
        with capture_logs() as logs:
            await chain._send_waiting()
    finally:
        await chain.stop()
    assert logs == []


def pid_of(options: DevChainOptions) -> int | None:
    try:
        return int((options.folder / "anvil.pid").read_text())
    except (OSError, ValueError):
        return None


async def waiting(rpc: Rpc) -> int:
    return int((await rpc.send("txpool_status"))["pending"], 16)


async def answers(rpc: Rpc) -> bool:
    try:
        await rpc.send("eth_blockNumber")
    except ChainUnavailable:
        return False
    return True


async def test_a_chain_that_mines_nothing_writes_nothing(make_options: MakeOptions) -> None:
    options = make_options(is_kept=True)
    chain = DevChain(options)
    await chain.start()
    newest = options.folder / NEWEST
    try:
        async with asyncio.timeout(60):
            while not newest.exists():  # noqa: ASYNC110 - a file notifies no one
                await asyncio.sleep(0.05)
        written = newest.stat().st_ino
        await asyncio.sleep(2 * DUMP_PAUSE_S + 0.5)
        assert newest.stat().st_ino == written
    finally:
        await chain.stop()


async def test_a_dump_that_was_written_is_not_kept_in_memory(make_options: MakeOptions) -> None:
    """A dump stayed in memory until the next one: twice its file, which grows with the chain."""
    options = make_options(is_kept=True)
    chain = DevChain(options)
    chain.dump_pause_s = NEVER_S
    await chain.start()
    newest = options.folder / NEWEST
    try:
        async with Rpc(chain.rpc_url) as rpc:
            await rpc.send("anvil_setCode", PAYEE, "0x" + os.urandom(INCOMPRESSIBLE_BYTES).hex())
            tracemalloc.start()
            await rpc.send("evm_mine")
        chain._memory_bound_bytes = -1  # the one dump is due
        async with asyncio.timeout(60):
            while chain.dump_pause_s == NEVER_S:  # noqa: ASYNC110 - a dump notifies no one
                await asyncio.sleep(0.05)
        assert newest.stat().st_size >= INCOMPRESSIBLE_BYTES
        decoded = tracemalloc.Filter(True, state_process.__file__)  # noqa: FBT003 - inclusive
        traces = tracemalloc.take_snapshot().filter_traces([decoded]).traces
        assert max((trace.size for trace in traces), default=0) < INCOMPRESSIBLE_BYTES
    finally:
        tracemalloc.stop()
        await chain.stop()


async def test_a_chain_left_by_an_earlier_process_is_stopped_first(
    make_options: MakeOptions,
) -> None:
    options = make_options(is_kept=True)
    left = DevChain(options)
    await left.start()
    successor = DevChain(replace(options, port=free_port()))
    await successor.start()
    try:
        assert await left.wait() is not None
        async with Rpc(left.rpc_url) as rpc:
            with pytest.raises(ChainUnavailable):
                await rpc.send("eth_chainId")
    finally:
        await successor.stop()
        await left.stop()


PARENT = """
import asyncio, sys
from pathlib import Path
from foretell.chain.devchain import DevChain, DevChainOptions

async def main():
    anvil, folder, chain_id, port = sys.argv[1:]
    options = DevChainOptions(Path(anvil), Path(folder), int(chain_id), int(port), is_kept=False)
    await DevChain(options).start()
    print("started", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_chain_stops_when_its_parent_process_is_killed(make_options: MakeOptions) -> None:
    options = make_options()
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(options.anvil), str(options.folder)),
        *(str(options.chain_id), str(options.port)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert await asyncio.wait_for(parent.stdout.readline(), 60) == b"started\n"
    chain = int((options.folder / "anvil.pid").read_text())
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(60):
        while is_running(chain):  # noqa: ASYNC110 - an orphan cannot be waited for
            await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_chain_that_cannot_start_is_refused_with_its_exit_code(
    make_options: MakeOptions, tmp_path: Path
) -> None:
    broken = tmp_path / "anvil"
    await asyncio.to_thread(broken.write_text, "#!/bin/sh\nexit 7\n")
    await asyncio.to_thread(broken.chmod, 0o755)
    with pytest.raises(DevChainFailed, match="7"):
        await DevChain(make_options(anvil=broken)).start()


def test_anvil_is_the_one_named_or_the_one_of_npm(anvil: Path, tmp_path: Path) -> None:
    assert find_anvil(anvil, tmp_path) == anvil
    assert find_anvil(None, NPM_FOLDER) == anvil
    with pytest.raises(ProgramMissing, match="anvil"):
        find_anvil(tmp_path / "nothing", tmp_path)


STATE = b'{"block":{"number":"0x%x"},"accounts":{},"best_block_number":%d}'


def a_state(number: int) -> bytes:
    return STATE % (number, number)


def loaded(folder: Path) -> bytes | None:
    file = SavedState(folder).prepare().file
    return None if file is None else file.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a state of each kind; the smaller the number, the older."""
    (tmp_path / IN_PLACE).write_bytes(a_state(1))
    saved = SavedState(tmp_path)
    for number in (2, 3):
        saved.keep("0x" + gzip.compress(a_state(number)).hex())
    saved.at_end.write_bytes(a_state(4))
    return tmp_path


def test_before_there_is_any_state_none_is_loaded(tmp_path: Path) -> None:
    assert loaded(tmp_path) is None


def test_two_dumps_are_kept_and_the_file_in_place_is_replaced_by_them(folder: Path) -> None:
    assert gzip.decompress((folder / NEWEST).read_bytes()) == a_state(3)
    assert gzip.decompress((folder / BEFORE).read_bytes()) == a_state(2)
    assert not (folder / IN_PLACE).exists()


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [cut, lambda _: b""])
def test_attack_h3_a_damaged_state_is_named_and_the_one_before_is_used(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    """A kill of the chain once left a state that was cut off, and no other."""
    expected = [a_state(4), a_state(3), a_state(2)]
    for name, state in zip((AT_END, NEWEST, BEFORE), expected, strict=True):
        assert loaded(folder) == state
        (folder / name).write_bytes(damage((folder / name).read_bytes()))

    with pytest.raises(ChainStateDamaged, match="move the data folder away"):
        asyncio.run(prepare_state(folder))
    assert {each.name for each in folder.glob(f"*{DAMAGED}")} == {
        name + DAMAGED for name in (AT_END, NEWEST, BEFORE)
    }


@pytest.mark.parametrize("order", list(itertools.permutations((AT_END, NEWEST, BEFORE))))
def test_attack_h3_the_longest_chain_is_loaded_whatever_the_times_of_files_say(
    folder: Path, order: tuple[str, ...]
) -> None:
    """A copy without the times, or a clock that was set back, once took an older state for the newest."""
    for place, name in enumerate(order):
        os.utime(folder / name, (place, place))
    assert loaded(folder) == a_state(4)
    SavedState(folder).keep("0x" + gzip.compress(a_state(5)).hex())
    os.utime(folder / NEWEST, (0, 0))
    assert loaded(folder) == a_state(5)


def test_of_two_states_with_as_many_blocks_that_of_the_end_is_loaded(folder: Path) -> None:
    at_end = a_state(3).replace(b'"accounts":{}', b'"accounts":{"0x1":{}}')
    (folder / AT_END).write_bytes(at_end)
    assert loaded(folder) == at_end


def test_a_dump_with_a_changed_byte_is_never_loaded(folder: Path) -> None:
    (folder / AT_END).unlink()
    (folder / NEWEST).write_bytes(flipped((folder / NEWEST).read_bytes()))
    assert loaded(folder) == a_state(2)


def test_a_dump_that_was_not_finished_changes_nothing(folder: Path) -> None:
    (folder / "partial").write_bytes(b"cut")
    assert loaded(folder) == a_state(4)


def test_the_file_of_an_earlier_version_is_loaded(tmp_path: Path) -> None:
    (tmp_path / IN_PLACE).write_bytes(a_state(9))
    assert loaded(tmp_path) == a_state(9)


@given(at=st.integers(min_value=0, max_value=len(a_state(7)) - 1))
def test_a_state_cut_anywhere_is_never_loaded(
    tmp_path_factory: pytest.TempPathFactory, at: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / AT_END).write_bytes(a_state(7)[:at])
    assert SavedState(folder).prepare() == (None, [AT_END + DAMAGED])
