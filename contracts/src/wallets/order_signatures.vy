# pragma version 0.4.3
"""
@title OrderSignatures
@license Apache-2.0
@notice ERC-1271 for orders, nested by ERC-7739: the owner signs an order within a struct that names the
        wallet, so that its signature for one wallet means nothing for another one of the same owner.
        A wallet signs nothing else.
"""

from evm import ecdsa
from wallets import owner

DOMAIN_NAME_HASH: constant(bytes32) = keccak256("DepositWallet")
DOMAIN_VERSION_HASH: constant(bytes32) = keccak256("1")

CONTENTS_TYPE_BYTES: constant(uint256) = 186
CONTENTS_TYPE_HASH: constant(bytes32) = keccak256(
    "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)"
)
TYPED_DATA_SIGN_TYPE_HASH: constant(bytes32) = keccak256(
    "TypedDataSign(Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)"
)

# The owner's signature, the exchange's domain separator, the order's struct hash, the type of the
# order, and the length of that in two bytes.
SEPARATOR_AT: constant(uint256) = ecdsa.SIGNATURE_BYTES
CONTENTS_AT: constant(uint256) = SEPARATOR_AT + 32
TYPE_AT: constant(uint256) = CONTENTS_AT + 32
LENGTH_AT: constant(uint256) = TYPE_AT + CONTENTS_TYPE_BYTES
SIGNATURE_BYTES: constant(uint256) = LENGTH_AT + 2
LENGTH_WORD_AT: constant(uint256) = SIGNATURE_BYTES - 32
LENGTH_MASK: constant(uint256) = 65_535


@internal
@view
def _is_valid(digest: bytes32, signature: Bytes[SIGNATURE_BYTES]) -> bool:
    if len(signature) != SIGNATURE_BYTES:
        return False
    if extract32(signature, LENGTH_WORD_AT, output_type=uint256) & LENGTH_MASK != (
        CONTENTS_TYPE_BYTES
    ):
        return False
    if keccak256(slice(signature, TYPE_AT, CONTENTS_TYPE_BYTES)) != CONTENTS_TYPE_HASH:
        return False
    separator: bytes32 = extract32(signature, SEPARATOR_AT)
    contents: bytes32 = extract32(signature, CONTENTS_AT)
    if digest != keccak256(concat(b"\x19\x01", separator, contents)):
        return False
    nested: bytes32 = keccak256(
        abi_encode(
            TYPED_DATA_SIGN_TYPE_HASH,
            contents,
            DOMAIN_NAME_HASH,
            DOMAIN_VERSION_HASH,
            chain.id,
            self,
            empty(bytes32),
        )
    )
    return owner._is_signed(
        keccak256(concat(b"\x19\x01", separator, nested)),
        slice(signature, 0, ecdsa.SIGNATURE_BYTES),
    )
