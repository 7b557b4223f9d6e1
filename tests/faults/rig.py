"""The rig of the faults' tests: an exchange in a folder, its journal, its tables and its processes.

It is checked from outside. What the traders received is compared with the journal, with tables that
are rebuilt from it, and with what the exchange answers when everything is sent again.
"""

import asyncio
import contextlib
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.faults.people import BUYERS, MARKETS, SELLERS, Notes, Person, Received, a_person
from tests.faults.processes import Member, Processes
from tests.rigs.rows import Rows
from tests.rigs.values import EXCHANGE, TOKEN, a_deployment, a_key, a_word, an_address, an_asset

from foretell.bench.rigs.ports import free_port
from foretell.chain.deploy import store_deployment
from foretell.domain.contracts.deployment import ContractName, DeployedContract, Deployment
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import CancelOrders, Command, PlaceOrder, decode_command
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.state import State
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import ZERO_BYTES32
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.projection import Projection
from foretell.journal.files.reader import read_entries
from foretell.journal.port import Entry
from foretell.sdk.http import HttpClient, wait_for
from foretell.store.database import Database
from foretell.store.index.balances import Allowance, Balance, record_allowances, record_balances
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.trading.projected import PROJECTED

FUNDS_UNITS: Final = 10**9 * TOKEN
SNAPSHOT_EVERY: Final = 200
CAUGHT_UP_WITHIN_S: Final = 180.0
ANSWERED_WITHIN_S: Final = 180.0
LOOK_S: Final = 0.02
LOST_SHOWN_MAX: Final = 5
"""Answers that a failing check prints."""
TABLES: Final = tuple(table.name for table in PROJECTED)


class Replayed(NamedTuple):
    """A replayed journal: its commands, their state, and what they publish to the tables."""

    commands: list[Command]
    state: State
    committed: list[CommittedCommand]


@dataclass
class FaultRig:
    """A data folder, and the traders that use the process that serves it."""

    folder: Path
    processes: Processes
    people: Mapping[str, Person]
    https: list[HttpClient]
    notes: Notes
    port: int = field(default_factory=free_port)
    is_over: bool = False

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def armed(self) -> Path:
        """The file that arms the fault."""
        return self.folder / "armed"

    def received(self) -> Received:
        return self.notes.read()

    @property
    def environment(self) -> dict[str, str]:
        """The settings of every process; the journal is checked from its first command on.

        Nothing settles, so trades wait for ever, and with a bound nothing would be matched any more after that time.
        """
        return {
            "FORETELL_DATA": str(self.data),
            "FORETELL_PORT": str(self.port),
            "FORETELL_RPC_URL": "http://127.0.0.1:1",
            "FORETELL_ACCEPTS_UNBOUND_L1": "true",
            "FORETELL_MASTER_KEY": a_key("master").hex(),
            "FORETELL_SNAPSHOT_EVERY": str(SNAPSHOT_EVERY),
            "FORETELL_JOURNAL_KEEPS": "all",
            "FORETELL_SETTLEMENT_LAG_S_MAX": "0",
        }

    async def start(self, fault: str = "none") -> Member:
        """Start the process that serves the traders, and return when it does."""
        self.armed.unlink(missing_ok=True)
        member = await self.processes.start(self.folder, ["trading"], self.environment, fault)
        await member.serves()
        for http in self.https:
            http.base_url = f"http://127.0.0.1:{self.port}"
        for person in self.people.values():
            if person.client.credentials is None:
                await person.client.create_key()
        await self.funded()
        return member

    async def funded(self) -> None:
        """Return when the engine has observed the chain's tables."""
        one = self.people[BUYERS[0]].client

        async def is_funded() -> bool | None:
            account = await one.get("/balance-allowance", asset_type="COLLATERAL")
            return account["balance"] != "0" or None

        await wait_for("the feed", is_funded, CAUGHT_UP_WITHIN_S)

    async def trade(self) -> None:
        """Have all traders trade until the exchange stops answering."""
        await asyncio.gather(*(person.trade() for person in self.people.values()))

    async def trade_on(self) -> None:
        """Have all traders trade until it is over, also across outages."""

        async def go_on(person: Person) -> None:
            while not self.is_over:
                await person.trade(is_over=lambda: self.is_over)

        await asyncio.gather(*(go_on(person) for person in self.people.values()))

    async def more_answers(self, count: int) -> None:
        """Return when this many more orders were acknowledged."""
        wanted = len(self.received().answer_by_order) + count
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            while len(self.received().answer_by_order) < wanted:  # noqa: ASYNC110 - no event
                await asyncio.sleep(LOOK_S)

    def replayed(self) -> Replayed:
        """Return the replayed journal, while no process writes to it."""
        return replay(read_entries(self.data / "journal"))

    async def check(self) -> None:
        """Check what all traders received, while they are idle and a process serves."""
        received, replayed = self.received(), await self.caught_up()
        check_placed_once(replayed.commands)
        check_cancels(replayed.commands, received)
        check_acknowledged(replayed.state, received)
        await self.check_tables(replayed)
        await self.check_sent_again(replayed.state, received)
        after = self.replayed()
        check_placed_once(after.commands)
        check_acknowledged(after.state, self.received())

    def rows(self, table: str) -> list[Any]:
        """Return the rows of a table, read from outside."""
        return rows(self.data / "foretell.db", table)

    async def caught_up(self) -> Replayed:
        """Return the replayed journal, once the tables have all of it."""
        async with asyncio.timeout(CAUGHT_UP_WITHIN_S):
            while True:
                replayed = self.replayed()
                if self.published_sequence() >= replayed.committed[-1].sequence:
                    return replayed
                await asyncio.sleep(LOOK_S)

    def published_sequence(self) -> int:
        """Return the sequence that the tables are at."""
        return max((sequence for _, sequence in self.rows("projections")), default=0)

    async def check_tables(self, replayed: Replayed) -> None:
        """Check that the tables equal those rebuilt from the journal."""
        rebuilt = Path(shutil.copy(self.folder / "first.db", self.folder / "rebuilt.db"))
        await project(replayed.committed, rebuilt)
        for table in TABLES:
            assert self.rows(table) == rows(rebuilt, table)

    async def check_sent_again(self, state: State, received: Received) -> None:
        """Send all orders again: those in the journal get the same answer, others are placed.

        One that is placed may say that it was there, too: an engine that loses its lease between the sync and its
        answer makes the server ask the next one.
        """
        for person in self.people.values():
            theirs = sorted(received.asked & person.order_by_id.keys())
            for order_id, answer in (await person.send_again(theirs)).items():
                assert answer["success"], answer
                first = received.answer_by_order.get(order_id)
                was_there = order_id in state.placement_by_order
                assert answer.get("replayed", False) or not was_there, (order_id, answer)
                assert first is None or lasting(first) == lasting(answer), (first, answer)
                person.notes.note("placed", order_id, answer)
            person.order_by_id.clear()


def lasting(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every answer to an order says; a server that lost the first one asks for it again, too."""
    return {name: value for name, value in answer.items() if name not in {"replayed", "present"}}


def check_placed_once(commands: list[Command]) -> None:
    """Check that no order, and no cancel of one, is in the journal twice."""
    placed = Counter(each.order_id for each in commands if isinstance(each, PlaceOrder))
    canceled = Counter(
        order_id
        for each in commands
        if isinstance(each, CancelOrders)
        for order_id in each.order_ids
    )
    assert set(placed.values()) | set(canceled.values()) <= {1}


def check_cancels(commands: list[Command], received: Received) -> None:
    """Check that only requested cancels are in the journal."""
    canceled = {
        order_id
        for each in commands
        if isinstance(each, CancelOrders)
        for order_id in each.order_ids
    }
    assert received.canceled <= canceled <= received.canceling


def check_acknowledged(state: State, received: Received) -> None:
    """Check that acknowledged orders are there, and that only canceled ones are gone."""
    placed = state.placement_by_order.keys()
    lost = {
        order_id: received.answer_by_order[order_id]
        for order_id in received.answer_by_order.keys() - placed
    }
    assert not lost, dict(islice(lost.items(), LOST_SHOWN_MAX))
    assert placed <= received.asked
    live = state.live_orders.keys()
    assert received.canceled.isdisjoint(live)
    for order_id, answer in received.answer_by_order.items():
        placement = state.placement_by_order[order_id]
        assert answer["status"] == placement.status.lower()
        assert answer["tradeIDs"] == list(placement.trade_ids)


def replay(entries: Iterable[Entry]) -> Replayed:
    """Replay a journal, as a start without a snapshot does."""
    replayed = Replayed([], State(), [])
    for entry in entries:
        replayed.commands.append(decode_command(entry.payload))
        outcome = apply(replayed.state, replayed.commands[-1])
        if outcome.has_effects:
            replayed.committed.append(CommittedCommand(entry.sequence, outcome, entry.payload))
    return replayed


async def project(committed: Sequence[CommittedCommand], database: Path) -> None:
    """Write published commands into tables."""
    async with Database(f"sqlite+aiosqlite:///{database}") as tables:
        projection = Projection(tables)
        await projection.start()
        for each in committed:
            projection.on_committed(each)
        await projection.catch_up()


def rows(database: Path, table: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return sorted(connection.execute(f"SELECT * FROM {table}"), key=repr)


def the_deployment() -> Deployment:
    """Return a deployment with an address for every contract, though there is no chain."""
    made_up = {name: DeployedContract(an_address(name), ZERO_BYTES32) for name in ContractName}
    deployment = a_deployment()
    return replace(deployment, contracts=made_up | dict(deployment.contracts))


async def furnish(database: Database) -> None:
    """Write the rows of other products: markets, and a block in which all traders have funds."""
    names = BUYERS + SELLERS
    assets = [COLLATERAL, *(an_asset(is_yes=True, market=market) for market in MARKETS)]
    async with database.writing() as tx:
        rows = Rows(tx)
        for market in MARKETS:
            await rows.open_named(market)
        await record_blocks(tx, [Block(1, a_word("block 1"), a_word("block 0"), 0)])
        await record_balances(
            tx,
            [
                Balance(an_address(name), asset, FUNDS_UNITS, 1)
                for name in names
                for asset in assets
            ],
        )
        await record_allowances(
            tx,
            [
                Allowance(an_address(name), EXCHANGE, is_collateral, AMOUNT_UNITS_MAX, 1)
                for name in names
                for is_collateral in (True, False)
            ],
        )


@contextlib.asynccontextmanager
async def a_fault_rig(
    folder: Path, empty_database: Path, made: Processes, rng: random.Random
) -> AsyncIterator[FaultRig]:
    """Yield an exchange that no process serves yet."""
    data = await lay_out(folder, empty_database)
    shutil.copy(folder / "first.db", data / "foretell.db")
    notes = Notes(folder / "notes")
    async with people_of(notes, rng) as (people, https):
        try:
            yield FaultRig(folder, made, people, https, notes)
        finally:
            await made.end()


async def lay_out(folder: Path, empty_database: Path) -> Path:
    """Create a data folder, and next to it a database as it is before any trade."""
    data = folder / "data"
    data.mkdir(parents=True)
    store_deployment(data / "deployment.json", the_deployment())
    first = Path(shutil.copy(empty_database, folder / "first.db"))
    async with Database(f"sqlite+aiosqlite:///{first}") as database:
        await furnish(database)
    return data


@contextlib.asynccontextmanager
async def people_of(
    notes: Notes, rng: random.Random
) -> AsyncIterator[tuple[Mapping[str, Person], list[HttpClient]]]:
    """Yield all traders, each with a connection."""
    async with contextlib.AsyncExitStack() as stack:
        https = [await stack.enter_async_context(HttpClient("")) for _ in BUYERS + SELLERS]
        people = {
            name: a_person(name, http, notes, rng)
            for name, http in zip(BUYERS + SELLERS, https, strict=True)
        }
        yield people, https
