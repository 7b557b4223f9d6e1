"""The clients without `async` have every method of the asynchronous ones, from the same source."""

import inspect
from typing import Any

import pytest

from foretell.sdk.blocking import (
    Blocking,
    BlockingCreation,
    BlockingDiscovery,
    BlockingForetell,
    BlockingIteration,
    BlockingMarketData,
    BlockingMethod,
    BlockingOptimisticResolver,
    BlockingPortfolio,
    BlockingPublicApis,
    BlockingResolver,
    BlockingTrader,
    BlockingWhitelist,
    ClientLoop,
)
from foretell.sdk.client import Foretell, PublicApis
from foretell.sdk.market_creation import MarketCreation
from foretell.sdk.oracles.optimistic import OptimisticResolver
from foretell.sdk.oracles.resolution import MarketResolver, Whitelist
from foretell.sdk.portfolio import Discovery, Portfolio
from foretell.sdk.trader import MarketData, Trader

PAIRS: list[tuple[type, type[Blocking[Any]]]] = [
    (Foretell, BlockingForetell),
    (PublicApis, BlockingPublicApis),
    (Trader, BlockingTrader),
    (MarketData, BlockingMarketData),
    (Discovery, BlockingDiscovery),
    (Portfolio, BlockingPortfolio),
    (MarketCreation, BlockingCreation),
    (MarketResolver, BlockingResolver),
    (OptimisticResolver, BlockingOptimisticResolver),
    (Whitelist, BlockingWhitelist),
]
GENERATORS = {"watch_books", "watch_account", "events"}
"""Methods that return asynchronous generators."""
MADE_ELSEWHERE = {"open", "connect"}
"""Constructors: `connect` and `connect_public` are their twins."""


@pytest.mark.parametrize(("inner", "outer"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_method_has_a_twin_of_the_same_source(
    inner: type, outer: type[Blocking[Any]]
) -> None:
    wanted = {
        name
        for name, member in inspect.getmembers(inner)
        if not name.startswith("_")
        and name not in MADE_ELSEWHERE
        and (inspect.iscoroutinefunction(member) or name in GENERATORS)
    }
    twins = {
        name: member.method
        for name, member in inspect.getmembers_static(outer)
        if isinstance(member, BlockingMethod | BlockingIteration)
    }
    assert wanted == twins.keys()
    assert all(twins[name] is getattr(inner, name) for name in wanted)


class Counter:
    async def add(self, left: int, *, right: int) -> int:
        if right < 0:
            raise ValueError("negative")
        return left + right

    async def count(self, most: int):  # type: ignore[no-untyped-def]
        try:
            for number in range(most):
                yield number
        finally:
            self.is_closed = True


class BlockingCounter(Blocking[Counter]):
    add = BlockingMethod(Counter.add)
    count = BlockingIteration(Counter.count)


def test_results_errors_and_iterations_come_through() -> None:
    loop = ClientLoop()
    try:
        counter = BlockingCounter(Counter(), loop)
        assert counter.add(2, right=3) == 5
        with pytest.raises(ValueError, match="negative"):
            counter.add(2, right=-1)
        assert list(counter.count(3)) == [0, 1, 2]
        numbers = counter.count(10)
        assert next(numbers) == 0
        numbers.close()  # type: ignore[attr-defined]
        assert counter.inner.is_closed
    finally:
        loop.close()
