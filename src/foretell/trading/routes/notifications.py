"""Routes of notifications."""

from typing import Final, Literal

import msgspec
from litestar import delete, get

from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2, L2_OR_READONLY
from foretell.edge.parameters import entries, ignored
from foretell.edge.query import Query
from foretell.trading.handlers import notifications
from foretell.trading.handlers.keys import BARE_DIALECT
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import (
    Context,
    answer_named,
    authenticate,
    authenticate_reader,
)
from foretell.trading.wire.notifications import NotificationRecord

IDS: Final = entries("ids", "the notifications to acknowledge, comma-separated; all if absent")
WALLET_TYPE: Final = ignored("signature_type")


class DroppedNotifications(msgspec.Struct, frozen=True):
    """The ids of the notifications that were acknowledged."""

    deleted: list[str]


@get(
    "/notifications",
    opt=describe(
        Success(list[NotificationRecord], "At most 100, the newest first."),
        WALLET_TYPE,
        tag=refused.ACCOUNT,
        security=L2_OR_READONLY,
        refusals=(*refused.TABLES, *refused.PUBLIC_READ),
    ),
)
async def get_notifications(request: AnyRequest, context: Context) -> JsonResponse:
    """Return what happened to the address's orders and markets in 30 days and is not acknowledged."""
    address = await authenticate_reader(request, context)
    query = Query.of(request)
    query.read(WALLET_TYPE)
    query.check_known()
    return json_response(await notifications.list_notifications(context, address))


@delete(
    "/notifications",
    status_code=200,
    opt=describe(
        Success(DroppedNotifications | Literal["OK"], "The acknowledged ones."),
        IDS,
        tag=refused.ACCOUNT,
        security=L2,
        refusals=(*refused.TABLES, *refused.PUBLIC_READ),
        is_keyed=True,
    ),
)
async def drop_notifications(request: AnyRequest, context: Context) -> JsonResponse:
    """Acknowledge notifications: they are not returned again."""
    signed = await authenticate(request, context)
    query = Query.of(request)
    ids = query.read(IDS)
    query.check_known()

    async def drop() -> object:
        deleted = await notifications.acknowledge(context, signed.caller.address, ids)
        if signed.caller.dialect == BARE_DIALECT:
            return "OK"
        return DroppedNotifications(deleted)

    return await answer_named(request, context, signed, drop)


ROUTES: Final = (get_notifications, drop_notifications)
