from decimal import Decimal

from foretell.data.responses import MarketValue, Profile
from foretell.edge.codec import json_response


def test_amounts_are_sent_as_numbers_under_camel_case_names() -> None:
    record = MarketValue(market="0x12", value=Decimal("12345678901234567890.000001"))
    assert json_response(record).content == (
        b'{"market":"0x12","value":12345678901234567890.000001}'
    )


def test_a_wallet_without_a_profile_has_an_empty_one() -> None:
    assert json_response(Profile()).content == (
        b'{"name":"","pseudonym":"","bio":"","profileImage":"","profileImageOptimized":null}'
    )
