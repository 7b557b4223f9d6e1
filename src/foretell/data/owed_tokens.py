"""GET /owed: tokens that exchanges keep for a wallet because it refused them when a match delivered them.

The tables say which tokens an exchange has any of; how many of them are a wallet's, the exchange says itself,
as of the chain's newest block.
"""

import re
from typing import Final

from foretell.data.context import DataContext
from foretell.data.ledger import TOKEN_DIGITS_MAX
from foretell.data.parameters import USER
from foretell.data.responses import OwedPage, OwedToken
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.edge.parameters import integer, text
from foretell.edge.query import Query
from foretell.edge.rendering import amount
from foretell.store.queries.kept_tokens import KeptKey, KeptToken, load_kept_tokens

LIMIT: Final = integer("limit", 100, 1, 100, "tokens that are looked at")
AFTER: Final = text("after", "next of the page before")
CURSOR: Final = re.compile(rf"([0-9]{{1,{TOKEN_DIGITS_MAX}}})-(0x[0-9a-f]{{40}})")
PARAMETERS: Final = (USER, LIMIT, AFTER)


async def list_owed(context: DataContext, query: Query) -> OwedPage:
    """Return a page of the tokens that are kept for a wallet."""
    wallet, limit, after = query.read(USER), query.read(LIMIT), _parse_cursor(query.read(AFTER))
    query.check_known()
    owed = context.owed
    async with context.database.public_reading() as tx:
        kept = await load_kept_tokens(tx, wallet, owed.exchanges, after, limit)
    units = await owed.units(wallet, [(each.exchange, each.token_id) for each in kept])
    proxy_wallet = checksum_address(wallet)
    return OwedPage(
        owed=[
            _owed_token(proxy_wallet, token, its_units)
            for token, its_units in zip(kept, units, strict=True)
            if its_units
        ],
        next="-".join(kept[-1].key) if len(kept) == limit else "",
    )


def _parse_cursor(cursor: str | None) -> KeptKey | None:
    if not cursor:
        return None
    found = CURSOR.fullmatch(cursor)
    if found is None:
        raise MalformedQuery("after", "the next of the page before")
    return KeptKey(AssetId(found[1]), Address(found[2]))


def _owed_token(proxy_wallet: str, token: KeptToken, units: int) -> OwedToken:
    listing = token.listing
    return OwedToken(
        proxy_wallet=proxy_wallet,
        exchange=checksum_address(token.exchange),
        asset=token.token_id,
        condition_id=token.condition_id,
        size=amount(units),
        title=listing.title if listing else "",
        slug=listing.slug if listing else "",
        event_slug=listing.event_slug if listing else "",
        outcome=listing.outcome(is_yes=token.is_yes) if listing else "",
        outcome_index=0 if token.is_yes else 1,
        negative_risk=listing.is_neg_risk if listing else False,
    )
