"""Start, limit and stop anvil, the sandbox's chain.

A pulse once a second mines pending transactions and the blocks that confirm them. Otherwise it
mines an empty block every `HEARTBEAT_S` seconds only: with a fixed block time the saved state would
grow by 2 kB an empty block, 185 MB a day.

While it runs its state is dumped whenever it mined, in pauses that grow with the time that a dump takes, and end when
the chain takes much more memory. The chain keeps the traces of all transactions, so when its state has grown by much it is ended after a dump, and its
supervisor starts it again without them. A dump has no transactions that wait for a block: they are sent again.

A keeper shell is the parent of the chain: it limits its memory, and stops it gracefully, with its
state saved, when this process ends in any way, kill -9 included.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from foretell.chain.rpc import Rpc
from foretell.chain.sandbox.chain_process import process_running, resident_bytes
from foretell.chain.sandbox.saved_state import SavedState
from foretell.chain.sandbox.state_bound import can_be_loaded, check_loaded
from foretell.chain.sandbox.state_files import keep_dump, prepare_state
from foretell.chain.sandbox.waiting_txs import fetch_waiting, send_waiting
from foretell.domain.errors.chain import (
    ChainStartTooSlow,
    ChainStateDamaged,
    ChainStateTooLarge,
    ChainUnavailable,
    DevChainFailed,
    DevChainStillRuns,
    ProgramMissing,
    RpcRefused,
)
from foretell.runtime.child_processes import start_process
from foretell.runtime.failures import FailureLog
from foretell.runtime.spawning import spawn

START_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 10.0
EARLIER_DEADLINE_S: Final = 120.0
"""An earlier chain may be storing a large state."""
POLL_S: Final = 0.02
PULSE_S: Final = 1.0
HEARTBEAT_S: Final = 30.0
CONFIRMING_BLOCKS: Final = 2
DUMP_PAUSE_S: Final = 2.0
DUMP_PAUSE_S_MAX: Final = 60.0
"""After dumps that failed; each doubles the pause."""
DUMP_SHARE_MAX: Final = 0.05
"""Of the time; a larger state is dumped less often."""
LOAD_BYTES_PER_S_MIN: Final = 5e6
STORED_BYTES_PER_S_MIN: Final = 5e6
"""How fast a busy machine loads and stores a state; the deadlines grow with it."""
MEMORY_BYTES_MAX: Final = 8 * 1024**3
"""A dump of a large state takes several times its bytes, for as long as it lasts."""
MEMORY_GROWTH_BYTES_MAX: Final = 128 * 1024**2
"""Since the last dump: a dump needs more memory than the chain itself, so the growth is looked at sooner."""
RENEWED_AFTER_BYTES: Final = 192 * 1024**2
"""By so much the state grows, unpacked, until the chain is started again without old traces."""
NEVER_S: Final = 2**32 - 1
"""The chain writes no state of its own accord but at its end."""
BLOCK_GAS_MAX: Final = 100_000_000
STATES_KEPT: Final = 4
"""A block may be mined during a call at the latest one; the call needs the older state."""

log = structlog.get_logger(__name__)

_KEEPER: Final = """
ulimit -d "$1"; pid_file=$2; shift 2
exec 3<&0
"$@" </dev/null & chain=$!
echo "$chain" >"$pid_file"
( read -r _ <&3; kill -TERM "$chain" ) & keeper=$!
wait "$chain"; code=$?
kill "$keeper" 2>/dev/null
rm -f "$pid_file"
exit "$code"
"""


@dataclass(frozen=True, slots=True)
class DevChainOptions:
    """Options of the sandbox's chain.

    `anvil` is the program, `folder` its own folder for state and temporary files. With `is_instant`
    each transaction is mined on arrival, otherwise every `pulse_s` seconds. `is_kept` saves the state,
    and has the chain end after a dump when its state has grown by `renewed_after_bytes`, unpacked.
    Calls are answered at the last `states_kept` blocks, and `anvil_reorg` replaces fewer blocks than that.
    """

    anvil: Path
    folder: Path
    chain_id: int
    port: int
    is_instant: bool = False
    is_kept: bool = True
    accounts: int = 20
    pulse_s: float = PULSE_S
    renewed_after_bytes: int = RENEWED_AFTER_BYTES
    states_kept: int = STATES_KEPT


class DevChain:
    """One running anvil."""

    def __init__(self, options: DevChainOptions) -> None:
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        self._saved = SavedState(options.folder.resolve())
        self._tasks: list[asyncio.Task[None]] = []
        self.loaded_bytes = 0
        """The state that the chain was started from, without traces."""
        self._state_bytes = 0
        """The state of the last dump, unpacked."""
        self._is_too_large = False
        """Its state could not be loaded any more, so it is not ended."""
        self.dump_pause_s = DUMP_PAUSE_S
        self._memory_bound_bytes = 0
        """More memory than this makes a dump due."""
        self._mining = asyncio.Lock()
        """Nobody mines between the last dump of a chain and its end."""
        self._waiting: Sequence[str] = ()
        """Transactions that waited for a block when the chain was ended, encoded."""
        self.folder = options.folder
        self.rpc_url = f"http://127.0.0.1:{options.port}"

    async def start(self) -> None:
        """Start the chain from its saved state and return once it answers."""
        folder = self._options.folder
        folder.mkdir(parents=True, exist_ok=True)
        await self._stop_earlier()
        loaded = await self._prepare()
        with (folder / "anvil.log").open("ab") as output:
            starting = spawn(
                *self._command(loaded),
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={"HOME": str(folder), "TMPDIR": str(folder), "PATH": os.defpath},
                start_new_session=True,
            )
            self._process = await start_process(starting, _end)
        try:
            await self._begin(START_DEADLINE_S + self.loaded_bytes / LOAD_BYTES_PER_S_MIN)
        except BaseException:
            await self.stop()
            raise
        self._saved.remove_loaded()
        if not self._options.is_instant:
            self._tasks.append(asyncio.create_task(self._mine_pending(), name="chain pulse"))
        if self._options.is_kept:
            self._tasks.append(asyncio.create_task(self._save_changes(), name="chain dumps"))

    async def _prepare(self) -> Path | None:
        """Return the file of the state to load, None for a new chain; refuse one that is too large."""
        if not self._options.is_kept:
            return None
        loaded, self.loaded_bytes = await prepare_state(self.folder)
        self._state_bytes = self.loaded_bytes
        try:
            check_loaded(self.folder, self.loaded_bytes)
        except ChainStateTooLarge:
            self._saved.remove_loaded()
            raise
        self._is_too_large = False
        return loaded

    async def _begin(self, deadline_s: float) -> None:
        """Wait for the first answer, and send what waited when the chain was ended."""
        try:
            async with asyncio.timeout(deadline_s):  # wait_for may swallow a cancellation
                await self._wait_for_answer()
                await self._send_waiting()
        except TimeoutError as error:
            raise ChainStartTooSlow(self.folder, deadline_s, self.loaded_bytes) from error

    async def stop(self) -> None:
        """Stop the chain and save its state."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        process, self._process = self._process, None
        if process is not None:
            await _end(process, STOP_DEADLINE_S + self._state_bytes / STORED_BYTES_PER_S_MIN)

    async def wait(self) -> int:
        """Return the exit code once the chain has ended."""
        assert self._process is not None
        return await self._process.wait()

    def _command(self, loaded: Path | None) -> list[str]:
        options = self._options
        anvil = [str(options.anvil), "--quiet", "--host", "127.0.0.1", "--port", str(options.port)]
        anvil += ["--chain-id", str(options.chain_id), "--accounts", str(options.accounts)]
        anvil += ["--gas-limit", str(BLOCK_GAS_MAX), "--prune-history", str(options.states_kept)]
        anvil += [] if options.is_instant else ["--no-mining"]
        if options.is_kept:
            anvil += ["--dump-state", str(self._saved.at_end), "--state-interval", str(NEVER_S)]
        if loaded is not None:
            anvil += ["--load-state", str(loaded)]
        return [
            "/bin/sh",
            "-c",
            _KEEPER,
            "foretell-chain",
            str(MEMORY_BYTES_MAX // 1024),
            str(self._pid_file),
            *anvil,
        ]

    @property
    def _pid_file(self) -> Path:
        return self._options.folder / "anvil.pid"

    async def _wait_for_answer(self) -> None:
        async with Rpc(self.rpc_url, timeout_s=1.0) as rpc:
            while True:
                assert self._process is not None
                if self._process.returncode is not None:
                    raise DevChainFailed(self._process.returncode, self._options.folder)
                with contextlib.suppress(ChainUnavailable):
                    chain_id = int(await rpc.send("eth_chainId"), 16)
                    if chain_id != self._options.chain_id:
                        raise DevChainFailed(chain_id, self._options.folder)
                    return
                await asyncio.sleep(POLL_S)

    async def _stop_earlier(self) -> None:
        """Stop a chain that an earlier process left running on this folder."""
        pid = process_running(self._pid_file, str(self._saved.at_end))
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        for _ in range(int(EARLIER_DEADLINE_S / POLL_S)):
            if process_running(self._pid_file, str(self._saved.at_end)) is None:
                return
            await asyncio.sleep(POLL_S)
        raise DevChainStillRuns(self.folder, pid, EARLIER_DEADLINE_S)

    async def _save_changes(self) -> None:
        """Dump the state after every change, in pauses that grow with it."""
        failures, saved = FailureLog("chain dumps"), None
        async with Rpc(self.rpc_url) as rpc:
            self._memory_bound_bytes = resident_bytes(self._pid_file) + MEMORY_GROWTH_BYTES_MAX
            while True:
                await self._pause()
                try:
                    block = await rpc.send("eth_blockNumber")
                    if block != saved:
                        taken_s = await self._dump(rpc)
                        saved = block
                        self.dump_pause_s = max(DUMP_PAUSE_S, taken_s / DUMP_SHARE_MAX)
                        if self._is_renewal_due() and await self._renew(rpc):
                            return
                        self._memory_bound_bytes = (
                            resident_bytes(self._pid_file) + MEMORY_GROWTH_BYTES_MAX
                        )
                    failures.passed()
                except (
                    ChainUnavailable,
                    ChainStateDamaged,
                    RpcRefused,
                    OSError,
                    ValueError,
                ) as error:
                    failures.failed(error, is_expected=True)
                    longest_s = max(self.dump_pause_s, DUMP_PAUSE_S_MAX)
                    self.dump_pause_s = min(2 * self.dump_pause_s, longest_s)
                    self._memory_bound_bytes = (
                        resident_bytes(self._pid_file) + MEMORY_GROWTH_BYTES_MAX
                    )

    def _is_renewal_due(self) -> bool:
        grown_bytes = self._state_bytes - self.loaded_bytes
        return grown_bytes > self._options.renewed_after_bytes and not self._is_too_large

    async def _pause(self) -> None:
        """Wait for the next dump; it is due sooner when the chain has taken much memory."""
        ends_at_s = time.monotonic() + self.dump_pause_s
        while (left_s := ends_at_s - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, DUMP_PAUSE_S))
            if resident_bytes(self._pid_file) > self._memory_bound_bytes:
                return

    async def _renew(self, rpc: Rpc) -> bool:
        """End the chain with its state stored: it is started again from that.

        Returns False, and leaves the chain as it is, if another client mined a block meanwhile, or if the next
        start would refuse the state.
        """
        measured_bytes = self._state_bytes
        loadable_bytes = (await prepare_state(self.folder)).state_bytes
        self._saved.remove_loaded()
        async with self._mining:
            block = await rpc.send("eth_blockNumber")
            await self._dump(rpc)
            loadable_bytes += max(0, self._state_bytes - measured_bytes)
            self._is_too_large = not can_be_loaded(loadable_bytes)
            if self._is_too_large:
                return False
            waiting = await fetch_waiting(rpc)
            if await rpc.send("eth_blockNumber") != block:
                return False
            self._waiting = waiting
            log.info(
                "chain is started again without old traces",
                state_bytes=self._state_bytes,
                txs_waiting=len(waiting),
            )
            assert self._process is not None
            os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            return True

    async def _send_waiting(self) -> None:
        """Send the transactions that waited when the chain was ended."""
        async with Rpc(self.rpc_url) as rpc:
            await send_waiting(rpc, self._waiting)
        self._waiting = ()

    async def _dump(self, rpc: Rpc) -> float:
        """Store the state, and return the seconds that it took."""
        kept = await keep_dump(self.folder, rpc.url, self._state_bytes)
        self._state_bytes = kept.state_bytes
        return kept.seconds

    async def _mine_pending(self) -> None:
        """Mine pending transactions, then the blocks that confirm them, then the heartbeat."""
        idle_s, confirming = 0.0, 0
        async with Rpc(self.rpc_url) as rpc:
            while True:
                await asyncio.sleep(self._options.pulse_s)
                idle_s += self._options.pulse_s
                with contextlib.suppress(ChainUnavailable, RpcRefused):
                    pending = int((await rpc.send("txpool_status"))["pending"], 16)
                    confirming = CONFIRMING_BLOCKS + 1 if pending else confirming
                    if confirming or idle_s >= HEARTBEAT_S:
                        async with self._mining:
                            await rpc.send("evm_mine")
                        idle_s, confirming = 0.0, max(0, confirming - 1)


async def _end(process: asyncio.subprocess.Process, deadline_s: float = STOP_DEADLINE_S) -> None:
    """Have the keeper stop the chain, and kill both after the deadline."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(deadline_s):
            await process.wait()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def find_anvil(named: Path | None, npm_folder: Path) -> Path:
    """Return the anvil to run: the one named, else the one of npm, else the one on the path."""
    if named is not None:
        candidates = [named]
    else:
        candidates = sorted(npm_folder.glob("@foundry-rs/anvil-*/bin/anvil"))
        candidates += [Path(on_path)] if (on_path := shutil.which("anvil")) else []
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise ProgramMissing("anvil", named or npm_folder)
    return found


async def is_dev_chain(rpc: Rpc) -> bool:
    """Return whether a node is an anvil, which runs for its developers alone."""
    return str(await rpc.call("web3_clientVersion")).startswith("anvil")
