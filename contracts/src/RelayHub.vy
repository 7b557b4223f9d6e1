# pragma version 0.4.3
"""
@title RelayHub
@license Apache-2.0
@notice Makes the calls that an owner signed, sent by the account that the owner named. The called
        contract finds the owner in the last 20 bytes of its calldata, and believes nobody but the hub.
        Nothing is paid for it: a fee is refused.
"""

from evm import ecdsa

event TransactionRelayed:
    owner: indexed(address)
    recipient: indexed(address)
    digest: bytes32


# Room for the longest call is paid for by every call.
CALL_BYTES_MAX: constant(uint256) = 16384

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
    signature: Bytes[ecdsa.SIGNATURE_BYTES],
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
    message: bytes32 = keccak256(concat(b"\x19Ethereum Signed Message:\n32", digest))
    signer: address = ecdsa._signer_of(message, signature)
    if signer == empty(address) or signer != owner:
        raw_revert(method_id("InvalidSignature()"))
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
