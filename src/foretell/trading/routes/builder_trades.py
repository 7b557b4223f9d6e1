"""Routes of builders' trades and fees."""

from typing import Final

from litestar import get
from litestar.params import FromPath

from foretell.domain.errors.builders import InvalidBuilderCode
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.order import InvalidTradeFilter, MalformedBatch
from foretell.domain.values.hexadecimal import Bytes32, parse_bytes32
from foretell.edge.builders.keys import builder_code as code_of
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import describe, tagged
from foretell.edge.documents.security import BUILDER_IF_SIGNED
from foretell.edge.parameters import text
from foretell.edge.query import Query
from foretell.edge.read_answers import read_json
from foretell.trading.handlers import builder_trades
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context, authenticate_builder
from foretell.trading.wire import parameters
from foretell.trading.wire.builder_trades import BuilderTradeRecord
from foretell.trading.wire.pages import Page

CODE: Final = text("builder_code", "the builder's code; needed without a builder's headers")


@get(
    "/builder/trades",
    opt=describe(
        tagged(
            Page[BuilderTradeRecord],
            "A page, the newest first. The answer to a builder's headers has no tag.",
        ),
        CODE,
        *parameters.BUILDER_TRADE_FILTERS,
        parameters.CURSOR,
        tag=refused.ACCOUNT,
        security=BUILDER_IF_SIGNED,
        refusals=(
            *refused.TABLES,
            *refused.PUBLIC_READ,
            InvalidBuilderCode,
            InvalidTradeFilter,
            MalformedBatch,
        ),
    ),
)
async def get_builder_trades(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the trades of a builder's orders: of the builder that signs, or of a code."""
    query = Query.of(request)
    named = query.read(CODE)
    if context.key_ring.builder_dialect(request.headers) is not None:
        signed = await authenticate_builder(request, context)
        code = code_of(signed.caller.address)
        return json_response(await builder_trades.list_builder_trades(context, code, query))
    code = _parse_code(named or "")
    return read_json(request, await builder_trades.list_builder_trades(context, code, query))


@get(
    "/fees/builder-fees/{builder_code:str}",
    opt=describe(
        tagged(builder_trades.BuilderFeesRecord, "The rates, zeros unless the operator set some."),
        tag=refused.MARKET_DATA,
        refusals=(*refused.PUBLIC_READ, InvalidBuilderCode),
    ),
)
async def get_builder_fees(
    request: AnyRequest, builder_code: FromPath[str], context: Context
) -> JsonResponse:
    """Return the rates of a builder's fees."""
    return read_json(request, await builder_trades.builder_fees(context, _parse_code(builder_code)))


def _parse_code(value: str) -> Bytes32:
    try:
        return parse_bytes32(value, "builder_code")
    except MalformedHex as error:
        raise InvalidBuilderCode from error


ROUTES: Final = (get_builder_trades, get_builder_fees)
