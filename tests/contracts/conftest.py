"""Fixtures with one chain for each test process; contracts are deployed once, and each test is reverted."""

from collections.abc import Iterator

import pytest
from tests.contracts.evm import Evm
from tests.contracts.market import World, deploy_world
from tests.contracts.neg_risk.rig import NegRisk, deploy_neg_risk
from tests.contracts.optimistic import Optimistic, deploy_optimistic
from tests.contracts.resolution import Resolution, deploy_resolution

from foretell.chain.devchain import DevChain


@pytest.fixture(scope="session")
def evm(anyio_backend: object, devchain: DevChain) -> Iterator[Evm]:
    del anyio_backend  # required, since the chain is started asynchronously
    with Evm(devchain.rpc_url) as evm:
        yield evm


@pytest.fixture(scope="session")
def world(evm: Evm) -> World:
    return deploy_world(evm)


@pytest.fixture(autouse=True)
def _undone(world: World) -> Iterator[None]:
    with world.evm.rolled_back():
        yield


@pytest.fixture(scope="session")
def resolution(world: World) -> Resolution:
    return deploy_resolution(world)


@pytest.fixture(scope="session")
def neg_risk(resolution: Resolution) -> NegRisk:
    return deploy_neg_risk(resolution)


@pytest.fixture(scope="session")
def optimistic(resolution: Resolution) -> Optimistic:
    return deploy_optimistic(resolution)
