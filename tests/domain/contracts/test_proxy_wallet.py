"""Addresses, digests and calls of proxy wallets, as the ecosystem's clients make them."""

import pytest

from foretell.domain.contracts.proxy_wallet import (
    CALLS_PER_PROXY_MAX,
    PROXY_CALL_BYTES_MAX,
    PROXY_CALLS,
    RelayedCall,
    decode_proxy_calls,
    encode_proxy_calls,
    proxy_init_code_hash,
    proxy_wallet_address,
)
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.values.hexadecimal import Address

FACTORY = Address("0xab45c5a4b0c941a2f231c04c3f49182e1a254052")
IMPLEMENTATION = Address("0x44e999d5c2f66ef0861317f9a4805ac2e90aeb4f")
OWNER = Address("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
TARGET = Address("0x" + "17" * 20)


def test_the_creation_code_is_that_which_clients_know_by_its_hash() -> None:
    assert proxy_init_code_hash(FACTORY, IMPLEMENTATION).hex() == (
        "d21df8dc65880a8606f09fe0ce3df9b8869287ab0b058be05aa9e8af6330a00b"
    )


def test_an_owner_has_another_wallet_at_each_factory() -> None:
    wallet = proxy_wallet_address(OWNER, FACTORY, IMPLEMENTATION)
    assert wallet != proxy_wallet_address(OWNER, TARGET, IMPLEMENTATION)
    assert wallet != proxy_wallet_address(TARGET, FACTORY, IMPLEMENTATION)


def test_calls_read_back() -> None:
    calls = (InnerCall(TARGET, b"\1\2"), InnerCall(FACTORY, b"", 7))
    assert decode_proxy_calls(encode_proxy_calls(calls)) == calls


@pytest.mark.parametrize(
    ("calldata", "wanted"),
    [
        (b"", "a call of proxy"),
        (b"\1\2\3\4" + bytes(64), "a call of proxy"),
        (PROXY_CALLS.selector + bytes(31), "encoded arguments"),
        (encode_proxy_calls(()), "1 to 16 calls"),
        (
            encode_proxy_calls((InnerCall(TARGET, b""),) * (CALLS_PER_PROXY_MAX + 1)),
            "1 to 16 calls",
        ),
        (PROXY_CALLS.encode([(2, TARGET, 0, b"")]), "typeCode 1"),
        (encode_proxy_calls((InnerCall(TARGET, bytes(PROXY_CALL_BYTES_MAX + 1)),)), "4096 bytes"),
    ],
)
def test_what_a_wallet_would_not_call_is_refused(calldata: bytes, wanted: str) -> None:
    with pytest.raises(MalformedCalldata, match=wanted):
        decode_proxy_calls(calldata)


def test_each_field_changes_the_digest() -> None:
    call = RelayedCall(OWNER, FACTORY, b"\1", 500_000, 3, TARGET, OWNER)
    others = [
        call._replace(owner=TARGET),
        call._replace(factory=TARGET),
        call._replace(calldata=b"\2"),
        call._replace(gas_limit=500_001),
        call._replace(nonce=4),
        call._replace(hub=OWNER),
        call._replace(relay=TARGET),
    ]
    assert len({each.digest() for each in (call, *others)}) == 8
