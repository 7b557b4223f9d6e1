# pragma version 0.4.3
"""
@title ProxyWallet
@license Apache-2.0
@notice What every proxy wallet runs: calls that its factory passes on from its owner. The wallets are
        minimal proxies (ERC-1167); the factory enters itself when it makes one, and nothing changes it.
"""

from tokens import erc1155
from wallets import receiver

exports: (receiver.onERC1155Received, receiver.onERC1155BatchReceived)

struct Call:
    typeCode: uint8
    to: address
    value: uint256
    data: Bytes[CALL_BYTES_MAX]


# Room for the greatest batch is paid for by every batch.
CALLS_MAX: constant(uint256) = 16
CALL_BYTES_MAX: constant(uint256) = 4096

# The one type of call that is made; type 2 is another contract's code in the wallet's place.
CALL_TYPE: constant(uint8) = 1

# Slot 0, which `ProxyWalletFactory.cloneConstructor` writes.
factory: public(address)


@external
@payable
def __default__():
    """
    @notice Take native currency, as any account does.
    """
    pass


@external
@payable
def proxy(calls: DynArray[Call, CALLS_MAX]):
    """
    @notice Make the owner's calls: all of them, or none.
    @param calls What is called: the type, the target, the native currency that goes along, the data
    """
    if msg.sender != self.factory:
        raw_revert(method_id("NotFactory()"))
    if len(calls) == 0:
        raw_revert(method_id("NoCalls()"))
    for call: Call in calls:
        if call.typeCode != CALL_TYPE:
            raw_revert(method_id("InvalidCallType()"))
        raw_call(call.to, call.data, value=call.value)


@external
@pure
def supportsInterface(interfaceId: bytes4) -> bool:
    """
    @notice ERC-165: an ERC-1155 receiver.
    @param interfaceId The interface
    @return Whether the wallet has it
    """
    return interfaceId in [erc1155.ERC165, erc1155.RECEIVER]
