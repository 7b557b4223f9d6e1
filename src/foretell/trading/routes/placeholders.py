"""Routes that clients ask and that have no programme behind them here: their answers are empty.

No rewards are paid, no quotes are requested, no builder is paid and nobody is notified: what says so
has the shape that clients read.
"""

from typing import Final

from litestar import Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.edge.codec import AnyRequest, decode, json_response
from foretell.edge.openapi import answering
from foretell.trading.context import TradingContext
from foretell.trading.handlers.callers import caller_of
from foretell.trading.handlers.keys import BARE_DIALECT
from foretell.trading.wire.pages import END

Answer = Response[bytes]
Services = NamedDependency[TradingContext]

ENTRIES_PER_PAGE: Final = 100
EMPTY_PAGE: Final = {"limit": ENTRIES_PER_PAGE, "count": 0, "next_cursor": END, "data": []}
EMPTY_CAMEL_PAGE: Final = {
    "data": [],
    "nextCursor": END,
    "limit": ENTRIES_PER_PAGE,
    "count": 0,
    "totalCount": 0,
}
NO_BUILDER_FEES: Final = {
    "builder_maker_flat_fee_bps": 0,
    "builder_taker_fee_share_bps": 0,
    "builder_maker_fee_rate_bps": 0,
    "builder_taker_fee_rate_bps": 0,
}

_EMPTY = answering(dict[str, object], "Nothing, in the shape that clients read.")


@get(
    ["/rewards/markets/current", "/rewards/markets/multi", "/rewards/markets/{condition_id:str}"],
    responses=_EMPTY,
)
async def get_reward_markets() -> Answer:
    """No market is rewarded."""
    return json_response(EMPTY_PAGE)


@get("/rebates/current", responses=answering(list[str], "Nothing."))
async def get_rebates() -> Answer:
    """No rebate is paid."""
    return json_response([])


@get(["/rewards/user", "/rewards/user/markets"], responses=_EMPTY)
async def get_user_rewards(request: AnyRequest, context: Services) -> Answer:
    """Nobody earns rewards."""
    await caller_of(request, context)
    return json_response(EMPTY_PAGE)


@get("/rewards/user/total", responses=answering(list[str], "Nothing."))
async def get_user_reward_totals(request: AnyRequest, context: Services) -> Answer:
    """Nobody has earned rewards."""
    await caller_of(request, context)
    return json_response([])


@get("/rewards/user/percentages", responses=_EMPTY)
async def get_user_reward_percentages(request: AnyRequest, context: Services) -> Answer:
    """Nobody has a part of any reward."""
    await caller_of(request, context)
    return json_response({})


@get("/rfq/config", responses=answering(dict[str, bool], "Off."))
async def get_rfq_config() -> Answer:
    """Quotes are not requested here."""
    return json_response({"enabled": False})


@get(
    [
        "/rfq/data/requests",
        "/rfq/data/quotes",
        "/rfq/data/requester/quotes",
        "/rfq/data/quoter/quotes",
    ],
    responses=_EMPTY,
)
async def get_rfq_lists(request: AnyRequest, context: Services) -> Answer:
    """There is no request and no quote."""
    await caller_of(request, context)
    return json_response(EMPTY_CAMEL_PAGE)


@get("/fees/builder-fees/{builder_code:str}", responses=answering(dict[str, int], "Zeros."))
async def get_builder_fees(builder_code: FromPath[str]) -> Answer:
    """No builder takes a fee."""
    del builder_code
    return json_response(NO_BUILDER_FEES)


@get("/data/pre-migration-orders", responses=_EMPTY)
async def get_earlier_orders(request: AnyRequest, context: Services) -> Answer:
    """There are no orders of an earlier system."""
    await caller_of(request, context)
    return json_response(EMPTY_PAGE)


@get("/notifications", responses=answering(list[str], "Nothing."))
async def get_notifications(request: AnyRequest, context: Services) -> Answer:
    """Nobody is notified: the user stream tells what happens."""
    await caller_of(request, context)
    return json_response([])


@delete("/notifications", status_code=200, responses=_EMPTY)
async def drop_notifications(request: AnyRequest, context: Services) -> Answer:
    """There is nothing to drop."""
    caller, _ = await caller_of(request, context)
    return json_response("OK" if caller.dialect == BARE_DIALECT else {"deleted": []})


@get("/order-scoring", responses=answering(dict[str, bool], "Not scoring."))
async def get_order_scoring(request: AnyRequest, context: Services) -> Answer:
    """No order scores: there are no rewards to score for."""
    await caller_of(request, context)
    return json_response({"scoring": False})


@post("/orders-scoring", status_code=200, responses=answering(dict[str, bool], "Not scoring."))
async def get_orders_scoring(request: AnyRequest, context: Services) -> Answer:
    """No order scores."""
    _, raw = await caller_of(request, context)
    return json_response(dict.fromkeys(decode(raw, list[str]), False))


ROUTES: Final = (
    get_reward_markets,
    get_rebates,
    get_user_rewards,
    get_user_reward_totals,
    get_user_reward_percentages,
    get_rfq_config,
    get_rfq_lists,
    get_builder_fees,
    get_earlier_orders,
    get_notifications,
    drop_notifications,
    get_order_scoring,
    get_orders_scoring,
)
