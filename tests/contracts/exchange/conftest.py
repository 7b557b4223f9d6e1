import pytest
from tests.contracts.market import World


@pytest.fixture
def wallets(world: World) -> list[str]:
    """The taker, the first two makers, and the exchange itself."""
    actors = (world.taker, world.makers[0], world.makers[1])
    return [*(actor.address for actor in actors), world.exchange.address]
