"""The messages of a stream over HTTP, for a client that missed some of them."""

import asyncio
import math
from typing import Any, Final

import msgspec
from litestar import get

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.streams import MessagesNotKept, UnknownStream
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2_IF_SIGNED
from foretell.edge.parameters import ID_MAX, integer, required_text
from foretell.edge.query import Query
from foretell.edge.throttled_application import address_of
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context, authenticate_reading_key

STREAM_ID: Final = required_text("stream_id", "the stream, as its messages name it")
AFTER: Final = integer("after", 0, 0, ID_MAX, "the number of the last message that came")


class StreamEvents(msgspec.Struct, frozen=True):
    """Messages of a stream, as its connection has them."""

    stream_id: str
    last_sequence: int
    events: list[dict[str, Any]]


class _EncodedEvents(msgspec.Struct, frozen=True):
    stream_id: str
    last_sequence: int
    events: list[msgspec.Raw]


@get(
    "/events",
    opt=describe(
        Success(StreamEvents, "The messages after a number, the oldest first."),
        STREAM_ID,
        AFTER,
        tag=refused.MARKET_DATA,
        security=L2_IF_SIGNED,
        refusals=(UnknownStream, MessagesNotKept),
    ),
)
async def get_events(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the messages of a stream after a number; one of the user channel needs its key (L2)."""
    query = Query.of(request)
    stream_id, after = query.read(STREAM_ID), query.read(AFTER)
    query.check_known()
    stream = context.streams.open.find_any(stream_id)
    if stream.channel == "user":
        reading = await authenticate_reading_key(request, context)
        login = context.streams.user.login_of(stream)
        if login is None or login.key_id != reading.key_id:
            raise UnknownStream
    missed = stream.missed_after(after)
    _count_missed(request, context, sum(map(len, missed)))
    events = [msgspec.Raw(each) for each in stream.numbered(after + 1, missed)]
    return json_response(_EncodedEvents(stream_id, stream.sequence, events))


def _count_missed(request: AnyRequest, context: Context, size: int) -> None:
    """Count what a client is sent again, or refuse it while what it had before is above its pace."""
    replays, client = context.streams.replays, address_of(request)
    now_s = asyncio.get_running_loop().time()
    wait_s = replays.take(client, 0, now_s)
    if wait_s > 0:
        raise TooManyRequests(math.ceil(wait_s))
    replays.take(client, size, now_s)
