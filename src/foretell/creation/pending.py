"""Search for a request by its id or by its creator. It needs no authentication."""

from typing import Final

from foretell.creation.context import CreationContext
from foretell.creation.messages import REQUEST_ID_CHARS_MAX
from foretell.domain.errors.creation import RequestNotFound
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.values.hexadecimal import Address
from foretell.edge.parameters import optional_integer, optional_wallet, text
from foretell.edge.query import Query
from foretell.store.creation.requests import CreationRequest, load_latest, load_request

REQUEST_ID: Final = text("requestId", "a request's id", chars_max=REQUEST_ID_CHARS_MAX)
CREATOR: Final = optional_wallet("creator", "an address; needed where requestId is not given")
CHAIN_ID: Final = optional_integer("chainId", 1, 2**53, "any chain if absent")
PARAMETERS: Final = (REQUEST_ID, CREATOR, CHAIN_ID)


async def find_request(context: CreationContext, query: Query) -> CreationRequest | None:
    """Return the request of an id, or a creator's latest that can continue, or None.

    An unknown id, or one of another creator or chain, is refused.
    """
    request_id = query.read(REQUEST_ID)
    creator, chain_id = query.read(CREATOR), query.read(CHAIN_ID)
    query.check_known()
    if request_id is not None:
        return await _by_id(context, request_id, creator, chain_id)
    if creator is None:
        raise MalformedQuery("creator", "an address if requestId is not given")
    async with context.database.public_reading() as tx:
        return await load_latest(tx, creator, chain_id, context.now_ms())


async def _by_id(
    context: CreationContext, request_id: str, creator: Address | None, chain_id: int | None
) -> CreationRequest:
    async with context.database.public_reading() as tx:
        request = await load_request(tx, request_id)
    if request is None or creator not in {None, request.creator}:
        raise RequestNotFound(request_id)
    if chain_id not in {None, request.challenge.chain_id}:
        raise RequestNotFound(request_id)
    return request
