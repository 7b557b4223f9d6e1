"""A journal with many open orders in its snapshot, and many commands after it.

The journal itself writes it, and its commands are those of trading: orders, fills, cancels, and
observations of settled trades on the chain.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from foretell.bench.rigs.command_stream import CommandStream
from foretell.bench.rigs.journal_writer import JournalWriter
from foretell.bench.rigs.operations import BEST_ASK, BEST_BID
from foretell.bench.rigs.world import FUNDS_UNITS, World, funding_command, market_commands
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import (
    BalanceSeen,
    CancelOrders,
    Command,
    ObserveChain,
    PlaceOrder,
    TradeSeen,
    encode_command,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.snapshot import encode_state
from foretell.domain.exchange.state import State
from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.domain.values.hexadecimal import keccak256, word_of
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Snapshot

WRITTEN_AT_ONCE: Final = 10_000
TRADES_PER_BLOCK: Final = 5_000
BESTS: Final = (BEST_BID, BEST_ASK)


async def write_journal_fixture(
    folder: Path,
    world: World,
    orders: int,
    events: int,
    trades_per_block: int = TRADES_PER_BLOCK,
) -> int:
    """Write a journal with a snapshot of this many open orders and this many commands after it.

    Return the sequence of the last one.
    """
    journal = FileJournal(folder)
    stream = CommandStream(world, len(world.conditions)).commands(orders)
    beginning: list[Command] = [*market_commands(world, 0), funding_command(world, 0)]
    try:
        writer = JournalWriter(journal)
        state = State()
        for commands in _parts(itertools.chain(beginning, itertools.islice(stream, orders))):
            for command in commands:
                apply(state, command)
            await writer.write(map(encode_command, commands))
        assert len(state.live_orders) == orders
        await journal.keep_snapshot(Snapshot(journal.last_sequence, encode_state(state)))
        for commands in _parts(itertools.islice(with_blocks(stream, trades_per_block), events)):
            await writer.write(map(encode_command, commands))
        return journal.last_sequence
    finally:
        await journal.close()


def _parts(commands: Iterator[Command]) -> Iterator[Sequence[Command]]:
    while part := list(itertools.islice(commands, WRITTEN_AT_ONCE)):
        yield part


def with_blocks(
    stream: Iterator[PlaceOrder | CancelOrders], trades_per_block: int
) -> Iterator[Command]:
    """Yield the commands, and after this many trades a block that settles them."""
    for number in itertools.count(2):
        met: list[PlaceOrder] = []
        takers: list[PlaceOrder] = []
        while len(takers) < trades_per_block:
            command = next(stream)
            yield command
            if isinstance(command, PlaceOrder) and command.terms.price_ticks in BESTS:
                met.append(command)
                if (command.order.side is Side.BUY) == (command.terms.price_ticks == BEST_ASK):
                    takers.append(command)
        yield _block(number, met, takers)


def _block(number: int, met: Sequence[PlaceOrder], takers: Sequence[PlaceOrder]) -> ObserveChain:
    """Return the observation of a block in which the trades of some takers are settled."""
    accounts = dict.fromkeys(
        (placing.order.maker, asset)
        for placing in met
        for asset in (COLLATERAL, AssetId(placing.order.token_id))
    )
    trade_ids = [trade_id_of(taker.order_id, 0) for taker in takers]
    return ObserveChain(
        at_ms=0,
        block_number=number,
        block_hash=word_of(keccak256(b"block %d" % number)),
        balances=tuple(BalanceSeen(*account, FUNDS_UNITS) for account in accounts),
        allowances=(),
        trades=tuple(
            TradeSeen(trade_id, TradeStatus.CONFIRMED, word_of(keccak256(trade_id.encode())))
            for trade_id in trade_ids
        ),
    )
