# pragma version 0.4.3
"""
@title DepositWallet
@license Apache-2.0
@notice What every deposit wallet runs: a contract wallet with one owner for ever. Its owner signs
        orders (`order_signatures`) and batches of calls; anybody may send a batch that it signed.
        The proxies in front of it come from the factory, their owner at the end of their code.
"""

from evm import ecdsa
from tokens import erc1155
from wallets import order_signatures
from wallets import owner
from wallets import receiver

exports: (receiver.onERC1155Received, receiver.onERC1155BatchReceived)

# As a Safe announces it, so that a relayer reads one log for both.
event ExecutionSuccess:
    txHash: bytes32
    payment: uint256


struct Call:
    target: address
    value: uint256
    data: Bytes[CALL_BYTES_MAX]


# Room for the greatest batch is paid for by every batch.
CALLS_MAX: constant(uint256) = 16
CALL_BYTES_MAX: constant(uint256) = 4096
ENCODED_BYTES_MAX: constant(uint256) = 64 + 32 * CALLS_MAX

ERC1271_YES: constant(bytes4) = 0x1626ba7e
ERC1271_NO: constant(bytes4) = 0xffffffff

DOMAIN_TYPE_HASH: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
CALL_TYPE_HASH: constant(bytes32) = keccak256("Call(address target,uint256 value,bytes data)")
BATCH_TYPE_HASH: constant(bytes32) = keccak256(
    "Batch(address wallet,uint256 nonce,uint256 deadline,Call[] calls)Call(address target,uint256 value,bytes data)"
)

# How many batches were executed; the next one is signed with this number.
nonce: public(uint256)


@external
@payable
def __default__():
    """
    @notice Take native currency, as any account does.
    """
    pass


@external
@nonreentrant
def execute(
    calls: DynArray[Call, CALLS_MAX],
    deadline: uint256,
    signature: Bytes[ecdsa.SIGNATURE_BYTES],
):
    """
    @notice Make calls that the owner signed with the present nonce: all of them, or none.
    @param calls What is called: the target, the native currency that goes along, and the data
    @param deadline The last second at which they may be made
    @param signature The owner's, over the batch
    """
    if block.timestamp > deadline:
        raw_revert(method_id("BatchExpired()"))
    if len(calls) == 0:
        raw_revert(method_id("NoCalls()"))
    nonce: uint256 = self.nonce
    hashes: DynArray[bytes32, CALLS_MAX] = []
    for call: Call in calls:
        hashes.append(
            keccak256(abi_encode(CALL_TYPE_HASH, call.target, call.value, keccak256(call.data)))
        )
    # Encoded, the words come after an offset and their number.
    words: Bytes[ENCODED_BYTES_MAX] = abi_encode(hashes)
    calls_hash: bytes32 = keccak256(slice(words, 64, 32 * len(calls)))
    digest: bytes32 = self._batch_digest(nonce, deadline, calls_hash)
    if not owner._is_signed(digest, signature):
        raw_revert(method_id("InvalidSignature()"))
    self.nonce = nonce + 1
    for call: Call in calls:
        raw_call(call.target, call.data, value=call.value)
    log ExecutionSuccess(txHash=digest, payment=0)


@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[512]) -> bytes4:
    """
    @notice ERC-1271: whether the owner signed this order for this wallet.
    @param digest The hash of the order in the exchange's domain
    @param signature The owner's, with the domain, the contents and their type
    @return The selector of this function for yes
    """
    if len(signature) != order_signatures.SIGNATURE_BYTES:
        return ERC1271_NO
    exact: Bytes[order_signatures.SIGNATURE_BYTES] = slice(
        signature, 0, order_signatures.SIGNATURE_BYTES
    )
    return ERC1271_YES if order_signatures._is_valid(digest, exact) else ERC1271_NO


@external
@view
def getOwners() -> DynArray[address, 1]:
    """
    @notice The one who signs for the wallet, as a Safe names its owners.
    @return The owner alone
    """
    return [owner._owner()]


@external
@pure
def getThreshold() -> uint256:
    """
    @notice How many owners must sign.
    @return One
    """
    return 1


@external
@pure
def supportsInterface(interfaceId: bytes4) -> bool:
    """
    @notice ERC-165: an ERC-1155 receiver that answers for its signatures.
    @param interfaceId The interface
    @return Whether the wallet has it
    """
    return interfaceId in [erc1155.ERC165, erc1155.RECEIVER, ERC1271_YES]


@internal
@view
def _batch_digest(nonce: uint256, deadline: uint256, calls_hash: bytes32) -> bytes32:
    separator: bytes32 = keccak256(
        abi_encode(
            DOMAIN_TYPE_HASH,
            order_signatures.DOMAIN_NAME_HASH,
            order_signatures.DOMAIN_VERSION_HASH,
            chain.id,
            self,
        )
    )
    struct_hash: bytes32 = keccak256(
        abi_encode(BATCH_TYPE_HASH, self, nonce, deadline, calls_hash)
    )
    return keccak256(concat(b"\x19\x01", separator, struct_hash))
