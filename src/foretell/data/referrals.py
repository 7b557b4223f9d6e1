"""Fees shared with referrers, affiliates and builders, and the trades of the wallets that an address referred.

A wallet is referred by the address in the referral header of its owner's request for an API key. The amount is the
part of the fees that the exchange charged on the chain; the volume is that of trades the chain settled since.
"""

from typing import Final

from foretell.data.context import DataContext
from foretell.data.parameters import LIMIT, OFFSET
from foretell.data.responses import FeeAggregate
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import checksum_address
from foretell.domain.values.tokens import is_token_id
from foretell.edge.builders.keys import builder_code
from foretell.edge.parameters import optional_wallet, text, wallet
from foretell.edge.query import Query
from foretell.store.public_reads.places import ReadKind
from foretell.store.queries.referrals import ReferralFilter, load_received_shares

ADDRESS: Final = wallet("address", "the referrer or builder")
EXCHANGE: Final = optional_wallet("exchange", "address of the exchange")
TOKEN_ID: Final = text("tokenId", "token id")

PARAMETERS: Final = (ADDRESS, EXCHANGE, TOKEN_ID, LIMIT, OFFSET)


async def list_fee_shares(context: DataContext, query: Query) -> list[FeeAggregate]:
    """Return, for each exchange, the fees that an address shares, and what its referred wallets have traded."""
    receiver, exchange = query.read(ADDRESS), query.read(EXCHANGE)
    token_id = query.read(TOKEN_ID)
    limit, offset = query.read(LIMIT), query.read(OFFSET)
    query.check_known()
    if token_id is not None and not is_token_id(token_id):
        raise MalformedQuery("tokenId", "a decimal integer")
    wanted = ReferralFilter(
        receiver, builder_code(receiver), exchange, None if token_id == COLLATERAL else token_id
    )
    async with context.database.public_reading(ReadKind.SUM) as tx:
        received = await load_received_shares(tx, wanted, limit, offset)
    return [
        FeeAggregate(
            exchange=checksum_address(each.exchange),
            receiver=checksum_address(receiver),
            token_id=token_id or COLLATERAL,
            total_amount=str(each.share_units),
            updated_at=each.updated_at_s,
            total_volume=str(each.volume_units),
        )
        for each in received
    ]
