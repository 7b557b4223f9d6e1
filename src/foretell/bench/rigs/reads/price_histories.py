"""The routes of price histories without an engine: the tokens of some markets, and the tables."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from litestar import Litestar, Response, get, post
from litestar.di import NamedDependency

from foretell.bench.rigs.reads.history import a_condition, a_token
from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.effects import MarketOpened
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Bytes32
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, JsonResponse, read_body
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.openapi import Api
from foretell.edge.query import Query
from foretell.engine.protocol.requests import committed_effects
from foretell.runtime.loop_share import LoopShare
from foretell.store.database import Database
from foretell.trading.books.books import PublicBooks
from foretell.trading.handlers.price_history import (
    TOKENS_PER_BATCH_MAX,
    BatchBody,
    BatchHistoryRecord,
    HistoryRecord,
    price_histories,
    price_history,
)
from foretell.trading.refusals import DOCUMENTED, trading_body
from foretell.trading.wire.parameters import END_S, FIDELITY, HISTORY_TOKEN, INTERVAL, START_S

OPEN_MARKETS: Final = range(TOKENS_PER_BATCH_MAX // 2)
"""The numbers of the markets that are traded most: their tokens are the largest batch."""


@dataclass(frozen=True, slots=True)
class HistoryReads:
    """What a history is read with."""

    database: Database
    books: PublicBooks
    now_ms: Callable[[], int]
    loop_share: LoopShare = field(default_factory=LoopShare)


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
    return _json((await price_history(context, Query.of(request))).content)


@post(
    "/batch-prices-history",
    status_code=200,
    opt=describe(
        Success(BatchHistoryRecord, "The points by token."), tag="Histories", body=BatchBody
    ),
)
async def get_histories(
    request: AnyRequest, context: NamedDependency[HistoryReads]
) -> JsonResponse:
    """Return what the route of batches returns."""
    return _json(await price_histories(context, await read_body(request)))


def _json(raw: bytes) -> JsonResponse:
    return Response(raw, media_type="application/json")


def build_history_app(database: Database, now_ms: Callable[[], int]) -> Litestar:
    """Return an application of the routes of price histories, which knows the open markets alone."""
    return build_application(
        api=Api("trading", "Price histories", "Price histories.", DOCUMENTED),
        routes=(get_history, get_histories),
        context=history_reads(database, now_ms),
        body_of=trading_body,
    )


def history_reads(database: Database, now_ms: Callable[[], int]) -> HistoryReads:
    """Return what is read with, where the markets that are traded most are open."""
    books = PublicBooks(ZERO_ADDRESS)
    opened = [MarketOpened(_opening(number, now_ms())) for number in OPEN_MARKETS]
    books.on_committed(committed_effects(1, opened))
    return HistoryReads(database, books, now_ms)


def _opening(number: int, at_ms: int) -> OpenMarket:
    return OpenMarket(
        at_ms,
        Bytes32(a_condition(number)),
        AssetId(a_token(number, is_yes=True)),
        AssetId(a_token(number, is_yes=False)),
        ZERO_ADDRESS,
        MarketRules(ticks_per_one=100, size_units_min=1, fee_rate_bps=0),
    )
