import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relayer.rig import Body, changed, with_v, without
from tests.rigs.values import an_address

from foretell.domain.errors.families import InvalidInput, MalformedSignature
from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.relayer import InvalidField
from foretell.domain.relay.request import RelayKind
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, checksum_address
from foretell.relayer.body import (
    CALLDATA_BYTES_MAX,
    METADATA_CHARS_MAX,
    NONCE_MAX,
    parse_submission,
)

OWNER, WALLET, TOKENS = an_address("owner"), an_address("wallet"), an_address("tokens")
SIGNATURE: Final = "0x" + "11" * 32 + "22" * 32 + "1f"
SAFE_BODY: Final[Body] = {
    "type": "SAFE",
    "from": checksum_address(OWNER),
    "to": checksum_address(TOKENS),
    "proxyWallet": checksum_address(WALLET),
    "data": "0x0102",
    "nonce": "7",
    "signature": SIGNATURE,
    "signatureParams": {
        "operation": "0",
        "safeTxnGas": "0",
        "baseGas": "0",
        "gasPrice": "0",
        "gasToken": ZERO_ADDRESS,
        "refundReceiver": ZERO_ADDRESS,
    },
    "value": "0",
    "metadata": "a label",
}
CREATE_BODY: Final[Body] = {
    "type": "SAFE-CREATE",
    "from": checksum_address(OWNER),
    "to": checksum_address(TOKENS),
    "proxyWallet": checksum_address(WALLET),
    "data": "0x",
    "signature": with_v(SIGNATURE, 27),
    "signatureParams": {
        "paymentToken": ZERO_ADDRESS,
        "payment": "0",
        "paymentReceiver": ZERO_ADDRESS,
    },
}

WRONG_ADDRESSES: Final = [None, 5, "", "0x12", OWNER[2:], OWNER + "00", OWNER[:-1] + "g", [OWNER]]
WRONG_ZEROS: Final = [None, 0, "", "1", "-1", "0x0", "00", 0.0, False, [0]]
WRONG_SAFE_FIELDS: Final[list[tuple[str, list[Any]]]] = [
    ("type", [None, 1, "", "safe", "PASSKEY", "wallet", "WALLET-DELETE", ["SAFE"]]),
    ("from", WRONG_ADDRESSES),
    ("to", WRONG_ADDRESSES),
    ("proxyWallet", WRONG_ADDRESSES),
    ("data", [None, 5, "", "0102", "0x1", "0xzz", "0x" + "00" * (CALLDATA_BYTES_MAX + 1)]),
    (
        "nonce",
        [
            None,
            7,
            7.0,
            "",
            "-1",
            "+7",
            "07",
            "0x7",
            "7.0",
            " 7",
            "7\n",
            "\u0667",
            str(NONCE_MAX + 1),
            "9" * 30,
            True,
        ],
    ),
    ("signature", [None, 5, "", "11" * 65, "0x11zz", SIGNATURE + "00"]),
    ("signatureParams", [None, [], "0", 0]),
    ("signatureParams.operation", [None, 0, "", "2", "-1", "00"]),
    ("signatureParams.safeTxnGas", WRONG_ZEROS),
    ("signatureParams.baseGas", WRONG_ZEROS),
    ("signatureParams.gasPrice", WRONG_ZEROS),
    ("signatureParams.gasToken", [*WRONG_ADDRESSES, OWNER]),
    ("signatureParams.refundReceiver", [*WRONG_ADDRESSES, OWNER]),
    ("value", WRONG_ZEROS),
    ("metadata", [5, {}, "x" * (METADATA_CHARS_MAX + 1), "a\0b", ["label"]]),
]
WRONG_CREATE_FIELDS: Final[list[tuple[str, list[Any]]]] = [
    ("from", WRONG_ADDRESSES),
    ("to", WRONG_ADDRESSES),
    ("proxyWallet", WRONG_ADDRESSES),
    ("data", [None, "", "0x00", 0]),
    ("signature", [None, "", "0x11zz"]),
    ("signatureParams", [None, [], "0"]),
    ("signatureParams.paymentToken", [*WRONG_ADDRESSES, OWNER]),
    ("signatureParams.payment", WRONG_ZEROS),
    ("signatureParams.paymentReceiver", [*WRONG_ADDRESSES, OWNER]),
]
REQUIRED: Final = [
    "type",
    "from",
    "to",
    "proxyWallet",
    "data",
    "nonce",
    "signature",
    "signatureParams",
    "signatureParams.operation",
    "signatureParams.safeTxnGas",
    "signatureParams.baseGas",
    "signatureParams.gasPrice",
    "signatureParams.gasToken",
    "signatureParams.refundReceiver",
]


def cases(table: list[tuple[str, list[Any]]]) -> list[Any]:
    return [
        pytest.param(path, value, id=f"{path}={index}")
        for path, values in table
        for index, value in enumerate(values)
    ]


def parse(body: object) -> Any:
    return parse_submission(json.dumps(body).encode())


@pytest.mark.spec(89, 90, 91, 94)
@pytest.mark.parametrize(("path", "value"), cases(WRONG_SAFE_FIELDS))
def test_a_wrong_field_of_a_transaction_is_named(path: str, value: object) -> None:
    with pytest.raises(InvalidField) as refused:
        parse(changed(SAFE_BODY, path, value))
    assert refused.value.details == {"field": path}


@pytest.mark.parametrize(("path", "value"), cases(WRONG_CREATE_FIELDS))
def test_a_wrong_field_of_a_wallet_deployment_is_named(path: str, value: object) -> None:
    with pytest.raises(InvalidField) as refused:
        parse(changed(CREATE_BODY, path, value))
    assert refused.value.details == {"field": path}


@pytest.mark.spec(90, 94)
@pytest.mark.parametrize("path", REQUIRED)
def test_a_missing_field_is_named(path: str) -> None:
    with pytest.raises(InvalidField) as refused:
        parse(without(SAFE_BODY, path))
    assert refused.value.details == {"field": path}


def test_the_gas_field_has_two_spellings() -> None:
    body = without(SAFE_BODY, "signatureParams.safeTxnGas")
    assert parse(changed(body, "signatureParams.safeTxGas", "0")) == parse(SAFE_BODY)
    with pytest.raises(InvalidField, match='"0"') as refused:
        parse(changed(body, "signatureParams.safeTxGas", "5"))
    assert refused.value.details == {"field": "signatureParams.safeTxGas"}


def test_every_field_of_a_transaction_is_read() -> None:
    submission = parse(SAFE_BODY)
    assert submission.kind is RelayKind.SAFE
    assert (submission.owner, submission.wallet, submission.target) == (OWNER, WALLET, TOKENS)
    assert (submission.calldata, submission.operation, submission.safe_nonce) == (b"\x01\x02", 0, 7)
    assert submission.signature == bytes.fromhex(SIGNATURE[2:])
    assert submission.metadata == "a label"


def test_a_wallet_deployment_has_no_nonce() -> None:
    submission = parse(CREATE_BODY | {"nonce": None, "metadata": None})
    assert submission.kind is RelayKind.SAFE_CREATE
    assert (submission.safe_nonce, submission.calldata, submission.metadata) == (None, b"", None)


@pytest.mark.spec(91)
@pytest.mark.parametrize("path", ["value", "metadata"])
def test_a_value_and_a_label_may_be_absent(path: str) -> None:
    assert parse(without(SAFE_BODY, path)).metadata == SAFE_BODY.get(
        "metadata" if path == "value" else ""
    )


@pytest.mark.spec(91)
@pytest.mark.parametrize("label", ["", "x" * METADATA_CHARS_MAX, "Grüße \U0001f600"])
def test_a_label_is_any_short_text(label: str) -> None:
    assert parse(SAFE_BODY | {"metadata": label}).metadata == label


@pytest.mark.parametrize("nonce", ["0", "1", str(NONCE_MAX)])
def test_a_nonce_is_a_decimal_string(nonce: str) -> None:
    assert parse(SAFE_BODY | {"nonce": nonce}).safe_nonce == int(nonce)


@pytest.mark.parametrize(("given_v", "kept_v"), [(0, 27), (1, 28), (27, 27), (28, 28)])
def test_the_last_byte_of_a_signature_is_normalized(given_v: int, kept_v: int) -> None:
    body = SAFE_BODY | {"signature": with_v(SIGNATURE, given_v)}
    assert parse(body).signature[64] == kept_v


@pytest.mark.spec(89)
@pytest.mark.parametrize(
    "signature",
    [
        "0x",
        SIGNATURE[:-2],
        with_v(SIGNATURE, 2),
        with_v(SIGNATURE, 29),
        with_v(SIGNATURE, 33),
        "0x" + "11" * 32 + "ff" * 32 + "1f",
        "0x" + "11" * 32 + "00" * 32 + "1b",
    ],
)
def test_an_impossible_signature_is_refused(signature: str) -> None:
    with pytest.raises(MalformedSignature):
        parse(SAFE_BODY | {"signature": signature})


def test_a_wallet_deployment_is_signed_as_typed_data_only() -> None:
    with pytest.raises(MalformedSignature):
        parse(CREATE_BODY | {"signature": SIGNATURE})


def test_only_the_kinds_that_a_route_has_are_read() -> None:
    with pytest.raises(InvalidField, match='"SAFE"'):
        parse_submission(json.dumps(CREATE_BODY).encode(), [RelayKind.SAFE])


@pytest.mark.parametrize("raw", [b"", b"[]", b'"SAFE"', b"null", b"{", b'{"type":"SAFE"}x'])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedBody):
        parse_submission(raw)


def test_a_repeated_field_is_refused() -> None:
    raw = json.dumps(SAFE_BODY).replace('"nonce"', '"nonce": "6", "nonce"', 1)
    with pytest.raises(MalformedBody, match="twice"):
        parse_submission(raw.encode())


@pytest.mark.case("G-08")
def test_other_fields_are_ignored() -> None:
    assert parse(SAFE_BODY | {"depositWalletParams": {"deadline": 1}}) == parse(SAFE_BODY)


def is_read_or_named(body: Body) -> bool:
    try:
        return bool(parse(body).owner == OWNER)
    except InvalidInput as refused:
        return "field" in refused.details


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=5) | st.just("0"),
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=3), values),
    max_leaves=4,
)


@settings(max_examples=settings().max_examples * 4)
@given(body=st.sampled_from([SAFE_BODY, CREATE_BODY]), data=st.data())
def test_every_value_of_a_field_is_read_or_refused(body: Body, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([*REQUIRED, "value", "metadata"]))
    value = data.draw(json_values)
    assert is_read_or_named(changed(body, path, value))
