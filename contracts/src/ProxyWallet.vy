# pragma version 0.4.3
"""
@title ProxyWallet
@license Apache-2.0
@notice What every proxy wallet runs: calls that its factory passes on from its owner. The wallets are
        minimal proxies (ERC-1167); the factory enters itself when it makes one, and nothing changes it.
"""

struct Call:
    typeCode: uint8
    to: address
    value: uint256
    data: Bytes[CALL_BYTES_MAX]


# Room for the greatest batch is paid for by every batch.
CALLS_MAX: constant(uint256) = 16
CALL_BYTES_MAX: constant(uint256) = 4096
RECEIVED_MAX: constant(uint256) = 512
RECEIVED_BYTES_MAX: constant(uint256) = 1024

# The one type of call that is made; type 2 is another contract's code in the wallet's place.
CALL_TYPE: constant(uint8) = 1

ERC165: constant(bytes4) = 0x01ffc9a7
ERC1155_RECEIVER: constant(bytes4) = 0x4e2312e0

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
def onERC1155Received(
    operator: address,
    sender: address,
    id: uint256,
    amount: uint256,
    data: Bytes[RECEIVED_BYTES_MAX],
) -> bytes4:
    """
    @notice Take tokens.
    @param operator Who moves them
    @param sender Whose they were
    @param id Which they are
    @param amount How many
    @param data What came along
    @return The selector of this function
    """
    return method_id("onERC1155Received(address,address,uint256,uint256,bytes)", output_type=bytes4)


@external
@pure
def onERC1155BatchReceived(
    operator: address,
    sender: address,
    ids: DynArray[uint256, RECEIVED_MAX],
    amounts: DynArray[uint256, RECEIVED_MAX],
    data: Bytes[RECEIVED_BYTES_MAX],
) -> bytes4:
    """
    @notice Take tokens of several kinds.
    @param operator Who moves them
    @param sender Whose they were
    @param ids Which they are
    @param amounts How many of each
    @param data What came along
    @return The selector of this function
    """
    return method_id(
        "onERC1155BatchReceived(address,address,uint256[],uint256[],bytes)", output_type=bytes4
    )


@external
@pure
def supportsInterface(interfaceId: bytes4) -> bool:
    """
    @notice ERC-165: an ERC-1155 receiver.
    @param interfaceId The interface
    @return Whether the wallet has it
    """
    return interfaceId in [ERC165, ERC1155_RECEIVER]
