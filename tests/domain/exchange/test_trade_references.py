import msgspec
import pytest
from tests.rigs.values import (
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_trading_state,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.effects import OrderRestored
from foretell.domain.exchange.ledger import LiveOrder
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import Placement, State
from foretell.domain.exchange.state_effects import restored_effects
from foretell.domain.exchange.trade import FILLS_PER_TRADE_MAX, Trade, trade_id_of
from foretell.domain.exchange.trade_references import (
    trade_ids_after_split,
    trade_order_ids,
    trade_tokens,
)

MOST = 100
FILLS = 130
RESTING = [
    a_placing(a_sell("bob", 40, 10 * TOKEN)),
    a_placing(a_buy("carol", 60, 10 * TOKEN, is_yes=False)),
]
TAKING = a_placing(a_buy("alice", 40, 20 * TOKEN))


@pytest.fixture
def trade() -> Trade:
    """A trade of a buyer of Yes with a seller of Yes and a buyer of No."""
    state = a_trading_state("alice", "bob", "carol")
    for placing in RESTING:
        apply(state, placing)
    placement = apply(state, TAKING).result
    assert isinstance(placement, Placement)
    (trade_id,) = placement.trade_ids
    return state.unsettled_trades[trade_id].trade


def test_every_fill_names_the_token_of_its_own_order(trade: Trade) -> None:
    market = an_open_market()
    yes, no = market.token_yes, market.token_no
    assert trade_tokens(market, trade) == (yes, (yes, no))


def test_the_takers_order_comes_before_those_of_the_makers(trade: Trade) -> None:
    assert trade_order_ids(trade) == (TAKING.order_id, *[each.order_id for each in RESTING])


def test_a_taker_has_the_part_in_addition_to_the_trade_that_it_left(trade: Trade) -> None:
    ids = trade_ids_after_split(("before", "whole"), trade.taker_order_id, trade, "whole")
    assert ids == ("before", "whole", trade.trade_id)


def test_a_maker_has_the_part_in_place_of_the_trade_that_it_left(trade: Trade) -> None:
    maker_id = trade.fills[0].maker_order_id
    ids = trade_ids_after_split(("before", "whole", "after"), maker_id, trade, "whole")
    assert ids == ("before", trade.trade_id, "after")


def a_busy_order(count: int) -> tuple[State, LiveOrder, list[str]]:
    """Return a state with an order that others filled bit by bit, and the trades of that."""
    state = a_trading_state("alice", "bob")
    apply(state, some_funds("alice", "bob", units=10**9 * TOKEN))
    buy = a_placing(a_buy("alice", 40, 10 * count * TOKEN))
    apply(state, buy)
    ids = []
    for salt in range(count):
        sell = a_placing(a_sell("bob", 40, 5 * TOKEN, salt=str(salt)))
        apply(state, sell)
        ids.append(trade_id_of(sell.order_id, 0))
    return state, state.live_orders[buy.order_id], ids


def test_attack_h1_a_resting_order_names_its_newest_trades() -> None:
    state, order, ids = a_busy_order(FILLS)
    assert list(order.trade_ids) == ids[-MOST:]
    restored = [each for each in restored_effects(state) if isinstance(each, OrderRestored)]
    assert [each.trade_ids for each in restored] == [order.trade_ids]
    last = state.unsettled_trades[ids[-1]].trade
    part = msgspec.structs.replace(last, trade_id="part", taker_order_id=order.order_id)
    after = trade_ids_after_split(order.trade_ids, order.order_id, part, ids[-1])
    assert list(after) == [*ids[1 - MOST :], "part"]


def test_attack_h1_a_snapshot_with_more_trades_of_an_order_is_read_with_the_newest() -> None:
    """Earlier engines named them all: what follows such a snapshot is what follows a replay."""
    state, _, ids = a_busy_order(FILLS)
    raw = encode_state(state)
    body = msgspec.msgpack.decode(raw)
    [seen] = [each for part in body if isinstance(part, list) for each in part if names(each, ids)]
    seen[-1] = ids
    former = msgspec.msgpack.encode(body)
    assert len(former) > len(raw)
    assert encode_state(decode_state(former)) == raw
    (order,) = decode_state(former).live_orders.values()
    assert list(order.trade_ids) == ids[-MOST:]


def names(entry: object, ids: list[str]) -> bool:
    """Return whether an entry of a snapshot is an order that names the last of these trades."""
    last = entry[-1] if isinstance(entry, list) and entry else None
    return isinstance(last, list) and len(last) > 1 and last[-1] == ids[-1]


def test_attack_h1_an_order_that_swept_a_book_is_restored_with_its_newest_trades() -> None:
    state = a_trading_state("alice", "bob")
    apply(state, some_funds("alice", "bob", units=10**9 * TOKEN))
    makers = (MOST + 5) * FILLS_PER_TRADE_MAX
    for salt in range(makers):
        apply(state, a_placing(a_sell("bob", 40, 5 * TOKEN, salt=str(salt))))
    placement = apply(state, a_placing(a_buy("alice", 40, 6 * makers * TOKEN))).result
    assert isinstance(placement, Placement)
    assert len(placement.trade_ids) == MOST + 5
    newest = placement.trade_ids[-MOST:]
    (restored,) = [each for each in restored_effects(state) if isinstance(each, OrderRestored)]
    (order,) = decode_state(encode_state(state)).live_orders.values()
    assert (restored.trade_ids, order.trade_ids) == (newest, newest)
