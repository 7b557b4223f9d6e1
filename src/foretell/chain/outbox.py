"""Where the transactions of an account are kept; the store implements it."""

from collections.abc import Sequence
from typing import Protocol

from foretell.domain.evm.transaction import SentTx
from foretell.domain.values.hexadecimal import Address


class Outbox(Protocol):
    """The transactions of some accounts. Each method is one step: all of it or nothing."""

    async def load(self, tx_id: str) -> SentTx | None:
        """Return the transaction with this id, if there is one."""
        ...

    async def load_unfinished(self, sender: Address, limit: int) -> Sequence[SentTx]:
        """Return transactions whose outcome is not final, the lowest nonce first."""
        ...

    async def load_at_nonce(self, sender: Address, account_nonce: int) -> SentTx | None:
        """Return the transaction that has this nonce, if there is one."""
        ...

    async def load_last_nonce(self, sender: Address) -> int | None:
        """Return the highest nonce that any transaction of the account has."""
        ...

    async def record_new(self, tx: SentTx) -> bool:
        """Store a new transaction, or return False when its id or its nonce is taken."""
        ...

    async def record_attempt(self, tx: SentTx) -> None:
        """Store the newest attempt of a transaction, and its failure."""
        ...

    async def record_move(self, was: SentTx, now: SentTx) -> bool:
        """Store a step of a life, or return False when it was no longer where it was."""
        ...
