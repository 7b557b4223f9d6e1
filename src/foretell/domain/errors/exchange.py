"""Refusals of the matching engine, its books and its ledger.

Their place in the tree of refusals: see `families`.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from foretell.domain.errors.families import Conflict, InvalidInput, NotFound, Unavailable

COLLATERAL: Final = "0"
"""The asset id of collateral; all others are token ids."""


class MalformedOrder(InvalidInput):
    """The fields of an order are malformed."""

    cure = "send the order as docs/reference/trading-api.md shows it"


class InvalidExpiration(InvalidInput):
    """An order's expiration does not fit its type or the time."""

    cure = "give a GTD order an expiration more than 60 s ahead, and any other order 0"


class InvalidFeeRate(InvalidInput):
    """The signed fee rate is not the market's."""

    cure = "put the base_fee of GET /fee-rate into feeRateBps"

    def __init__(self, signed_bps: int, market_bps: int) -> None:
        super().__init__(
            f"feeRateBps is {signed_bps}, and must be the market's {market_bps}", want=market_bps
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
    """The new tick of a market does not divide the present one, or is not a listed tick."""

    def __init__(self, ticks_per_one: int, wanted: int) -> None:
        super().__init__(
            f"the tick cannot change from 1/{ticks_per_one} to 1/{wanted}", ticks_per_one=wanted
        )


class SizeBelowMinimum(InvalidInput):
    """The order is smaller than the market's minimum."""

    cure = "ask for at least the minimum of the market"

    def __init__(self, order_id: str, size_units: int, size_units_min: int) -> None:
        super().__init__(
            f"the size is {size_units} base units, and the minimum is {size_units_min}",
            order_id=order_id,
            size_units=size_units,
            size_units_min=size_units_min,
        )


class BudgetBelowMinimum(InvalidInput):
    """The order buys at once for less collateral than the minimum."""

    cure = "spend at least 1.00"

    def __init__(self, order_id: str, budget_units: int, budget_units_min: int) -> None:
        super().__init__(
            f"the order spends {budget_units} base units of collateral, and the minimum is"
            f" {budget_units_min}",
            order_id=order_id,
            budget_units=budget_units,
            budget_units_min=budget_units_min,
        )


class SignerMismatch(InvalidInput):
    """The signature was not made by the order's signer under any accepted domain."""

    cure = "sign one of the domains that GET /auth/account lists, with the key of the signer"

    def __init__(
        self, signer: str, fits: str = "", signed_for: Mapping[str, object] | None = None
    ) -> None:
        reason = f"; {fits}" if fits else ""
        details = {} if signed_for is None else {"signed_for": dict(signed_for)}
        super().__init__(
            f"the signature was not made by {signer} under any domain that is accepted here{reason}",
            **details,
        )


class ForeignSeparator(InvalidInput):
    """The signature of a contract wallet names a domain that is not accepted."""

    cure = "sign one of the domains that GET /auth/account lists for version 2 of the order struct"

    def __init__(
        self, separator: str, fits: str = "", signed_for: Mapping[str, object] | None = None
    ) -> None:
        reason = f"; {fits}" if fits else ""
        details = {} if signed_for is None else {"signed_for": dict(signed_for)}
        super().__init__(
            f"the wallet's signature is for the domain separator {separator}, which is none that is"
            f" accepted here{reason}",
            **details,
        )


class ContentsMismatch(InvalidInput):
    """The signature of a contract wallet is of another order."""

    cure = "sign the order that is sent, with the wallet as maker and as signer"

    def __init__(self, named: str, wanted: str) -> None:
        super().__init__(
            f"the wallet's signature is of an order with the struct hash {named}, and this order"
            f" has {wanted}",
            want=wanted,
        )


class ForeignProfile(InvalidInput):
    """A signing profile names another exchange, and the chain is not a sandbox."""

    def __init__(self, name: str, contract: str) -> None:
        super().__init__(
            f"the domain {name} of {contract} belongs to another exchange: an order signed for it"
            " could be replayed there, so it is allowed in the sandbox only"
        )


class Shortfall(NamedTuple):
    """An account that cannot cover an order: what the order needs of the asset, and what there is.

    `pending_units` is what unsettled trades add, below zero what they take; `allowance_units` is
    what the wallet allows the `spender`, the exchange, to move.
    """

    asset: str
    spender: str
    need_units: int
    have_units: int
    pending_units: int
    reserved_units: int
    allowance_units: int


class NotEnoughFunds(InvalidInput):
    """The wallet cannot cover the order; each subclass is a cause."""

    cause: ClassVar[str] = ""

    def __init__(self, shortfall: Shortfall) -> None:
        self.shortfall = shortfall
        asset = shortfall.asset
        named = "collateral" if asset == COLLATERAL else f"token {asset}"
        super().__init__(
            f"the order needs {shortfall.need_units} base units of {named}: {self.cause}",
            asset=asset,
            spender=shortfall.spender,
            need=shortfall.need_units,
            have=shortfall.have_units,
            pending=shortfall.pending_units,
            reserved=shortfall.reserved_units,
            allowance=shortfall.allowance_units,
        )


class InsufficientBalance(NotEnoughFunds):
    """The wallet does not hold enough, with unsettled trades counted in."""

    cure = "fund the maker's wallet, or ask for less"
    cause = "the wallet does not hold as much"


class InsufficientAllowance(NotEnoughFunds):
    """The wallet holds enough, but does not allow the exchange to move it."""

    cure = "let the exchange move the asset, by approve or setApprovalForAll"
    cause = "the wallet does not allow the exchange to move as much"


class ReservedByOpenOrders(NotEnoughFunds):
    """The wallet holds enough, but its open orders reserve it."""

    cure = "cancel an open order, or ask for less"
    cause = "open orders of the wallet have reserved it"


class UnknownMarket(NotFound):
    """No open market has the condition or the token."""

    cure = "use a token id that GET /markets lists"

    def __init__(self, name: str, *, has_ended: bool = False) -> None:
        super().__init__(
            f"the market of {name} has ended" if has_ended else f"no market trades {name}"
        )


class MarketClosed(Conflict):
    """The market is closed for trading."""

    cure = "choose another market: this one no longer trades"

    def __init__(self, condition_id: str, status: str) -> None:
        super().__init__(
            f"market {condition_id} is {status} and no longer trades", condition_id=condition_id
        )


class MarketHalted(Conflict):
    """A reorganization of the chain removed the market's question; it may come back."""

    cure = "wait until the chain has the market again"

    def __init__(self, condition_id: str) -> None:
        super().__init__(
            f"market {condition_id} is halted, because the chain lost its question",
            condition_id=condition_id,
        )


class OrderCanceledOnChain(Conflict):
    """The maker canceled the order at the exchange, so it cannot settle."""

    cure = "use another salt"

    def __init__(self, order_id: str) -> None:
        super().__init__(
            f"order {order_id} was canceled by its maker at the exchange", order_id=order_id
        )


class WalletBarred(Conflict):
    """The order's wallet made settlements fail, and is barred until it has proved itself."""

    cure = "mend the wallet, and wait: it is tried again from time to time"

    def __init__(self, wallet: str, cause: str) -> None:
        super().__init__(f"wallet {wallet} is barred from matching: {cause}", wallet=wallet)


class OrderDuplicated(Conflict):
    """The same signed order was placed before with another type or owner."""

    cure = "use another salt"

    def __init__(self, order_id: str) -> None:
        super().__init__(
            f"order {order_id} was placed before with another type or owner", order_id=order_id
        )


class OrderPlacedBefore(Conflict):
    """The same signed order was placed before; its outcome is in the tables only."""

    cure = "use another salt"

    def __init__(self, order_id: str) -> None:
        super().__init__(
            f"order {order_id} was placed before; GET /data/order/{order_id} returns its state",
            order_id=order_id,
        )


class PostOnlyWouldCross(InvalidInput):
    """A post-only order would match at once."""

    cure = "choose a price that does not meet the book"

    def __init__(self) -> None:
        super().__init__("the order is post-only, and would match a resting order at once")


class FillOrKillUnfilled(InvalidInput):
    """The book cannot fill the whole of a fill-or-kill order now."""

    cure = "ask for less, or take a worse price, or use FAK"

    def __init__(self) -> None:
        super().__init__("the book cannot fill the whole order now, so none of it was filled")


class FillAndKillUnmatched(InvalidInput):
    """The book cannot fill any part of a fill-and-kill order now."""

    cure = "take a worse price, or let the order rest as GTC"

    def __init__(self) -> None:
        super().__init__("the book cannot fill any of the order now")


class EngineRestarting(Unavailable):
    """The engine is replaying its journal; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the matching engine is restarting", retry_after_s=1)


class EngineBusy(Unavailable):
    """Too much waits for the engine, the tables or settlement; nothing was done."""

    def __init__(self, cause: str = "the matching engine has too many waiting commands") -> None:
        super().__init__(f"{cause}; nothing was done, try again later", retry_after_s=1)


class TreasuryUnavailable(Unavailable):
    """The treasury could not be asked for missing collateral; nothing was done."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"the treasury cannot supply the missing collateral: {cause}; nothing was done, try again"
            " later",
            retry_after_s=1,
        )


class AnswerLost(Unavailable):
    """The connection to the engine was lost before its reply; the outcome is unknown."""

    definite = False

    def __init__(self) -> None:
        super().__init__(
            "the connection to the matching engine was lost before its reply, so the outcome is"
            " unknown; an order may be sent again",
            retry_after_s=1,
        )


class EngineCancelOnly(Unavailable):
    """Orders can be canceled but not placed: the disk is nearly full, or the engine is behind the chain."""

    def __init__(self, cause: str = "the disk is nearly full") -> None:
        super().__init__(
            f"{cause}: orders can be canceled but not placed until that has ended",
            retry_after_s=5,
        )


class EngineReadOnly(Unavailable):
    """The disk is full; nothing was done."""

    def __init__(self) -> None:
        super().__init__(
            "the disk is full: no request that changes anything is accepted until there is space",
            retry_after_s=5,
        )


class EngineStalled(Unavailable):
    """The disk did not accept the command in time; it may do so later."""

    definite = False

    def __init__(self, within_s: float) -> None:
        super().__init__(
            f"the disk has not answered for {within_s:g} s, so the outcome is unknown; send the"
            " same request again",
            retry_after_s=5,
        )


class EngineStopped(Unavailable):
    """The engine cannot make commands durable; the outcome of this one is known after a restart."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the matching engine has stopped: {cause}")
