"""The refusals of the engine: what an order may not be, and what its book and ledger do not allow.

They belong to the tree at the top of `errors.py`.
"""

from typing import Any, ClassVar, Final

from foretell.domain.errors.families import Conflict, InvalidInput, NotFound, Unavailable

COLLATERAL: Final = "0"
"""What stands for collateral where a token id would stand for a token."""


class MalformedOrder(InvalidInput):
    """An order's fields do not make an order."""

    cure = "send the order as docs/reference/trading-api.md shows it"


class InvalidExpiration(InvalidInput):
    """An order's expiration does not fit its type or the time."""

    cure = "give GTD orders an expiration more than a minute ahead, and others 0"


class InvalidFeeRate(InvalidInput):
    """The fee rate that was signed is not the market's."""

    cure = "put the base_fee of GET /fee-rate into feeRateBps"

    def __init__(self, signed_bps: int, market_bps: int) -> None:
        super().__init__(
            f"feeRateBps is {signed_bps}, and the market's is {market_bps}", want=market_bps
        )


class PriceOffTick(InvalidInput):
    """The ratio of the order's amounts is not a whole number of ticks between 0 and 1."""

    cure = (
        "choose a price that is a multiple of GET /tick-size, and compute the"
        " amounts from it without rounding"
    )

    def __init__(
        self, order_id: str, collateral_units: int, size_units: int, ticks_per_one: int
    ) -> None:
        super().__init__(
            f"{collateral_units} collateral for {size_units} tokens is not a whole number of"
            f" ticks of 1/{ticks_per_one}, strictly between 0 and 1",
            order_id=order_id,
            collateral_units=collateral_units,
            size_units=size_units,
            ticks_per_one=ticks_per_one,
        )


class TickNotFiner(Conflict):
    """A market's tick only ever becomes finer, and a whole number of the finer make the coarser."""

    def __init__(self, ticks_per_one: int, wanted: int) -> None:
        super().__init__(
            f"a tick of 1/{ticks_per_one} cannot become one of 1/{wanted}", ticks_per_one=wanted
        )


class SizeBelowMinimum(InvalidInput):
    """The order is for fewer tokens than the market's minimum."""

    cure = "ask for at least the minimum of the market"

    def __init__(self, order_id: str, size_units: int, size_units_min: int) -> None:
        super().__init__(
            f"the size is {size_units} base units, and the minimum {size_units_min}",
            order_id=order_id,
            size_units=size_units,
            size_units_min=size_units_min,
        )


class SignerMismatch(InvalidInput):
    """The signature was not made by the signer that the order names, under any profile served."""

    cure = "sign one of the domains that GET /auth/account lists, with the key of the signer"

    def __init__(self, signer: str) -> None:
        super().__init__(f"the signature is not one of {signer} under any domain served here")


class ForeignProfile(InvalidInput):
    """A signing profile of another exchange on a chain that is not the sandbox's."""

    def __init__(self, name: str, contract: str) -> None:
        super().__init__(
            f"the domain {name} of {contract} belongs to another exchange: an order signed for it"
            " could be replayed there, so only the sandbox accepts it"
        )


class NotEnoughFunds(InvalidInput):
    """The wallet cannot cover the order; the subclass says why, the details the numbers."""

    def __init__(self, **numbers: Any) -> None:
        asset = numbers["asset"]
        named = "collateral" if asset == COLLATERAL else f"token {asset}"
        super().__init__(
            f"the order needs {numbers['need']} base units of {named}: {self.cause}", **numbers
        )

    cause: ClassVar[str] = ""


class InsufficientBalance(NotEnoughFunds):
    """The wallet does not hold enough, unsettled trades counted in."""

    cure = "fund the maker's wallet, or ask for less"
    cause = "the wallet does not hold as much"


class InsufficientAllowance(NotEnoughFunds):
    """The wallet holds enough and does not let the exchange move it."""

    cure = "let the exchange move the asset, by approve or setApprovalForAll"
    cause = "the wallet does not allow the exchange to move as much"


class ReservedByOpenOrders(NotEnoughFunds):
    """The wallet holds enough, and its open orders have reserved it."""

    cure = "cancel an open order, or ask for less"
    cause = "open orders of the wallet have reserved it"


class UnknownMarket(NotFound):
    """No market that trades is meant."""

    cure = "use a token id that GET /markets lists"

    def __init__(self, name: str) -> None:
        super().__init__(f"no market trades {name}")


class MarketClosed(Conflict):
    """The market takes no more orders."""

    cure = "choose another market: this one trades no more"

    def __init__(self, condition_id: str, status: str) -> None:
        super().__init__(f"market {condition_id} is {status}", condition_id=condition_id)


class OrderCanceledOnChain(Conflict):
    """The maker has canceled the order at the exchange, so it could never settle."""

    cure = "use another salt"

    def __init__(self, order_id: str) -> None:
        super().__init__(
            f"order {order_id} was canceled by its maker at the exchange", order_id=order_id
        )


class OrderDuplicated(Conflict):
    """The same signed order was placed before, on other terms."""

    cure = "use another salt"

    def __init__(self, order_id: str) -> None:
        super().__init__(
            f"order {order_id} was placed before with another type or owner", order_id=order_id
        )


class OrderPlacedBefore(Conflict):
    """The same signed order was placed long ago; only its row in the tables says what became of it."""

    cure = "use another salt"

    def __init__(self, order_id: str) -> None:
        super().__init__(
            f"order {order_id} was placed before; GET /data/order/{order_id} says what became of it",
            order_id=order_id,
        )


class PostOnlyWouldCross(InvalidInput):
    """An order that must only rest would match at once."""

    cure = "choose a price that does not meet the book"

    def __init__(self) -> None:
        super().__init__("a post-only order may not match at once, and this one would")


class FillOrKillUnfilled(InvalidInput):
    """The book cannot fill the whole order now."""

    cure = "ask for less, or take a worse price, or use FAK"

    def __init__(self) -> None:
        super().__init__("the book cannot fill the whole order now, so none of it was filled")


class FillAndKillUnmatched(InvalidInput):
    """The book cannot fill any of the order now."""

    cure = "take a worse price, or let the order rest as GTC"

    def __init__(self) -> None:
        super().__init__("the book cannot fill any of the order now")


class EngineRestarting(Unavailable):
    """The engine is reading its journal; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the matching engine is restarting", retry_after_s=1)


class EngineBusy(Unavailable):
    """More commands wait for the disk than the engine holds; nothing was done."""

    def __init__(self) -> None:
        super().__init__("too many commands wait for the disk", retry_after_s=1)


class TreasuryUnavailable(Unavailable):
    """What an order lacks in its shard could not be asked of the treasury; nothing was done."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the treasury cannot be asked for collateral: {cause}", retry_after_s=1)


class AnswerLost(Unavailable):
    """The engine was lost before it answered; whether it did what it was asked is not known."""

    definite = False

    def __init__(self) -> None:
        super().__init__("the matching engine was lost before it answered", retry_after_s=1)


class EngineCancelOnly(Unavailable):
    """The disk is nearly full, and what is left is for what frees people from their orders."""

    def __init__(self) -> None:
        super().__init__(
            "the disk is nearly full: orders are canceled, and none is placed until there is room",
            retry_after_s=5,
        )


class EngineReadOnly(Unavailable):
    """The disk is full; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the disk is full: nothing is taken until there is room", retry_after_s=5)


class EngineStalled(Unavailable):
    """The disk has not taken this command for so long that nobody should wait; it may still."""

    definite = False

    def __init__(self, within_s: float) -> None:
        super().__init__(
            f"the disk has taken nothing for {within_s:g} s; whether this happened is known when"
            " it does: send it again",
            retry_after_s=5,
        )


class EngineStopped(Unavailable):
    """The engine cannot make commands durable; whether this one is, only a restart will tell."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the matching engine has stopped: {cause}")
