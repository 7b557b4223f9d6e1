# pragma version 0.4.3
"""
@title ProxyWalletFactory
@license Apache-2.0
@notice Passes an owner's calls on to its proxy wallet, and makes the wallet first if need be. The owner
        is the caller, or, if the relay hub calls, whose signature the hub checked. A wallet is a minimal
        proxy (ERC-1167) at an address that anyone can derive from the owner's.
"""

from evm import create2

event WalletDeployed:
    wallet: indexed(address)
    owner: indexed(address)


# The ABI for `build.py`: the calls are for the wallet to decode, so they are passed on as they are.
# abi: struct ProxyCall(uint8 typeCode, address to, uint256 value, bytes data)
# @notice Have the caller's proxy wallet make calls.
# @param calls The calls, in their order
# abi: function proxy(ProxyCall[] calls)
PROXY: constant(bytes4) = method_id("proxy((uint8,address,uint256,bytes)[])", output_type=bytes4)

ADDRESS_BYTES: constant(uint256) = 20

# The creation code around the addresses of the factory, which it delegates to once, and of what the
# wallets run; the call `cloneConstructor("")` follows it.
HEAD: constant(Bytes[13]) = x"3d3d606380380380913d393d73"
MIDDLE: constant(Bytes[31]) = x"5af4602a57600080fd5b602d8060366000396000f3363d3d373d3d3d363d73"
TAIL: constant(Bytes[15]) = x"5af43d82803e903d91602b57fd5bf3"

# Slot 0 of a wallet, in whose place `cloneConstructor` runs; the factory's own stays empty.
factory: address

IMPLEMENTATION: immutable(address)
RELAY_HUB: immutable(address)


@deploy
def __init__(implementation: address, relayHub_: address):
    """
    @param implementation What every wallet runs
    @param relayHub_ Who is believed when it names an owner
    """
    if implementation == empty(address) or relayHub_ == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    IMPLEMENTATION = implementation
    RELAY_HUB = relayHub_


@external
@payable
def __default__():
    """
    @notice `proxy`: make the owner's calls from its wallet, all of them or none.
    """
    if len(msg.data) < 4 or convert(slice(msg.data, 0, 4), bytes4) != PROXY:
        raw_revert(method_id("UnknownCall()"))
    owner: address = msg.sender
    if msg.sender == RELAY_HUB:
        last: Bytes[ADDRESS_BYTES] = slice(
            msg.data, len(msg.data) - ADDRESS_BYTES, ADDRESS_BYTES
        )
        owner = convert(convert(last, bytes20), address)
    wallet: address = self._wallet_address(owner)
    if not wallet.is_contract:
        made: address = raw_create(self._init_code(), salt=self._salt(owner))
        assert made == wallet
        log WalletDeployed(wallet=wallet, owner=owner)
    raw_call(wallet, msg.data, value=msg.value)


@external
def cloneConstructor(data: Bytes[32]):
    """
    @notice Enter the factory in a wallet that it makes. It runs in the wallet's place, which has no
            code yet; called by anybody, it refuses.
    @param data Nothing
    """
    if self.is_contract:
        raw_revert(method_id("WalletExists()"))
    self.factory = msg.sender


@external
@view
def proxyWalletAddress(owner: address) -> address:
    """
    @notice Where the owner's wallet is, or would be.
    @param owner The owner
    @return The wallet's address
    """
    return self._wallet_address(owner)


@external
@view
def initCodeHash() -> bytes32:
    """
    @notice The hash of every wallet's creation code, from which addresses are derived.
    @return The hash
    """
    return keccak256(self._init_code())


@external
@view
def getImplementation() -> address:
    """
    @notice What every wallet runs.
    @return Its address
    """
    return IMPLEMENTATION


@external
@view
def relayHub() -> address:
    """
    @notice The hub that is believed when it names an owner.
    @return Its address
    """
    return RELAY_HUB


@internal
@pure
def _salt(owner: address) -> bytes32:
    return keccak256(slice(convert(owner, bytes32), 12, 20))


@internal
@view
def _init_code() -> Bytes[167]:
    return concat(
        HEAD,
        convert(self, bytes20),
        MIDDLE,
        convert(IMPLEMENTATION, bytes20),
        TAIL,
        abi_encode(b"", method_id=method_id("cloneConstructor(bytes)")),
    )


@internal
@view
def _wallet_address(owner: address) -> address:
    return create2._address(self, self._salt(owner), keccak256(self._init_code()))
