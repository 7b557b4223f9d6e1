"""Fees shared with referrers and affiliates.

Orders carry no referrer and the exchange pays fees only to its own receiver, so a well-formed request
gets an empty list.
"""

from typing import Final

from foretell.data.responses import FeeAggregate
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.values.tokens import is_token_id
from foretell.edge.parameters import integer, optional_wallet, text, wallet
from foretell.edge.query import Query

TOKEN_ID: Final = text("tokenId", "token id")

PARAMETERS: Final = (
    wallet("address", "who received the fees"),
    optional_wallet("exchange", "address of the exchange"),
    TOKEN_ID,
    integer("limit", 100, 0, 500),
    integer("offset", 0, 0, 10_000),
)


def list_fee_shares(query: Query) -> list[FeeAggregate]:
    """Return the fees that an address received as a referrer or an affiliate."""
    query.check(PARAMETERS)
    token_id = query.read(TOKEN_ID)
    if token_id is not None and not is_token_id(token_id):
        raise MalformedQuery("tokenId", "a decimal integer")
    return []
