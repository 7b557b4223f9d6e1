"""Signatures of orders by contract wallets (ERC-1271), nested as ERC-7739 describes.

The owner of a wallet signs the order inside a struct that names the wallet, so that a signature for one
wallet says nothing for another one of the same owner. The signature of the order is that signature,
followed by what the wallet needs to rebuild what was signed: the domain separator of the exchange, the
struct hash of the order, its type, and the type's length.
"""

from typing import Final

from foretell.domain.errors.families import MalformedSignature
from foretell.domain.exchange.signing.structs import ORDER_V2_TYPE
from foretell.domain.values.eip712 import (
    SIGNATURE_BYTES,
    address_word,
    normalize_signature,
    text_word,
    typed_digest,
    uint_word,
)
from foretell.domain.values.hexadecimal import Address, keccak256

WALLET_DOMAIN_NAME: Final = "DepositWallet"
WALLET_DOMAIN_VERSION: Final = "1"

TYPED_DATA_SIGN_TYPE: Final = (
    "TypedDataSign(Order contents,string name,string version,uint256 chainId,"
    "address verifyingContract,bytes32 salt)" + ORDER_V2_TYPE
)

_TYPE_HASH: Final = text_word(TYPED_DATA_SIGN_TYPE)
_WALLET_DOMAIN: Final = text_word(WALLET_DOMAIN_NAME) + text_word(WALLET_DOMAIN_VERSION)
_CONTENTS_TYPE: Final = ORDER_V2_TYPE.encode()
_SUFFIX: Final = _CONTENTS_TYPE + len(_CONTENTS_TYPE).to_bytes(2, "big")
_NO_SALT: Final = bytes(32)
_SEPARATOR_END: Final = SIGNATURE_BYTES + 32
_CONTENTS_END: Final = _SEPARATOR_END + 32

WALLET_SIGNATURE_BYTES: Final = _CONTENTS_END + len(_SUFFIX)
"""The length of every such signature of an order."""


def wallet_digest(separator: bytes, struct_hash: bytes, wallet: Address, chain_id: int) -> bytes:
    """Return the 32 bytes that the owner of a wallet signs for an order of the wallet."""
    nested = b"".join(
        (
            _TYPE_HASH,
            struct_hash,
            _WALLET_DOMAIN,
            uint_word(chain_id),
            address_word(wallet),
            _NO_SALT,
        )
    )
    return typed_digest(separator, keccak256(nested))


def wallet_signature(owner_signature: bytes, separator: bytes, struct_hash: bytes) -> bytes:
    """Return the signature of an order by the wallet whose owner signed its digest."""
    return owner_signature + separator + struct_hash + _SUFFIX


def normalize_wallet_signature(signature: bytes) -> bytes:
    """Return a wallet's signature with a normalized one of its owner inside, or refuse."""
    if len(signature) != WALLET_SIGNATURE_BYTES:
        raise MalformedSignature(
            f"{WALLET_SIGNATURE_BYTES} bytes for a contract wallet, not {len(signature)}"
        )
    if signature[_CONTENTS_END:] != _SUFFIX:
        raise MalformedSignature("the type of a version 2 order and its length at the end")
    return normalize_signature(signature[:SIGNATURE_BYTES]) + signature[SIGNATURE_BYTES:]


def owner_signature(signature: bytes) -> bytes:
    """Return the signature of the wallet's owner inside a wallet's signature."""
    return signature[:SIGNATURE_BYTES]


def named_separator(signature: bytes) -> bytes:
    """Return the domain separator that a wallet's signature names."""
    return signature[SIGNATURE_BYTES:_SEPARATOR_END]


def named_contents(signature: bytes) -> bytes:
    """Return the struct hash that a wallet's signature names."""
    return signature[_SEPARATOR_END:_CONTENTS_END]
