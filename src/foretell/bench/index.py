"""`foretell bench index`: logs a second from the node to the tables (index).

A generated chain is served by a node in a process of its own, from prepared bytes. A round reads and decodes some
blocks, decodes the JSON of the same answers and nothing else, and then indexes the blocks, far behind the head.
"""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_word
from foretell.bench.rigs.figures import INDEX, INDEX_MEMORY, Measurement
from foretell.bench.rigs.index.chain import ChainPlan
from foretell.bench.rigs.index.node import NodeProcess, generated_node
from foretell.bench.rigs.startup import resident_bytes
from foretell.bench.rigs.world import deployment_without_chain
from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.domain.errors.command import BenchFailed
from foretell.indexer.context import BLOCKS_PER_RANGE_MAX, IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.follow import follow
from foretell.store.migrations import upgrade
from foretell.store.scratch import scratch_store

T = TypeVar("T")

WARM_UP: Final = 0.5
"""The part of the rounds after which memory is first measured: a database's cache has grown by then."""


class IndexPlan(NamedTuple):
    """The rounds, each of one range of blocks; the chain; PostgreSQL's server, or None for SQLite."""

    rounds: int = 20
    chain: ChainPlan = ChainPlan()
    blocks: int = BLOCKS_PER_RANGE_MAX
    postgres: str | None = None


class Times(NamedTuple):
    """Seconds that passed, and those of the processor in all threads of this process."""

    passed_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class IndexRound:
    """The times of one range: of its reading and decoding, of the bare JSON, and of the whole way to the tables.

    `resident_bytes` is the memory of this process afterwards.
    """

    logs: int
    json_bytes: int
    read: Times
    json: Times
    index: Times
    resident_bytes: int

    @property
    def ratio(self) -> float:
        """The speed of reading and decoding over that of bare JSON."""
        return self.json.passed_s / self.read.passed_s

    @property
    def cpu_ratio(self) -> float:
        """The same in processor time, without that of the node."""
        return self.json.cpu_s / self.read.cpu_s


def run_bench_index(plan: IndexPlan, console: Console) -> list[Measurement]:
    """Index ranges of a generated chain, and print the rates next to the decoding of the same JSON."""
    chain = plan.chain
    if chain.first_match + plan.rounds * plan.blocks > chain.head:
        raise BenchFailed(f"the chain has {chain.head:,} blocks, fewer than the rounds need")
    with generated_node(chain) as node:
        rounds, kind = uvloop.run(_measure(plan, node, console))
    console.print(_table_of(rounds))
    json_per_s = _median([each.logs / each.json.passed_s for each in rounds])
    ratio = _median([each.ratio for each in rounds])
    console.print(
        f"index: {ratio:.2f} of decoding the same JSON alone, to fetch and decode logs (median of {len(rounds)}"
        f" rounds; {_median([each.cpu_ratio for each in rounds]):.2f} in processor time; JSON:"
        f" {json_per_s:,.0f} logs/s)",
        soft_wrap=True,
    )
    index_per_s = _median([each.logs / each.index.passed_s for each in rounds])
    console.print(
        f"index: {index_per_s:,.0f} logs/s from the node into {kind}; the head is block {chain.head:,}"
    )
    warm, last = rounds[int(len(rounds) * WARM_UP)], rounds[-1]
    growth = last.resident_bytes / warm.resident_bytes
    console.print(
        f"memory: {last.resident_bytes / 1e6:,.0f} MB at the end, {growth:.2f} of that after half the rounds"
    )
    ceiling = (
        f"bare JSON of the same bytes: {json_per_s:,.0f} logs/s; {index_per_s:,.0f} into {kind}"
    )
    return [
        Measurement(INDEX, ratio, ceiling),
        Measurement(
            INDEX_MEMORY, growth, f"{warm.resident_bytes / 1e6:,.0f} MB after half the rounds"
        ),
    ]


async def _measure(
    plan: IndexPlan, node: NodeProcess, console: Console
) -> tuple[Sequence[IndexRound], str]:
    deployment, name = deployment_without_chain(), f"foretell_bench_{new_word()[2:12]}"
    first = plan.chain.first_match
    async with scratch_store(plan.postgres, name) as database, Rpc(node.url) as rpc:
        await upgrade(database)
        context = IndexerContext(
            database,
            Reader(rpc, deployment),
            LogReader(rpc, deployment.kind_by_contract()),
            IndexedContracts.of(deployment),
            start_block=0,
            blocks_per_range_max=plan.blocks,
        )
        await _index_to(context, 0, first - 1)
        console.print(f"{plan.chain.wallets:,} wallets have collateral; measuring their matches")
        rounds = [
            await _round(context, node, start, start + plan.blocks - 1)
            for start in range(first, first + plan.rounds * plan.blocks, plan.blocks)
        ]
        return rounds, "SQLite" if database.is_sqlite else "PostgreSQL"


async def _round(context: IndexerContext, node: NodeProcess, first: int, last: int) -> IndexRound:
    logs = node.prepare(first, last)
    node.record()
    found, read = await _timed(lambda: context.logs.read(first, last))
    if sum(len(each.logs) for each in found) != logs:
        raise BenchFailed(f"the blocks {first} to {last} did not have {logs} logs")
    del found
    bodies = node.recorded()
    size, json = sum(map(len, bodies)), _decoded(bodies)
    del bodies
    _, index = await _timed(lambda: _index_to(context, first, last))
    return IndexRound(logs, size, read, json, index, resident_bytes())


def _decoded(bodies: Sequence[bytes]) -> Times:
    """Return the times in which JSON is decoded to dicts and lists, without garbage collection."""
    gc.disable()
    try:
        began = _now()
        for body in bodies:
            msgspec.json.decode(body)
        return _since(began)
    finally:
        gc.enable()


async def _index_to(context: IndexerContext, first: int, last: int) -> None:
    """Index the blocks from the first, which is the next one, to the last."""
    while first <= last:
        blocks = min(context.blocks_per_range_max, last - first + 1)
        step = await follow(replace(context, blocks_per_range_max=blocks))
        if step.indexed_blocks == 0:
            raise BenchFailed(f"block {first} was not indexed")
        first += step.indexed_blocks


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[T, Times]:
    began = _now()
    result = await work()
    return result, _since(began)


def _now() -> Times:
    return Times(time.perf_counter(), time.process_time())


def _since(began: Times) -> Times:
    now = _now()
    return Times(now.passed_s - began.passed_s, now.cpu_s - began.cpu_s)


def _table_of(rounds: Sequence[IndexRound]) -> Table:
    columns = ("round", "logs", "MB", "JSON/s", "read/s", "ratio", "index/s", "µs/log", "memory")
    table = Table(*columns)
    for number, each in enumerate(rounds, 1):
        table.add_row(
            str(number),
            f"{each.logs:,}",
            f"{each.json_bytes / 1e6:.1f}",
            f"{each.logs / each.json.passed_s:,.0f}",
            f"{each.logs / each.read.passed_s:,.0f}",
            f"{each.ratio:.2f}",
            f"{each.logs / each.index.passed_s:,.0f}",
            f"{each.index.cpu_s * 1e6 / each.logs:,.0f}",
            f"{each.resident_bytes / 1e6:,.0f} MB",
        )
    return table


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)
