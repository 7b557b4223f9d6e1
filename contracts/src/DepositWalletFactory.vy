# pragma version 0.4.3
"""
@title DepositWalletFactory
@license Apache-2.0
@notice Makes one deposit wallet for each owner, at an address that anyone can derive from the owner's.
        The wallet is a beacon proxy (ERC-1967) with its factory and its owner at the end of its code.
"""

from evm import create2

event WalletDeployed:
    wallet: indexed(address)
    owner: indexed(address)


ARGUMENT_BYTES: constant(uint256) = 64

# The proxy's creation code, in two parts around the beacon's address: it returns the rest of itself.
# The proxy asks the beacon for the implementation at each call, and delegates to it.
HEAD: constant(Bytes[10]) = x"6100923d8160233d3973"
TAIL: constant(Bytes[87]) = x"60195155f3363d3d373d3d363d602036600436635c60da1b60e01b36527fa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50545afa5036515af43d6000803e604d573d6000fd5b3d6000f3"

BEACON: public(immutable(address))


@deploy
def __init__(beacon_: address):
    if beacon_ == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    BEACON = beacon_


@external
def deploy(owner: address) -> address:
    """
    @notice Make the wallet of this owner. Anybody may: the owner alone decides over it.
    @param owner Who signs for the wallet
    @return The wallet's address
    """
    if owner == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    if self._wallet_address(owner).is_contract:
        raw_revert(method_id("WalletExists()"))
    wallet: address = raw_create(self._init_code(owner), salt=self._salt(owner))
    log WalletDeployed(wallet=wallet, owner=owner)
    return wallet


@external
@view
def predictWalletAddress(owner: address) -> address:
    """
    @notice Where the owner's wallet is, or would be.
    @param owner Who signs for the wallet
    @return The wallet's address
    """
    return self._wallet_address(owner)


@internal
@view
def _wallet_address(owner: address) -> address:
    return create2._address(self, self._salt(owner), keccak256(self._init_code(owner)))


@internal
@view
def _arguments(owner: address) -> Bytes[ARGUMENT_BYTES]:
    return abi_encode(self, owner)


@internal
@view
def _salt(owner: address) -> bytes32:
    return keccak256(self._arguments(owner))


@internal
@view
def _init_code(owner: address) -> Bytes[181]:
    return concat(HEAD, convert(BEACON, bytes20), TAIL, self._arguments(owner))
