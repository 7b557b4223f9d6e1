"""Refusals of orders by the limits of a wallet's open orders and waiting trades.

Their place in the tree of refusals: see `families`.
"""

from foretell.domain.errors.families import Conflict, Unavailable


class TooManyOpenOrders(Conflict):
    """The wallet has as many open orders as it may have, in all markets or in this one."""

    cure = "cancel an open order of the wallet, or wait until one is filled"

    def __init__(self, wallet: str, most: int, condition_id: str = "") -> None:
        place = f" in market {condition_id}" if condition_id else ""
        super().__init__(
            f"wallet {wallet} has {most} or more open orders{place}, and may have at most {most}",
            wallet=wallet,
            most=most,
        )


class CrossesOwnOrders(Conflict):
    """The order crosses more resting orders of its own wallet than one order may cancel."""

    cure = "cancel the wallet's orders that it crosses first"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the order crosses more than {most} resting orders of its own wallet, and may cross at"
            f" most {most}",
            most=most,
        )


class TooManyUnsettledTrades(Unavailable):
    """So many trades that the wallet took wait for the chain that no further order of it is taken that would match."""

    cure = "wait until trades of the wallet are in a block; orders that only rest are taken"

    def __init__(self, wallet: str, most: int) -> None:
        super().__init__(
            f"{most} or more trades that wallet {wallet} took wait for the chain; nothing was done, try"
            " again later",
            retry_after_s=1,
            wallet=wallet,
            most=most,
        )
