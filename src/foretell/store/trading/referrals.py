"""The referrer of each wallet, and since when; written by trading. The first referral of a wallet stays."""

from collections.abc import Sequence

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import referred_wallets


async def record_referral(
    tx: Transaction, wallets: Sequence[Address], referrer: Address, from_s: int
) -> None:
    """Store who referred these wallets, except those that somebody referred before."""
    for wallet in wallets:
        await tx.insert_new(referred_wallets, wallet=wallet, referrer=referrer, from_s=from_s)


async def load_referrer(tx: Transaction, wallet: Address) -> Address | None:
    """Return who referred a wallet, or None."""
    row = await tx.first(
        sa.select(referred_wallets.c.referrer).where(referred_wallets.c.wallet == wallet)
    )
    return None if row is None else Address(row.referrer)
