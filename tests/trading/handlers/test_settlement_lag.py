import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_S, TOKEN, a_buy, a_sell

pytestmark = pytest.mark.anyio

LAG_S = 30


async def test_h4_a_good_till_date_order_that_may_expire_unsettled_is_refused_in_a_lag(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    """The trade that waits is the lag: nobody is promised another one that may not settle in time."""
    await alice.placed(a_buy("alice", size_units=10 * TOKEN))
    await bob.placed(a_sell("bob", size_units=10 * TOKEN))
    await alice.placed(a_buy("alice", salt="2", size_units=10 * TOKEN))
    rig.clock.move(LAG_S * 1000)
    near, far = (
        a_sell("bob", salt="3", size_units=5 * TOKEN, expiration_s=NOW_S + LAG_S + ahead_s)
        for ahead_s in (70, 200)
    )
    refused = await bob.place(near, "GTD")
    assert (refused.status_code, refused.json()["code"]) == (503, "engine_busy")
    assert len(rig.host.engine.state.unsettled_trades) == 1
    assert (await bob.placed(far, "GTD"))["status"] == "matched"


async def test_h4_an_order_that_would_meet_one_that_may_expire_unsettled_is_refused_in_a_lag(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    await alice.placed(a_buy("alice", size_units=10 * TOKEN))
    await bob.placed(a_sell("bob", size_units=10 * TOKEN))
    short = a_buy("alice", salt="2", size_units=10 * TOKEN, expiration_s=NOW_S + 2 * LAG_S + 60)
    await alice.placed(short, "GTD")
    rig.clock.move(LAG_S * 1000)
    refused = await bob.place(a_sell("bob", salt="3", size_units=5 * TOKEN))
    assert (refused.status_code, refused.json()["code"]) == (503, "engine_busy")
    assert len(rig.host.engine.state.unsettled_trades) == 1


@pytest.mark.parametrize("order_type", ["GTC", "FOK", "FAK"])
async def test_h4_no_order_matches_past_a_lag_of_two_minutes_and_others_rest(
    rig: TradingRig, alice: Trader, bob: Trader, order_type: str
) -> None:
    await alice.placed(a_buy("alice", size_units=10 * TOKEN))
    await bob.placed(a_sell("bob", size_units=10 * TOKEN))
    await alice.placed(a_buy("alice", salt="2", size_units=10 * TOKEN))
    rig.clock.move(121_000)
    refused = await bob.place(a_sell("bob", salt="3", size_units=5 * TOKEN), order_type)
    assert (refused.status_code, refused.json()["code"]) == (503, "engine_busy")
    assert refused.headers["retry-after"] == "1"
    assert len(rig.host.engine.state.unsettled_trades) == 1
    assert (await bob.placed(a_sell("bob", 51, salt="4")))["status"] == "live"
