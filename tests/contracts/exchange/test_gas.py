"""What a match costs, from receipts: a layout that grew dearer fails here.

The figures are those of this contract on the development chain, fees off, signatures of externally
owned accounts, wallets that hold already what they receive.
"""

import pytest
from tests.contracts.market import Fill, World
from tests.contracts.signing import OWN_V1, OWN_V2, UNIT, Order

MAKERS = 20
SIZE = 100 * UNIT

GAS_PER_MAKER_MAX = {
    ("transfer", OWN_V1): 65_400,
    ("mint", OWN_V1): 71_400,
    ("merge", OWN_V1): 69_700,
    ("transfer", OWN_V2): 63_700,
    ("mint", OWN_V2): 69_500,
    ("merge", OWN_V2): 67_900,
}


def scene(world: World, kind: str, profile: int) -> tuple[Order, list[Order]]:
    """Return a taker order and twenty maker orders that it takes whole."""
    fields = {"profile": profile, "salt": 1_730_000_000_000}
    fields |= {"timestamp": 1_730_000_000_000} if profile == OWN_V2 else {}
    taker = world.sell if kind == "merge" else world.buy
    maker = world.buy if kind == "mint" else world.sell
    token = world.yes if kind == "transfer" else world.no
    return (
        taker(world.taker, world.yes, MAKERS * SIZE, 50, **fields),
        [maker(who, token, SIZE, 50, **fields) for who in world.makers],
    )


@pytest.mark.parametrize(("kind", "profile"), list(GAS_PER_MAKER_MAX))
def test_a_match_of_twenty_makers_costs_no_more_a_maker(
    world: World, kind: str, profile: int
) -> None:
    taker, makers = scene(world, kind, profile)
    fill = Fill(taker.maker_amount, tuple(maker.maker_amount for maker in makers))
    receipt = world.match(taker, makers, fill)
    assert receipt.gas_used / MAKERS <= GAS_PER_MAKER_MAX[kind, profile]
