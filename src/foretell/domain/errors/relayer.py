"""The refusals of the relayer.

They belong to the tree at the top of `errors.py`.
"""

from foretell.domain.errors.families import Conflict, InvalidInput, Unavailable, Upstream


class InvalidField(InvalidInput):
    """A field of a relay request is missing, or does not say what it must."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"it must be {wanted}", field=field)


class OwnerAddressMismatch(InvalidInput):
    """A request is sent for another owner than the one whose API key it bears."""

    def __init__(self, owner: str, caller: str) -> None:
        super().__init__(
            f"from is {owner}, and the API key belongs to {caller}", owner=owner, caller=caller
        )


class NonceMismatch(Conflict):
    """A wallet's transaction is signed for another nonce than the wallet's next one."""

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"expected {expected}, got {got}", expected=expected, got=got)


class WalletExists(InvalidInput):
    """The owner's wallet was made before."""

    def __init__(self, wallet: str) -> None:
        super().__init__(f"{wallet} is deployed already", wallet=wallet)


class NothingToRedeem(InvalidInput):
    """The wallet holds no token that the call would redeem; the details name who does."""

    def __init__(self, wallet: str, holder: str | None) -> None:
        hint = "" if holder is None else f"; {holder} does"
        super().__init__(f"{wallet} holds none of these tokens{hint}", wallet=wallet, holder=holder)


class NotEnoughToMerge(InvalidInput):
    """The wallet holds fewer complete sets than it wants to merge."""

    def __init__(self, have: int, need: int) -> None:
        super().__init__(
            f"the wallet holds {have} complete sets, and {need} are to be merged",
            have=have,
            need=need,
        )


class MergeImpossible(InvalidInput):
    """The chain does not let the wallet merge as it wants to."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class ExecutionFailed(Upstream):
    """A wallet's transaction was not executed; the cause ends with the node's own words."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class CallReverts(ExecutionFailed):
    """The node ran a wallet's transaction and it reverted, so that nothing was sent."""


class TooManyQueued(Unavailable):
    """A wallet has more transactions under way than are queued for it; nothing was done."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} transactions of the wallet are under way already", most=most, retry_after_s=1
        )


class NotSentYet(Unavailable):
    """A wallet's transaction still waits for the one before it; the same request finds it again."""

    definite = False

    def __init__(self, transaction_id: str, waited_s: float) -> None:
        super().__init__(
            f"after {waited_s:g} s transaction {transaction_id} still waits for an earlier one of"
            " the wallet; the same request, sent again, waits on",
            transaction_id=transaction_id,
            retry_after_s=1,
        )


class WalletServiceDisabled(Unavailable):
    """The relayer cannot work now: its chain does not answer, or is another one."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause, retry_after_s=5)
