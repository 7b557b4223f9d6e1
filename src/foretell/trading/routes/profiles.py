"""Routes of the caller's own profile; the discovery API shows those of all."""

from functools import partial
from typing import Final

from litestar import get, post

from foretell.domain.errors.families import InvalidFields
from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.order import NameTaken
from foretell.edge.codec import AnyRequest, JsonResponse, decode, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2
from foretell.trading.handlers import profiles
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context, answer_named, authenticate


@get(
    "/profile",
    opt=describe(
        Success(profiles.ProfileRecord, "The profile."),
        tag=refused.ACCOUNT,
        security=L2,
        refusals=refused.PUBLIC_READ,
    ),
)
async def get_own_profile(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the profile of the address (L2)."""
    caller, _ = await authenticate(request, context)
    return json_response(await profiles.find_profile(context, caller.address))


@post(
    "/profile",
    status_code=200,
    opt=describe(
        Success(profiles.ProfileRecord, "The profile."),
        tag=refused.ACCOUNT,
        security=L2,
        body=profiles.ProfileBody,
        refusals=(NameTaken, InvalidFields, MalformedBody),
        is_keyed=True,
    ),
)
async def set_own_profile(request: AnyRequest, context: Context) -> JsonResponse:
    """Replace the profile of the address, which the other APIs show from now on (L2)."""
    signed = await authenticate(request, context)
    body = decode(signed.body, profiles.ProfileBody)
    replace = partial(profiles.set_profile, context, signed.caller.address, body)
    return await answer_named(request, context, signed, replace)


ROUTES: Final = (get_own_profile, set_own_profile)
