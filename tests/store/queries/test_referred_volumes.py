"""Volumes of referred wallets against a sum over all trades, whenever the wallets were referred."""

import random
from collections import defaultdict
from typing import Final, NamedTuple

import pytest
import sqlalchemy as sa
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import EXCHANGE, NOW_S, a_word, an_address, an_asset

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address
from foretell.edge.builders.keys import builder_code
from foretell.store.database import Database, Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.index.unwind import unwind
from foretell.store.queries.referrals import ReferralFilter, load_received_shares
from foretell.store.tables import activities, markets, referred_wallets
from foretell.store.trading.referrals import record_referral

pytestmark = pytest.mark.anyio

REFERRERS: Final = [an_address(f"referrer {number}") for number in range(3)]
WALLETS: Final = [f"trader {number}" for number in range(6)]
OTHER_EXCHANGE: Final = Address(an_address("other exchange"))
MARKETS: Final = {
    "rain": EXCHANGE,
    "snow": OTHER_EXCHANGE,
    "hail": OTHER_EXCHANGE,
}
LATE: Final = "late"
"""A market that is traded before it is listed."""
TRADES: Final = 60
HISTORIES: Final = 6
STEPS_PER_CHECK: Final = 9
FIRST_BLOCK: Final = 10
"""After the blocks in which conditions were prepared."""
TOKENS: Final = [None, *(an_asset(is_yes=True, market=name) for name in (*MARKETS, LATE))]


class Summed(NamedTuple):
    """The volume on an exchange, and the time of the last trade."""

    exchange: str
    units: int
    updated_at_s: int


async def list_market(rows: Rows, name: str, exchange: Address) -> None:
    await rows.list_event(an_event_row(f"event {name}", a_market_row(name, exchange=exchange)))


async def slow_sums(tx: Transaction, referrer: Address, token: str | None) -> list[Summed]:
    """Add up the trades one by one, as they are in the tables."""
    exchange_by_condition = {
        row.condition_id: row.exchange for row in await tx.all(sa.select(markets))
    }
    from_s = {
        row.wallet: row.from_s
        for row in await tx.all(sa.select(referred_wallets))
        if row.referrer == referrer
    }
    units: defaultdict[str, int] = defaultdict(int)
    last_s: dict[str, int] = {}
    for act in await tx.all(sa.select(activities)):
        exchange = exchange_by_condition.get(act.condition_id)
        is_since = act.wallet in from_s and act.timestamp_s >= from_s[act.wallet]
        if exchange and is_since and act.kind == "TRADE" and token in (None, act.token_id):
            units[exchange] += act.cost_units
            last_s[exchange] = max(last_s.get(exchange, 0), act.timestamp_s)
    summed = [Summed(each, units[each], last_s[each]) for each in units]
    return sorted(summed, key=lambda each: (-each.updated_at_s, each.exchange))


async def check(tx: Transaction) -> int:
    """Compare every sum, and return how many exchanges there are in all of them."""
    found = 0
    for referrer in REFERRERS:
        for token in TOKENS:
            wanted = ReferralFilter(referrer, builder_code(referrer), token_id=token)
            received = await load_received_shares(tx, wanted, 10, 0)
            sums = [Summed(*each[:2], each.updated_at_s) for each in received]
            assert sums == await slow_sums(tx, referrer, token)
            found += len(sums)
    return found


class RandomTrades:
    """Trades, referrals, a late market and reorganizations in random order; some blocks have the same time."""

    def __init__(self, tx: Transaction, seed: int) -> None:
        self.random = random.Random(seed)
        self._tx, self._rows = tx, Rows(tx)
        self._waiting = list(WALLETS)
        self._names = [*MARKETS, *MARKETS, *([LATE] if seed % 2 else [])]
        self._listed_at = self.random.randrange(TRADES)
        self._at_s, self._number = NOW_S, FIRST_BLOCK

    async def begin(self) -> None:
        for name, exchange in MARKETS.items():
            await self._rows.prepare(name)
            await list_market(self._rows, name, exchange)
        await self._rows.prepare(LATE)

    async def play(self, step: int) -> None:
        await self._act()
        if self._waiting and self.random.random() < 0.15:
            await self._refer()
        if step == self._listed_at and LATE in self._names:
            await list_market(self._rows, LATE, EXCHANGE)
        if self.random.random() < 0.1:
            self._number = max(FIRST_BLOCK, self._number - self.random.randrange(1, 6))
            await unwind(self._tx, self._number)

    async def _act(self) -> None:
        self._number += 1
        self._at_s += self.random.choice((0, 0, 1, 5))
        units = self.random.choice((self.random.randrange(1, 100), AMOUNT_UNITS_MAX))
        who, name = self.random.choice(WALLETS), self.random.choice(self._names)
        place = {"block_number": self._number, "timestamp_s": self._at_s}
        if self.random.random() < 0.8:
            await self._rows.buy(who, name, 5, units, **place)
        else:
            await self._rows.act(who, name, ActivityKind.SPLIT, 7, **place)

    async def _refer(self) -> None:
        """Refer a wallet from before, at or after its last trades."""
        wallet = self._waiting.pop(self.random.randrange(len(self._waiting)))
        from_s = self._at_s + self.random.choice((-NOW_S, -4, 0, 1, 3))
        referrer = self.random.choice(REFERRERS)
        await record_referral(self._tx, [an_address(wallet)], referrer, from_s)


@pytest.mark.parametrize("seed", range(HISTORIES))
async def test_volumes_are_the_trades_since_the_referral_whenever_it_is_recorded(
    database: Database, seed: int
) -> None:
    found = 0
    async with database.writing() as tx:
        trades = RandomTrades(tx, seed)
        await trades.begin()
        for step in range(TRADES):
            await trades.play(step)
            if step % STEPS_PER_CHECK == 0:
                found += await check(tx)
        found += await check(tx)
        assert found > 0
        await unwind(tx, -1)
        assert await check(tx) == 0


async def test_a_wallet_that_did_nothing_since_its_referral_is_on_no_exchange(
    database: Database,
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await list_market(rows, "rain", EXCHANGE)
        late = await rows.buy("ann", "rain", 5, 6)
        await record_referral(tx, [late.wallet], REFERRERS[0], late.timestamp_s + 1)
        await rows.act("ann", "rain", ActivityKind.SPLIT, 7)
        assert await check(tx) == 0
    assert a_word("rain") == late.condition_id
