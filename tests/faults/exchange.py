"""An exchange in a folder: its journal, its tables, the processes that serve it, and what they owe.

It is checked from outside: what the people were told, against the journal's files, against tables
that are made anew of them, and against what the exchange answers to everything sent again.
"""

import asyncio
import contextlib
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.faults.people import BUYERS, MARKETS, SELLERS, Notes, Person, Told, a_person
from tests.faults.processes import Member, Processes
from tests.rigs.ports import free_port
from tests.rigs.rows import Rows
from tests.rigs.values import EXCHANGE, TOKEN, a_key, a_word, an_address, an_asset
from tests.trading.rig import a_deployment

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

FUNDS_UNITS: Final = 10**9 * TOKEN
SNAPSHOT_EVERY: Final = 200
CAUGHT_UP_WITHIN_S: Final = 30.0
LOOK_S: Final = 0.02
TABLES: Final = ("orders", "trades", "fills", "quotes", "quote_points")


class Retold(NamedTuple):
    """What a journal holds: its commands, the state that they make, and what the tables hear."""

    commands: list[Command]
    state: State
    durables: list[CommittedCommand]


@dataclass
class Exchange:
    """A data folder, and the people who trade at whoever serves it."""

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
        """The file that has the fault happen."""
        return self.folder / "armed"

    def told(self) -> Told:
        return self.notes.read()

    @property
    def environment(self) -> dict[str, str]:
        """What every process is set to; the journal is checked from its first command on."""
        return {
            "FORETELL_DATA": str(self.data),
            "FORETELL_PORT": str(self.port),
            "FORETELL_RPC_URL": "http://127.0.0.1:1",
            "FORETELL_MASTER_KEY": a_key("master").hex(),
            "FORETELL_SNAPSHOT_EVERY": str(SNAPSHOT_EVERY),
            "FORETELL_JOURNAL_KEEPS": "all",
        }

    async def start(self, fault: str = "none") -> Member:
        """Start the process that serves everybody, and return when it does."""
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
        """Return when the engine has looked at the chain's tables."""
        one = self.people[BUYERS[0]].client

        async def is_funded() -> bool | None:
            account = await one.get("/balance-allowance", asset_type="COLLATERAL")
            return account["balance"] != "0" or None

        await wait_for("the feed", is_funded, CAUGHT_UP_WITHIN_S)

    async def trade(self) -> None:
        """Have everybody trade until nobody answers any more."""
        await asyncio.gather(*(person.trade() for person in self.people.values()))

    async def trade_on(self) -> None:
        """Have everybody trade until it is over, whoever has to be waited for."""

        async def go_on(person: Person) -> None:
            while not self.is_over:
                await person.trade(is_over=lambda: self.is_over)

        await asyncio.gather(*(go_on(person) for person in self.people.values()))

    def retold(self) -> Retold:
        """Return what the journal holds, while nobody writes to it."""
        return retell(read_entries(self.data / "journal"))

    async def check(self) -> None:
        """Check what everybody was told, while they are silent and a process serves."""
        told, retold = self.told(), await self.caught_up()
        check_placed_once(retold.commands)
        check_canceled_by_them(retold.commands, told)
        check_told(retold.state, told)
        await self.check_tables(retold)
        await self.check_sent_again(retold.state, told)
        check_placed_once(self.retold().commands)

    def rows(self, table: str) -> list[Any]:
        """Return the rows of a table, as whoever looks from outside finds them."""
        return rows(self.data / "foretell.db", table)

    async def caught_up(self) -> Retold:
        """Return what the journal holds once the tables have it too."""
        async with asyncio.timeout(CAUGHT_UP_WITHIN_S):
            while True:
                retold = self.retold()
                if self.published_sequence() >= retold.durables[-1].sequence:
                    return retold
                await asyncio.sleep(LOOK_S)

    def published_sequence(self) -> int:
        """Return up to where the tables are true."""
        return max((sequence for _, sequence in self.rows("projections")), default=0)

    async def check_tables(self, retold: Retold) -> None:
        """Check that the tables are those that the journal makes of empty ones."""
        anew = Path(shutil.copy(self.folder / "first.db", self.folder / "anew.db"))
        await project(retold.durables, anew)
        for table in TABLES:
            assert self.rows(table) == rows(anew, table)

    async def check_sent_again(self, state: State, told: Told) -> None:
        """Send everything again: what is in the journal is answered as it was, the rest is placed."""
        for person in self.people.values():
            theirs = sorted(told.asked & person.order_by_id.keys())
            for order_id, answer in (await person.send_again(theirs)).items():
                first = told.answer_by_order.get(order_id)
                assert answer.get("replayed", False) is (order_id in state.placement_by_order)
                assert first is None or answer | first == answer
                person.notes.note("placed", order_id, answer | {"replayed": False})
            person.order_by_id.clear()


def check_placed_once(commands: list[Command]) -> None:
    """Nothing is in the journal twice: no order, and no cancel of one."""
    placed = Counter(each.order_id for each in commands if isinstance(each, PlaceOrder))
    canceled = Counter(
        order_id
        for each in commands
        if isinstance(each, CancelOrders)
        for order_id in each.order_ids
    )
    assert set(placed.values()) | set(canceled.values()) <= {1}


def check_canceled_by_them(commands: list[Command], told: Told) -> None:
    """Nothing leaves the book that nobody asked for."""
    canceled = {
        order_id
        for each in commands
        if isinstance(each, CancelOrders)
        for order_id in each.order_ids
    }
    assert told.canceled <= canceled <= told.canceling


def check_told(state: State, told: Told) -> None:
    """What was acknowledged is there; what was canceled is gone, and nothing else is."""
    assert told.answer_by_order.keys() <= state.placement_by_order.keys() <= told.asked
    live = state.live_orders.keys()
    assert told.canceled.isdisjoint(live)
    for order_id, answer in told.answer_by_order.items():
        placement = state.placement_by_order[order_id]
        assert answer["status"] == placement.status.lower()
        assert answer["tradeIDs"] == list(placement.trade_ids)


def retell(entries: Iterable[Entry]) -> Retold:
    """Fold a journal, as a start without a snapshot does."""
    retold = Retold([], State(), [])
    for entry in entries:
        retold.commands.append(decode_command(entry.payload))
        effects = apply(retold.state, retold.commands[-1]).effects
        if effects:
            retold.durables.append(CommittedCommand(entry.sequence, effects))
    return retold


async def project(durables: Sequence[CommittedCommand], database: Path) -> None:
    """Write into tables what commands did."""
    async with Database(f"sqlite+aiosqlite:///{database}") as tables:
        projection = Projection(tables)
        await projection.start()
        for committed in durables:
            projection.on_committed(committed)
        await projection.catch_up()


def rows(database: Path, table: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return sorted(connection.execute(f"SELECT * FROM {table}"), key=repr)


def the_deployment() -> Deployment:
    """Return a deployment that has every contract, though there is no chain."""
    made_up = {name: DeployedContract(an_address(name), ZERO_BYTES32) for name in ContractName}
    deployment = a_deployment()
    return replace(deployment, contracts=made_up | dict(deployment.contracts))


async def furnish(database: Database) -> None:
    """Write what the other products would: markets, and a block in which everybody is rich."""
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
async def an_exchange(
    folder: Path, empty_database: Path, made: Processes, chance: random.Random
) -> AsyncIterator[Exchange]:
    """Give an exchange that nobody serves yet."""
    data = await lay_out(folder, empty_database)
    shutil.copy(folder / "first.db", data / "foretell.db")
    notes = Notes(folder / "notes")
    async with people_of(notes, chance) as (people, https):
        try:
            yield Exchange(folder, made, people, https, notes)
        finally:
            await made.end()


async def lay_out(folder: Path, empty_database: Path) -> Path:
    """Make a data folder, and beside it a database as it is before anybody trades."""
    data = folder / "data"
    data.mkdir(parents=True)
    store_deployment(data / "deployment.json", the_deployment())
    first = Path(shutil.copy(empty_database, folder / "first.db"))
    async with Database(f"sqlite+aiosqlite:///{first}") as database:
        await furnish(database)
    return data


@contextlib.asynccontextmanager
async def people_of(
    notes: Notes, chance: random.Random
) -> AsyncIterator[tuple[Mapping[str, Person], list[HttpClient]]]:
    """Give everybody, each with a connection."""
    async with contextlib.AsyncExitStack() as stack:
        https = [await stack.enter_async_context(HttpClient("")) for _ in BUYERS + SELLERS]
        people = {
            name: a_person(name, http, notes, chance)
            for name, http in zip(BUYERS + SELLERS, https, strict=True)
        }
        yield people, https
