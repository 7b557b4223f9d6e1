# pragma version 0.4.3
"""
@title CREATE2
@license Apache-2.0
@notice The address of a contract that is created with a salt (EIP-1014).
"""


@internal
@pure
def _address(creator: address, salt: bytes32, init_code_hash: bytes32) -> address:
    """
    @dev What the creator makes of this creation code with this salt, or would make.
    """
    digest: bytes32 = keccak256(
        concat(b"\xff", convert(creator, bytes20), salt, init_code_hash)
    )
    return convert(convert(digest, uint256) & convert(max_value(uint160), uint256), address)
