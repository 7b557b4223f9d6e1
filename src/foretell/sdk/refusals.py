"""The code, the cause and the cure of an API's refusal, whichever of the five forms it has."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from foretell.domain.errors.command import ApiRefused


class Refusal(NamedTuple):
    """A refusal, for a program and for a person."""

    code: str
    """The machine-readable code, empty if the answer has none."""
    cause: str
    cure: str
    """What the caller can do."""


_SIGN_AGAIN: Final = "create or derive the API key again, and sign with its secret"
_FUND: Final = "fund the wallet that is the order's maker, or place a smaller order"
CURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "insufficient_balance": _FUND,
        "insufficient_allowance": "approve the market's exchange: `foretell wallet deploy` does it",
        "reserved_by_open_orders": "cancel an open order, or place a smaller one",
        "price_off_tick": "use a price that is a multiple of the market's tick size",
        "size_below_minimum": "use at least the market's `min_order_size`",
        "invalid_expiration": "GTD needs a time more than 60 s ahead; other types need none",
        "order_stopped": "sign the order again, with the present time in `timestamp`",
        "owner_signing_off": "call `setOwnerSigning(true)` as the Safe, or use another wallet",
        "invalid_order_nonce": "read the wallet's nonce with `GET /auth/account`, and sign with it",
        "invalid_fee_rate": "sign with the market's fee: `GET /fee-rate`",
        "unknown_market": "check the token id; a market trades from its finalization to its payout",
        "market_closed": "the market is resolved: redeem its tokens",
        "post_only_would_cross": "use a price on your own side of the book, or no `postOnly`",
        "fill_or_kill_unfilled": "place a smaller order, a worse price, or FAK",
        "fill_and_kill_unmatched": "use a price at which the other side has orders",
        "signer_mismatch": "sign for the domain and chain of `GET /auth/account`",
        "l1_signature_mismatch": "sign with the chain id and domain of `GET /auth/account`",
        "l2_signature_mismatch": _SIGN_AGAIN,
        "unknown_api_key": _SIGN_AGAIN,
        "wrong_passphrase": _SIGN_AGAIN,
        "clock_skew": "set this machine's clock: `GET /time` has the server's",
        "nonce_mismatch": "read the wallet's nonce again, and sign again",
        "nothing_to_redeem": "redeem from the wallet that holds the tokens",
        "already_initialized": "choose another slug or question",
        "auth_expired": "open a new request",
        "tx_pending": "wait until the transactions are in blocks, and finalize again",
        "creator_not_whitelisted": "register a whitelist: `foretell whitelist create`",
        "creator_underfunded": "fund the creator's address with collateral",
        "not_served": "do without it; for exports in Parquet, the operator runs `make parquet`",
        "read_too_slow": "ask for less, such as a smaller page, or send the same request again after `Retry-After`",
        "too_many_requests": "send fewer requests, and wait for Retry-After",
    }
)


CURE_BY_STATUS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "correct what the message names, and send the request again",
        401: "sign the request again, with the key and the time that the message asks for",
        403: "use an account that may do this, or do without it",
        404: "check the path and the id",
        405: "use a method that `Allow` lists",
        408: "send the whole request at once",
        409: "read the present state, and send the request only if it is still wanted",
        413: "send less at once",
        414: "send a shorter URL",
        415: "send the media type that the route documents",
        422: "correct what the message names, and send the request again",
        425: "send the same request again after `Retry-After`",
        429: "send fewer requests, and wait for `Retry-After`",
        431: "send fewer or shorter headers",
        500: "report it to the operator with the request's id: the log has the cause",
        502: "wait: the chain or another service did not answer; read the state before the next try",
        503: "send the same request again after a pause, that of `Retry-After` if there is one",
    }
)
"""What to do about a refusal that has no cure of its own."""


def cure_of(code: str, status: int) -> str:
    """Return what a caller can do about a refusal: its own cure, or that of its status."""
    return CURES.get(code) or CURE_BY_STATUS.get(status, "")


def refusal_of(refused: ApiRefused) -> Refusal:
    """Return the refusal that an answer holds."""
    try:
        answer = msgspec.json.decode(refused.body)
    except msgspec.MsgspecError:
        answer = None
    fields = answer if isinstance(answer, dict) else {}
    inner = fields.get("error")
    if isinstance(inner, dict):  # market creation
        fields, inner = inner, None
    code, cause = _code_and_cause(fields, inner if isinstance(inner, str) else "")
    return Refusal(
        code, cause or refused.message, str(fields.get("cure") or cure_of(code, refused.status))
    )


def _code_and_cause(fields: Mapping[str, Any], words: str) -> tuple[str, str]:
    """Return both: the data API has them in one text, the relayer has no message of its own."""
    code, message = str(fields.get("code") or ""), str(fields.get("message") or "")
    if code:
        return code, message or words
    first, found, rest = words.partition(": ")
    if found and first.replace("_", "").isalnum() and first.islower():
        return first, rest
    return str(fields.get("type") or ""), message or words
