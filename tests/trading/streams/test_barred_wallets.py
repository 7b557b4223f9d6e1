"""The user channel publishes why the orders of a barred wallet closed."""

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_MS, a_buy, an_address
from tests.trading.rig import Listener

from foretell.domain.exchange.commands import BarWallet

pytestmark = pytest.mark.anyio

CAUSE = "reverts only when it is mined: reverted in block 7"


async def test_h1_an_order_of_a_barred_wallet_is_published_with_the_cause(
    rig: TradingRig, alice: Trader, alices: Listener
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    await rig.submit(BarWallet(NOW_MS, an_address("alice"), is_barred=True, cause=CAUSE))
    _, gone = await alices.messages(2)
    assert (gone["id"], gone["type"], gone["status"]) == (order_id, "CANCELLATION", "CANCELED")
    assert (gone["close_reason"], gone["close_cause"]) == ("wallet_barred", CAUSE)


async def test_an_order_that_closed_for_another_reason_has_no_cause(
    alice: Trader, alices: Listener
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    await alice.send("DELETE", "/order", {"orderID": order_id})
    for message in await alices.messages(2):
        assert "close_cause" not in message
