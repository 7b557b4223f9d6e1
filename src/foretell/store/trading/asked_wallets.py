"""Wallets whose holdings trading needs from the chain, because logs alone do not show them; written by trading."""

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import asked_wallets


async def record_asked(tx: Transaction, wallet: Address, at_ms: int) -> None:
    """Ask for a wallet; one that was asked for before keeps its time."""
    await tx.insert_new(asked_wallets, wallet=wallet, asked_at_ms=at_ms)
