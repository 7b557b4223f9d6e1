# pragma version 0.4.3
"""
@title Signatures
@license Apache-2.0
@notice Who may sign for a maker: itself (type 0), the owner of its proxy wallet (type 1) or of its
        Safe (type 2), or the wallet's own judgement by ERC-1271 (type 3, struct v2 alone). Without a
        proxy factory type 1 is refused.
"""

from evm import create2
from exchange import orders
from interfaces import IProxyWalletFactory

EOA: constant(uint8) = 0
PROXY: constant(uint8) = 1
SAFE: constant(uint8) = 2
ERC1271: constant(uint8) = 3

# What a wallet may spend on its answer: enough for a passkey verified without a precompile.
ERC1271_GAS_MAX: constant(uint256) = 300_000
ERC1271_YES: constant(bytes32) = (
    0x1626ba7e00000000000000000000000000000000000000000000000000000000
)

SAFE_FACTORY: immutable(address)
SAFE_INIT_CODE_HASH: immutable(bytes32)
PROXY_FACTORY: immutable(address)


@deploy
def __init__(safeFactory: address, safeInitCodeHash: bytes32, proxyFactory: address):
    SAFE_FACTORY = safeFactory
    SAFE_INIT_CODE_HASH = safeInitCodeHash
    PROXY_FACTORY = proxyFactory


@external
@view
def safeAddress(owner: address) -> address:
    """
    @notice The Safe that the factory makes, or would make, for this owner.
    @param owner The owner
    @return The Safe's address
    """
    return self._safe_address(owner)


@external
@view
def getSafeAddress(owner: address) -> address:
    """
    @notice The Safe of an owner, by the name that the ecosystem's clients call.
    @param owner The owner
    @return What `safeAddress` returns
    """
    return self._safe_address(owner)


@external
@view
def safeFactory() -> address:
    """
    @notice The factory whose Safes may be makers of type 2.
    @return Its address
    """
    return SAFE_FACTORY


@external
@view
def safeInitCodeHash() -> bytes32:
    """
    @notice The creation code of those Safes.
    @return Its hash
    """
    return SAFE_INIT_CODE_HASH


@external
@view
def proxyFactory() -> address:
    """
    @notice The factory whose proxy wallets may be makers of type 1.
    @return Its address; zero where there is none
    """
    return PROXY_FACTORY


@internal
@view
def _safe_address(owner: address) -> address:
    return create2._address(SAFE_FACTORY, keccak256(abi_encode(owner)), SAFE_INIT_CODE_HASH)


@internal
@view
def _proxy_address(owner: address) -> address:
    """
    @dev Asked of the factory, which is no account's to change: to derive it here takes more code than
         a contract may have.
    """
    return staticcall IProxyWalletFactory(PROXY_FACTORY).proxyWalletAddress(owner)


@internal
@view
def _is_owner(account: address, order: orders.Fields) -> bool:
    """
    @dev Whether the order is the account's to cancel: its maker, or the owner of the maker's
         Safe or proxy wallet.
    """
    if account == order.maker:
        return True
    if order.signatureType == PROXY and PROXY_FACTORY != empty(address):
        return order.maker == self._proxy_address(account)
    return order.signatureType == SAFE and order.maker == self._safe_address(account)


@internal
@view
def _check_signer(signer: address, maker: address, signature_type: uint8):
    """
    @dev Types 0, 2 and 1: the signer is the maker, or the owner of its Safe or proxy wallet.
    """
    wallet: address = signer
    if signature_type == SAFE:
        wallet = self._safe_address(signer)
    elif signature_type == PROXY and PROXY_FACTORY != empty(address):
        wallet = self._proxy_address(signer)
    elif signature_type != EOA:
        raw_revert(method_id("InvalidSignatureType()"))
    if maker != wallet:
        raw_revert(method_id("InvalidSigner()"))


@internal
@view
def _check_wallet(
    order_hash: bytes32,
    signer: address,
    wallet: address,
    signature: Bytes[orders.SIGNATURE_BYTES_MAX],
):
    """
    @dev Type 3. A wallet is code that we do not know: it can change nothing, spends a bounded part
         of our gas, and of its answer we read one word.
    """
    if signer != wallet:
        raw_revert(method_id("InvalidSigner()"))
    success: bool = False
    answer: Bytes[32] = b""
    success, answer = raw_call(
        wallet,
        abi_encode(order_hash, signature, method_id=method_id("isValidSignature(bytes32,bytes)")),
        max_outsize=32,
        gas=ERC1271_GAS_MAX,
        is_static_call=True,
        revert_on_failure=False,
    )
    if not success or len(answer) != 32 or convert(answer, bytes32) != ERC1271_YES:
        raw_revert(method_id("InvalidSignature()"))
