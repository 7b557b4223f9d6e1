import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import ALLOWANCE_MAX, Fill, World, deploy_exchange
from tests.contracts.signing import BUY, SELL, UNIT
from tests.contracts.wallets import answer


def test_it_says_what_it_was_deployed_with(world: World) -> None:
    exchange = world.exchange
    assert exchange.call("getCollateral") == world.collateral.address
    assert exchange.call("getCtf") == world.ctf.address
    assert exchange.call("getSplitter") == world.ctf.address
    assert exchange.call("getTokenCollateral") == world.collateral.address


def test_it_lets_conditional_tokens_take_collateral_for_splits(world: World) -> None:
    allowance = world.collateral.call("allowance", world.exchange.address, world.ctf.address)
    assert allowance == ALLOWANCE_MAX


def test_it_lets_another_splitter_take_collateral_and_tokens(world: World) -> None:
    """The second exchange splits and merges through an adapter and derives ids from its wrapping."""
    splitter, wrapped = world.evm.actor("splitter").address, world.evm.actor("wrapped").address
    exchange = deploy_exchange(world, splitter=splitter, tokenCollateral=wrapped)
    assert exchange.call("getSplitter") == splitter
    assert exchange.call("getTokenCollateral") == wrapped
    allowance = world.collateral.call("allowance", exchange.address, splitter)
    assert allowance == ALLOWANCE_MAX
    assert world.ctf.call("isApprovedForAll", exchange.address, splitter)


@pytest.mark.parametrize("side", [BUY, SELL])
def test_stray_collateral_leaks_into_no_match(world: World, side: int) -> None:
    """The reference exchange pays the taker its whole balance; here nobody gets what strayed."""
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


def test_a_collateral_that_says_no_is_believed(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    says_no = answer(bytes(32))
    world.evm.rpc("anvil_setCode", world.collateral.address, "0x" + says_no.hex())
    with reverts("TransferFailed"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_a_collateral_that_says_nothing_is_believed_too(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    world.evm.rpc("anvil_setCode", world.collateral.address, "0x00")
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))
