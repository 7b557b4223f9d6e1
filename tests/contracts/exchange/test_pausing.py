import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.signing import OTHER_SALT, UNIT


@pytest.fixture
def paused(world: World) -> World:
    world.exchange.send("pauseTrading", sender=world.admin)
    return world


def test_pause_trading_stops_matching_and_logs_it(world: World) -> None:
    receipt = world.exchange.send("pauseTrading", sender=world.admin)
    assert world.exchange.call("paused")
    assert world.exchange.logs(receipt, "TradingPaused(address)") == [{"pauser": world.admin}]
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    with reverts("Paused"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_unpause_trading_allows_matching_again(paused: World) -> None:
    receipt = paused.exchange.send("unpauseTrading", sender=paused.admin)
    assert not paused.exchange.call("paused")
    assert paused.exchange.logs(receipt, "TradingUnpaused(address)") == [{"pauser": paused.admin}]
    bid = paused.buy(paused.taker, paused.yes, UNIT, 50)
    ask = paused.sell(paused.makers[0], paused.yes, UNIT, 50)
    paused.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


@pytest.mark.parametrize("name", ["pauseTrading", "unpauseTrading"])
@pytest.mark.parametrize("role", ["operator", "registrar"])
def test_pausing_is_for_the_admin_alone(world: World, name: str, role: str) -> None:
    with reverts("NotAdmin"):
        world.exchange.send(name, sender=getattr(world, role))


def test_no_pause_stops_a_cancel(paused: World) -> None:
    maker = paused.makers[0]
    asks = [paused.sell(maker, paused.yes, UNIT, 50, salt=salt) for salt in (1, OTHER_SALT)]
    paused.exchange.send("cancelOrder", asks[0].fields, sender=maker.address)
    paused.exchange.send("cancelOrders", [asks[1].fields], sender=maker.address)
    paused.exchange.send("incrementNonce", sender=maker.address)
    assert [paused.exchange.call("remaining", ask.fields) for ask in asks] == [0, 0]


def test_no_pause_stops_a_split_a_merge_or_a_redemption(paused: World) -> None:
    holder, ctf = paused.makers[0].address, paused.ctf
    condition = bytes.fromhex(paused.condition[2:])
    sets = (paused.collateral.address, bytes(32), condition, [1, 2])
    paused.collateral.send("approve", ctf.address, UNIT, sender=holder)
    ctf.send("splitPosition", *sets, UNIT, sender=holder)
    ctf.send("mergePositions", *sets, UNIT, sender=holder)
    ctf.send("reportPayouts", paused.question, [1, 0], sender=paused.oracle)
    before = paused.holdings(holder)
    ctf.send("redeemPositions", *sets, sender=holder)
    assert paused.holdings(holder) == (before[0] + before[1], 0, 0)
