"""The trades of the engine against the matches that the exchange's logs show, one by one.

A match is the fills of makers' orders and then that of the taker's, in one transaction. A trade that is confirmed is
the match of its taker's order in its transaction: the same makers' orders, each with the same size and collateral. The
orders of one that has failed are in no match together. One that waits for its settlement is not compared, as its
match may be on the chain for some seconds before the engine reads of it. And each match in a transaction that
settlement has sent is a trade. Other operators may match orders, too: of their matches nothing is known here.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from foretell.chain.rpc import Rpc
from foretell.chain.smaller_reads import BatchReader
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.exchange.trade import TradeStatus
from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.counted_quotes import CountedQuotes
from foretell.reconciliation.data_report import DataReport
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.queries.index_tables import load_pages
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import fills, settlement_tx_attempts, trades

TRADES: Final = trades.name
TXS_PER_QUESTION: Final = 1_000
NOT_ASKED: Final = -1
IN_NO_BLOCK: Final = 0


class _MinedIn(msgspec.Struct, rename="camel"):
    """The block in a receipt; the logs of a transaction, of any size, are not kept."""

    block_number: str


class FilledOrder(NamedTuple):
    """What a match fills of an order."""

    order_id: str
    token_id: str
    side: str
    size: int
    cost: int


class SettledMatch(NamedTuple):
    """A taker's order and those that it met, in the order of their ids."""

    taker: FilledOrder
    makers: tuple[FilledOrder, ...]


class _SettledMatches:
    """The matches of the chain, by their transaction and the taker's order; a batch has one of each taker."""

    def __init__(self, figures: ChainFigures, spill: SpillFile) -> None:
        self.by_place: SpilledRows[tuple[str, str], SettledMatch] = spill.mapping(
            "matches", 2, SettledMatch
        )
        self.hash_by_pair: SpilledRows[tuple[str, str], str] = spill.mapping("matched", 2, str)
        """The transaction in which a taker's order met a maker's."""
        makers: list[FilledOrder] = []
        last_hash = ""
        for _, fill in figures.fills.items():  # noqa: PERF102 - a mapping in a file has no `values`
            order, _, _, side, token, size, cost, _, is_taker, tx_hash = fill
            if tx_hash != last_hash:
                makers, last_hash = [], tx_hash
            filled = FilledOrder(order, token, side, size, cost)
            if not is_taker:
                makers.append(filled)
                continue
            self.by_place[tx_hash, order] = SettledMatch(filled, tuple(sorted(makers)))
            for maker in makers:
                self.hash_by_pair[order, maker.order_id] = tx_hash
            makers = []

    def hash_of(self, trade: Any, parts: Sequence[Any]) -> str | None:
        """Return the transaction with a fill of a trade, None if there is none."""
        for part in parts:
            if tx_hash := self.hash_by_pair.get((trade.taker_order_id, part.maker_order_id)):
                return str(tx_hash)
        return None


async def compare_trades(
    figures: ChainFigures, tx: Transaction, spill: SpillFile, report: DataReport
) -> CountedQuotes:
    """Compare each trade with the chain; return the quotes and points that all of them lead to."""
    report.rows[TRADES] = 0
    matches, counted = _SettledMatches(figures, spill), CountedQuotes(spill)
    pairs: SpilledRows[tuple[str, str], bool] = spill.mapping("traded_pairs", 2, bool)
    async for trade, parts in _load_trades(tx):
        counted.add(trade, parts)
        for part in parts:
            pairs[trade.taker_order_id, part.maker_order_id] = True
        if trade.status == TradeStatus.CONFIRMED:
            _compare_confirmed(figures, matches, report, trade, parts)
        elif trade.status == TradeStatus.FAILED:
            report.add(TRADES, trade.trade_id, matches.hash_of(trade, parts), None)
    sent_txs = await _load_sent(tx, spill)
    for (tx_hash, order_id), match in matches.by_place.items():
        is_own = tx_hash in sent_txs
        if is_own and any((order_id, each.order_id) not in pairs for each in match.makers):
            report.add(TRADES, (tx_hash, order_id), match, None)
    await counted.finish(tx)
    return counted


async def _load_sent(tx: Transaction, spill: SpillFile) -> SpilledRows[str, bool]:
    """Return the transactions that settlement has sent."""
    sent: SpilledRows[str, bool] = spill.mapping("sent_txs", 1, bool)
    async for page in load_pages(tx, settlement_tx_attempts):
        for row in page:
            sent[row.tx_hash] = True
    return sent


def _compare_confirmed(
    figures: ChainFigures,
    matches: _SettledMatches,
    report: DataReport,
    trade: Any,
    parts: Sequence[Any],
) -> None:
    """Compare a trade with the match of its taker's order, unless that is in a block behind the index.

    An index that is read again from its first block lacks the newest ones, and the trades have them.
    """
    match = matches.by_place.get((trade.tx_hash, trade.taker_order_id))
    if match is None:
        if figures.missing_txs.get(trade.tx_hash, NOT_ASKED) > report.block_number:
            return
        if trade.tx_hash not in figures.missing_txs:
            figures.missing_txs[trade.tx_hash] = NOT_ASKED
    report.add(TRADES, trade.trade_id, match, _match_of(trade, parts))


async def find_missing(figures: ChainFigures, rpc: Rpc, last_block: int) -> bool:
    """Ask for the blocks of transactions that are not in the logs up to one; return whether any is in a later block."""
    batches, is_any_later = BatchReader(rpc), False
    while part := list(islice(_unasked(figures), TXS_PER_QUESTION)):
        calls = [("eth_getTransactionReceipt", [each]) for each in part]
        receipts = await batches.read(_MinedIn, calls, list)
        for tx_hash, receipt in zip(part, receipts, strict=True):
            block = IN_NO_BLOCK if receipt is None else _block_of(receipt)
            figures.missing_txs[tx_hash] = block
            is_any_later = is_any_later or block > last_block
    return is_any_later


def _unasked(figures: ChainFigures) -> Iterator[str]:
    return (tx_hash for tx_hash, block in figures.missing_txs.items() if block == NOT_ASKED)


def _block_of(receipt: _MinedIn) -> int:
    try:
        return int(receipt.block_number, 16)
    except ValueError as error:
        raise ChainInconsistent("a receipt of no known shape") from error


def _match_of(trade: Any, parts: Sequence[Any]) -> SettledMatch:
    taker = FilledOrder(
        trade.taker_order_id, trade.token_id, trade.side, trade.size_units, trade.cost_units
    )
    return SettledMatch(taker, tuple(sorted(map(_filled, parts))))


def _filled(part: Any) -> FilledOrder:
    """Return what a fill takes off the maker's order: collateral for a purchase, tokens for a sale."""
    amounts = part.making_units, part.taking_units
    cost, size = amounts if part.side == "BUY" else reversed(amounts)
    return FilledOrder(part.maker_order_id, part.token_id, part.side, size, cost)


async def _load_trades(tx: Transaction) -> AsyncIterator[tuple[Any, Sequence[Any]]]:
    """Yield each trade with its fills; those of one page of trades are held."""
    async for page in load_pages(tx, trades):
        fills_by_trade: defaultdict[str, list[Any]] = defaultdict(list)
        ids = [(trade.trade_id,) for trade in page]
        for part in await load_rows(tx, fills, (fills.c.trade_id,), ids):
            fills_by_trade[part.trade_id].append(part)
        for trade in page:
            yield trade, fills_by_trade[trade.trade_id]
