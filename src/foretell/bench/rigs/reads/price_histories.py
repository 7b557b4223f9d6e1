"""The route of price histories without an engine: the tokens of a market, and the tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from litestar import Litestar, get
from litestar.di import NamedDependency

from foretell.bench.rigs.reads.history import a_condition, a_token
from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.effects import MarketOpened
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Bytes32
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.openapi import Api
from foretell.edge.query import Query
from foretell.engine.protocol.requests import committed_effects
from foretell.store.database import Database
from foretell.trading.books.books import PublicBooks
from foretell.trading.handlers.price_history import HistoryRecord, price_history
from foretell.trading.refusals import DOCUMENTED, trading_body
from foretell.trading.wire.parameters import END_S, FIDELITY, HISTORY_TOKEN, INTERVAL, START_S

HOT: Final = 0
"""The number of the market that is traded most."""


@dataclass(frozen=True, slots=True)
class HistoryReads:
    """What a history is read with."""

    database: Database
    books: PublicBooks
    now_ms: Callable[[], int]


@get(
    "/prices-history",
    opt=describe(
        Success(HistoryRecord, "The points."),
        *(HISTORY_TOKEN, INTERVAL, START_S, END_S, FIDELITY),
        tag="Histories",
    ),
)
async def get_history(request: AnyRequest, context: NamedDependency[HistoryReads]) -> JsonResponse:
    """Return what the route of the trading API returns, whose context has an engine."""
    return json_response(await price_history(context, Query.of(request)))


def build_history_app(database: Database, now_ms: Callable[[], int]) -> Litestar:
    """Return an application of the route of price histories, which knows the hot market alone."""
    return build_application(
        api=Api("trading", "Price histories", "Price histories.", DOCUMENTED),
        routes=(get_history,),
        context=history_reads(database, now_ms),
        body_of=trading_body,
    )


def history_reads(database: Database, now_ms: Callable[[], int]) -> HistoryReads:
    """Return what is read with, where the hot market alone is open."""
    opened = OpenMarket(
        now_ms(),
        Bytes32(a_condition(HOT)),
        AssetId(a_token(HOT, is_yes=True)),
        AssetId(a_token(HOT, is_yes=False)),
        ZERO_ADDRESS,
        MarketRules(ticks_per_one=100, size_units_min=1, fee_rate_bps=0),
    )
    books = PublicBooks(ZERO_ADDRESS)
    books.on_committed(committed_effects(1, [MarketOpened(opened)]))
    return HistoryReads(database, books, now_ms)
