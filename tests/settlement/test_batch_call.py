"""Trades that share a transaction, without a chain."""

from pathlib import Path
from typing import Any, Final

import pytest
from tests.rigs.values import NOW_MS, a_signed_order, a_word, an_address
from tests.store.trading.test_trades import a_row

from foretell.domain.contracts.batches import MATCH_BYTES_MAX, MATCHES_MAX, SETTLE
from foretell.domain.exchange.order import OrderStatus, OrderType
from foretell.domain.exchange.settlement import Settlement, SettlementOptions
from foretell.domain.exchange.trade import FILLS_PER_TRADE_MAX
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.settlement.batch_call import (
    BatchedTrade,
    batch_call,
    batch_gas,
    batched_trade,
    in_batches,
    in_groups,
    in_places,
)
from foretell.settlement.match_call import Matched, match_gas
from foretell.store.trading.orders import OrderRow

EXCHANGE: Final = an_address("exchange")
TX_GAS_MAX: Final = 2**24


def an_order_row(order_id: Bytes32, **fields: Any) -> OrderRow:
    return OrderRow(
        order_id=order_id,
        sequence=1,
        condition_id=a_word("market"),
        is_yes=True,
        owner="key",
        order_type=OrderType.GTC,
        price_ticks=50,
        ticks_per_one=100,
        size_units=10,
        matched_units=10,
        status=OrderStatus.MATCHED,
        close_reason=None,
        placed_at_ms=NOW_MS,
        updated_at_ms=NOW_MS,
        signed=a_signed_order(**fields),
    )


def a_trade(
    number: int,
    makers: int = 1,
    exchange: Address = EXCHANGE,
    attempts: int = 0,
    *,
    is_packed: bool = False,
    **fields: Any,
) -> BatchedTrade:
    """Return a trade; the fields are those of its makers' orders."""
    row = a_row(number, "alice", *(f"maker {each}" for each in range(makers)))
    makers_ids = [fill.maker_order_id for fill in row.trade.fills]
    order_by_id: dict[str, OrderRow] = {each: an_order_row(each, **fields) for each in makers_ids}
    order_by_id[row.trade.taker_order_id] = an_order_row(row.trade.taker_order_id)
    settlement = Settlement(row.trade.trade_id, attempts=attempts)
    return batched_trade(settlement, Matched(row, order_by_id, exchange, is_packed))


def sizes(trades: list[BatchedTrade], **options: Any) -> list[int]:
    return [len(group) for group in in_batches(trades, SettlementOptions(**options))]


@pytest.mark.parametrize(
    ("trades", "wanted"),
    [(0, []), (1, [1]), (MATCHES_MAX, [20]), (MATCHES_MAX + 1, [20, 1]), (45, [20, 20, 5])],
)
def test_as_many_trades_share_a_transaction_as_the_contract_takes(
    trades: int, wanted: list[int]
) -> None:
    assert sizes([a_trade(number) for number in range(trades)]) == wanted
    assert sizes([a_trade(number) for number in range(trades)], batch_trades_max=100) == wanted


def test_a_bound_of_one_gives_each_trade_a_transaction() -> None:
    assert sizes([a_trade(number) for number in range(3)], batch_trades_max=1) == [1, 1, 1]


def test_trades_that_failed_go_alone() -> None:
    trades = [a_trade(1), a_trade(2, attempts=1), a_trade(3), a_trade(4, attempts=7)]
    assert sizes(trades) == [2, 1, 1]


@pytest.mark.parametrize(
    ("places", "batches", "alone", "first"),
    [(10, 12, 0, 10), (10, 12, 3, 7), (10, 12, 40, 5), (1, 12, 40, 1), (10, 2, 40, 2)],
)
def test_s1_trades_that_go_alone_have_half_of_the_places_however_many_batches_wait(
    places: int, batches: int, alone: int, first: int
) -> None:
    together = [[a_trade(number), a_trade(number + 1)] for number in range(batches)]
    single = [[a_trade(number)] for number in range(alone)]
    begun, others = in_places([*together, *single], places)
    assert begun == together[:first]
    assert others == [*single, *together[first:]]


def test_each_exchange_has_its_own_batches() -> None:
    other = an_address("another exchange")
    trades = [a_trade(number, exchange=(EXCHANGE, other)[number % 2]) for number in range(5)]
    assert sizes(trades) == [3, 2]


def test_purchases_settle_before_a_sale_between_them_that_needs_a_simulation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "settlement.md").read_text()
    assert "Trades do not always reach the chain in the order of their matches" in page
    bought, sold, bought_more = (a_trade(number) for number in range(3))
    covered = {each.settlement.trade_id for each in (bought, bought_more)}
    groups, unsimulated = in_groups([bought, sold, bought_more], covered, SettlementOptions())
    assert groups == [[bought, bought_more], [sold]]
    assert unsimulated == covered


def test_a_batch_has_one_trade_of_a_takers_order() -> None:
    split = a_trade(1)
    part = split._replace(settlement=Settlement("part"))
    assert sizes([split, a_trade(2), part, a_trade(3)]) == [2, 2]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"makers": 4}, [2]),
        ({"makers": 5}, [1, 1]),
        ({"signature": b"\1" * 512}, [2]),
        ({"signature": b"\1" * 512, "makers": 4}, [1, 1]),
        ({"taker": an_address("operator")}, [1, 1]),
    ],
)
def test_a_great_match_and_one_for_a_named_taker_go_alone(
    fields: dict[str, Any], wanted: list[int]
) -> None:
    assert sorted(sizes([a_trade(1, **fields), a_trade(2)]), reverse=True) == wanted


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, [2]),
        ({"signature": b"\1" * 65}, [2]),
        ({"signature": b"\1" * 512}, [1, 1]),
    ],
)
def test_a_packed_match_of_as_many_makers_as_there_may_be_shares_a_transaction(
    fields: dict[str, Any], wanted: list[int]
) -> None:
    great = a_trade(1, makers=FILLS_PER_TRADE_MAX, is_packed=True, **fields)
    assert (len(great.call.calldata) <= MATCH_BYTES_MAX) is (wanted == [2])
    assert sizes([great, a_trade(2, is_packed=True)]) == wanted


def test_the_gas_of_a_batch_is_bounded_and_holds_the_limit_of_each_match() -> None:
    trades = [a_trade(number, makers=2) for number in range(MATCHES_MAX)]
    groups = in_batches(trades, SettlementOptions())
    assert [len(group) for group in groups] == [16, 4]
    for group in groups:
        call = batch_call(an_address("settler"), group, "id")
        exchange, matches, limits = SETTLE.decode(call.calldata)
        assert exchange == EXCHANGE
        assert matches == tuple(each.call.calldata for each in group)
        assert limits == (match_gas(2),) * len(group)
        assert call.gas == batch_gas(group)
        assert sum(limits) + max(limits) // 63 < batch_gas(group) <= TX_GAS_MAX


def test_a_full_batch_of_ordinary_trades_fits_a_transaction() -> None:
    trades = [a_trade(number) for number in range(MATCHES_MAX)]
    assert batch_gas(trades) <= SettlementOptions().batch_gas_max < TX_GAS_MAX


def test_within_a_batch_trades_are_in_the_order_of_their_matches() -> None:
    first, second, third = (a_trade(number) for number in range(3))
    groups = in_batches([third, first, second], SettlementOptions(batch_trades_max=2))
    assert groups == [[first, third], [second]]
    assert in_groups([third, first, second], (), SettlementOptions(batch_trades_max=2))[0] == groups
