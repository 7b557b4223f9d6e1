"""`foretell bench chain`: the sandbox's chain after many trades (chain).

Trades are really executed: full batches of signed orders, mined by the sandbox's own chain, with its pulse, its dumps
and its renewals. Then it is stopped and started again. Beside it a task asks for its turn as often as it can: its
longest wait is what orders would have waited for.
"""

import asyncio
import contextlib
import resource
import tempfile
import time
import zlib
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.bench.rigs.settle.batched_trades import BatchedTrades
from foretell.bench.rigs.settle.chain import PID_FILE, SettleChain, settle_chain
from foretell.chain.sandbox.saved_state import AT_END
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.command import BenchFailed
from foretell.runtime.child_processes import supervise

TRADERS: Final = 40
PULSE_S: Final = 0.2
BATCHES_PER_REQUEST: Final = 20
TURN_S: Final = 0.002
POLL_S: Final = 0.05
WAITING_MAX: Final = 100
"""Transactions that wait for a block; more are not sent."""
UNREACHABLE_S_MAX: Final = 300.0
MB: Final = 1e6
PIECE_BYTES: Final = 1024**2
_GZIP: Final = 16
"""Added to the bits of zlib's window, it asks for gzip's header and end."""


class GrownChain(NamedTuple):
    """What is measured of a chain after its trades."""

    trades: int
    mined_s: float
    renewals: int
    state_bytes: int
    """The state with the traces of its last transactions, as JSON; a dump is packed."""
    packed_bytes: int
    without_traces_bytes: int
    memory_bytes: int
    stop_s: float
    start_s: float
    started_memory_bytes: int
    stall_s: float
    """The longest wait for a turn of the event loop, dumps and renewals included."""
    unreachable_s: float
    """The longest time without an answer of the node."""


class Turns:
    """A task that takes a turn of the event loop as often as it can, and its longest wait for one."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            asked_s = time.perf_counter()
            await asyncio.sleep(TURN_S)
            self.longest_s = max(self.longest_s, time.perf_counter() - asked_s - TURN_S)


def run_bench_chain(trades: int, console: Console) -> GrownChain:
    """Mine trades, print what the chain's state is like then, and return it."""
    with tempfile.TemporaryDirectory(prefix="foretell-chain-") as name:
        figures = uvloop.run(_measure(Path(name), trades))
    table = Table("of the chain", "seen")
    for words, seen in _rows(figures):
        table.add_row(words, seen)
    console.print(table)
    return figures


def _rows(figures: GrownChain) -> Iterator[tuple[str, str]]:
    yield "trades", f"{figures.trades:,}, {figures.trades / figures.mined_s:,.0f} a second"
    yield "started again without traces", f"{figures.renewals} times"
    yield "longest time without an answer of it", f"{figures.unreachable_s:.1f} s"
    yield "longest wait for a turn of the loop", f"{figures.stall_s * 1e3:.0f} ms"
    yield "state at the end", f"{figures.state_bytes / MB:,.0f} MB"
    yield "the same, packed as a dump is", f"{figures.packed_bytes / MB:,.0f} MB"
    without, trades = figures.without_traces_bytes, figures.trades
    yield (
        "the same without traces",
        f"{without / MB:,.0f} MB, {without / trades / 1e3:.1f} kB a trade",
    )
    yield "memory at the end", f"{figures.memory_bytes / MB:,.0f} MB"
    yield "stop, with its state stored", f"{figures.stop_s:.1f} s"
    yield "start from that state", f"{figures.start_s:.1f} s"
    yield "memory after the start", f"{figures.started_memory_bytes / MB:,.0f} MB"


async def _measure(folder: Path, trades: int) -> GrownChain:
    turns = Turns()
    async with settle_chain(folder, TRADERS, PULSE_S) as chain:
        signed = await BatchedTrades(chain).sign(trades)
        supervised = asyncio.create_task(supervise("chain", chain.devchain))
        taking = asyncio.create_task(turns.run())
        try:
            mined = await _mine(chain, signed)
        finally:
            supervised.cancel()
            await asyncio.wait([supervised])
        memory_bytes = _memory_bytes(chain)
        stop_s = await _time_of(chain.devchain.stop())
        own = chain.devchain.folder
        packed_bytes = await asyncio.to_thread(_packed_bytes, own / AT_END)
        start_s = await _time_of(chain.devchain.start())
        taking.cancel()
        if await BatchedTrades(chain).nonce("latest") != mined.nonce:
            raise BenchFailed("the chain lost transactions")
        return GrownChain(
            trades=trades,
            mined_s=mined.seconds,
            renewals=mined.renewals,
            unreachable_s=mined.unreachable_s,
            stall_s=turns.longest_s,
            state_bytes=(own / AT_END).stat().st_size,
            packed_bytes=packed_bytes,
            without_traces_bytes=chain.devchain.loaded_bytes,
            memory_bytes=memory_bytes,
            stop_s=stop_s,
            start_s=start_s,
            started_memory_bytes=_memory_bytes(chain),
        )


class Mined(NamedTuple):
    """Transactions that were mined: the time, the next nonce, and what became of the chain meanwhile."""

    seconds: float
    nonce: int
    renewals: int
    unreachable_s: float


async def _mine(chain: SettleChain, signed: Sequence[str]) -> Mined:
    """Send transactions and wait for their blocks; what a renewal lost is sent again."""
    batched, rpc = BatchedTrades(chain), chain.rpc
    began_s = answered_s = time.perf_counter()
    first, mined = await batched.nonce("latest"), 0
    unreachable_s, pids = 0.0, {_pid(chain)}
    while True:
        try:
            mined = await batched.nonce("latest") - first
            if mined == len(signed):
                break
            at = await batched.nonce("pending") - first
            if at - mined < WAITING_MAX:
                part = signed[at : at + BATCHES_PER_REQUEST]
                await rpc.send_all([("eth_sendRawTransaction", [raw]) for raw in part])
            unreachable_s = max(unreachable_s, time.perf_counter() - answered_s)
            answered_s = time.perf_counter()
            pids.add(_pid(chain))
        except ChainUnavailable as failure:
            if time.perf_counter() - answered_s > UNREACHABLE_S_MAX:
                raise BenchFailed("the chain was not started again") from failure
        await asyncio.sleep(POLL_S)
    seconds = time.perf_counter() - began_s
    return Mined(seconds, first + mined, len(pids - {None}) - 1, unreachable_s)


def _packed_bytes(file: Path) -> int:
    """Return the bytes of a file as gzip; a chain that ends soon has made no dump."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS + _GZIP)
    packed = 0
    with file.open("rb") as content:
        while piece := content.read(PIECE_BYTES):
            packed += len(packer.compress(piece))
    return packed + len(packer.flush())


async def _time_of(work: Awaitable[None]) -> float:
    began_s = time.perf_counter()
    await work
    return time.perf_counter() - began_s


def _pid(chain: SettleChain) -> int | None:
    """Return the id of the node's process, None while there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int((chain.devchain.folder / PID_FILE).read_text())
    return None


def _memory_bytes(chain: SettleChain) -> int:
    pages = int(Path(f"/proc/{_pid(chain)}/statm").read_text().split()[1])
    return pages * resource.getpagesize()
