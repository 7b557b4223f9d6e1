import pytest
from tests.contracts.evm import Receipt
from tests.contracts.market import NOTHING, Fill, World
from tests.contracts.signing import BUY, SELL, UNIT


def test_bids_on_both_outcomes_create_complete_sets(world: World, wallets: list[str]) -> None:
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 60)
    others = [
        world.buy(world.makers[0], world.no, 40 * UNIT, 40),
        world.buy(world.makers[1], world.no, 90 * UNIT, 50),
    ]
    fill = Fill(60 * UNIT, (16 * UNIT, 30 * UNIT))
    assert world.changes(wallets, bid, others, fill) == [
        (-54 * UNIT, 100 * UNIT, 0),
        (-16 * UNIT, 0, 40 * UNIT),
        (-30 * UNIT, 0, 60 * UNIT),
        NOTHING,
    ]


def test_asks_on_both_outcomes_merge_complete_sets(world: World, wallets: list[str]) -> None:
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    others = [
        world.sell(world.makers[0], world.no, 40 * UNIT, 50),
        world.sell(world.makers[1], world.no, 90 * UNIT, 40),
    ]
    fill = Fill(100 * UNIT, (40 * UNIT, 60 * UNIT))
    assert world.changes(wallets, ask, others, fill) == [
        (56 * UNIT, -100 * UNIT, 0),
        (20 * UNIT, 0, -40 * UNIT),
        (24 * UNIT, 0, -60 * UNIT),
        NOTHING,
    ]


@pytest.mark.parametrize("side", [BUY, SELL])
def test_sets_are_created_or_merged_once_for_each_match(world: World, side: int) -> None:
    taker = {
        BUY: world.buy(world.taker, world.yes, 100 * UNIT, 50),
        SELL: world.sell(world.taker, world.yes, 100 * UNIT, 50),
    }[side]
    makers = {
        BUY: [world.buy(maker, world.no, 25 * UNIT, 50) for maker in world.makers[:4]],
        SELL: [world.sell(maker, world.no, 25 * UNIT, 50) for maker in world.makers[:4]],
    }[side]
    fill = Fill(taker.maker_amount, tuple(maker.maker_amount for maker in makers))
    receipt = world.match(taker, makers, fill)
    assert (
        set_logs(world, receipt)
        == {
            BUY: (["stakeholder"], []),
            SELL: ([], ["stakeholder"]),
        }[side]
    )


def set_logs(world: World, receipt: Receipt) -> tuple[list[str], list[str]]:
    """Return the kinds of holders of the splits and of the merges in a receipt."""
    signature = "(address,address,bytes32,bytes32,uint256[],uint256)"
    names = {world.exchange.address: "stakeholder"}
    splits = world.ctf.logs(receipt, f"PositionSplit{signature}")
    merges = world.ctf.logs(receipt, f"PositionsMerge{signature}")
    return (
        [names[log["stakeholder"]] for log in splits],
        [names[log["stakeholder"]] for log in merges],
    )


def test_a_taker_pays_nothing_when_makers_pay_the_whole_set(world: World) -> None:
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 50)
    other = world.order(world.makers[0], BUY, world.no, (10 * UNIT, 10 * UNIT))
    before = world.holdings(world.taker.address)
    world.match(bid, [other], Fill(5 * UNIT, (10 * UNIT,)))
    after = world.holdings(world.taker.address)
    assert (after[0] - before[0], after[1] - before[1]) == (0, 10 * UNIT)
