"""The tables of a measured fleet: markets, balances and API keys."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvloop

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.world import FUNDS_UNITS, SIZE_UNITS_MIN, TICKS_PER_ONE, World
from foretell.domain.creation.payload import Category, MarketMode, ResolutionType
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32, keccak256, word_of
from foretell.journal.postgres.connections import DRIVER, LOST, cause_of, connected
from foretell.store.creation.markets import EventRow, MarketRow, record_event
from foretell.store.database import Database, Transaction
from foretell.store.index.balances import Allowance, Balance, record_allowances, record_balances
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.migrations import upgrade
from foretell.store.trading.api_keys import record_key

BLOCK: Final = 1
NAME: Final = "foretell_bench"


@contextlib.contextmanager
def own_database(url: str) -> Iterator[str]:
    """Give the address of a new database on the server of this one, until the block ends."""
    name = f"{NAME}_{os.getpid()}"
    _run(url, f"CREATE DATABASE {name}")
    try:
        parts = urlsplit(url)
        yield f"{DRIVER}{parts.netloc}/{name}?{parts.query}"
    finally:
        _run(url, f"DROP DATABASE {name} WITH (FORCE)")


def server_pids(url: str) -> tuple[int, ...]:
    """Return the server's main process if it runs on this machine: its use of the machine is ours.

    It is the parent of the process that answers us; on another machine that number is another program.
    """

    async def find() -> int:
        async with connected(url) as connection:
            backend: int = await connection.fetchval("SELECT pg_backend_pid()")
            return await asyncio.to_thread(parent_of_server, backend)

    parent = uvloop.run(find())
    return (parent,) if parent else ()


def parent_of_server(pid: int) -> int:
    """Return the parent of a process of PostgreSQL, 0 if it is another program."""
    with contextlib.suppress(OSError):
        name, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return int(fields.split()[1]) if "(postgres" in name else 0
    return 0


def fill_tables(url: str, world: World) -> None:
    """Write the tables of a world with every user funded and every market open."""

    async def fill() -> None:
        async with Database(url) as database:
            await upgrade(database)
            async with database.writing() as tx:
                await _record_world(tx, world)

    uvloop.run(fill())


async def _record_world(tx: Transaction, world: World) -> None:
    await record_event(tx, _event(world), now_ms())
    for user in world.users:
        await record_key(tx, user.credentials.key_id, user.index, now_ms())
    await record_blocks(tx, [Block(BLOCK, word_of(keccak256(b"block")), ZERO_BYTES32, 0)])
    assets = [COLLATERAL] + [AssetId(str(token)) for pair in world.tokens for token in pair]
    await record_balances(
        tx,
        [
            Balance(user.address, asset, FUNDS_UNITS, BLOCK)
            for user in world.users
            for asset in assets
        ],
    )
    await record_allowances(
        tx,
        [
            Allowance(user.address, world.deployment.exchange, is_collateral, FUNDS_UNITS, BLOCK)
            for user in world.users
            for is_collateral in (True, False)
        ],
    )


def _event(world: World) -> EventRow:
    return EventRow(
        request_id="bench",
        slug="bench",
        title="bench",
        creator=ZERO_ADDRESS,
        chain_id=world.deployment.chain_id,
        market_mode=MarketMode.MULTI_MULTIPLE,
        main_category_slug="bench",
        rules="",
        resolution_source=None,
        image="",
        ends_at_ms=0,
        tags=(Category("bench", "bench"),),
        markets=tuple(_market(world, number) for number in range(len(world.conditions))),
    )


def _market(world: World, number: int) -> MarketRow:
    name = f"market {number}"
    return MarketRow(
        condition_id=world.conditions[number],
        question_id=word_of(keccak256(name.encode())),
        market_key=str(number),
        slug=f"bench-{number}",
        question=name,
        title=name,
        outcome_yes="Yes",
        outcome_no="No",
        tokens=world.tokens[number],
        exchange=world.deployment.exchange,
        oracle=ZERO_ADDRESS,
        resolution_type=ResolutionType.DIRECT,
        metadata_id="",
        metadata_uri="",
        icon="",
        ticks_per_one=TICKS_PER_ONE,
        size_units_min=SIZE_UNITS_MIN,
        fee_rate_bps=0,
    )


def _run(url: str, statement: str) -> None:
    async def run() -> None:
        async with connected(url) as connection:
            await connection.execute(statement)

    try:
        uvloop.run(run())
    except LOST as error:
        raise BenchFailed(f"the database: {cause_of(error)}") from error
