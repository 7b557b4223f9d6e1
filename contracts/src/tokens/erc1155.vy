# pragma version 0.4.3
"""
@title ERC-1155
@license Apache-2.0
@notice What a receiver of ERC-1155 tokens answers: the ids of its interfaces (ERC-165), and the
        selectors by which it accepts a transfer.
"""

ERC165: constant(bytes4) = 0x01ffc9a7
RECEIVER: constant(bytes4) = 0x4e2312e0

RECEIVED: constant(bytes4) = method_id(
    "onERC1155Received(address,address,uint256,uint256,bytes)", output_type=bytes4
)
BATCH_RECEIVED: constant(bytes4) = method_id(
    "onERC1155BatchReceived(address,address,uint256[],uint256[],bytes)", output_type=bytes4
)
