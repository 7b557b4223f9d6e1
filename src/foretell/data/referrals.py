"""Fees that were shared with those who brought somebody.

No order carries a referrer and the exchange pays fees to nobody but its own receiver, so there is no
row to add up: whoever asks gets an empty list, once the question is well-formed.
"""

from typing import Final

from foretell.data.responses import FeeAggregate
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.values.tokens import is_token_id
from foretell.edge.query import Query

ROWS_PER_PAGE_MAX: Final = 500
OFFSET_MAX: Final = 10_000


def list_fee_shares(query: Query) -> list[FeeAggregate]:
    """Return what an address got as a referrer or an affiliate."""
    query.wallet("address")
    query.optional_wallet("exchange")
    token_id = query.text("tokenId")
    if token_id is not None and not is_token_id(token_id):
        raise MalformedQuery("tokenId", "a decimal integer")
    query.integer("limit", 100, 0, ROWS_PER_PAGE_MAX)
    query.integer("offset", 0, 0, OFFSET_MAX)
    query.check_known()
    return []
