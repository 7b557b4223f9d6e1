import pytest
from tests.rigs.values import EXCHANGE, a_word, an_address

from foretell.domain.exchange.signing.stops import StopKind
from foretell.store.database import Database
from foretell.store.index.cancellations import (
    CanceledOrder,
    MakerStop,
    RaisedNonce,
    load_canceled_orders,
    load_raised_nonces,
    load_stops,
    record_canceled_orders,
    record_raised_nonces,
    record_stops,
)

pytestmark = pytest.mark.anyio

ANN = an_address("ann")
CANCELED = [CanceledOrder(block, 0, 0, EXCHANGE, a_word(f"order {block}")) for block in (1, 2, 3)]
STOPS = [
    MakerStop(block, 1, kind, EXCHANGE, ANN, block)
    for block, kind in (
        (1, StopKind.TIMESTAMP),
        (2, StopKind.OWNER_SIGNING),
        (3, StopKind.TIMESTAMP),
    )
]
RAISED = [RaisedNonce(block, 1, 0, EXCHANGE, ANN, block) for block in (1, 2, 3)]


@pytest.mark.parametrize("since", [-1, 1, 3])
async def test_cancellations_after_a_block_are_loaded_in_their_order(
    database: Database, since: int
) -> None:
    async with database.writing() as tx:
        await record_canceled_orders(tx, CANCELED[::-1])
        await record_canceled_orders(tx, [])
        await record_raised_nonces(tx, RAISED[::-1])
        await record_raised_nonces(tx, [])
        await record_stops(tx, STOPS[::-1])
        await record_stops(tx, [])
        assert await load_canceled_orders(tx, since) == CANCELED[max(since, 0) :]
        assert await load_raised_nonces(tx, since) == RAISED[max(since, 0) :]
        assert await load_stops(tx, since) == STOPS[max(since, 0) :]
