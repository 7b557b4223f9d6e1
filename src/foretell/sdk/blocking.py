"""The clients without `async`: each method is the asynchronous one, run to its end.

```python
with connect(Urls.at("http://127.0.0.1:8000"), KeySigner.from_hex(key)) as foretell:
    foretell.trader.buy(token_id, price="0.40", size="10")
```

The loop runs in a thread of its own, so that streams stay alive between two calls.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from foretell.domain.values.credentials import Credentials
from foretell.domain.values.hexadecimal import Address
from foretell.sdk import client
from foretell.sdk.client import Foretell, PublicApis, Urls
from foretell.sdk.contracts import Contracts
from foretell.sdk.market_creation import MarketCreation
from foretell.sdk.oracles.optimistic import OptimisticResolver
from foretell.sdk.oracles.resolution import MarketResolver, Whitelist
from foretell.sdk.orders import AccountTerms, WalletTerms
from foretell.sdk.portfolio import Discovery, Portfolio
from foretell.sdk.signing.signers import Signer
from foretell.sdk.trader import MarketData, Trader

Inner = TypeVar("Inner")
Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")

END: Final = object()


class ClientLoop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a coroutine."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def iterate(self, generator: AsyncGenerator[Result]) -> Iterator[Result]:
        """Yield what an asynchronous generator yields, and close it at the end."""

        async def following() -> Any:
            return await anext(generator, END)

        try:
            while (found := self.run(following())) is not END:
                yield found
        finally:
            self.run(generator.aclose())

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking(Generic[Inner]):
    """A client whose methods return when they have their result.

    It has slots alone, so that an attribute that it lacks cannot be assigned: the client within would not see it.
    """

    __slots__ = ("inner", "loop")

    def __init__(self, inner: Inner, loop: ClientLoop) -> None:
        self.inner = inner
        self.loop = loop


class BlockingMethod(Generic[Parameters, Result]):
    """A method of the asynchronous client, with the same parameters and the same result."""

    def __init__(
        self, method: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]
    ) -> None:
        self.method = method

    def __get__(self, instance: Blocking[Any], owner: type) -> Callable[Parameters, Result]:
        """Return the method of an instance."""

        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            return instance.loop.run(self.method(instance.inner, *args, **kwargs))

        return call


class BlockingIteration(Generic[Parameters, Result]):
    """An asynchronous generator of the client as an iterator."""

    def __init__(
        self, method: Callable[Concatenate[Any, Parameters], AsyncGenerator[Result]]
    ) -> None:
        self.method = method

    def __get__(
        self, instance: Blocking[Any], owner: type
    ) -> Callable[Parameters, Iterator[Result]]:
        """Return the method of an instance."""

        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Iterator[Result]:
            return instance.loop.iterate(self.method(instance.inner, *args, **kwargs))

        return call


class BlockingAttribute(Generic[Result]):
    """An attribute of the asynchronous client, which is read and assigned there."""

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name under which the class has it."""
        self.name = name

    def __get__(self, instance: Blocking[Any], owner: type) -> Result:
        """Return the value of the client within."""
        value: Result = getattr(instance.inner, self.name)
        return value

    def __set__(self, instance: Blocking[Any], value: Result) -> None:
        """Assign it; one that cannot be assigned there raises AttributeError."""
        setattr(instance.inner, self.name, value)


class BlockingMarketData(Blocking[MarketData]):
    """The public routes of the trading API."""

    __slots__ = ()

    server_time = BlockingMethod(MarketData.server_time)
    book = BlockingMethod(MarketData.book)
    midpoint = BlockingMethod(MarketData.midpoint)
    price = BlockingMethod(MarketData.price)
    price_history = BlockingMethod(MarketData.price_history)
    market = BlockingMethod(MarketData.market)
    market_terms = BlockingMethod(MarketData.market_terms)


class BlockingDiscovery(Blocking[Discovery]):
    """Events and markets."""

    __slots__ = ()

    market = BlockingMethod(Discovery.market)
    markets = BlockingMethod(Discovery.markets)
    event = BlockingMethod(Discovery.event)
    events = BlockingIteration(Discovery.events)
    search = BlockingMethod(Discovery.search)


class BlockingPortfolio(Blocking[Portfolio]):
    """A wallet's positions and history."""

    __slots__ = ()

    positions = BlockingMethod(Portfolio.positions)
    closed_positions = BlockingMethod(Portfolio.closed_positions)
    owed = BlockingMethod(Portfolio.owed)
    activity = BlockingMethod(Portfolio.activity)
    value = BlockingMethod(Portfolio.value)


class BlockingTrader(Blocking[Trader]):
    """A signer with an API key."""

    __slots__ = ("markets",)

    account = BlockingAttribute[AccountTerms]()
    chain_id = BlockingAttribute[int]()
    credentials = BlockingAttribute[Credentials | None]()
    maker = BlockingAttribute[Address]()
    signer = BlockingAttribute[Signer]()
    struct_version = BlockingAttribute[int | None]()
    wallet = BlockingAttribute[WalletTerms]()

    sign = BlockingMethod(Trader.sign)
    place = BlockingMethod(Trader.place)
    place_signed = BlockingMethod(Trader.place_signed)
    place_all = BlockingMethod(Trader.place_all)
    buy = BlockingMethod(Trader.buy)
    sell = BlockingMethod(Trader.sell)
    validate = BlockingMethod(Trader.validate)
    cancel = BlockingMethod(Trader.cancel)
    cancel_all = BlockingMethod(Trader.cancel_all)
    cancel_market = BlockingMethod(Trader.cancel_market)
    order = BlockingMethod(Trader.order)
    open_orders = BlockingMethod(Trader.open_orders)
    trades = BlockingMethod(Trader.trades)
    wait_until_settled = BlockingMethod(Trader.wait_until_settled)
    collateral = BlockingMethod(Trader.collateral)
    token_funds = BlockingMethod(Trader.token_funds)
    heartbeat = BlockingMethod(Trader.heartbeat)
    create_key = BlockingMethod(Trader.create_key)
    derive_key = BlockingMethod(Trader.derive_key)
    revoke_key = BlockingMethod(Trader.revoke_key)
    get = BlockingMethod(Trader.get)
    send = BlockingMethod(Trader.send)

    def __init__(self, inner: Trader, loop: ClientLoop) -> None:
        super().__init__(inner, loop)
        self.markets = BlockingMarketData(inner.markets, loop)


class BlockingCreation(Blocking[MarketCreation]):
    """A creation of markets."""

    __slots__ = ()

    run = BlockingMethod(MarketCreation.run)


class BlockingResolver(Blocking[MarketResolver]):
    """A whitelisted proposer."""

    __slots__ = ()

    resolve = BlockingMethod(MarketResolver.resolve)
    close_others = BlockingMethod(MarketResolver.close_others)


class BlockingOptimisticResolver(Blocking[OptimisticResolver]):
    """An account that proposes and disputes answers with a bond."""

    __slots__ = ()

    standing = BlockingMethod(OptimisticResolver.standing)
    propose = BlockingMethod(OptimisticResolver.propose)
    dispute = BlockingMethod(OptimisticResolver.dispute)
    arbitrate = BlockingMethod(OptimisticResolver.arbitrate)
    wait_until_answered = BlockingMethod(OptimisticResolver.wait_until_answered)
    report = BlockingMethod(OptimisticResolver.report)
    withdraw = BlockingMethod(OptimisticResolver.withdraw)


class BlockingWhitelist(Blocking[Whitelist]):
    """The whitelist of a creator."""

    __slots__ = ()

    address = BlockingMethod(Whitelist.address)
    proposers = BlockingMethod(Whitelist.proposers)
    create = BlockingMethod(Whitelist.create)
    add = BlockingMethod(Whitelist.add)
    remove = BlockingMethod(Whitelist.remove)


class BlockingPublicApis(Blocking[PublicApis]):
    """The APIs that need no key."""

    __slots__ = ("discovery", "markets")

    urls = BlockingAttribute[Urls]()

    watch_books = BlockingIteration(PublicApis.watch_books)

    def __init__(self, inner: PublicApis, loop: ClientLoop) -> None:
        super().__init__(inner, loop)
        self.markets = BlockingMarketData(inner.markets, loop)
        self.discovery = BlockingDiscovery(inner.discovery, loop)


class BlockingForetell(Blocking[Foretell]):
    """A signer at an installation."""

    __slots__ = ("apis", "optimistic", "resolver", "trader", "whitelist")

    contracts = BlockingAttribute[Contracts]()
    has_chain = BlockingAttribute[bool]()
    is_safe = BlockingAttribute[bool]()

    execute = BlockingMethod(Foretell.execute)
    deploy_wallet = BlockingMethod(Foretell.deploy_wallet)
    split = BlockingMethod(Foretell.split)
    merge = BlockingMethod(Foretell.merge)
    convert = BlockingMethod(Foretell.convert)
    redeem = BlockingMethod(Foretell.redeem)
    redeem_all = BlockingMethod(Foretell.redeem_all)
    claim_tokens = BlockingMethod(Foretell.claim_tokens)
    watch_account = BlockingIteration(Foretell.watch_account)

    def __init__(self, inner: Foretell, loop: ClientLoop) -> None:
        super().__init__(inner, loop)
        self.apis = BlockingPublicApis(inner.apis, loop)
        self.trader = BlockingTrader(inner.trader, loop)
        self.resolver = BlockingResolver(inner.resolver(), loop) if inner.has_chain else None
        self.optimistic = (
            BlockingOptimisticResolver(inner.optimistic(), loop) if inner.has_chain else None
        )
        self.whitelist = BlockingWhitelist(inner.whitelist(), loop) if inner.has_chain else None

    @property
    def portfolio(self) -> BlockingPortfolio:
        """The positions and the history of the wallet that the trader has now."""
        return BlockingPortfolio(self.inner.portfolio, self.loop)


@contextlib.contextmanager
def connect(urls: Urls, signer: Signer, *, wallet: str = "eoa") -> Iterator[BlockingForetell]:
    """Give a signer's client; see `client.Foretell.connect`."""
    loop = ClientLoop()
    stack = contextlib.AsyncExitStack()
    try:
        opened = client.Foretell.connect(urls, signer, wallet=wallet)
        yield BlockingForetell(loop.run(stack.enter_async_context(opened)), loop)
    finally:
        loop.run(stack.aclose())
        loop.close()


@contextlib.contextmanager
def connect_public(urls: Urls) -> Iterator[BlockingPublicApis]:
    """Give the APIs that need no key."""
    loop = ClientLoop()
    stack = contextlib.AsyncExitStack()
    try:
        opened = client.PublicApis.connect(urls)
        yield BlockingPublicApis(loop.run(stack.enter_async_context(opened)), loop)
    finally:
        loop.run(stack.aclose())
        loop.close()
