# pragma version 0.4.3
"""
@title Owner
@license Apache-2.0
@notice The owner of a deposit wallet, and its signatures. A wallet is a proxy whose code ends with its
        owner: no storage holds it, and nothing can change it.
"""

ADDRESS_BYTES: constant(uint256) = 20
ECDSA_BYTES: constant(uint256) = 65
# Half the order of the curve, rounded down.
S_MAX: constant(uint256) = (
    57896044618658097711785492504343953926418782139537452191302581570759080747168
)


@internal
@view
def _owner() -> address:
    """
    @dev The code at our address is the proxy's. `self.code` would be the code that runs, which is
         the same for all wallets.
    """
    proxy: address = self
    last: Bytes[ADDRESS_BYTES] = slice(proxy.code, proxy.codesize - ADDRESS_BYTES, ADDRESS_BYTES)
    return convert(convert(last, bytes20), address)


@internal
@view
def _is_signed(digest: bytes32, signature: Bytes[ECDSA_BYTES]) -> bool:
    """
    @dev An ECDSA signature has one spelling: 65 bytes, v of 27 or 28, s in the lower half.
    """
    if len(signature) != ECDSA_BYTES:
        return False
    r: uint256 = extract32(signature, 0, output_type=uint256)
    s: uint256 = extract32(signature, 32, output_type=uint256)
    v: uint256 = extract32(signature, 33, output_type=uint256) & 255
    if s > S_MAX or (v != 27 and v != 28):
        return False
    recovered: address = ecrecover(digest, v, r, s)
    return recovered != empty(address) and recovered == self._owner()
