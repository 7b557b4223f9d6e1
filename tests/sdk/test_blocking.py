"""The clients without `async` have every method of the asynchronous ones, from the same source."""

import inspect
import re
from typing import Any

import pytest

from foretell.sdk.blocking import (
    Blocking,
    BlockingAttribute,
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


def names_of_attributes(inner: type) -> set[str]:
    """Return the names of the public attributes that instances of a client have."""
    bases = [base for base in inner.__mro__ if base is not object]
    assigned = {
        name
        for base in bases
        for name in re.findall(r"self\.([a-z]\w*)(?:: [^=\n]+)? = ", inspect.getsource(base))
    }
    declared = {name for base in bases for name in inspect.get_annotations(base)}
    properties = {name for name, _ in inspect.getmembers(inner, inspect.isdatadescriptor)}
    return {name for name in assigned | declared | properties if not name.startswith("_")}


CLIENTS_WITHIN = {"http", "worker", "data", "relayer", "deposit_wallet", "proxy_wallet", "chain"}
"""Attributes that are asynchronous clients: the client without `async` has `inner` for them."""


@pytest.mark.parametrize(("inner", "outer"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_attribute_is_that_of_the_client_within(
    inner: type, outer: type[Blocking[Any]]
) -> None:
    twins = {
        name
        for name, member in inspect.getmembers_static(outer)
        if isinstance(member, BlockingAttribute)
    }
    parts = names_of_attributes(outer) - {"inner", "loop"}
    assert names_of_attributes(inner) - CLIENTS_WITHIN <= twins | parts
    assert not hasattr(outer.__new__(outer), "__dict__")


class Counter:
    step: int = 1

    @property
    def doubled(self) -> int:
        return 2 * self.step

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
    __slots__ = ()

    step = BlockingAttribute[int]()
    doubled = BlockingAttribute[int]()
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


def test_an_assignment_reaches_the_client_within_and_an_unknown_attribute_is_refused() -> None:
    loop = ClientLoop()
    try:
        counter = BlockingCounter(Counter(), loop)
        counter.step = 3
        assert (counter.inner.step, counter.step, counter.doubled) == (3, 3, 6)
        for name in ("doubled", "stepp", "add"):
            with pytest.raises(AttributeError):
                setattr(counter, name, 4)
        with pytest.raises(AttributeError):
            counter.stepp  # type: ignore[attr-defined]  # noqa: B018 - it is read
    finally:
        loop.close()
