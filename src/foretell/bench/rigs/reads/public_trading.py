"""The trading API's public reads of tables without an engine: price histories, and pages of markets."""

from collections.abc import Callable
from typing import Final

from litestar import Litestar

from foretell.bench.rigs.reads.history import a_condition, a_token
from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.effects import MarketOpened
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Bytes32
from foretell.edge.application import build_application
from foretell.edge.documents.openapi import Api
from foretell.engine.protocol.requests import committed_effects
from foretell.runtime.loop_share import LoopShare
from foretell.store.database import Database
from foretell.trading.books.books import PublicBooks
from foretell.trading.books.market_pages import MarketPages
from foretell.trading.context import TradingContext
from foretell.trading.handlers.markets import MARKETS_PER_PAGE
from foretell.trading.refusals import DOCUMENTED, trading_body
from foretell.trading.routes.listings import get_markets, get_simplified_markets
from foretell.trading.routes.public import get_prices_histories, get_prices_history

OPEN_MARKETS: Final = range(MARKETS_PER_PAGE)
"""The numbers of the markets that are traded most: as many as a page has."""
ROUTES: Final = (get_prices_history, get_prices_histories, get_markets, get_simplified_markets)


def build_public_trading_app(
    database: Database, blob_base_url: str, now_ms: Callable[[], int]
) -> Litestar:
    """Return an application of the trading API's own routes, where the markets that are traded most are open."""
    return build_application(
        api=Api("trading", "Public reads", "Price histories and markets.", DOCUMENTED),
        routes=ROUTES,
        context=public_context(database, blob_base_url, now_ms),
        body_of=trading_body,
    )


def public_context(
    database: Database, blob_base_url: str, now_ms: Callable[[], int]
) -> TradingContext:
    """Return the context of the trading API with nothing but what these routes read: it has no other field.

    The framework checks its class, and would refuse another one with the same fields.
    """
    books = PublicBooks(ZERO_ADDRESS)
    opened = [MarketOpened(_opening(number, now_ms())) for number in OPEN_MARKETS]
    books.on_committed(committed_effects(1, opened))
    context = object.__new__(TradingContext)
    for name, value in (
        ("database", database),
        ("books", books),
        ("blob_base_url", blob_base_url),
        ("now_ms", now_ms),
        ("sports_delay_s", 0),
        ("loop_share", LoopShare()),
        ("market_pages", MarketPages()),
    ):
        object.__setattr__(context, name, value)  # it is frozen
    return context


def _opening(number: int, at_ms: int) -> OpenMarket:
    return OpenMarket(
        at_ms,
        Bytes32(a_condition(number)),
        AssetId(a_token(number, is_yes=True)),
        AssetId(a_token(number, is_yes=False)),
        ZERO_ADDRESS,
        MarketRules(ticks_per_one=100, size_units_min=1, fee_rate_bps=0),
    )
