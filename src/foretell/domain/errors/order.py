"""The refusals of the trading API that are about what was sent, not about books and ledger.

They belong to the tree at the top of `errors.py`.
"""

from foretell.domain.errors.families import Conflict, InvalidInput, NotFound


class OrderVersionMismatch(InvalidInput):
    """The order is of another version of the struct than the one served here."""

    cure = "sign version 1 of the order struct"

    def __init__(self, served: int) -> None:
        super().__init__(f"orders of version {served} are served here", served=served)


class OwnerMismatch(InvalidInput):
    """The order names another API key as its owner than the one that sends it."""

    cure = "put the id of the API key that signs the request into owner"

    def __init__(self, owner: str) -> None:
        super().__init__(f"the owner is {owner[:64]!r}, and the request bears another API key")


class SignerNotCaller(InvalidInput):
    """The order names another signer than the address that sends it."""

    cure = "sign with the wallet that the API key belongs to"

    def __init__(self, signer: str, caller: str) -> None:
        super().__init__(
            f"the signer is {signer}, and the request comes from {caller}", want=caller
        )


class UnsupportedSignatureType(InvalidInput):
    """The order's signature type is not one that is served here."""

    cure = (
        "use signatureType 0 for a wallet of your own key,"
        " or 2 for the Safe that the factory makes for it"
    )

    def __init__(self, signature_type: int) -> None:
        super().__init__(
            f"signatureType is {signature_type}; 0 (EOA) and 2 (Safe) are served here", want=[0, 2]
        )


class WrongWallet(InvalidInput):
    """The order's maker is not the wallet that its signer trades with under this signature type."""

    cure = "ask GET /auth/account for the maker of each signatureType"

    def __init__(self, maker: str, wanted: str) -> None:
        super().__init__(f"the maker is {maker}, and the signer's wallet is {wanted}", want=wanted)


class PrivateOrder(InvalidInput):
    """The order names who may take it; only public orders are served."""

    cure = "put the zero address into taker"

    def __init__(self, taker: str) -> None:
        super().__init__(f"the taker is {taker}; an order open to all names the zero address")


class InvalidOrderNonce(InvalidInput):
    """The order's nonce is not the one that its maker has at the exchange."""

    cure = "ask GET /auth/account for the maker's nonce"

    def __init__(self, nonce: int, wanted: int) -> None:
        super().__init__(
            f"the nonce is {nonce}, and the maker's at the exchange is {wanted}", want=wanted
        )


class InvalidTokenId(InvalidInput):
    """A token id is missing, or is not a decimal integer."""

    def __init__(self) -> None:
        super().__init__("token_id must be a decimal integer in a string", field="token_id")


class InvalidSide(InvalidInput):
    """A side is neither BUY nor SELL."""

    def __init__(self) -> None:
        super().__init__("side must be BUY or SELL", field="side")


class MalformedBatch(InvalidInput):
    """The body of a batch request, or a cursor, is not what the route takes."""


class BatchTooLong(InvalidInput):
    """A batch request asks for more than the route answers at once."""

    def __init__(self, entries_max: int) -> None:
        super().__init__(f"at most {entries_max} entries are answered at once")


class TooManyOrders(InvalidInput):
    """More orders than one request may place."""

    def __init__(self, count: int, most: int) -> None:
        super().__init__(f"{count} orders, and at most {most} are placed at once", most=most)
        self.count = count
        self.most = most


class TooManyCancels(InvalidInput):
    """More orders than one request may cancel."""

    def __init__(self, most: int) -> None:
        super().__init__(f"at most {most} orders are canceled at once", most=most)
        self.most = most


class InvalidOrderId(InvalidInput):
    """An order id is not 0x and 64 hex digits."""

    def __init__(self) -> None:
        super().__init__("an order id is 0x and 64 hex digits", field="orderID")


class NothingNamed(InvalidInput):
    """A request to cancel a market's orders names neither a market nor a token."""

    def __init__(self) -> None:
        super().__init__("market or asset_id must be given")


class InvalidOrderFilter(InvalidInput):
    """A filter of a list of orders does not spell what it should."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class InvalidTradeFilter(InvalidInput):
    """A filter of a list of trades does not spell what it should."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class InvalidMarketId(InvalidInput):
    """A market's id is not 0x and 64 hex digits."""

    def __init__(self) -> None:
        super().__init__("a market's id is 0x and 64 hex digits", field="condition_id")


class InvalidAssetType(InvalidInput):
    """An asset type is neither COLLATERAL nor CONDITIONAL."""

    def __init__(self) -> None:
        super().__init__("asset_type must be COLLATERAL or CONDITIONAL", field="asset_type")


class InvalidSignatureType(InvalidInput):
    """A signature type names a wallet of a kind that is not served here."""

    def __init__(self) -> None:
        super().__init__("signature_type must be 0 (EOA) or 2 (Safe)", field="signature_type")


class OrderNotFound(NotFound):
    """No such order was ever accepted from this account."""

    def __init__(self, order_id: str) -> None:
        super().__init__(f"no order {order_id[:66]} of this account was ever accepted")


class MarketNotFound(NotFound):
    """No market has this id."""

    def __init__(self, condition_id: str) -> None:
        super().__init__(f"no market has the id {condition_id}")


class NeverTraded(NotFound):
    """A token has no last price before its first trade."""

    def __init__(self, token_id: str) -> None:
        super().__init__(f"token {token_id} has never been traded")


class NoPrice(NotFound):
    """Nobody offers on the side of the book that the price is asked of."""

    def __init__(self, token_id: str, side: str) -> None:
        super().__init__(f"nobody offers token {token_id} a price to {side}")


class HeartbeatMismatch(Conflict):
    """The beat does not follow the last one; the details say which one it should name."""

    def __init__(self, heartbeat_id: str) -> None:
        super().__init__("the heartbeat does not name the last one", heartbeat_id=heartbeat_id)


class KeyNotOwned(NotFound):
    """The key to revoke is not an active key of the caller's address."""

    def __init__(self) -> None:
        super().__init__("no such active API key of this address")
