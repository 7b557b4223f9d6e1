import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.contracts.calldata import EXEC_TRANSACTION, MULTI_SEND
from foretell.domain.contracts.safe import (
    CALLS_PER_BUNDLE_MAX,
    CREATE_PROXY_TYPE_HASH,
    SAFE_TX_TYPE_HASH,
    InnerCall,
    SafeTx,
    create_proxy_digest,
    decode_multi_send,
    encode_create_proxy,
    encode_multi_send,
    normalize_safe_signature,
    recover_safe_signer,
    safe_address,
    sign_safe_tx,
)
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.values.hexadecimal import Address, Bytes32, address_of

KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
OWNER = Address("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
FACTORY = Address("0xaacfeea03eb1561c4e67d661e40682bd20e3541b")
INIT_CODE_HASH = Bytes32("0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf")
SAFE = Address("0xd93b25cb943d14d0d34fbaf01fc93a0f8b5f6e47")
TARGET = Address("0x" + "7a" * 20)
CHAIN_ID = 80002
ZERO = "0x" + "00" * 20


def test_an_owners_safe_has_the_address_that_clients_derive() -> None:
    assert safe_address(OWNER, FACTORY, INIT_CODE_HASH) == SAFE


def test_the_type_hashes_are_those_of_the_deployed_contracts() -> None:
    assert SAFE_TX_TYPE_HASH.hex() == (
        "bb8310d486368db6bd6f849402fdd73ad53d316b5a4b2644ad6efe0f941286d8"
    )
    assert CREATE_PROXY_TYPE_HASH.hex() == (
        "dee5f5588156b735c3bff14a54c9acefc845807cec91b7fd0809fa3deccab363"
    )


def independent_digest(
    primary: str, types: list[tuple[str, str]], domain: object, message: object
) -> bytes:
    named = {
        "chainId": "uint256",
        "name": "string",
        "verifyingContract": "address",
    }
    assert isinstance(domain, dict)
    signable = encode_typed_data(
        full_message={
            "primaryType": primary,
            "types": {
                "EIP712Domain": [{"name": key, "type": named[key]} for key in domain],
                primary: [{"name": name, "type": kind} for kind, name in types],
            },
            "domain": domain,
            "message": message,
        }
    )
    return keccak(b"\x19" + signable.version + signable.header + signable.body)


SAFE_TX_FIELDS = [
    ("address", "to"),
    ("uint256", "value"),
    ("bytes", "data"),
    ("uint8", "operation"),
    ("uint256", "safeTxGas"),
    ("uint256", "baseGas"),
    ("uint256", "gasPrice"),
    ("address", "gasToken"),
    ("address", "refundReceiver"),
    ("uint256", "nonce"),
]


@given(
    calldata=st.binary(max_size=200),
    nonce=st.integers(0, 2**64),
    operation=st.integers(0, 1),
    value_wei=st.integers(0, 2**128),
)
def test_a_transaction_digest_is_that_of_an_independent_encoder(
    calldata: bytes, nonce: int, operation: int, value_wei: int
) -> None:
    tx = SafeTx(SAFE, TARGET, calldata, nonce, operation, value_wei)
    expected = independent_digest(
        "SafeTx",
        SAFE_TX_FIELDS,
        {"chainId": CHAIN_ID, "verifyingContract": SAFE},
        {
            "to": TARGET,
            "value": value_wei,
            "data": calldata,
            "operation": operation,
            "safeTxGas": 0,
            "baseGas": 0,
            "gasPrice": 0,
            "gasToken": ZERO,
            "refundReceiver": ZERO,
            "nonce": nonce,
        },
    )
    assert tx.digest(CHAIN_ID) == expected


def test_a_creation_digest_is_that_of_an_independent_encoder() -> None:
    expected = independent_digest(
        "CreateProxy",
        [("address", "paymentToken"), ("uint256", "payment"), ("address", "paymentReceiver")],
        {
            "name": "Polymarket Contract Proxy Factory",
            "chainId": CHAIN_ID,
            "verifyingContract": FACTORY,
        },
        {"paymentToken": ZERO, "payment": 0, "paymentReceiver": ZERO},
    )
    digest = create_proxy_digest(FACTORY, "Polymarket Contract Proxy Factory", CHAIN_ID)
    assert digest == expected


def plain_signature(digest: bytes) -> bytes:
    return bytes(Account.unsafe_sign_hash(digest, KEY).signature)


def personal_signature(digest: bytes) -> bytes:
    return bytes(Account.sign_message(encode_defunct(digest), KEY).signature)


def with_v(signature: bytes, shift: int) -> bytes:
    return signature[:64] + bytes([signature[64] + shift])


@given(st.binary(min_size=32, max_size=32))
def test_a_typed_data_signature_is_accepted_with_either_value_of_v(digest: bytes) -> None:
    signature = plain_signature(digest)
    assert normalize_safe_signature(signature) == signature
    assert normalize_safe_signature(with_v(signature, -27)) == signature
    assert recover_safe_signer(digest, signature) == OWNER


@given(st.binary(min_size=32, max_size=32))
def test_a_personal_signature_is_marked_in_its_v(digest: bytes) -> None:
    signature = with_v(personal_signature(digest), 4)
    assert normalize_safe_signature(signature) == signature
    assert recover_safe_signer(digest, signature) == OWNER
    assert sign_safe_tx(digest, KEY) == signature


def test_a_personal_signature_without_its_mark_has_another_signer() -> None:
    digest = bytes(32)
    assert recover_safe_signer(digest, personal_signature(digest)) != OWNER


@pytest.mark.parametrize(
    "signature",
    [b"", bytes(64), bytes(64) + b"\x1f", bytes([1]) * 64 + b"\x1d", bytes([1]) * 64 + b"\x21"],
)
def test_a_malformed_signature_is_refused(signature: bytes) -> None:
    with pytest.raises(MalformedSignature):
        normalize_safe_signature(signature)


def test_a_high_s_is_refused_under_the_mark_too() -> None:
    high = bytes([1]) * 32 + bytes([0xFF]) * 32 + bytes([31])
    with pytest.raises(MalformedSignature, match="lower half"):
        normalize_safe_signature(high)


@pytest.mark.case("D-10")
def test_a_safe_transaction_refunds_no_account() -> None:
    tx = SafeTx(SAFE, TARGET, b"\x01\x02", 3)
    assert EXEC_TRANSACTION.decode(tx.encode(b"\x05" * 65)) == (
        TARGET,
        0,
        b"\x01\x02",
        0,
        0,
        0,
        0,
        ZERO,
        ZERO,
        b"\x05" * 65,
    )


def test_making_a_safe_carries_the_owners_signature_in_parts() -> None:
    signature = b"\x01" * 32 + b"\x02" * 32 + b"\x1b"
    words = encode_create_proxy(signature)[4:]
    assert words.hex() == "00" * 96 + "00" * 31 + "1b" + "01" * 32 + "02" * 32


inner_calls = st.builds(
    InnerCall,
    st.binary(min_size=20, max_size=20).map(address_of),
    st.binary(max_size=80),
    st.integers(0, 2**256 - 1),
)


@given(st.lists(inner_calls, max_size=6))
def test_a_bundle_reads_back(bundle: list[InnerCall]) -> None:
    assert decode_multi_send(encode_multi_send(bundle)) == tuple(bundle)


def test_a_bundle_is_packed_call_by_call() -> None:
    (packed,) = MULTI_SEND.decode(encode_multi_send([InnerCall(TARGET, b"\xaa\xbb", 7)]))
    assert packed.hex() == "00" + "7a" * 20 + f"{7:064x}" + f"{2:064x}" + "aabb"


A_CALL = bytes(1) + bytes(20) + bytes(32) + (1).to_bytes(32, "big") + b"\xaa"


@pytest.mark.parametrize(
    "packed",
    [
        A_CALL[:-1],
        A_CALL + b"\x00",
        A_CALL[:40],
        b"\x01" + A_CALL[1:],
        A_CALL * (CALLS_PER_BUNDLE_MAX + 1),
    ],
)
def test_a_bundle_that_is_torn_delegates_or_is_too_long_is_refused(packed: bytes) -> None:
    with pytest.raises(MalformedCalldata, match="a bundle"):
        decode_multi_send(MULTI_SEND.encode(packed))


def test_a_bundle_of_the_greatest_size_is_accepted() -> None:
    calls = decode_multi_send(MULTI_SEND.encode(A_CALL * CALLS_PER_BUNDLE_MAX))
    assert len(calls) == CALLS_PER_BUNDLE_MAX
