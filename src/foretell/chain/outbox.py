"""Storage of an account's transactions; the store implements it."""

from collections.abc import Sequence
from typing import Protocol

from foretell.domain.evm.transaction import SentTx
from foretell.domain.values.hexadecimal import Address


class Outbox(Protocol):
    """The transactions of some accounts. Each method is atomic."""

    async def load(self, tx_id: str) -> SentTx | None:
        """Return the transaction with this id, or None."""
        ...

    async def load_all(self, tx_ids: Sequence[str]) -> Sequence[SentTx]:
        """Return the transactions with these ids, in the order of their nonces."""
        ...

    async def load_unfinished(self, sender: Address, limit: int) -> Sequence[SentTx]:
        """Return transactions whose outcome is not final, the lowest nonce first."""
        ...

    async def load_other_senders(self, sender: Address) -> Sequence[Address]:
        """Return the other accounts that have transactions whose outcome is not final."""
        ...

    async def load_at_nonce(self, sender: Address, account_nonce: int) -> SentTx | None:
        """Return the transaction with this nonce, or None."""
        ...

    async def load_last_nonce(self, sender: Address) -> int | None:
        """Return the highest nonce of the account's transactions, or None."""
        ...

    async def record_new(self, tx: SentTx) -> bool:
        """Store a new transaction, or return False when its id or its nonce is taken."""
        ...

    async def record_all_new(self, txs: Sequence[SentTx]) -> bool:
        """Store new transactions, or none of them and return False when an id or a nonce is taken."""
        ...

    async def record_attempt(self, tx: SentTx) -> None:
        """Store the newest attempt of a transaction, and its failure."""
        ...

    async def record_move(self, was: SentTx, now: SentTx) -> bool:
        """Store a status change, or return False when the stored status was no longer `was`."""
        ...

    async def record_moves(self, moves: Sequence[tuple[SentTx, SentTx]]) -> Sequence[bool]:
        """Store the status changes of several transactions; return for each what `record_move` does."""
        ...
