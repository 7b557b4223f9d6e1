"""GET /owed: tokens that exchanges keep for a wallet because it refused them when a match delivered them.

The tables say which tokens an exchange has any of; how many of them are a wallet's, the exchange says itself,
as of the chain's newest block.
"""

from typing import Final

from foretell.data.context import DataContext
from foretell.data.ledger import TOKEN_DIGITS_MAX
from foretell.data.parameters import USER
from foretell.data.responses import OwedPage, OwedToken
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.values.hexadecimal import checksum_address
from foretell.edge.parameters import integer, text
from foretell.edge.query import Query
from foretell.edge.rendering import amount
from foretell.store.queries.kept_tokens import KeptToken, load_kept_tokens

LIMIT: Final = integer("limit", 100, 1, 100, "tokens that are looked at")
AFTER: Final = text("after", "next of the page before: a token id")
PARAMETERS: Final = (USER, LIMIT, AFTER)


async def list_owed(context: DataContext, query: Query) -> OwedPage:
    """Return a page of the tokens that are kept for a wallet."""
    wallet, limit, after = query.read(USER), query.read(LIMIT), query.read(AFTER) or ""
    query.check_known()
    if after and not (after.isascii() and after.isdigit() and len(after) <= TOKEN_DIGITS_MAX):
        raise MalformedQuery("after", f"at most {TOKEN_DIGITS_MAX} decimal digits")
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
        next=kept[-1].token_id if len(kept) == limit else "",
    )


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
