"""Quotes, histories and orders of two markets, as trading would write them; the chain knows nothing of them."""

import itertools
import random
from typing import Final

from tests.rigs.payloads import a_sports_payload
from tests.rigs.rows import Rows
from tests.rigs.values import a_word

from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.trading.quote_points import QuoteKey, QuotePoint, record_quote_points
from foretell.store.trading.trades import Quote, record_quotes

GAME_MARKET: Final = f"game {a_sports_payload().markets[0].key}"
"""The name of the first market of the listed game, which is not on the chain."""
OLD_S: Final = (400 * 86_400, 40 * 86_400, 2 * 86_400)


class RandomBooks:
    """A market of the chain and one of a game, whose books change at random."""

    def __init__(self, condition_id: Bytes32, seed: int) -> None:
        self._condition_ids = condition_id, a_word(GAME_MARKET)
        self._random = random.Random(seed)
        self._numbers = itertools.count(1)
        self._volume = 0
        self._failed = 0

    async def change(self, tx: Transaction, now_s: int) -> None:
        """Trade at another price, and rest an order near it; the first time, long before, too."""
        if not self._volume:
            for ago_s in OLD_S:
                await self._trade(tx, now_s - ago_s)
        await self._trade(tx, now_s)
        for condition_id in self._condition_ids:
            number = next(self._numbers)
            side, price = self._random.choice(list(Side)), self._random.randint(1, 99)
            await Rows(tx).rest(
                *("ann", "any", side, price, 100 * self._random.randint(1, 90)),
                is_yes=self._random.random() < 0.5,
                condition_id=condition_id,
                order_id=a_word(f"resting {number}"),
                matched_units=self._random.randint(0, 99),
            )

    async def _trade(self, tx: Transaction, at_s: int) -> None:
        bid = self._random.randint(1, 80)
        top = BookTop(100, bid, self._random.choice([bid + 9, None]), bid)
        self._volume += self._random.randint(1, 10**6)
        self._failed += self._random.choice([0, 0, self._volume - self._failed])
        for condition_id in self._condition_ids:
            quote = Quote(
                *(condition_id, *top, None, self._volume),
                updated_at_ms=next(self._numbers),
                failed_units=self._failed,
            )
            await record_quotes(tx, [quote])
            point = QuotePoint(top, self._volume - self._failed)
            await record_quote_points(tx, {QuoteKey(condition_id, at_s // 60): point})
