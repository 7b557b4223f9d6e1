"""Latency of orders beside each attack: `python tests/run.py faults.attacks --scale 1`.

A sandbox serves a trader who places and cancels orders over one kept connection, first alone and
then beside an attacker in a process of its own. Prints both latencies, and the memory of the server
before and after.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.rigs.installation import Running

from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import new_trader
from foretell.sandbox.session import approval_calls
from foretell.sdk.http import wait_for
from foretell.sdk.trading import TradingClient, Wallet

CONNECTIONS: Final = {
    "idle": 10_000,
    "slow-heads": 2_000,
    "upgrades-with-body": 2_000,
    "bodies": 800,
    "frames": 1,
    "pipelined": 100,
    "slow-readers": 300,
}
"""Of each attack at scale 1."""
ATTACKER: Final = Path(__file__).with_name("attacker.py")
MEMORY_BYTES_MAX: Final = 2 * 1024**3
CALM_S_MAX: Final = 3.0
"""For how long an attack outlasts the orders beside it, at the most."""
GIVEN_BACK_WITHIN_S: Final = 30.0
"""Until memory is given back: a process that has grown does it as soon as it is idle."""
MEMORY_RATIO_MAX: Final = 1.2
LOOK_S: Final = 0.5
SIZE_UNITS: Final = 10 * UNITS_PER_TOKEN
COST_UNITS: Final = UNITS_PER_TOKEN
FUNDS_UNITS: Final = 100 * UNITS_PER_TOKEN
TAIL: Final = 99
PAUSE_S: Final = 0.02
"""Between two orders: a trader at full speed would meet its own limit of ten minutes."""


class Latencies(NamedTuple):
    """Milliseconds of a placed and a canceled order together."""

    orders: int
    p50_ms: float
    p99_ms: float


class Outcome(NamedTuple):
    """One attack; resident memory is in bytes."""

    way: str
    alone: Latencies
    beside: Latencies
    before_bytes: int
    after_bytes: int
    given_back_s: float


class Target:
    """A sandbox with a trader."""

    def __init__(self, running: Running, trader: TradingClient, token_id: str) -> None:
        self._running = running
        self._trader = trader
        self._token_id = token_id
        self._salt = 1

    def resident_bytes(self) -> int:
        """Return the resident memory of the serving process."""
        process = self._running.process
        assert process is not None
        status = Path(f"/proc/{process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    async def trade(self, seconds: float) -> Latencies:
        """Place and cancel orders one after the other; every one of them must be acknowledged."""
        took_ms = []
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self._salt += 1
            order = self._trader.sign_order(
                self._token_id, Side.BUY, SIZE_UNITS, COST_UNITS, salt=self._salt
            )
            began_s = time.perf_counter()
            placed = await self._trader.place(order)
            canceled = await self._trader.send("DELETE", "/order", {"orderID": placed["orderID"]})
            took_ms.append((time.perf_counter() - began_s) * 1000)
            assert canceled["canceled"] == [placed["orderID"]]
            await asyncio.sleep(PAUSE_S)
        tail = statistics.quantiles(took_ms, n=100)[TAIL - 1]
        return Latencies(len(took_ms), statistics.median(took_ms), tail)

    async def endure(self, way: str, connections: int, seconds: float) -> Outcome:
        """Trade alone, and then beside an attack."""
        before_bytes, calm_s = self.resident_bytes(), min(seconds, CALM_S_MAX)
        alone = await self.trade(seconds)
        attacker = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ATTACKER),
            way,
            str(self._running.port),
            str(connections),
            str(seconds + calm_s),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert attacker.stdout is not None
            assert await asyncio.wait_for(attacker.stdout.readline(), 60) == b"began\n"
            beside = await self.trade(seconds)
            assert attacker.returncode is None, "the attack went on until the end"
            assert await asyncio.wait_for(attacker.wait(), 60) == 0
        finally:
            if attacker.returncode is None:
                attacker.kill()
        ended_s = time.monotonic()
        after_bytes = await self._settled_bytes(before_bytes)
        given_back_s = time.monotonic() - ended_s
        return Outcome(way, alone, beside, before_bytes, after_bytes, given_back_s)

    async def _settled_bytes(self, before_bytes: int) -> int:
        """Return the resident memory once it is near that of before, or after some time."""
        give_up_at_s = time.monotonic() + GIVEN_BACK_WITHIN_S
        while time.monotonic() < give_up_at_s:
            if self.resident_bytes() <= MEMORY_RATIO_MAX * before_bytes:
                break
            await asyncio.sleep(LOOK_S)
        return self.resident_bytes()


@asynccontextmanager
async def a_target(running: Running) -> AsyncIterator[Target]:
    """Give a running installation with a funded trader, whose connections are kept."""
    ready = await running.ready()
    async with running.session() as session:
        trader = await _funded(session)
        yield Target(running, trader, ready.market.token_yes)


async def _funded(session: DemoSession) -> TradingClient:
    trader = await new_trader(session, Wallet(await session.new_account()))
    await session.fund(trader.wallet.maker, FUNDS_UNITS)
    await session.caller(trader.wallet.private_key).call_all(approval_calls(session.deployment))

    async def fetch_funded() -> bool | None:
        found = await trader.get("/balance-allowance", asset_type="COLLATERAL", signature_type=0)
        allowed = min(map(int, found["allowances"].values()))
        return True if int(found["balance"]) >= FUNDS_UNITS and allowed > 0 else None

    await wait_for("funds at the exchange", fetch_funded)
    return trader


def row_of(outcome: Outcome) -> str:
    """Return the figures of an attack as a row."""
    way, alone, beside, before, after, given_back_s = outcome
    return (
        f"| {way} | {alone.p50_ms:.1f} / {alone.p99_ms:.1f} | {beside.p50_ms:.1f} /"
        f" {beside.p99_ms:.1f} | {beside.p99_ms / alone.p99_ms:.2f} | {beside.orders} |"
        f" {before / 1e6:.0f} | {after / 1e6:.0f} | {after / before:.2f} |"
        f" {given_back_s:.1f} |"
    )


async def main(scale: float, seconds: float, ways: list[str]) -> None:
    """Play the attacks, and print a row for each."""
    sys.stdout.write(
        "| attack | alone p50 / p99 ms | beside it | p99 ratio | orders | RSS before MB | after |"
        " ratio | within s |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        running = Running(Path(folder))
        await running.start()
        try:
            async with a_target(running) as target:
                await target.trade(CALM_S_MAX)
                for way in ways:
                    connections = max(1, round(CONNECTIONS[way] * scale))
                    outcome = await target.endure(way, connections, seconds)
                    sys.stdout.write(row_of(outcome) + "\n")
                    sys.stdout.flush()
        finally:
            running.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("ways", nargs="*", default=list(CONNECTIONS))
    given = parser.parse_args()
    asyncio.run(main(given.scale, given.seconds, given.ways))
