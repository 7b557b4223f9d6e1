# pragma version 0.4.3
"""
@title Receiver
@license Apache-2.0
@notice The ERC-1155 side of a wallet, which takes what anybody sends it.
"""

from tokens import erc1155

# Room for the longest transfer is paid for by every transfer.
IDS_MAX: constant(uint256) = 512
DATA_BYTES_MAX: constant(uint256) = 1024


@external
@pure
def onERC1155Received(
    operator: address, sender: address, id: uint256, amount: uint256, data: Bytes[DATA_BYTES_MAX]
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
    return erc1155.RECEIVED


@external
@pure
def onERC1155BatchReceived(
    operator: address,
    sender: address,
    ids: DynArray[uint256, IDS_MAX],
    amounts: DynArray[uint256, IDS_MAX],
    data: Bytes[DATA_BYTES_MAX],
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
    return erc1155.BATCH_RECEIVED
