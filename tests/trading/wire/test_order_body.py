import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.orders.version_2 import OWN_V2, a_v2_buy, a_wallet_order
from tests.rigs.trading import order_json
from tests.rigs.values import a_buy, an_address

from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.errors.order import (
    PrivateOrder,
    SignerNotWallet,
    UnsupportedSignatureType,
    WalletNeedsVersion2,
)
from foretell.domain.exchange.order import OrderType, SignedOrder
from foretell.domain.values.eip712 import CURVE_ORDER
from foretell.trading.wire.order_body import (
    OrderFields,
    OrderV2Body,
    parse_batch,
    parse_placing,
    signed_order,
)

ORDER = a_buy("alice")
V2_ORDER = a_v2_buy("alice")
MISSING = object()


def a_body(changed: dict[str, Any] | None = None, **fields: Any) -> bytes:
    order = order_json(ORDER) | (changed or {})
    body = {"order": order, "owner": "key", "orderType": "GTC"} | fields
    kept = {name: value for name, value in body.items() if value is not MISSING}
    kept["order"] = {name: value for name, value in order.items() if value is not MISSING}
    return json.dumps(kept).encode()


def fields(**changed: Any) -> OrderFields | OrderV2Body:
    return parse_placing(a_body(changed)).order


def order_of(parsed: OrderFields | OrderV2Body) -> SignedOrder:
    return signed_order(parsed, an_address("alice"))


def a_v2_body(changed: dict[str, Any] | None = None) -> bytes:
    order = order_json(V2_ORDER) | (changed or {})
    kept = {name: value for name, value in order.items() if value is not MISSING}
    return json.dumps({"order": kept, "owner": "key"}).encode()


def test_the_fields_of_a_body_make_the_order_that_was_signed() -> None:
    body = parse_placing(a_body(postOnly=True, deferExec=True, orderType="GTD"))
    assert order_of(body.order) == ORDER
    assert (body.owner, body.order_type, body.post_only) == ("key", OrderType.GTD, True)


def test_a_body_needs_no_more_than_an_order_and_its_owner() -> None:
    body = parse_placing(a_body(orderType=MISSING))
    assert (body.order_type, body.post_only, body.defer_exec) == (OrderType.GTC, False, False)


@pytest.mark.case("G-08")
def test_unknown_keys_are_ignored() -> None:
    assert order_of(parse_placing(a_body({"conditionId": "0x1"}, x=1).strip()).order) == ORDER


@pytest.mark.parametrize("salt", ["8", 7, 2**255, str(2**256 - 1), "0007"])
def test_a_salt_may_be_a_number_of_any_width_or_a_string(salt: int | str) -> None:
    assert order_of(fields(salt=salt)).salt == str(int(salt))


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
        order_of(fields(**changed))


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


@pytest.mark.parametrize("added", [{}, {"taker": "0x", "nonce": "9", "feeRateBps": "9"}])
def test_an_order_with_a_timestamp_is_of_version_2(added: dict[str, str]) -> None:
    order = order_of(parse_placing(a_v2_body(added)).order)
    assert msgspec.structs.replace(order, profile=OWN_V2) == V2_ORDER


@pytest.mark.parametrize(
    "name",
    [
        "salt",
        "maker",
        "signer",
        "tokenId",
        "makerAmount",
        "takerAmount",
        "side",
        "signatureType",
        "metadata",
        "builder",
        "signature",
    ],
)
def test_a_field_of_version_2_that_is_missing_is_refused(name: str) -> None:
    with pytest.raises(MalformedOrder):
        parse_placing(a_v2_body({name: MISSING}))


@pytest.mark.parametrize(
    "changed",
    [
        {"timestamp": "soon"},
        {"timestamp": -1},
        {"timestamp": str(2**63)},
        {"metadata": "0x12"},
        {"metadata": ""},
        {"builder": "builder"},
        {"salt": 2**256},
        {"maker": "0x12"},
        {"makerAmount": "1.5"},
        {"expiration": "soon"},
        {"side": "buy"},
    ],
)
def test_a_field_of_version_2_that_is_malformed_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(MalformedOrder):
        order_of(parse_placing(a_v2_body(changed)).order)


def test_the_expiration_of_version_2_may_be_left_out() -> None:
    parsed = parse_placing(a_v2_body({"expiration": MISSING})).order
    assert order_of(parsed).expiration_s == 0


def test_the_order_of_a_wallet_is_signed_by_the_caller() -> None:
    order = a_wallet_order("alice", "wallet")
    parsed = parse_placing(a_v2_body(order_json(order))).order
    assert isinstance(parsed, OrderV2Body)
    assert parsed.signer == parsed.maker
    assert msgspec.structs.replace(order_of(parsed), profile=OWN_V2) == order


def test_the_signer_of_a_wallet_s_order_is_the_wallet() -> None:
    changed = order_json(a_wallet_order("alice", "wallet")) | {"signer": an_address("alice")}
    with pytest.raises(SignerNotWallet):
        order_of(parse_placing(a_v2_body(changed)).order)


def test_a_wallet_s_signature_has_one_form() -> None:
    signature = a_wallet_order("alice", "wallet").signature
    for wrong in (signature[:-1], signature[:65], signature[:-2] + b"\0\0"):
        changed = order_json(a_wallet_order("alice", "wallet"))
        changed["signature"] = "0x" + wrong.hex()
        with pytest.raises((MalformedOrder, MalformedSignature)):
            order_of(parse_placing(a_v2_body(changed)).order)


def test_a_contract_wallet_signs_version_2_alone() -> None:
    with pytest.raises(WalletNeedsVersion2):
        order_of(fields(signatureType=3))


@pytest.mark.deviation(9)
@pytest.mark.parametrize("signature_type", [4, 5, -1, 2**40])
def test_only_signature_types_of_wallets_that_exist_are_served(signature_type: int) -> None:
    with pytest.raises(UnsupportedSignatureType):
        order_of(fields(signatureType=signature_type))


def test_an_order_for_one_taker_alone_is_refused() -> None:
    with pytest.raises(PrivateOrder):
        order_of(fields(taker=an_address("bob")))


@pytest.mark.case("C-03")
def test_the_malleable_twin_of_a_signature_is_refused() -> None:
    signature = ORDER.signature
    high_s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + high_s.to_bytes(32, "big") + bytes([55 - signature[64]])
    with pytest.raises(MalformedSignature, match="lower half"):
        order_of(fields(signature="0x" + twin.hex()))


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
    with pytest.raises(MalformedOrder):
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
        outcome = order_of(fields(**changed))
    except (MalformedOrder, MalformedSignature) as refusal:
        outcome = refusal
    assert outcome is not None
