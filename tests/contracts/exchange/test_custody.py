import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import ALLOWANCE_MAX, Fill, World, deploy_exchange
from tests.contracts.signing import BUY, SELL, UNIT
from tests.contracts.wallets import answer


def test_its_constructor_arguments_can_be_read(world: World) -> None:
    exchange = world.exchange
    assert exchange.call("getCollateral") == world.collateral.address
    assert exchange.call("getCtf") == world.ctf.address
    assert exchange.call("getSplitter") == world.ctf.address
    assert exchange.call("getTokenCollateral") == world.collateral.address


def test_it_approves_conditional_tokens_for_its_collateral(world: World) -> None:
    allowance = world.collateral.call("allowance", world.exchange.address, world.ctf.address)
    assert allowance == ALLOWANCE_MAX


def test_it_approves_another_splitter_for_collateral_and_tokens(world: World) -> None:
    """The second exchange splits and merges by an adapter, and derives ids from wrapped collateral."""
    splitter, wrapped = world.proxy_factory.address, world.safe_factory.address
    exchange = deploy_exchange(world, splitter=splitter, tokenCollateral=wrapped)
    assert exchange.call("getSplitter") == splitter
    assert exchange.call("getTokenCollateral") == wrapped
    allowance = world.collateral.call("allowance", exchange.address, splitter)
    assert allowance == ALLOWANCE_MAX
    assert world.ctf.call("isApprovedForAll", exchange.address, splitter)


@pytest.mark.parametrize("name", ["collateral", "conditionalTokens", "splitter", "tokenCollateral"])
def test_it_is_not_deployed_beside_an_address_without_code(world: World, name: str) -> None:
    """A call of such an address succeeds and moves nothing: a split would leave its collateral behind."""
    with reverts("NotContract"):
        deploy_exchange(world, **{name: world.evm.actor("nobody").address})


@pytest.mark.parametrize("side", [BUY, SELL])
def test_stray_collateral_is_paid_out_in_no_match(world: World, side: int) -> None:
    """The reference exchange pays the taker its whole balance; this one never pays out stray collateral."""
    world.collateral.send("mint", world.exchange.address, UNIT, sender=world.minter)
    place = {BUY: world.buy, SELL: world.sell}
    taker = place[side](world.taker, world.yes, 2 * UNIT, 50)
    makers = [
        place[side](world.makers[0], world.no, UNIT, 50),
        place[1 - side](world.makers[1], world.yes, UNIT, 50),
    ]
    before = world.holdings(world.taker.address)
    fill = Fill(taker.maker_amount, tuple(maker.maker_amount for maker in makers))
    world.match(taker, makers, fill)
    after = world.holdings(world.taker.address)
    assert abs(after[0] - before[0]) == UNIT
    assert world.holdings(world.exchange.address) == (UNIT, 0, 0)


def test_a_collateral_that_returns_false_is_a_failure(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    says_no = answer(bytes(32))
    world.evm.rpc("anvil_setCode", world.collateral.address, "0x" + says_no.hex())
    with reverts("TransferFailed"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_a_collateral_without_a_return_value_is_accepted(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    world.evm.rpc("anvil_setCode", world.collateral.address, "0x00")
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))
