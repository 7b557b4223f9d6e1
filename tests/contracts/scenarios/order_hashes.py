"""Hashes and signatures of the scenarios' orders; `test_signatures` compares them with eth-account."""

from dataclasses import replace
from functools import cache
from typing import Final

from coincurve import PrivateKey
from eth_abi.abi import encode
from tests.contracts.evm import Actor, Contract
from tests.contracts.fast_evm import CHAIN_ID
from tests.contracts.signing import PROFILES, V1_FIELDS, V2_FIELDS, Order

from foretell.domain.exchange.signing.wallet_signatures import wallet_digest, wallet_signature
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import keccak256, parse_address

TYPE_HASH: Final = {
    version: keccak256(f"Order({','.join(f'{kind} {name}' for name, kind in fields)})".encode())
    for version, fields in ((1, V1_FIELDS), (2, V2_FIELDS))
}


def signed_order(order: Order, exchange: Contract, key: bytes | None) -> Order:
    """Return the order signed by key, or with any bytes for a wallet that accepts everything."""
    if key is None:
        return replace(order, signature=b"anything")
    digest = order_digest(order, exchange)
    signature = PrivateKey(key).sign_recoverable(digest, hasher=None)
    return replace(order, signature=signature[:64] + bytes((signature[64] + 27,)))


def wallet_signed_order(order: Order, exchange: Contract, owner: Actor) -> Order:
    """Return the order of a deposit wallet, signed by an account, which is its owner or is not."""
    domain, contents = separator(exchange.address, exchange, order.profile), struct_hash(order)
    digest = wallet_digest(domain, contents, parse_address(order.maker), CHAIN_ID)
    signature = sign_digest(digest, owner.key)
    return replace(order, signature=wallet_signature(signature, domain, contents))


@cache
def separator(address: str, exchange: Contract, profile: int) -> bytes:
    """Return a domain separator of the exchange, read only once."""
    assert exchange.address == address
    domain: bytes = exchange.call("domainSeparator(uint256)", profile)
    return domain


def struct_hash(order: Order) -> bytes:
    """Return the hash of an order's fields, encoded by hand."""
    version = PROFILES[order.profile].struct_version
    fields = {1: V1_FIELDS, 2: V2_FIELDS}[version]
    message = order.message
    words = encode(
        ["bytes32", *(kind for _, kind in fields)],
        [TYPE_HASH[version], *(message[name] for name, _ in fields)],
    )
    return keccak256(words)


def order_digest(order: Order, exchange: Contract) -> bytes:
    """Return the hash of an order that is signed."""
    domain = separator(exchange.address, exchange, order.profile)
    return keccak256(b"\x19\x01" + domain + struct_hash(order))
