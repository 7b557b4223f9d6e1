"""The part of each trade in the volumes of builders: the collateral that its orders pay or receive, and its fills."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import Trade
from foretell.domain.portfolio.builder_volumes import NOTHING, TradedFills, UserDay, day_of
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.trading.builder_days import load_builders


class SignedTrade(NamedTuple):
    """A trade that is added, or with the sign -1 taken off."""

    trade: Trade
    sign: int


class _Part(NamedTuple):
    """An order's part in a trade."""

    order_id: Bytes32
    wallet: Address
    traded: TradedFills


async def load_builders_of(
    tx: Transaction, signed: Collection[SignedTrade]
) -> Mapping[str, Bytes32]:
    """Return the builders of the orders in these trades, by order id."""
    return await load_builders(tx, {part.order_id for each in signed for part in _parts(each)})


def brought(
    signed: Iterable[SignedTrade], builder_by_order: Mapping[str, Bytes32]
) -> Mapping[UserDay, TradedFills]:
    """Return what is added to the days of wallets, of the orders with builders alone."""
    traded: defaultdict[UserDay, TradedFills] = defaultdict(lambda: NOTHING)
    for each in signed:
        day = day_of(each.trade.matched_at_ms)
        for part in _parts(each):
            builder = builder_by_order.get(part.order_id)
            if builder is not None:
                key = UserDay(builder, part.wallet, day)
                traded[key] = traded[key].plus(part.traded)
    return traded


def _parts(signed: SignedTrade) -> Iterator[_Part]:
    """Yield what each order of a trade pays or receives in collateral."""
    trade, sign = signed
    taken = TradedFills(sign * trade.cost_units, sign * len(trade.fills))
    yield _Part(trade.taker_order_id, trade.taker, taken)
    for fill in trade.fills:
        cost_units = fill.making_units if fill.side is Side.BUY else fill.taking_units
        yield _Part(fill.maker_order_id, fill.maker, TradedFills(sign * cost_units, sign))
