"""Query parameters of the trading API, each declared once: handlers read them, routes document them.

A malformed filter is refused in the words of its list. Parameters that are documented as required
and read as None when absent are refused by their handler, in the words of its route.
"""

import enum
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from foretell.domain.errors.families import ForetellError, MalformedAmount, MalformedHex
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.errors.order import (
    InvalidAssetType,
    InvalidOrderFilter,
    InvalidSignatureType,
    InvalidTradeFilter,
)
from foretell.domain.exchange.order import SERVED_SIGNATURE_TYPES, Side, SignatureType
from foretell.domain.portfolio.price_history import FIDELITY_MINUTES_MAX, INTERVALS_S, SECONDS_MAX
from foretell.domain.values.hexadecimal import Bytes32, parse_address, parse_bytes32
from foretell.domain.values.tokens import is_token_id
from foretell.edge.parameters import (
    Parameter,
    boolean,
    choice,
    entries,
    ignored,
    optional_choice,
    optional_integer,
    text,
    wallet,
)
from foretell.trading.wire.pages import parse_cursor

Value = TypeVar("Value")
Parsed = TypeVar("Parsed")
Words = type[InvalidOrderFilter] | type[InvalidTradeFilter]


class AssetType(enum.StrEnum):
    """The kind of asset that a balance is of."""

    COLLATERAL = "COLLATERAL"
    CONDITIONAL = "CONDITIONAL"


def seconds(name: str, about: str) -> Parameter[int | None]:
    """Declare a time in seconds since 1970, None when it is absent."""
    return optional_integer(name, 0, SECONDS_MAX, about)


def _refusing(
    declared: Parameter[Value], refusal: Callable[[MalformedQuery], ForetellError]
) -> Parameter[Value]:
    """Return a parameter that has its own refusal of a malformed value."""

    def parse(values: Sequence[str]) -> Value:
        try:
            return declared.parse(values)
        except MalformedQuery as error:
            raise refusal(error) from error

    return replace(declared, parse=parse)


def _required(declared: Parameter[Value]) -> Parameter[Value]:
    return replace(declared, is_required=True)


def _one_of(name: str, about: str, among: Sequence[str]) -> Parameter[str | None]:
    """Declare a word of a list; the handler refuses another one, after what it checks first."""
    return replace(text(name, about), schema=optional_choice(name, about, among).schema)


def _filter(
    name: str, about: str, parse: Callable[[str, str], Parsed], refusal: Words
) -> Parameter[Parsed | None]:
    def convert(value: str | None) -> Parsed | None:
        if value is None:
            return None
        try:
            return parse(value, name)
        except (MalformedHex, MalformedAmount) as error:
            raise refusal(error.message) from error

    return text(name, about).convert(convert)


def _parse_token(value: str, name: str) -> str:
    if not is_token_id(value):
        raise MalformedAmount(name, "a decimal integer")
    return value


def _market(refusal: Words) -> Parameter[Bytes32 | None]:
    return _filter("market", "condition id", parse_bytes32, refusal)


def _token(refusal: Words) -> Parameter[str | None]:
    return _filter("asset_id", "token id", _parse_token, refusal)


def _second_of_trade(name: str, about: str) -> Parameter[int | None]:
    return _refusing(seconds(name, about), lambda error: InvalidTradeFilter(error.message))


def _parse_asset_type(value: str | None) -> AssetType:
    if value is None:
        raise InvalidAssetType
    return AssetType(value)


TOKENS: Final = entries("token_ids", "token ids, comma-separated or repeated", "token_id")
WITH_DAY: Final = boolean("include_24h", "add the volume of the last 24 hours", default=False)
TOKEN: Final = _required(text("token_id", "token id, a decimal integer"))
SIDE: Final = _one_of("side", "BUY or SELL, in any case", [side.name for side in Side])
CURSOR: Final = text("next_cursor", "where the next page begins; LTE= is the end").convert(
    parse_cursor
)

HISTORY_TOKEN: Final = _required(text("market", "token id", "token_id"))
INTERVAL: Final = _one_of("interval", "how far back", list(INTERVALS_S))
START_S: Final = seconds("startTs", "first second")
END_S: Final = seconds("endTs", "last second; now if absent")
FIDELITY: Final = optional_integer(
    "fidelity", 1, FIDELITY_MINUTES_MAX, "minutes between two points"
)

ORDER_ID: Final = _filter("id", "order id", parse_bytes32, InvalidOrderFilter)
ORDER_MARKET: Final = _market(InvalidOrderFilter)
ORDER_TOKEN: Final = _token(InvalidOrderFilter)
ORDER_FILTERS: Final = (ORDER_ID, ORDER_MARKET, ORDER_TOKEN)

TRADE_ID: Final = text("id", "trade id")
TRADE_MARKET: Final = _market(InvalidTradeFilter)
TRADE_TOKEN: Final = _token(InvalidTradeFilter)
MAKER_ADDRESS: Final = _filter(
    "maker_address", "one of the address's own wallets", parse_address, InvalidTradeFilter
)
TAKER: Final = _filter("taker", "the taker's wallet", parse_address, InvalidTradeFilter)
MAKER: Final = _filter("maker", "a maker's wallet", parse_address, InvalidTradeFilter)
BEFORE_S: Final = _second_of_trade("before", "trades matched before this second")
AFTER_S: Final = _second_of_trade("after", "trades matched at or after this second")
TRADE_FILTERS: Final = (
    TRADE_ID,
    TRADE_MARKET,
    TRADE_TOKEN,
    MAKER_ADDRESS,
    TAKER,
    MAKER,
    BEFORE_S,
    AFTER_S,
)

BUILDER_WALLET: Final = _filter(
    "maker_address", "the wallet of the builder's order", parse_address, InvalidTradeFilter
)
BUILDER_TRADE_FILTERS: Final = (
    TRADE_ID,
    TRADE_MARKET,
    TRADE_TOKEN,
    BUILDER_WALLET,
    BEFORE_S,
    AFTER_S,
)

ASSET_TYPE: Final = _refusing(
    optional_choice("asset_type", "which asset", [each.value for each in AssetType]),
    lambda _: InvalidAssetType(),
).convert(_parse_asset_type)
BALANCE_TOKEN: Final = text("token_id", "token id, for CONDITIONAL")
SIGNATURE_TYPE: Final = _refusing(
    choice(
        "signature_type",
        "which wallet",
        [str(int(each)) for each in SERVED_SIGNATURE_TYPES],
        str(int(SignatureType.EOA)),
    ),
    lambda _: InvalidSignatureType(SERVED_SIGNATURE_TYPES),
).convert(int)

ADDRESS: Final = wallet("address", "the signing address")
API_KEY: Final = text("apiKey", "the key to revoke; the calling key if absent")
METADATA: Final = boolean("metadata", "return objects instead of ids", default=False)
INCLUDE_REVOKED: Final = ignored("includeRevoked")
