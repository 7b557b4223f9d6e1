"""Trades and books of two markets, written by the projection's own rows as an engine would have them written.

Some trades are matches of the chain, which the index shows: these settle, and return when a reorganization takes their
transaction away. The chain knows nothing of the others, which wait and then fail.
"""

import itertools
import random
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from tests.rigs.payloads import a_sports_payload
from tests.rigs.rows import Rows
from tests.rigs.sandbox import SandboxMarket
from tests.rigs.values import a_word, an_address, an_open_market

from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.effects import (
    BookChanged,
    Effect,
    MarketOpened,
    TradeAdvanced,
    TradeMatched,
)
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.matching import Fill, MatchType, match_type_of
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import Trade, TradeStatus, total_cost_units, trade_id_of
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.writer.table_rows import TableRows
from foretell.store.database import Transaction
from foretell.store.queries.index_tables import load_indexed_block
from foretell.store.tables import exchange_fills
from foretell.store.trading.trades import Quote

GAME_MARKET: Final = f"game {a_sports_payload().markets[0].key}"
"""The name of the first market of the listed game, which is not on the chain."""
OLD_S: Final = (400 * 86_400, 40 * 86_400, 2 * 86_400)
AGO_MS: Final = 60_000
"""Longer ago than a quote may change unnoticed by a round of totals."""
CONFIRMATIONS: Final = 20
"""No reorganization is deeper."""
TICKS: Final = 100


class RandomBooks:
    """A market of the chain and one of a game, which are traded at random."""

    def __init__(self, market: SandboxMarket, seed: int) -> None:
        self._markets = [
            an_open_market(
                at_ms=0,
                condition_id=market.condition_id,
                token_yes=AssetId(str(market.tokens.yes)),
                token_no=AssetId(str(market.tokens.no)),
            ),
            an_open_market(GAME_MARKET, at_ms=0),
        ]
        self._of_chain = self._markets[0]
        self._quotes: dict[Bytes32, Quote] = {}
        self._random = random.Random(seed)
        self._numbers = itertools.count(1)
        self._last_ms = 0
        self._waiting: list[Trade] = []
        self._settling: dict[str, TradeStatus] = {}
        self.confirmed = 0

    async def change(self, tx: Transaction, now_s: int) -> None:
        """Trade at another price, and rest an order near it; the first time, long before, too."""
        effects: list[Effect] = []
        if not self._last_ms:
            for ago_s in OLD_S:
                effects += self._trade_all((now_s - ago_s) * 1_000)
            opened: list[Effect] = [MarketOpened(market) for market in self._markets]
            effects = [*opened, *effects]
        at_ms = max(self._last_ms + 1, now_s * 1_000 - AGO_MS)
        effects += self._trade_all(at_ms)
        effects += await self._settle(tx, at_ms)
        if self._random.random() < 0.3:
            failed = [(each.trade_id, each.condition_id) for each in self._waiting]
            effects += [TradeAdvanced(*each, TradeStatus.FAILED, "", at_ms) for each in failed]
            self._waiting.clear()
        await self._record(tx, effects)
        self._last_ms = at_ms
        await self._rest(tx)

    async def _record(self, tx: Transaction, effects: Sequence[Effect]) -> None:
        market_by_id = {market.condition_id: market for market in self._markets}
        rows = TableRows(market_by_id, self._quotes)
        for effect in effects:
            rows.apply(next(self._numbers), effect)
        await rows.record(tx)
        self._quotes |= rows.quote_by_id()

    async def _rest(self, tx: Transaction) -> None:
        for market in self._markets:
            number = next(self._numbers)
            side, price = self._random.choice(list(Side)), self._random.randint(1, 99)
            await Rows(tx).rest(
                *("ann", "any", side, price, 100 * self._random.randint(1, 90)),
                is_yes=self._random.random() < 0.5,
                condition_id=market.condition_id,
                order_id=a_word(f"resting {number}"),
                matched_units=self._random.randint(0, 99),
            )

    def _trade_all(self, at_ms: int) -> list[Effect]:
        """Return a trade of each market that never settles, and the books after it."""
        effects: list[Effect] = []
        bid = self._random.randint(1, 80)
        ask = self._random.choice([bid + 9, None])
        for market in self._markets:
            trade = self._a_trade(market, bid, at_ms)
            self._waiting.append(trade)
            condition_id = market.condition_id
            effects += [
                TradeMatched(trade),
                BookChanged(condition_id, (), bid, ask, TICKS, at_ms),
            ]
        return effects

    def _a_trade(self, market: OpenMarket, price_ticks: int, at_ms: int) -> Trade:
        units = TICKS * self._random.randint(1, 10**4)
        name = f"{market.condition_id} {next(self._numbers)}"
        amounts = units, units * price_ticks // TICKS
        fill = a_fill(a_word(f"maker {name}"), Side.SELL, amounts, MatchType.COMPLEMENTARY)
        return a_trade(market.condition_id, a_word(f"taker {name}"), Side.BUY, fill, at_ms)

    async def _settle(self, tx: Transaction, at_ms: int) -> list[Effect]:
        """Match what the index has as a match of the market on the chain, and advance what was matched so."""
        tokens = self._of_chain.token_yes, self._of_chain.token_no
        rows = await tx.all(
            sa.select(exchange_fills)
            .where(exchange_fills.c.token_id.in_(tokens))
            .order_by(exchange_fills.c.block_number, exchange_fills.c.log_index)
        )
        last = await load_indexed_block(tx)
        head = 0 if last is None else last.block_number
        effects: list[Effect] = []
        landed: set[str] = set()
        for maker, taker in itertools.pairwise(rows):
            if not taker.is_taker:
                continue
            trade_id = trade_id_of(taker.order_id, 0)
            landed.add(trade_id)
            if trade_id not in self._settling:
                effects.append(TradeMatched(self._on_chain(maker, taker, at_ms)))
            is_deep = taker.block_number <= head - CONFIRMATIONS
            status = TradeStatus.CONFIRMED if is_deep else TradeStatus.MINED
            effects += self._advance(trade_id, status, taker.tx_hash, at_ms)
        for trade_id in self._settling.keys() - landed:
            effects += self._advance(trade_id, TradeStatus.RETRYING, "", at_ms)
        return effects

    def _advance(
        self, trade_id: str, status: TradeStatus, tx_hash: str, at_ms: int
    ) -> list[Effect]:
        if self._settling.get(trade_id) in (status, TradeStatus.CONFIRMED):
            return []
        self._settling[trade_id] = status
        self.confirmed += status is TradeStatus.CONFIRMED
        return [TradeAdvanced(trade_id, self._of_chain.condition_id, status, tx_hash, at_ms)]

    def _on_chain(self, maker: Any, taker: Any, at_ms: int) -> Trade:
        """Return the trade of a match of two orders."""
        token_yes, sides = self._of_chain.token_yes, (Side[taker.side], Side[maker.side])
        amounts = maker.size_units, maker.cost_units
        fill = a_fill(
            maker.order_id,
            sides[1],
            amounts,
            match_type_of(*sides),
            is_yes=maker.token_id == token_yes,
        )
        trade = a_trade(self._of_chain.condition_id, taker.order_id, sides[0], fill, at_ms)
        return msgspec.structs.replace(trade, is_yes=taker.token_id == token_yes)


def a_fill(
    order_id: Bytes32,
    side: Side,
    amounts: tuple[int, int],
    match_type: MatchType,
    *,
    is_yes: bool = True,
) -> Fill:
    """Return a fill of so many tokens for so much collateral."""
    size, cost = amounts
    making, taking = (cost, size) if side is Side.BUY else (size, cost)
    price_ticks = cost * TICKS // size
    maker = an_address("maker")
    return Fill(
        *(order_id, maker, "key-of-maker", side, is_yes),
        *(price_ticks, size, making, taking, match_type),
    )


def a_trade(condition_id: Bytes32, order_id: Bytes32, side: Side, fill: Fill, at_ms: int) -> Trade:
    """Return the trade of Yes that a taker's order makes with one fill."""
    cost = total_cost_units([fill])
    return Trade(
        trade_id=trade_id_of(order_id, 0),
        condition_id=condition_id,
        taker_order_id=order_id,
        taker=an_address("taker"),
        taker_owner="key-of-taker",
        side=side,
        is_yes=True,
        size_units=fill.size_units,
        cost_units=cost,
        taker_fill_units=cost if side is Side.BUY else fill.size_units,
        matched_at_ms=at_ms,
        fills=(fill,),
        ticks_per_one=TICKS,
    )
