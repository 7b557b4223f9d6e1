import pytest
from tests.rigs.values import a_word, an_address

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.errors.order import (
    InvalidAssetType,
    InvalidOrderFilter,
    InvalidSignatureType,
    InvalidTradeFilter,
    MalformedBatch,
)
from foretell.domain.portfolio.price_history import INTERVALS_S, SECONDS_MAX
from foretell.edge.parameters import Parameter
from foretell.edge.query import Query
from foretell.trading.wire import parameters
from foretell.trading.wire.pages import OFFSET_MAX


@pytest.mark.parametrize(
    ("parameter", "value", "parsed"),
    [
        (parameters.CURSOR, "MTAw", 100),
        (parameters.CURSOR, "LTE=", OFFSET_MAX),
        (parameters.CURSOR, "", 0),
        (parameters.ORDER_ID, a_word("order").upper().replace("0X", "0x"), a_word("order")),
        (parameters.TRADE_MARKET, a_word("market"), a_word("market")),
        (parameters.TRADE_TOKEN, "12", "12"),
        (parameters.TAKER, an_address("alice"), an_address("alice")),
        (parameters.BEFORE_S, "12", 12),
        (parameters.ASSET_TYPE, "conditional", parameters.AssetType.CONDITIONAL),
        (parameters.SIGNATURE_TYPE, "2", 2),
        (parameters.SIGNATURE_TYPE, "", 0),
        (parameters.SIDE, "neither", "neither"),
        (parameters.INTERVAL, "never", "never"),
    ],
)
def test_a_parameter_is_read_as_its_value(
    parameter: Parameter[object], value: str, parsed: object
) -> None:
    assert Query([(parameter.names[0], value)]).read(parameter) == parsed


@pytest.mark.parametrize(
    ("parameter", "value", "refusal"),
    [
        (parameters.CURSOR, "x", MalformedBatch),
        (parameters.ORDER_ID, "x", InvalidOrderFilter),
        (parameters.ORDER_MARKET, "x", InvalidOrderFilter),
        (parameters.ORDER_TOKEN, "x", InvalidOrderFilter),
        (parameters.TRADE_MARKET, "x", InvalidTradeFilter),
        (parameters.TRADE_TOKEN, "x", InvalidTradeFilter),
        (parameters.MAKER_ADDRESS, "x", InvalidTradeFilter),
        (parameters.TAKER, "x", InvalidTradeFilter),
        (parameters.MAKER, "x", InvalidTradeFilter),
        (parameters.BEFORE_S, "-1", InvalidTradeFilter),
        (parameters.AFTER_S, str(SECONDS_MAX + 1), InvalidTradeFilter),
        (parameters.START_S, "-1", MalformedQuery),
        (parameters.ASSET_TYPE, "", InvalidAssetType),
        (parameters.ASSET_TYPE, "GOLD", InvalidAssetType),
        (parameters.SIGNATURE_TYPE, "4", InvalidSignatureType),
        (parameters.TOKEN, "1" * 257, MalformedQuery),
    ],
)
def test_a_malformed_parameter_is_refused_in_the_words_of_its_route(
    parameter: Parameter[object], value: str, refusal: type[ForetellError]
) -> None:
    with pytest.raises(refusal):
        Query([(parameter.names[0], value)]).read(parameter)


def test_a_refused_filter_names_the_parameter_and_the_value_that_it_needs() -> None:
    with pytest.raises(InvalidTradeFilter, match="asset_id must be a decimal integer"):
        Query([("asset_id", "x")]).read(parameters.TRADE_TOKEN)


def test_a_word_that_the_handler_checks_is_documented_with_its_choices() -> None:
    assert parameters.SIDE.schema.enum == ["BUY", "SELL"]
    assert parameters.INTERVAL.schema.enum == list(INTERVALS_S)
    assert parameters.SIGNATURE_TYPE.schema.enum == ["0", "1", "2", "3"]
