# pragma version 0.4.3
"""
@title RelayHub
@license Apache-2.0
@notice Makes the calls that an owner signed, sent by the account that the owner named. The called
        contract finds the owner in the last 20 bytes of its calldata, and believes nobody but the hub.
        Nothing is paid for it: a fee is refused.
"""

event TransactionRelayed:
    owner: indexed(address)
    recipient: indexed(address)
    digest: bytes32


ECDSA_BYTES: constant(uint256) = 65
# Room for the longest call is paid for by every call.
CALL_BYTES_MAX: constant(uint256) = 16384
# Half the order of the curve, rounded down.
S_MAX: constant(uint256) = (
    57896044618658097711785492504343953926418782139537452191302581570759080747168
)

CHAIN_ID: immutable(uint256)

# How many calls of an owner were made; the next one is signed with this number.
nonces: HashMap[address, uint256]


@deploy
def __init__(chainId: uint256):
    """
    @param chainId The chain, which a signature does not name; hubs of two chains have two addresses
    """
    CHAIN_ID = chainId


@external
def relayCall(
    owner: address,
    recipient: address,
    encodedFunction: Bytes[CALL_BYTES_MAX],
    transactionFee: uint256,
    gasPrice: uint256,
    gasLimit: uint256,
    nonce: uint256,
    signature: Bytes[ECDSA_BYTES],
    approvalData: Bytes[32],
):
    """
    @notice Make a call that the owner signed for the sender to send, or revert as it does.
    @param owner Who signed
    @param recipient What is called
    @param encodedFunction The calldata, without the owner at its end
    @param transactionFee Zero
    @param gasPrice Signed, and without effect: the owner pays nothing
    @param gasLimit What the call may spend
    @param nonce The owner's present nonce
    @param signature The owner's, over all of this, as a personal message
    @param approvalData Without effect
    """
    if chain.id != CHAIN_ID:
        raw_revert(method_id("ChainChanged()"))
    if transactionFee != 0:
        raw_revert(method_id("PaymentNotSupported()"))
    if nonce != self.nonces[owner]:
        raw_revert(method_id("InvalidNonce()"))
    digest: bytes32 = keccak256(
        concat(
            b"rlx:",
            convert(owner, bytes20),
            convert(recipient, bytes20),
            encodedFunction,
            convert(transactionFee, bytes32),
            convert(gasPrice, bytes32),
            convert(gasLimit, bytes32),
            convert(nonce, bytes32),
            convert(self, bytes20),
            convert(msg.sender, bytes20),
        )
    )
    self._check_signature(digest, owner, signature)
    self.nonces[owner] = nonce + 1
    raw_call(recipient, concat(encodedFunction, convert(owner, bytes20)), gas=gasLimit)
    log TransactionRelayed(owner=owner, recipient=recipient, digest=digest)


@external
@view
def getNonce(owner: address) -> uint256:
    """
    @notice The number to sign the owner's next call with.
    @param owner Who signs
    @return How many of its calls were made
    """
    return self.nonces[owner]


@internal
@view
def _check_signature(digest: bytes32, owner: address, signature: Bytes[ECDSA_BYTES]):
    """
    @dev An ECDSA signature has one spelling: 65 bytes, v of 27 or 28, s in the lower half.
    """
    if len(signature) != ECDSA_BYTES:
        raw_revert(method_id("InvalidSignature()"))
    r: uint256 = extract32(signature, 0, output_type=uint256)
    s: uint256 = extract32(signature, 32, output_type=uint256)
    v: uint256 = extract32(signature, 33, output_type=uint256) & 255
    if s > S_MAX or (v != 27 and v != 28):
        raw_revert(method_id("InvalidSignature()"))
    message: bytes32 = keccak256(concat(b"\x19Ethereum Signed Message:\n32", digest))
    recovered: address = ecrecover(message, v, r, s)
    if recovered == empty(address) or recovered != owner:
        raw_revert(method_id("InvalidSignature()"))
