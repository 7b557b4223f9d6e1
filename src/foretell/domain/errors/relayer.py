"""Refusals of the relayer.

Their place in the tree of refusals: see `families`.
"""

from foretell.domain.errors.families import (
    Conflict,
    InvalidInput,
    NotFound,
    Unavailable,
    Upstream,
)


class InvalidField(InvalidInput):
    """A field of a relay request is missing or malformed."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"it must be {wanted}", field=field)


class OwnerAddressMismatch(InvalidInput):
    """The owner in the request is not the owner of the API key."""

    def __init__(self, owner: str, caller: str) -> None:
        super().__init__(
            f"from is {owner}, and must be {caller}, the address of the API key",
            owner=owner,
            caller=caller,
        )


class NonceMismatch(Conflict):
    """A transaction is signed for another nonce than the wallet's next one."""

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"expected {expected}, got {got}", expected=expected, got=got)


class WalletExists(InvalidInput):
    """The owner's wallet is deployed already."""

    def __init__(self, wallet: str) -> None:
        super().__init__(f"the wallet {wallet} is deployed already", wallet=wallet)


class NothingToRedeem(InvalidInput):
    """The wallet holds no token that the call would redeem; the details have the holder, if known."""

    def __init__(self, wallet: str, holder: str | None) -> None:
        hint = "" if holder is None else f"; {holder} does"
        super().__init__(f"{wallet} holds none of these tokens{hint}", wallet=wallet, holder=holder)


class NotEnoughToMerge(InvalidInput):
    """The wallet holds fewer complete sets than the call would merge."""

    def __init__(self, have: int, need: int) -> None:
        super().__init__(
            f"the wallet holds {have} complete sets, and the call would merge {need}",
            have=have,
            need=need,
        )


class MergeImpossible(InvalidInput):
    """The wallet cannot merge as requested."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class ExecutionFailed(Upstream):
    """A wallet's transaction was not executed; the cause ends with the node's message."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class CallReverts(ExecutionFailed):
    """A simulation of the wallet's transaction reverted; nothing was sent."""


class TooManyQueued(Unavailable):
    """A wallet's queue of transactions is full; nothing was done."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} transactions of the wallet are pending, the most allowed; try again later",
            most=most,
            retry_after_s=1,
        )


class WalletInUse(Unavailable):
    """Earlier requests of a wallet are not answered yet; nothing was done."""

    def __init__(self, wallet: str) -> None:
        super().__init__(
            f"earlier requests of wallet {wallet} are not answered yet; try again in 1 s",
            wallet=wallet,
            retry_after_s=1,
        )


class OwnerLimitReached(Unavailable):
    """An owner's wallet had its transactions of a day; nothing was done."""

    def __init__(self, most: int, retry_after_s: int) -> None:
        super().__init__(
            f"{most} transactions of this owner were sent in the last 24 hours, the most allowed; try again"
            f" in {retry_after_s} s",
            most=most,
            retry_after_s=retry_after_s,
        )


class OwnerGasReached(Unavailable):
    """An owner's wallet had its gas of a day; nothing was done."""

    def __init__(self, most: int, used: int, needed: int) -> None:
        super().__init__(
            f"transactions of this owner may use {most} gas in 24 hours; they have {used}, and this one"
            f" may use {needed}; try again later",
            most=most,
            used=used,
            needed=needed,
            retry_after_s=3600,
        )


class BuilderLimitReached(Unavailable):
    """An account submitted its transactions of a day for other owners; nothing was done."""

    def __init__(self, most: int, retry_after_s: int) -> None:
        super().__init__(
            f"this account submitted {most} transactions for other owners in the last 24 hours, the most"
            f" allowed; try again in {retry_after_s} s, or ask the operator to admit the account",
            most=most,
            retry_after_s=retry_after_s,
        )


class BuilderGasReached(Unavailable):
    """An account used its gas of a day for other owners; nothing was done."""

    def __init__(self, most: int, used: int, needed: int, retry_after_s: int) -> None:
        super().__init__(
            f"transactions that this account submits for other owners may use {most} gas in 24 hours;"
            f" they have {used}, and this one may use {needed}; try again in {retry_after_s} s, or ask the"
            " operator to admit the account",
            most=most,
            used=used,
            needed=needed,
            retry_after_s=retry_after_s,
        )


class RelayerGasReached(Unavailable):
    """All clients together used the relayer's gas of a day; nothing was done."""

    def __init__(self, most: int, used: int, needed: int, retry_after_s: int) -> None:
        super().__init__(
            f"transactions of all owners may use {most} gas in 24 hours; they have {used}, and this one may"
            f" use {needed}; try again in {retry_after_s} s",
            most=most,
            used=used,
            needed=needed,
            retry_after_s=retry_after_s,
        )


class RelayerGasReserved(Unavailable):
    """More than half of the relayer's gas of a day is used, and the rest is for others; nothing was done."""

    def __init__(
        self, most: int, used: int, needed: int, retry_after_s: int, *, is_known: bool
    ) -> None:
        whose = (
            f"this owner may have {most} of it in 24 hours"
            if is_known
            else "it is for owners whose wallets have held collateral or tokens for a day, at least the smallest"
            " order's size, and this owner's have not"
        )
        super().__init__(
            f"less than half of the relayer's gas of 24 hours is left, and {whose}; this owner has used {used},"
            f" and this transaction may use {needed}; try again in {retry_after_s} s",
            most=most,
            used=used,
            needed=needed,
            retry_after_s=retry_after_s,
        )


class TransactionNotFound(NotFound):
    """The caller signed and submitted no transaction with this id."""

    def __init__(self) -> None:
        super().__init__("you have signed and submitted no transaction with this id")


class NotSentYet(Unavailable):
    """A wallet's transaction still waits for an earlier one; repeating the request resumes the wait."""

    definite = False
    resumed = True

    def __init__(self, transaction_id: str, waited_s: float) -> None:
        super().__init__(
            f"after {waited_s:g} s transaction {transaction_id} still waits for an earlier one of"
            " the wallet; send the same request again to keep waiting",
            transaction_id=transaction_id,
            retry_after_s=1,
        )


class WalletServiceDisabled(Unavailable):
    """The relayer cannot work now: its chain does not answer, or is not the configured one."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause, retry_after_s=5)
