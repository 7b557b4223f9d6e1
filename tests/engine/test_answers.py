"""The handlers of requests to one engine, over a journal in files."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.book import BookSide
from foretell.engine.answers import HANDLERS, cancel_orders, check_order, place
from foretell.engine.protocol.requests import (
    CancelOrdersRequest,
    CheckOrderReply,
    CheckOrderRequest,
    PlaceRequest,
    ShardRequest,
)
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine with a market, in which alice and bob have funds."""
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), lambda: NOW_MS)
    await engine.start()
    await engine.submit(an_open_market())
    await engine.submit(some_funds("alice", "bob"))
    yield engine
    await engine.close()


def test_every_request_to_a_shard_has_a_handler() -> None:
    assert HANDLERS.keys() == set(get_args(ShardRequest))


async def test_more_orders_than_one_command_may_cancel_are_canceled_by_several(
    engine: Engine,
) -> None:
    commands = [
        a_placing(a_buy("alice", size_units=5 * TOKEN, salt=str(salt))) for salt in range(5)
    ]
    for command in commands:
        await place(engine, PlaceRequest(command))
    before = engine.sequence
    order_ids = [command.order_id for command in commands]
    request = CancelOrdersRequest(an_address("alice"), order_ids)
    reply = await cancel_orders(engine, request, per_command_max=2)
    assert (reply.canceled, reply.not_canceled) == (order_ids, {})
    assert not engine.state.live_orders
    assert engine.sequence == before + 3


async def test_attack_h4_a_check_of_an_order_needs_no_walk(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place(engine, PlaceRequest(a_placing(a_buy("alice", 50, 10 * TOKEN))))
    monkeypatch.setattr(BookSide, "walk", None)
    command = a_placing(a_sell("bob", 50, 5 * TOKEN))
    assert await check_order(engine, CheckOrderRequest(command)) == CheckOrderReply()
