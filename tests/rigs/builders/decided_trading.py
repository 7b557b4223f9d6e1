"""Trading that is decided in memory and written to tables in batches, without a journal."""

import random
from collections.abc import Iterator
from typing import Final

from tests.rigs.builders.sums import a_code
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import Command, SplitTrade
from foretell.domain.exchange.state import State
from foretell.domain.exchange.trade import TradeStatus
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.projection import Projection
from foretell.store.database import Database

PEOPLE: Final = ("alice", "bob", "carol", "dave")
CODES: Final = (None, None, a_code(1), a_code(2))
HOUR_MS: Final = 3_600_000


class Trading:
    """A market whose commands are decided in memory and written in batches."""

    def __init__(self, database: Database) -> None:
        self.state = State()
        self.database = database
        self.projection = Projection(database)
        self.sequence = 0

    async def begin(self) -> None:
        await self.projection.start()
        await self.write(an_open_market(), some_funds(*PEOPLE))

    async def write(self, *commands: Command) -> None:
        """Decide commands and write them in one batch."""
        for command in commands:
            self.decide(command)
        await self.projection.catch_up()

    def decide(self, command: Command) -> None:
        self.sequence += 1
        outcome = apply(self.state, command)
        self.projection.on_committed(CommittedCommand(self.sequence, outcome, b""))


def some_commands(state: State, rng: random.Random, count: int) -> Iterator[Command]:
    """Yield orders over some days, with and without builders, and what becomes of their trades."""
    at_ms = NOW_MS
    for salt in range(count):
        at_ms += rng.choice([0, 1_000, HOUR_MS, 9 * HOUR_MS])
        make = rng.choice([a_buy, a_sell])
        order = make(
            rng.choice(PEOPLE),
            price_ticks=rng.randint(45, 55),
            size_units=rng.randint(5, 40) * TOKEN + rng.choice([0, 100]),
            is_yes=rng.random() < 0.5,
            salt=str(salt),
        )
        yield a_placing(order, at_ms=at_ms, builder=rng.choice(CODES))
        pending = list(state.unsettled_trades.values())
        if pending and rng.random() < 0.5:
            unsettled = rng.choice(pending)
            trade = unsettled.trade
            leaving = [fill.maker_order_id for fill in trade.fills[1:]]
            status = rng.choice([TradeStatus.FAILED, TradeStatus.RETRYING, TradeStatus.MINED])
            yield a_settlement(trade.trade_id, TradeStatus.RETRYING, "")
            if leaving and rng.random() < 0.7:
                rng.shuffle(leaving)
                yield SplitTrade(at_ms, trade.trade_id, ((leaving[0],), tuple(leaving[1:])), ())
            yield a_settlement(trade.trade_id, status, "")
