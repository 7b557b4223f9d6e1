"""Refusals of the trading API about a request itself, not about books and ledger.

Their place in the tree of refusals: see `families`.
"""

from collections.abc import Mapping, Sequence

from foretell.domain.errors.families import Conflict, InvalidInput, NotFound


class OrderVersionMismatch(InvalidInput):
    """The order has a struct version that no signing profile of its exchange accepts."""

    cure = "sign the version of the order struct in served, for one of the domains"

    def __init__(
        self, version: int, served: Sequence[int], domains: Sequence[Mapping[str, object]]
    ) -> None:
        super().__init__(
            f"the order has version {version} of the struct, and must have"
            f" {' or '.join(map(str, served))}",
            served=list(served),
            domains=list(domains),
        )


class WalletNeedsVersion2(InvalidInput):
    """A contract wallet signs version 2 of the order struct alone."""

    cure = "sign version 2 of the order struct, which has a timestamp"

    def __init__(self) -> None:
        super().__init__(
            "signatureType 3 belongs to version 2 of the order struct, and the order has version 1"
        )


class SignerNotWallet(InvalidInput):
    """The signer of a contract wallet's order is not the wallet."""

    cure = "put the wallet into signer as into maker; its owner signs for it"

    def __init__(self, signer: str, maker: str) -> None:
        super().__init__(
            f"the signer is {signer}, and must be the maker {maker} where signatureType is 3",
            want=maker,
        )


class NoDepositWallets(InvalidInput):
    """The deployment has no factory of deposit wallets."""

    cure = "trade with another signatureType that GET /auth/account lists"

    def __init__(self) -> None:
        super().__init__("signatureType is 3, and this deployment has no deposit wallets")


class WalletRefuses(InvalidInput):
    """A contract wallet does not accept the signature on the chain, or is not deployed."""

    cure = "create the wallet at the relayer (WALLET-CREATE), and sign with its owner's key"

    def __init__(self, wallet: str) -> None:
        super().__init__(
            f"the wallet {wallet} does not accept the signature on the chain, or is not deployed"
        )


class NotWalletOwner(InvalidInput):
    """The order's signer alone may no longer sign for its Safe."""

    cure = "sign with the key of an owner of the wallet whose signature alone is enough for it"

    def __init__(self, signer: str, wallet: str) -> None:
        super().__init__(
            f"the wallet {wallet} does not let {signer} sign alone: it has other owners, or needs more of them"
        )


class OwnerMismatch(InvalidInput):
    """The owner of the order is not the API key of the request."""

    cure = "put the id of the API key that signs the request into owner"

    def __init__(self, owner: str) -> None:
        super().__init__(
            f"the owner is {owner[:64]!r}, and must be the API key that signs the request"
        )


class SignerNotCaller(InvalidInput):
    """The signer of the order is not the address of the caller."""

    cure = "sign with the wallet that the API key belongs to"

    def __init__(self, signer: str, caller: str) -> None:
        super().__init__(
            f"the signer is {signer}, and must be {caller}, the address of the API key", want=caller
        )


class UnsupportedSignatureType(InvalidInput):
    """The signature type of the order is not supported."""

    cure = "use a signatureType that GET /auth/account lists"

    def __init__(self, signature_type: int, served: Mapping[int, str]) -> None:
        super().__init__(
            f"signatureType is {signature_type}, and must be {_choices(served)}",
            want=list(served),
        )


def _choices(served: Mapping[int, str]) -> str:
    return " or ".join(f"{number} ({name})" for number, name in served.items())


class WrongWallet(InvalidInput):
    """The maker of the order is not the signer's wallet of this signature type."""

    cure = "ask GET /auth/account for the maker of each signatureType"

    def __init__(self, maker: str, wanted: str) -> None:
        super().__init__(
            f"the maker is {maker}, and must be {wanted}, the signer's wallet of this type",
            want=wanted,
        )


class PrivateOrder(InvalidInput):
    """The order names a taker; only public orders are supported."""

    cure = "put the zero address into taker"

    def __init__(self, taker: str) -> None:
        super().__init__(
            f"the taker is {taker}, and must be the zero address: only public orders are supported"
        )


class InvalidOrderNonce(InvalidInput):
    """The nonce of the order is not its maker's nonce at the exchange."""

    cure = "ask GET /auth/account for the maker's nonce"

    def __init__(self, nonce: int, wanted: int) -> None:
        super().__init__(
            f"the nonce is {nonce}, and must be {wanted}, the maker's nonce at the exchange",
            want=wanted,
        )


class OrderStopped(InvalidInput):
    """The maker ended its orders of an earlier timestamp at the exchange."""

    cure = "sign the order again, with the present time in timestamp"

    def __init__(self, timestamp_ms: int, stop_ms: int) -> None:
        super().__init__(
            f"the timestamp is {timestamp_ms}, and the maker ended at the exchange all orders with one"
            f" below {stop_ms}",
            want=stop_ms,
        )


class OwnerSigningOff(InvalidInput):
    """The Safe takes no orders at the exchange that its first owner signs alone."""

    cure = "call setOwnerSigning(true) at the exchange as the Safe, or trade with another wallet"

    def __init__(self, safe: str) -> None:
        super().__init__(f"the Safe {safe} takes no orders that its first owner signs alone")


class InvalidTokenId(InvalidInput):
    """A token id is missing, or is not a decimal integer."""

    def __init__(self) -> None:
        super().__init__("token_id must be a decimal integer in a string", field="token_id")


class InvalidSide(InvalidInput):
    """A side is neither BUY nor SELL."""

    def __init__(self) -> None:
        super().__init__("side must be BUY or SELL", field="side")


class MalformedBatch(InvalidInput):
    """The body of a batch request, or a cursor, is malformed."""


class BatchTooLong(InvalidInput):
    """A batch request has more entries than the route allows."""

    def __init__(self, entries_max: int) -> None:
        super().__init__(f"a request may have at most {entries_max} entries")


class BooksTooLarge(InvalidInput):
    """The books of the tokens of a batch are larger than one answer may be."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            f"the books of these tokens have more than {bytes_max} bytes together; request fewer tokens",
            bytes_max=bytes_max,
        )


class TooManyOrders(InvalidInput):
    """A request places more orders than allowed."""

    def __init__(self, count: int, most: int) -> None:
        super().__init__(f"the request has {count} orders; at most {most} are allowed", most=most)
        self.count = count
        self.most = most


class TooManyCancels(InvalidInput):
    """A request cancels more orders than allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(f"a request may cancel at most {most} orders", most=most)
        self.most = most


class InvalidOrderId(InvalidInput):
    """An order id is not 0x and 64 hex digits."""

    def __init__(self) -> None:
        super().__init__("an order id must be 0x and 64 hex digits", field="orderID")


class NothingNamed(InvalidInput):
    """A request to cancel orders of a market names neither a market nor a token."""

    def __init__(self) -> None:
        super().__init__("market or asset_id must be given")


class InvalidOrderFilter(InvalidInput):
    """A filter of a list of orders is malformed."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class InvalidTradeFilter(InvalidInput):
    """A filter of a list of trades is malformed."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)


class InvalidMarketId(InvalidInput):
    """A market's id is not 0x and 64 hex digits."""

    def __init__(self) -> None:
        super().__init__("a market id must be 0x and 64 hex digits", field="condition_id")


class InvalidAssetType(InvalidInput):
    """An asset type is neither COLLATERAL nor CONDITIONAL."""

    def __init__(self) -> None:
        super().__init__("asset_type must be COLLATERAL or CONDITIONAL", field="asset_type")


class InvalidSignatureType(InvalidInput):
    """A signature type names a kind of wallet that is not supported."""

    def __init__(self, served: Mapping[int, str]) -> None:
        super().__init__(f"signature_type must be {_choices(served)}", field="signature_type")


class OrderNotFound(NotFound):
    """The account has placed no such order."""

    def __init__(self, order_id: str) -> None:
        super().__init__(f"this account has placed no order {order_id[:66]}")


class MarketNotFound(NotFound):
    """No market has this id."""

    def __init__(self, condition_id: str) -> None:
        super().__init__(f"no market has the id {condition_id}")


class NeverTraded(NotFound):
    """A token has no last price before its first trade."""

    def __init__(self, token_id: str) -> None:
        super().__init__(f"token {token_id} has never been traded")


class NoPrice(NotFound):
    """The side of the book is empty."""

    def __init__(self, token_id: str, side: str) -> None:
        super().__init__(f"token {token_id} has no {side} price: that side of its book is empty")


class HeartbeatMismatch(Conflict):
    """The heartbeat does not name the one before it; the details have the expected id."""

    def __init__(self, heartbeat_id: str) -> None:
        super().__init__(
            f"heartbeat_id must be {heartbeat_id}, the id of the previous heartbeat",
            heartbeat_id=heartbeat_id,
        )


class RequestTaken(Conflict):
    """The same request was sent before, and its answer is not known."""

    def __init__(self) -> None:
        super().__init__(
            "this request was taken before, and its answer is not known; look at its effect, and sign a new"
            " request, with another Idempotency-Key if it had one, if needed"
        )


class NameTaken(Conflict):
    """Another address has this name."""

    def __init__(self) -> None:
        super().__init__("another address has this name; choose another one")


class TooManyApiKeys(Conflict):
    """The address has created as many API keys as it may."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"an address creates at most {most} API keys, those that it revoked included; use one that is"
            " active, or another address",
            most=most,
        )


class TooManyReadonlyKeys(Conflict):
    """The address has as many read-only keys as it may have."""

    def __init__(self, most: int, created_most: int) -> None:
        super().__init__(
            f"an address has at most {most} read-only keys, and at most {created_most} with those that it"
            " deleted; delete one, or use another address",
            most=most,
        )


class KeyNotOwned(NotFound):
    """The key to revoke is no active key of the caller's address."""

    def __init__(self) -> None:
        super().__init__("this address has no such active API key")
