# pragma version 0.4.3
"""
@title Receiver
@license Apache-2.0
@notice The ERC-1155 side of the exchange: it takes positions that it moves or splits itself, from
        the Conditional Tokens contract. Anything else that is sent here is sent back, for nobody
        could ever get it out again.
"""

from exchange import custody
from exchange import packed
from tokens import erc1155

uses: custody

IDS_MAX: constant(uint256) = 2
DATA_BYTES_MAX: constant(uint256) = 32


@external
@view
def onERC1155Received(
    operator: address, sender: address, id: uint256, amount: uint256, data: Bytes[DATA_BYTES_MAX]
) -> bytes4:
    """
    @notice Take a position that the exchange itself moves.
    @param operator Who moves it
    @param sender Whose they were
    @param id The token id
    @param amount How much, in base units
    @param data Not looked at
    @return The selector, which accepts it
    """
    self._check_transfer(operator)
    return erc1155.RECEIVED


@external
@view
def onERC1155BatchReceived(
    operator: address,
    sender: address,
    ids: DynArray[uint256, IDS_MAX],
    amounts: DynArray[uint256, IDS_MAX],
    data: Bytes[DATA_BYTES_MAX],
) -> bytes4:
    """
    @notice Take the two positions of a split.
    @param operator Who moves them
    @param sender Whose they were
    @param ids The token ids
    @param amounts How much of each
    @param data Not looked at
    @return The selector, which accepts them
    """
    self._check_transfer(operator)
    return erc1155.BATCH_RECEIVED


@external
@pure
def supportsInterface(interfaceId: bytes4) -> bool:
    """
    @notice ERC-165: an ERC-1155 receiver, whose operators may call `matchPacked`.
    @param interfaceId The id of an interface
    @return True for ERC-165, for the receiver of ERC-1155, and for the selector of `matchPacked`
    """
    return interfaceId in [erc1155.ERC165, erc1155.RECEIVER, packed.MATCH_PACKED]


@internal
@view
def _check_transfer(operator: address):
    if msg.sender != custody.CONDITIONAL_TOKENS:
        raw_revert(method_id("NotConditionalTokens()"))
    if operator != self and operator != custody.SPLITTER:
        raw_revert(method_id("UnexpectedTransfer()"))
