# pragma version 0.4.3
"""
@title ECDSA
@license Apache-2.0
@notice Who signed a hash. A signature has one spelling: 65 bytes, v of 27 or 28, s in the lower half.
"""

# r, s and v.
SIGNATURE_BYTES: constant(uint256) = 65

# Half the order of the curve, rounded down.
S_MAX: constant(uint256) = (
    57896044618658097711785492504343953926418782139537452191302581570759080747168
)


@internal
@view
def _signer(digest: bytes32, r: uint256, s: uint256, v: uint256) -> address:
    """
    @dev Zero for a signature of another spelling, and for one of nobody.
    """
    if s > S_MAX or (v != 27 and v != 28):
        return empty(address)
    return ecrecover(digest, v, r, s)


@internal
@view
def _signer_of(digest: bytes32, signature: Bytes[SIGNATURE_BYTES]) -> address:
    """
    @dev As `_signer`, of a signature in one piece.
    """
    if len(signature) != SIGNATURE_BYTES:
        return empty(address)
    return self._signer(
        digest,
        extract32(signature, 0, output_type=uint256),
        extract32(signature, 32, output_type=uint256),
        extract32(signature, 33, output_type=uint256) & 255,
    )
