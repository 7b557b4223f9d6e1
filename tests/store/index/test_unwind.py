import pytest
import sqlalchemy as sa
from tests.rigs.values import EXCHANGE, a_word, an_address

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database, Transaction
from foretell.store.index.activities import (
    ActivityKind,
    ActivityRow,
    ExchangeFill,
    record_activities,
    record_exchange_fills,
)
from foretell.store.index.balances import (
    Allowance,
    Balance,
    LockedCollateral,
    ReleasedCollateral,
    record_allowances,
    record_balances,
    record_locked,
    record_released,
)
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.index.cancellations import (
    CanceledOrder,
    RaisedNonce,
    record_canceled_orders,
    record_raised_nonces,
)
from foretell.store.index.conditions import (
    Condition,
    PayoutReport,
    record_conditions,
    record_payouts,
)
from foretell.store.index.oracle_answers import Answer, AnswerStep, record_answers
from foretell.store.index.positions import PositionRow, record_positions
from foretell.store.index.supplies import record_supplies
from foretell.store.index.traded_volumes import RunningVolume, VolumeChange
from foretell.store.index.trading_totals import (
    TradedMarket,
    TradingTotals,
    record_traded_markets,
    record_traded_volumes,
    record_trading_totals,
)
from foretell.store.index.unwind import unwind
from foretell.store.tables import indexing, metadata

pytestmark = pytest.mark.anyio

ANN = an_address("ann")
TABLES = [
    table
    for table in metadata.sorted_tables
    if table in [value for value in vars(indexing).values() if isinstance(value, sa.Table)]
]


async def everything(tx: Transaction) -> dict[str, list[tuple[object, ...]]]:
    return {
        table.name: sorted(tuple(row) for row in await tx.all(sa.select(table))) for table in TABLES
    }


def a_hash(number: int) -> Bytes32:
    return a_word(f"block {number}")


async def record_everything(tx: Transaction, number: int) -> None:
    """Write one row of this block into every table."""
    place = (number, 0, 0)
    token, other = AssetId(str(2 * number)), AssetId(str(2 * number + 1))
    condition, tx_hash = a_word(f"condition {number}"), a_word(f"tx {number}")
    kind, side = ActivityKind.TRADE, Side.BUY
    await record_blocks(tx, [Block(number, a_hash(number), a_hash(number - 1), number)])
    await record_conditions(tx, [Condition(*place, condition, ANN, condition, token, other)])
    await record_payouts(tx, [PayoutReport(*place, condition, 1, 0, tx_hash, number)])
    await record_exchange_fills(
        tx,
        [
            ExchangeFill(
                *place,
                condition,
                ANN,
                EXCHANGE,
                side,
                token,
                size_units=1,
                cost_units=1,
                fee_units=0,
                is_taker=True,
                tx_hash=tx_hash,
            )
        ],
    )
    await record_activities(
        tx,
        [
            ActivityRow(
                *place,
                ANN,
                kind,
                condition,
                token,
                side,
                size_units=1,
                cost_units=1,
                is_taker=True,
                timestamp_s=number,
                tx_hash=tx_hash,
            )
        ],
    )
    await record_canceled_orders(tx, [CanceledOrder(*place, EXCHANGE, condition)])
    await record_raised_nonces(tx, [RaisedNonce(*place, EXCHANGE, ANN, number)])
    await record_answers(
        tx,
        [Answer(*place, EXCHANGE, condition, AnswerStep.PROPOSED, ANN, "1", number, tx_hash)],
    )
    await record_balances(tx, [Balance(ANN, COLLATERAL, number, number)])
    await record_balances(tx, [Balance(ANN, AssetId("2"), number, number)])
    await record_supplies(tx, {AssetId("2"): number})
    await record_allowances(tx, [Allowance(ANN, EXCHANGE, number % 2 == 0, number, number)])
    await record_positions(
        tx, [PositionRow(ANN, AssetId("2"), a_word("rain"), number, 0, 0, 0, 0, number, number)]
    )
    await record_locked(tx, [LockedCollateral(a_word("rain"), number, number)])
    await record_released(tx, [ReleasedCollateral(a_word("rain"), number, number)])
    for generation in (0, 1):
        totals = TradingTotals(ANN, number, number, number, number)
        await record_trading_totals(tx, [totals], generation)
        await record_traded_markets(tx, [TradedMarket(*place, ANN, condition)], generation)
        volume = VolumeChange(ANN, EXCHANGE, number, RunningVolume(number, number))
        await record_traded_volumes(tx, [volume], generation)


@pytest.mark.case("E-01")
@pytest.mark.parametrize("kept", range(6))
async def test_every_table_is_as_if_later_blocks_had_never_been_indexed(
    database: Database, kept: int
) -> None:
    async with database.writing() as tx:
        for number in range(1, kept + 1):
            await record_everything(tx, number)
        before = await everything(tx)
        for number in range(kept + 1, 6):
            await record_everything(tx, number)
        await unwind(tx, kept)
        assert await everything(tx) == before


async def test_unwound_blocks_can_be_indexed_again(database: Database) -> None:
    async with database.writing() as tx:
        await record_everything(tx, 1)
        await record_everything(tx, 2)
        before = await everything(tx)
        await unwind(tx, 1)
        await record_everything(tx, 2)
        assert await everything(tx) == before


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
async def test_every_indexed_table_is_unwound(database: Database, table: sa.Table) -> None:
    async with database.writing() as tx:
        await record_everything(tx, 1)
        assert await tx.all(sa.select(table)) != []
        await unwind(tx, 0)
        assert await tx.all(sa.select(table)) == []
