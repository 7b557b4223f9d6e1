import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.trading import order_json
from tests.rigs.values import a_buy, an_address

from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.errors.order import (
    OrderVersionMismatch,
    PrivateOrder,
    UnsupportedSignatureType,
)
from foretell.domain.exchange.order import OrderType
from foretell.domain.values.eip712 import CURVE_ORDER
from foretell.trading.wire.order_body import OrderFields, parse_batch, parse_placing, signed_order

ORDER = a_buy("alice")
MISSING = object()


def a_body(changed: dict[str, Any] | None = None, **fields: Any) -> bytes:
    order = order_json(ORDER) | (changed or {})
    body = {"order": order, "owner": "key", "orderType": "GTC"} | fields
    kept = {name: value for name, value in body.items() if value is not MISSING}
    kept["order"] = {name: value for name, value in order.items() if value is not MISSING}
    return json.dumps(kept).encode()


def fields(**changed: Any) -> OrderFields:
    return parse_placing(a_body(changed)).order


def test_the_fields_of_a_body_make_the_order_that_was_signed() -> None:
    body = parse_placing(a_body(postOnly=True, deferExec=True, orderType="GTD"))
    assert signed_order(body.order) == ORDER
    assert (body.owner, body.order_type, body.post_only) == ("key", OrderType.GTD, True)


def test_a_body_needs_no_more_than_an_order_and_its_owner() -> None:
    body = parse_placing(a_body(orderType=MISSING))
    assert (body.order_type, body.post_only, body.defer_exec) == (OrderType.GTC, False, False)


@pytest.mark.case("G-08")
def test_unknown_keys_are_ignored() -> None:
    assert signed_order(parse_placing(a_body({"conditionId": "0x1"}, x=1).strip()).order) == ORDER


@pytest.mark.parametrize("salt", ["8", 7, 2**255, str(2**256 - 1), "0007"])
def test_a_salt_may_be_a_number_of_any_width_or_a_string(salt: int | str) -> None:
    assert signed_order(fields(salt=salt)).salt == str(int(salt))


@pytest.mark.parametrize(
    "name",
    [
        "salt",
        "maker",
        "signer",
        "taker",
        "tokenId",
        "makerAmount",
        "takerAmount",
        "expiration",
        "nonce",
        "feeRateBps",
        "side",
        "signatureType",
        "signature",
    ],
)
def test_a_field_that_is_missing_is_refused(name: str) -> None:
    with pytest.raises(MalformedOrder):
        parse_placing(a_body({name: MISSING}))


@pytest.mark.case("B-04")
@pytest.mark.parametrize(
    "changed",
    [
        {"salt": 2**256},
        {"salt": -1},
        {"salt": "0x1"},
        {"salt": ""},
        {"maker": "0x12"},
        {"signer": "alice"},
        {"taker": ""},
        {"makerAmount": "1.5"},
        {"makerAmount": "-1"},
        {"makerAmount": str(2**63)},
        {"takerAmount": "1e6"},
        {"takerAmount": ""},
        {"expiration": "soon"},
        {"nonce": str(2**64)},
        {"feeRateBps": " 1"},
        {"side": "buy"},
        {"side": "0"},
        {"signature": "0x12"},
        {"signature": "0xzz"},
        {"signature": "0x" + "11" * 66},
    ],
)
def test_a_malformed_field_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises((MalformedOrder, MalformedSignature)):
        signed_order(fields(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"salt": 1.5},
        {"salt": True},
        {"salt": None},
        {"makerAmount": 5},
        {"side": 0},
        {"signatureType": "0"},
        {"signatureType": 0.5},
        {"tokenId": 12},
        {"signature": None},
    ],
)
def test_a_field_of_another_type_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(MalformedOrder):
        parse_placing(a_body(changed))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"order": 1, "owner": "x"}',
        b"{'order': {}}",
        b"\xff\xfe",
        a_body(orderType="IOC"),
        a_body(orderType=1),
        a_body(owner=5),
        a_body(postOnly="yes"),
        b'{"owner": "key", "order": []}',
        b'{"order":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_a_body_that_is_no_order_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedOrder):
        parse_placing(raw)


@pytest.mark.parametrize("order_type", ["FOK", "FAK"])
def test_a_post_only_order_cannot_be_one_that_only_takes(order_type: str) -> None:
    with pytest.raises(MalformedOrder, match="postOnly"):
        parse_placing(a_body(orderType=order_type, postOnly=True))


@pytest.mark.parametrize("missing", [(), ("taker", "nonce", "feeRateBps")])
def test_an_order_with_a_timestamp_is_of_another_version(missing: tuple[str, ...]) -> None:
    changed: dict[str, Any] = {"timestamp": "1800000000000", "metadata": "0x", "builder": "0x"}
    changed |= dict.fromkeys(missing, MISSING)
    with pytest.raises(OrderVersionMismatch):
        parse_placing(a_body(changed))


@pytest.mark.deviation(9)
@pytest.mark.parametrize("signature_type", [1, 3, 4, -1, 2**40])
def test_only_signature_types_of_wallets_and_safes_are_served(signature_type: int) -> None:
    with pytest.raises(UnsupportedSignatureType):
        signed_order(fields(signatureType=signature_type))


def test_an_order_for_one_taker_alone_is_refused() -> None:
    with pytest.raises(PrivateOrder):
        signed_order(fields(taker=an_address("bob")))


@pytest.mark.case("C-03")
def test_the_malleable_twin_of_a_signature_is_refused() -> None:
    signature = ORDER.signature
    high_s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + high_s.to_bytes(32, "big") + bytes([55 - signature[64]])
    with pytest.raises(MalformedSignature, match="lower half"):
        signed_order(fields(signature="0x" + twin.hex()))


def test_the_entries_of_a_batch_are_not_parsed() -> None:
    assert parse_batch(b'[1, {"a": []}, "x"]') == [
        msgspec.Raw(b"1"),
        msgspec.Raw(b'{"a": []}'),
        msgspec.Raw(b'"x"'),
    ]


@pytest.mark.parametrize("raw", [b"", b"{}", b"null", b"[1", b'"x"'])
def test_a_batch_that_is_no_list_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedOrder):
        parse_batch(raw)


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_no_bytes_at_all_break_the_parser(raw: bytes) -> None:
    with pytest.raises((MalformedOrder, OrderVersionMismatch)):
        parse_placing(raw)


@given(
    st.dictionaries(
        st.sampled_from(["salt", "maker", "tokenId", "makerAmount", "side", "signature", "nonce"]),
        st.none()
        | st.integers()
        | st.text(max_size=80)
        | st.floats(allow_nan=False)
        | st.booleans(),
        min_size=1,
    )
)
def test_no_values_at_all_break_the_fields(changed: dict[str, Any]) -> None:
    outcome: object
    try:
        outcome = signed_order(fields(**changed))
    except (MalformedOrder, MalformedSignature, OrderVersionMismatch) as refusal:
        outcome = refusal
    assert outcome is not None
