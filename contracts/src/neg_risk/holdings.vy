# pragma version 0.4.3
"""
@title Holdings
@license Apache-2.0
@notice What the neg-risk adapter stands between: the collateral, its wrapping, and Conditional
        Tokens. The adapter holds nothing between two calls, so positions that somebody sends to it
        are sent back: nobody could ever get them out again.
"""

from interfaces import IConditionalTokens
from interfaces import IERC20
from interfaces import IWrappedCollateral
from tokens import conditions
from tokens import erc1155

WRAPPED_CODE_BYTES_MAX: constant(uint256) = 4096
BATCH_MAX: constant(uint256) = 255
DATA_BYTES_MAX: constant(uint256) = 32

# Where positions go that must never be redeemed; nobody knows a key to it.
NO_TOKEN_BURN: constant(address) = 0xa5Ef39C3D3e10d0B270233af41CaC69796B12966

COLLATERAL: immutable(address)
WRAPPED: immutable(address)
CONDITIONAL_TOKENS: immutable(address)
VAULT: immutable(address)


@deploy
def __init__(
    collateral: address,
    conditionalTokens: address,
    vault_: address,
    wrappedCode: Bytes[WRAPPED_CODE_BYTES_MAX],
):
    if vault_ == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    COLLATERAL = collateral
    CONDITIONAL_TOKENS = conditionalTokens
    VAULT = vault_
    wrapped: address = raw_create(wrappedCode, collateral, salt=empty(bytes32))
    WRAPPED = wrapped
    extcall IERC20(collateral).approve(wrapped, max_value(uint256), default_return_value=True)
    extcall IERC20(wrapped).approve(conditionalTokens, max_value(uint256))


@external
@view
def col() -> address:
    """
    @notice The collateral that people pay and are paid with.
    @return The token's address
    """
    return COLLATERAL


@external
@view
def wcol() -> address:
    """
    @notice Its wrapping, which token ids are derived from.
    @return The token's address
    """
    return WRAPPED


@external
@view
def ctf() -> address:
    """
    @notice The Conditional Tokens contract.
    @return Its address
    """
    return CONDITIONAL_TOKENS


@external
@view
def vault() -> address:
    """
    @notice Who gets the fees of conversions, and what nobody has a claim to.
    @return Its address
    """
    return VAULT


@external
@view
def NO_TOKEN_BURN_ADDRESS() -> address:
    """
    @notice Where converted No positions go.
    @return The address
    """
    return NO_TOKEN_BURN


@external
@view
def balanceOf(owner: address, id: uint256) -> uint256:
    """
    @notice What an account holds of a position, as Conditional Tokens has it.
    @param owner The owner
    @param id The position
    @return Base units
    """
    return staticcall IConditionalTokens(CONDITIONAL_TOKENS).balanceOf(owner, id)


@external
@view
def onERC1155Received(
    operator: address, sender: address, id: uint256, amount: uint256, data: Bytes[DATA_BYTES_MAX]
) -> bytes4:
    """
    @notice Take a position that the adapter itself moves.
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
    ids: DynArray[uint256, BATCH_MAX],
    amounts: DynArray[uint256, BATCH_MAX],
    data: Bytes[DATA_BYTES_MAX],
) -> bytes4:
    """
    @notice Take positions that the adapter itself moves or splits.
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
    @notice ERC-165: an ERC-1155 receiver.
    @param interfaceId The id of an interface
    @return True for ERC-165 and for the receiver of ERC-1155
    """
    return interfaceId in [erc1155.ERC165, erc1155.RECEIVER]


@internal
@view
def _check_transfer(operator: address):
    if msg.sender != CONDITIONAL_TOKENS:
        raw_revert(method_id("NotConditionalTokens()"))
    if operator != self:
        raw_revert(method_id("UnexpectedTransfer()"))


@internal
def _wrap(payer: address, amount: uint256):
    """
    @dev Take collateral from the payer and hold it wrapped.
    """
    if not extcall IERC20(COLLATERAL).transferFrom(
        payer, self, amount, default_return_value=True
    ):
        raw_revert(method_id("TransferFailed()"))
    extcall IWrappedCollateral(WRAPPED).wrap(self, amount)


@internal
def _send(
    sender: address,
    receiver: address,
    ids: DynArray[uint256, BATCH_MAX],
    amounts: DynArray[uint256, BATCH_MAX],
):
    extcall IConditionalTokens(CONDITIONAL_TOKENS).safeBatchTransferFrom(
        sender, receiver, ids, amounts, b""
    )


@internal
def _split(condition_id: bytes32, amount: uint256):
    extcall IConditionalTokens(CONDITIONAL_TOKENS).splitPosition(
        WRAPPED, empty(bytes32), condition_id, conditions.PARTITION, amount
    )


@internal
def _merge(condition_id: bytes32, amount: uint256):
    extcall IConditionalTokens(CONDITIONAL_TOKENS).mergePositions(
        WRAPPED, empty(bytes32), condition_id, conditions.PARTITION, amount
    )


@internal
def _redeem(condition_id: bytes32):
    extcall IConditionalTokens(CONDITIONAL_TOKENS).redeemPositions(
        WRAPPED, empty(bytes32), condition_id, conditions.PARTITION
    )
