"""Finds the request that a client asks about. Whoever knows an id or an address may ask."""

from typing import Final

from foretell.creation.context import CreationContext
from foretell.creation.messages import REQUEST_ID_CHARS_MAX
from foretell.domain.errors.creation import RequestNotFound
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.values.hexadecimal import Address
from foretell.edge.query import Query
from foretell.store.creation.requests import CreationRequest, load_latest, load_request

CHAIN_ID_MAX: Final = 2**53


async def find_request(context: CreationContext, query: Query) -> CreationRequest | None:
    """Return the request of an id, or the latest of a creator that can go on, or nothing.

    An id that is not there, or that belongs to another creator or chain, is refused.
    """
    request_id = query.text("requestId", chars_max=REQUEST_ID_CHARS_MAX)
    creator = query.optional_wallet("creator")
    chain_id = query.optional_integer("chainId", 1, CHAIN_ID_MAX)
    query.check_known()
    if request_id is not None:
        return await _by_id(context, request_id, creator, chain_id)
    if creator is None:
        raise MalformedQuery("creator", "an address where requestId is not given")
    async with context.database.reading() as tx:
        return await load_latest(tx, creator, chain_id, context.now_ms())


async def _by_id(
    context: CreationContext, request_id: str, creator: Address | None, chain_id: int | None
) -> CreationRequest:
    async with context.database.reading() as tx:
        request = await load_request(tx, request_id)
    if request is None or creator not in {None, request.creator}:
        raise RequestNotFound(request_id)
    if chain_id not in {None, request.challenge.chain_id}:
        raise RequestNotFound(request_id)
    return request
