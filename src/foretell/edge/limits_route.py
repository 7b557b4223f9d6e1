"""`GET /limits`: how much of each rate limit the caller has used."""

from typing import Final

from litestar import get

from foretell.edge.codec import AnyRequest, JsonResponse, WireObject, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.throttled_application import turn_of


class LimitUse(WireObject, frozen=True, kw_only=True):
    """The caller's use of one window; `routes` is null where all routes of the API count."""

    row: str
    routes: tuple[str, ...] | None
    limit: int
    window_seconds: int
    remaining: int
    reset_seconds: int


LIMITS: Final = Success(list[LimitUse], "The windows of every row, none where no limits apply.")


@get("/limits", opt=describe(LIMITS, tag="Status"))
async def show_limits(request: AnyRequest) -> JsonResponse:
    """Return how much of each rate limit the caller's address has used."""
    return json_response(limits_of(request))


def limits_of(request: AnyRequest, account: str | None = None) -> list[LimitUse]:
    """Return the use of the account of a verified key, or else of the caller's address."""
    turn = turn_of(request)
    if turn is None:
        return []
    return [
        LimitUse(
            row=use.row.key,
            routes=use.row.routes,
            limit=use.requests,
            window_seconds=use.window_ms // 1000,
            remaining=use.remaining,
            reset_seconds=-(-use.reset_ms // 1000),
        )
        for use in turn.limiter.use(account or turn.address)
    ]
