"""`foretell bench index`: logs a second from the node to the tables (index).

A generated chain is served by a node in a process of its own, from prepared bytes. A round reads and decodes some
blocks, decodes the JSON of the same answers and nothing else, and then indexes the blocks, far behind the head.
"""

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_word
from foretell.bench.rigs.figures import INDEX, INDEX_MEMORY, Measurement
from foretell.bench.rigs.index.chain import ChainPlan
from foretell.bench.rigs.index.node import NodeProcess, generated_node
from foretell.bench.rigs.index.rounds import (
    COLUMNS,
    IndexResult,
    IndexRound,
    Times,
    timed,
    times_now,
    times_since,
)
from foretell.bench.rigs.machine import usage_with
from foretell.bench.rigs.page import check_page, occasion, write_block
from foretell.bench.rigs.startup import resident_bytes
from foretell.bench.rigs.world import deployment_without_chain
from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.domain.errors.command import BenchFailed
from foretell.indexer.context import BLOCKS_PER_RANGE_MAX, IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.follow import follow
from foretell.runtime.garbage_collection import settle_memory
from foretell.store.migrations import upgrade
from foretell.store.scratch import scratch_store

WARM_UP: Final = 0.5
"""The part of the rounds after which memory is first measured: a database's cache has grown by then."""


class IndexPlan(NamedTuple):
    """The rounds, each of one range of blocks; the chain; PostgreSQL's server, or None for SQLite.

    The `page`, if there is one, gets the table and a chart.
    """

    rounds: int = 20
    chain: ChainPlan = ChainPlan()
    blocks: int = BLOCKS_PER_RANGE_MAX
    postgres: str | None = None
    page: Path | None = None


def run_bench_index(plan: IndexPlan, console: Console) -> list[Measurement]:
    """Index ranges of a generated chain, and print the rates next to the decoding of the same JSON."""
    chain = plan.chain
    if chain.first_match + plan.rounds * plan.blocks > chain.head:
        raise BenchFailed(f"the chain has {chain.head:,} blocks, fewer than the rounds need")
    database = "SQLite" if plan.postgres is None else "PostgreSQL"
    name = f"foretell bench index, {database}"
    if plan.page is not None:
        check_page(plan.page, name)
    before = usage_with()
    with generated_node(chain) as node:
        result = IndexResult(uvloop.run(_measure(plan, node, console)), database)
    table = Table(*COLUMNS)
    for number, each in enumerate(result.rounds, 1):
        table.add_row(*each.cells(number))
    console.print(table)
    lines = _lines_of(result, chain)
    for line in lines:
        console.print(line, soft_wrap=True)
    if plan.page is not None:
        head = occasion()
        if (
            plan.postgres is None
        ):  # a database server is another program that works for the benchmark
            head += f" Other programs used {before.others_cores(usage_with()):.2f} cores."
        chart = plan.page.with_name(f"index-{database.lower()}.svg")
        chart.write_text(result.chart())
        picture = f"![Logs a second into {database} by round]({chart.name})"
        written = [result.markdown(), "", *(f"- {line}" for line in lines), "", picture, ""]
        write_block(plan.page, name, head, written)
    ceiling = (
        f"bare JSON of the same bytes: {result.json_per_s:,.0f} logs/s;"
        f" {result.index_per_s:,.0f} into {database}"
    )
    warm, growth = _growth(result.rounds)
    return [
        Measurement(INDEX, result.ratio, ceiling),
        Measurement(INDEX_MEMORY, growth, f"{warm / 1e6:,.0f} MB after half the rounds"),
    ]


def _lines_of(result: IndexResult, chain: ChainPlan) -> Sequence[str]:
    """Return the figures in words."""
    _, growth = _growth(result.rounds)
    return (
        (
            f"index: {result.ratio:.2f} of decoding the same JSON alone, to fetch and decode logs (median of"
            f" {len(result.rounds)} rounds; {result.cpu_ratio:.2f} in processor time; JSON:"
            f" {result.json_per_s:,.0f} logs/s)"
        ),
        (
            f"index: {result.index_per_s:,.0f} logs/s from the node into {result.database}; the head is block"
            f" {chain.head:,}; a log of the last quarter takes {result.slowing:.2f} times the processor time of"
            f" one of the second, and {result.slowing_of_all:.2f} times that of one of the first"
        ),
        (
            f"memory: {result.rounds[-1].resident_bytes / 1e6:,.0f} MB at the end, {growth:.2f} of that after"
            " half the rounds"
        ),
    )


def _growth(rounds: Sequence[IndexRound]) -> tuple[int, float]:
    """Return the memory after half the rounds, and how many times as much it is at the end."""
    warm = rounds[int(len(rounds) * WARM_UP)].resident_bytes
    return warm, rounds[-1].resident_bytes / warm


async def _measure(plan: IndexPlan, node: NodeProcess, console: Console) -> Sequence[IndexRound]:
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
        settle_memory()  # as an installation does
        console.print(f"{plan.chain.wallets:,} wallets have collateral; measuring their matches")
        return [
            await _round(context, node, start, start + plan.blocks - 1)
            for start in range(first, first + plan.rounds * plan.blocks, plan.blocks)
        ]


async def _round(context: IndexerContext, node: NodeProcess, first: int, last: int) -> IndexRound:
    logs = node.prepare(first, last)
    node.record()
    found, read = await timed(lambda: context.logs.read(first, last))
    if sum(len(each.logs) for each in found) != logs:
        raise BenchFailed(f"the blocks {first} to {last} did not have {logs} logs")
    del found
    bodies = node.recorded()
    size, json = sum(map(len, bodies)), _decoded(bodies)
    del bodies
    _, index = await timed(lambda: _index_to(context, first, last))
    return IndexRound(logs, size, read, json, index, resident_bytes())


def _decoded(bodies: Sequence[bytes]) -> Times:
    """Return the times in which JSON is decoded to dicts and lists, without garbage collection."""
    gc.disable()
    try:
        began = times_now()
        for body in bodies:
            msgspec.json.decode(body)
        return times_since(began)
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
