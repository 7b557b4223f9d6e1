# pragma version 0.4.3
"""
@title SafeFactory
@license Apache-2.0
@notice Makes one Safe for each owner who signs for it, at an address that anyone can derive from
        the owner's. The proxy is the stock one; its creation code is given at deployment.
"""

from evm import create2
from evm import ecdsa
from interfaces import ISafe

event ProxyCreation:
    proxy: address
    owner: address


struct Signature:
    v: uint8
    r: bytes32
    s: bytes32


NAME_BYTES_MAX: constant(uint256) = 64
CREATION_CODE_BYTES_MAX: constant(uint256) = 1024
INIT_CODE_BYTES_MAX: constant(uint256) = CREATION_CODE_BYTES_MAX + 32

DOMAIN_TYPE_HASH: constant(bytes32) = keccak256(
    "EIP712Domain(string name,uint256 chainId,address verifyingContract)"
)
CREATE_PROXY_TYPE_HASH: constant(bytes32) = keccak256(
    "CreateProxy(address paymentToken,uint256 payment,address paymentReceiver)"
)

masterCopy: public(immutable(address))
fallbackHandler: public(immutable(address))
INIT_CODE: immutable(Bytes[INIT_CODE_BYTES_MAX])
INIT_CODE_HASH: immutable(bytes32)
CHAIN_ID: immutable(uint256)
SEPARATOR: immutable(bytes32)


@deploy
def __init__(
    masterCopy_: address,
    fallbackHandler_: address,
    domainName: String[NAME_BYTES_MAX],
    proxyCreationCode: Bytes[CREATION_CODE_BYTES_MAX],
):
    """
    @param masterCopy_ The Safe that every proxy runs
    @param fallbackHandler_ The handler that every Safe starts with
    @param domainName The EIP-712 domain name that owners sign for
    @param proxyCreationCode The stock proxy's creation code, without its argument
    """
    masterCopy = masterCopy_
    fallbackHandler = fallbackHandler_
    CHAIN_ID = chain.id
    SEPARATOR = keccak256(
        abi_encode(DOMAIN_TYPE_HASH, keccak256(domainName), chain.id, self)
    )
    init_code: Bytes[INIT_CODE_BYTES_MAX] = concat(
        proxyCreationCode, convert(masterCopy_, bytes32)
    )
    INIT_CODE = init_code
    INIT_CODE_HASH = keccak256(init_code)


@external
def createProxy(
    paymentToken: address, payment: uint256, paymentReceiver: address, createSig: Signature
):
    """
    @notice Make the Safe of the signer. It has that one owner and a threshold of one.
            Nothing is paid for it, so the three payment fields are zero.
    @param paymentToken Zero
    @param payment Zero
    @param paymentReceiver Zero
    @param createSig The owner's signature of the three
    """
    if paymentToken != empty(address) or payment != 0 or paymentReceiver != empty(address):
        raw_revert(method_id("PaymentNotSupported()"))
    owner: address = self._signer(createSig)
    if self._proxy_address(owner).is_contract:
        raw_revert(method_id("ProxyExists()"))
    proxy: address = raw_create(INIT_CODE, salt=self._salt(owner))
    extcall ISafe(proxy).setup(
        [owner],
        1,
        empty(address),
        b"",
        fallbackHandler,
        empty(address),
        0,
        empty(address),
    )
    log ProxyCreation(proxy=proxy, owner=owner)


@external
@view
def computeProxyAddress(owner: address) -> address:
    """
    @notice Where the owner's Safe is, or would be.
    @param owner The owner
    @return The Safe's address
    """
    return self._proxy_address(owner)


@external
@view
def domainSeparator() -> bytes32:
    """
    @notice The EIP-712 domain that owners sign for.
    @return The separator
    """
    return SEPARATOR


@external
@view
def proxyCreationCode() -> Bytes[INIT_CODE_BYTES_MAX]:
    """
    @notice The creation code of every proxy, its argument at the end.
    @return The code
    """
    return INIT_CODE


@external
@view
def initCodeHash() -> bytes32:
    """
    @notice The hash of that code, from which addresses are derived.
    @return The hash
    """
    return INIT_CODE_HASH


@internal
@view
def _signer(signature: Signature) -> address:
    if chain.id != CHAIN_ID:
        raw_revert(method_id("ChainChanged()"))
    struct_hash: bytes32 = keccak256(
        abi_encode(CREATE_PROXY_TYPE_HASH, empty(address), empty(uint256), empty(address))
    )
    digest: bytes32 = keccak256(concat(b"\x19\x01", SEPARATOR, struct_hash))
    owner: address = ecdsa._signer(
        digest,
        convert(signature.r, uint256),
        convert(signature.s, uint256),
        convert(signature.v, uint256),
    )
    if owner == empty(address):
        raw_revert(method_id("InvalidSignature()"))
    return owner


@internal
@pure
def _salt(owner: address) -> bytes32:
    return keccak256(abi_encode(owner))


@internal
@view
def _proxy_address(owner: address) -> address:
    return create2._address(self, self._salt(owner), INIT_CODE_HASH)
