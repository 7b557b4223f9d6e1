# pragma version 0.4.3
"""
@title Owner
@license Apache-2.0
@notice The owner of a deposit wallet, and its signatures. A wallet is a proxy whose code ends with its
        owner: no storage holds it, and nothing can change it.
"""

from evm import ecdsa

ADDRESS_BYTES: constant(uint256) = 20


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
def _is_signed(digest: bytes32, signature: Bytes[ecdsa.SIGNATURE_BYTES]) -> bool:
    signer: address = ecdsa._signer_of(digest, signature)
    return signer != empty(address) and signer == self._owner()
