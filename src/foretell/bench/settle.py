"""`foretell bench settle`: trades a second from the match to a block (settle).

The trades are matched, then settled by the loops of an installation on a chain that mines at once. The
time begins with the tables, which have none of them, and ends when the engine has all of them as MINED.

The ceiling is the chain alone, in the same round and on the same state: the same transactions, signed
already, are sent in as few requests as settlement sends them in, and mined one by one. Its time contains their
bytes in JSON, the node's checks of the signatures, the execution, the blocks, and the receipts, which are
asked for until all are there. It contains no simulation, no table, no index and no engine. So the ratio is 1
only for an installation whose own work is hidden behind that of the chain.
"""

import contextlib
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import uvloop
from rich.console import Console
from rich.table import Table

from foretell.bench.rigs.figures import SETTLE, SETTLE_BESIDE, Measurement
from foretell.bench.rigs.machine import cpu_s, usage_with
from foretell.bench.rigs.page import check_page, markdown_table, occasion, write_block
from foretell.bench.rigs.settle.chain import SettleChain, settle_chain
from foretell.bench.rigs.settle.exchange import settling_exchange
from foretell.chain.broadcaster import BROADCASTS_PER_REQUEST_MAX
from foretell.chain.setup_caller import wait_for_receipts
from foretell.domain.errors.command import BenchFailed
from foretell.domain.evm.transaction import SentTx
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.outbox.transactions import load_settlement_txs

TRADERS: Final = 40
COLUMNS: Final = (
    *("round", "trades/s", "chain alone", "ratio"),
    *("txs", "gas/trade", "CPU ms/trade", "chain's", "orders/s"),
)
ALONE: Final = SettlementOptions(batch_trades_max=1)
"""Each trade with a transaction of its own, for the comparison."""


GAS_TRADES: Final = 20
"""Trades of the rounds that compare the gas of a full batch and of as many transactions."""


class SettlePlan(NamedTuple):
    """Rounds, the trades of each, and the orders a second that are placed beside settlement."""

    rounds: int = 3
    trades: int = 400
    is_alone: bool = False
    orders_per_s: int = 0
    page: Path | None = None
    """A page that gets the table."""

    @property
    def block(self) -> str:
        """The name of the page's block: rounds with and without orders beside them have one each."""
        return "foretell bench settle" + (" --orders" if self.orders_per_s else "")


class SettleRound(NamedTuple):
    """Trades of a round: the time until they were in blocks, that of the chain alone, transactions and gas.

    `cpu_s` is the processor time of this process and that of settlement, `chain_cpu_s` that of the chain beside
    them; `chain_s` and `chain_alone_cpu_s` are the time and the processor time that the chain needs alone.
    """

    trades: int
    settle_s: float
    cpu_s: float
    chain_cpu_s: float
    chain_s: float
    chain_alone_cpu_s: float
    txs: int
    gas: int
    orders: int = 0

    @property
    def per_s(self) -> float:
        """Trades a second from the match to a block."""
        return self.trades / self.settle_s

    @property
    def ceiling_per_s(self) -> float:
        """Trades a second that the chain mines of the same transactions."""
        return self.trades / self.chain_s

    @property
    def ratio(self) -> float:
        """The first over the second."""
        return self.per_s / self.ceiling_per_s

    @property
    def ratio_max(self) -> float:
        """The ratio if all cores worked on the trades all the time, and the chain alone had one for itself."""
        return self.chain_alone_cpu_s * (os.cpu_count() or 1) / (self.cpu_s + self.chain_cpu_s)

    def cells(self, number: int) -> tuple[str, ...]:
        """Return the row of the table."""
        return (
            str(number),
            f"{self.per_s:,.0f}",
            f"{self.ceiling_per_s:,.0f}",
            f"{self.ratio:.2f}",
            str(self.txs),
            f"{self.gas // self.trades:,}",
            f"{self.cpu_s * 1000 / self.trades:.2f}",
            f"{self.chain_cpu_s * 1000 / self.trades:.2f}",
            f"{self.orders / self.settle_s:,.0f}",
        )


def run_bench_settle(plan: SettlePlan, console: Console) -> list[Measurement]:
    """Settle trades in rounds, and print the rates next to those of the chain alone."""
    if plan.page is not None:
        check_page(plan.page, plan.block)
    with _warnings_only(), tempfile.TemporaryDirectory(prefix="foretell-settle-") as name:
        rounds = uvloop.run(_measure(plan, Path(name)))
    *rounds, batch, alone = rounds
    rows = [each.cells(number) for number, each in enumerate(rounds, 1)]
    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    ratio = statistics.median(each.ratio for each in rounds)
    ceiling_per_s = statistics.median(each.ceiling_per_s for each in rounds)
    ratio_max = statistics.median(each.ratio_max for each in rounds)
    lines = (
        (
            f"gas of a trade in a batch of {GAS_TRADES}: {batch.gas // GAS_TRADES:,}, alone:"
            f" {alone.gas // GAS_TRADES:,} (ratio {batch.gas / alone.gas:.2f})"
        ),
        (
            f"settle: {ratio:.2f} of what the chain alone mines (median of {len(rounds)} rounds of"
            f" {plan.trades:,} trades; {ceiling_per_s:,.0f} trades/s)"
        ),
        f"with {os.cpu_count()} cores that wait for nothing: {ratio_max:.2f}",
    )
    for line in lines:
        console.print(line)
    if plan.page is not None:
        written = [markdown_table(COLUMNS, rows), "", *(f"- {line}" for line in lines), ""]
        write_block(plan.page, plan.block, occasion(), written)
    ceiling = f"the chain alone, same transactions: {ceiling_per_s:,.0f} trades/s"
    return [Measurement(SETTLE_BESIDE if plan.orders_per_s else SETTLE, ratio, ceiling)]


@contextlib.contextmanager
def _warnings_only() -> Iterator[None]:
    """Log no status changes while the block runs: a line for each would be a part of the figure."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.configure(**before)


async def _measure(plan: SettlePlan, folder: Path) -> list[SettleRound]:
    options = ALONE if plan.is_alone else SettlementOptions()
    async with settle_chain(folder, TRADERS) as chain:
        rounds = []
        for number in range(plan.rounds):
            own = folder / f"round {number}"
            own.mkdir()
            rounds.append(await _round(chain, own, plan, options))
        few = SettlePlan(trades=GAS_TRADES)
        for name, chosen in (("batch", SettlementOptions()), ("alone", ALONE)):
            own = folder / name
            own.mkdir()
            rounds.append(await _round(chain, own, few, chosen))
        return rounds


async def _round(
    chain: SettleChain, folder: Path, plan: SettlePlan, options: SettlementOptions
) -> SettleRound:
    """Settle trades, take the chain back, and have it mine the same transactions again."""
    before = await chain.rpc.send("evm_snapshot")
    async with settling_exchange(chain, folder, options) as exchange:
        await exchange.match(plan.trades)
        beside = exchange.resting(plan.orders_per_s)
        pid = exchange.settlement.process_id
        assert pid is not None, "it has started"
        began, chain_began_s = usage_with(pid), cpu_s(chain.process_id)
        orders = await exchange.settle(beside, plan.orders_per_s)
        ended, chain_cpu_s = usage_with(pid), cpu_s(chain.process_id) - chain_began_s
        sent = await _sent(exchange.database)
    await _take_back(chain, before)
    before = await chain.rpc.send("evm_snapshot")
    alone_began_s = cpu_s(chain.process_id)
    chain_s, gas = await _mine_again(chain, sent)
    chain_alone_cpu_s = cpu_s(chain.process_id) - alone_began_s
    await _take_back(chain, before)
    return SettleRound(
        trades=plan.trades,
        settle_s=ended.at_s - began.at_s,
        cpu_s=ended.own_s - began.own_s,
        chain_cpu_s=chain_cpu_s,
        chain_s=chain_s,
        chain_alone_cpu_s=chain_alone_cpu_s,
        txs=len(sent),
        gas=gas,
        orders=orders,
    )


async def _sent(database: Database) -> Sequence[SentTx]:
    async with database.reading() as tx:
        return await load_settlement_txs(tx)


async def _take_back(chain: SettleChain, snapshot: object) -> None:
    if not await chain.rpc.send("evm_revert", snapshot):
        raise BenchFailed("the chain did not return to its earlier state")


async def _mine_again(chain: SettleChain, sent: Sequence[SentTx]) -> tuple[float, int]:
    """Return the time that the chain needs for these transactions, and their gas."""
    raws = ["0x" + each.newest.raw.hex() for each in sent]
    began_s = time.perf_counter()
    hashes = []
    for start in range(0, len(raws), BROADCASTS_PER_REQUEST_MAX):
        part = raws[start : start + BROADCASTS_PER_REQUEST_MAX]
        hashes += await chain.rpc.batch([("eth_sendRawTransaction", [raw]) for raw in part])
    receipts = await wait_for_receipts(chain.rpc, [Bytes32(each) for each in hashes])
    took_s = time.perf_counter() - began_s
    if not all(receipt.is_success for receipt in receipts):
        raise BenchFailed("a transaction that had settled trades reverted the second time")
    return took_s, sum(receipt.gas_used for receipt in receipts)
