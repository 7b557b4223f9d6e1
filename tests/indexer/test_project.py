from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.indexer.chain_script import (
    ANN,
    BOB,
    CAROL,
    CONDITION,
    CONTRACTS,
    FEE_RECEIVER,
    NO,
    YES,
    ChainScript,
    Fill,
    ScriptResult,
    a_scripted_market,
)
from tests.indexer.rig import dump, wipe
from tests.rigs.rows import a_market_row, an_event_row
from tests.rigs.values import EXCHANGE, NOW_MS, a_word
from tests.store.queries.recorded_queries import recorded

from foretell.domain.contracts.logs import (
    NonceIncremented,
    OrderCancelled,
    OrdersCancelledBefore,
    OwnerSigningChanged,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.signing.stops import TIMESTAMP_MS_MAX, StopKind
from foretell.domain.portfolio.positions import NO_POSITION
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address
from foretell.indexer.project import project
from foretell.store.creation.markets import record_event
from foretell.store.database import Database
from foretell.store.index.activity_roles import role_of
from foretell.store.index.amount_classes import class_of
from foretell.store.index.cancellations import CanceledOrder, RaisedNonce
from foretell.store.index.traded_volumes import UNLISTED
from foretell.store.tables import markets

WALLETS = (ANN, BOB, CAROL)
wallets, tokens, units = st.sampled_from(WALLETS), st.sampled_from([YES, NO]), st.integers(1, 50)


class Market:
    """Random acts that the contracts would accept, as their logs."""

    def __init__(self) -> None:
        self.script = ChainScript()
        self.script.prepare()
        self.held = dict.fromkeys(((w, t) for w in WALLETS for t in (YES, NO)), 0)
        self.paid_in = self.paid_out = 0

    def split(self, wallet: Address, units: int) -> None:
        self.script.split(wallet, units)
        self.paid_in += units
        for token in (YES, NO):
            self.held[wallet, token] += units

    def merge(self, wallet: Address, units: int) -> None:
        units = min(units, self.held[wallet, YES], self.held[wallet, NO])
        self.script.merge(wallet, units)
        self.paid_out += units
        for token in (YES, NO):
            self.held[wallet, token] -= units

    def move(self, sender: Address, receiver: Address, token: AssetId, units: int) -> None:
        units = min(units, self.held[sender, token])
        self.script.move(sender, receiver, units, [token])
        self.held[sender, token] -= units
        self.held[receiver, token] += units

    def trade(self, buyer: Address, seller: Address, token: AssetId, units: int) -> None:
        units = min(units, self.held[seller, token])
        fee, cost = units // 10, units // 3
        taker = Fill(buyer, Side.BUY, token, units, cost, fee)
        self.script.trade(taker, Fill(seller, Side.SELL, token, units, cost, cost // 10))
        self.held[seller, token] -= units
        self.held[buyer, token] += units - fee

    def mint(self, taker: Address, maker: Address, token: AssetId, units: int) -> None:
        other = NO if token == YES else YES
        taken = Fill(taker, Side.BUY, token, units, units // 4)
        self.script.mint(taken, Fill(maker, Side.BUY, other, units, units - units // 4))
        self.paid_in += units
        self.held[taker, token] += units
        self.held[maker, other] += units

    def play(self, act: tuple[Any, ...]) -> None:
        name, *arguments, ends_block = act
        getattr(self, name)(*arguments)
        (self.script.next_block if ends_block else self.script.next_tx)()


acts = st.one_of(
    st.tuples(st.just("split"), wallets, units, st.booleans()),
    st.tuples(st.just("merge"), wallets, units, st.booleans()),
    st.tuples(st.just("move"), wallets, wallets, tokens, units, st.booleans()),
    st.tuples(st.just("trade"), wallets, wallets, tokens, units, st.booleans()).filter(
        lambda act: act[1] != act[2]
    ),
    st.tuples(st.just("mint"), wallets, wallets, tokens, units, st.booleans()).filter(
        lambda act: act[1] != act[2]
    ),
)


histories = st.lists(acts, max_size=25)
History = list[tuple[Any, ...]]


def played(history: History) -> Market:
    market = Market()
    for act in history:
        market.play(act)
    return market


@pytest.mark.case("B-14", "E-04")
@given(histories)
def test_positions_and_balances_equal_the_tokens_that_wallets_hold(history: History) -> None:
    market = played(history)
    read = ScriptResult(market.script)
    held = {key: read.state.balances[key] for key in market.held}
    sizes = {key: read.position(*key).size_units for key in market.held}
    assert held == sizes == market.held
    assert read.state.ignored == {}


@pytest.mark.case("B-14")
@given(histories)
def test_locked_collateral_equals_the_supply_of_either_token(history: History) -> None:
    market = played(history)
    read = ScriptResult(market.script)
    wallets = (*WALLETS, FEE_RECEIVER)
    supply = [sum(read.state.balances[wallet, token] for wallet in wallets) for token in (YES, NO)]
    locked = market.paid_in - market.paid_out
    assert supply == [locked, locked]
    assert read.state.locked[CONDITION] == locked


@given(histories)
def test_untracked_wallets_have_no_position(history: History) -> None:
    read = ScriptResult(played(history).script)
    assert {row.wallet for row in read.changes.positions} <= {*WALLETS, FEE_RECEIVER}
    assert read.position(ZERO_ADDRESS, YES) == NO_POSITION


@pytest.mark.anyio
@settings(
    max_examples=settings().max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, cuts=st.lists(st.integers(0, 25), max_size=4))
async def test_tables_do_not_depend_on_where_ranges_end(
    database: Database, history: History, cuts: list[int]
) -> None:
    """Nor do running volumes, whose trades may be in the range that prepares their listed condition."""
    script = played(history).script
    await wipe(database)
    await list_market(database)
    await write(database, script, [])
    whole = await dump(database)
    await wipe(database)
    await write(database, script, cuts)
    assert await dump(database) == whole
    assert UNLISTED not in {exchange for _, exchange, *_ in whole["traded_volumes"]}


@pytest.mark.anyio
async def test_the_prices_of_all_tokens_that_a_range_moves_are_one_read(database: Database) -> None:
    """A12: `load_last_price` ran once for each given token."""
    script = a_scripted_market()
    script.split(ANN, 9)
    script.next_block()
    script.move(ANN, BOB, 5, (YES, NO))
    with recorded() as queries:
        await write(database, script, [2])
    assert len([sql for sql, _ in queries if "FROM exchange_fills" in sql]) == 1


async def list_market(database: Database) -> None:
    """List the market of the condition, unless it is."""
    async with database.writing() as tx:
        if await tx.first(sa.select(markets)) is None:
            market = a_market_row(condition_id=CONDITION)
            await record_event(tx, an_event_row("rain", market), NOW_MS)


@pytest.mark.anyio
@settings(
    max_examples=settings().max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories)
async def test_tables_contain_the_applied_state(database: Database, history: History) -> None:
    script = played(history).script
    await wipe(database)
    await write(database, script, [])
    read, tables = ScriptResult(script), await dump(database)
    assert tables["activities"] == [
        (
            *(*act[:4], act.kind.value, *act[5:7]),
            *((side := None if act.side is None else act.side.name), *act[8:]),
            *(class_of(act.cost_units), role_of(act.kind, side, is_taker=act.is_taker)),
        )
        for act in sorted(read.rows.activities, key=lambda act: act[:3])
    ]
    assert tables["balance_changes"] == sorted(tuple(row) for row in read.changes.balances)
    assert tables["position_changes"] == sorted(tuple(row) for row in read.changes.positions)
    assert tables["positions"] == newest(tables["position_changes"])
    assert tables["balances"] == newest(tables["balance_changes"])
    supplied: defaultdict[object, Any] = defaultdict(int)
    for _, asset, units, *_ in tables["balances"]:
        if asset != COLLATERAL:
            supplied[asset] += units
    assert tables["supplies"] == sorted((token, str(units)) for token, units in supplied.items())


def newest(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the row of the highest block for each wallet and asset; the block ends the row."""
    return sorted({row[:2]: row for row in sorted(rows, key=lambda row: row[-1])}.values())


async def write(database: Database, script: ChainScript, cuts: Sequence[int]) -> None:
    """Project the script in ranges that end after these blocks."""
    ends = sorted({min(cut, len(script.blocks)) for cut in cuts} | {len(script.blocks)})
    start = 0
    for end in ends:
        blocks = script.blocks[start:end]
        logs = [log for log in script.logs if start < log.place.block_number <= end]
        async with database.writing() as tx:
            await project(tx, CONTRACTS, blocks, logs)
        start = end


def test_cancellations_of_makers_are_recorded_with_their_place() -> None:
    script = ChainScript()
    script.log(EXCHANGE, OrderCancelled(a_word("order")))
    script.next_block()
    script.log(EXCHANGE, NonceIncremented(ANN, 1))
    rows = ScriptResult(script).rows
    first, second = (placed.place for placed in script.logs)
    assert rows.stops == []
    assert rows.canceled == [
        CanceledOrder(first.block_number, first.log_index, 0, EXCHANGE, a_word("order"))
    ]
    assert rows.nonces == [RaisedNonce(second.block_number, second.log_index, 0, EXCHANGE, ANN, 1)]


def test_stops_of_makers_are_recorded_beside_their_nonces() -> None:
    script = ChainScript()
    script.log(EXCHANGE, OrdersCancelledBefore(ANN, 2**200))
    script.log(EXCHANGE, OwnerSigningChanged(ANN, is_allowed=False))
    script.log(EXCHANGE, OwnerSigningChanged(ANN, is_allowed=True))
    rows = ScriptResult(script).rows
    assert [(each.part, each.maker, each.nonce) for each in rows.stops] == [
        (StopKind.TIMESTAMP, ANN, TIMESTAMP_MS_MAX),
        (StopKind.OWNER_SIGNING, ANN, 1),
        (StopKind.OWNER_SIGNING, ANN, 0),
    ]
    places = [(placed.place.block_number, placed.place.log_index) for placed in script.logs]
    assert [each[:2] for each in rows.stops] == places
