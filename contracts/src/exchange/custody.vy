# pragma version 0.4.3
"""
@title Custody
@license Apache-2.0
@notice Every move of an asset. An asset is a token id, or zero for the collateral. Amounts are what
        the match says they are: the exchange's own balance is never read, so that what strays into
        it cannot leak out in a match.

        Conditional Tokens calls the receiver of tokens. One that refuses them, burns gas or answers
        otherwise than in a simulation stops no match: what it refused is kept for it here.
"""

from exchange import owed_tokens
from interfaces import IConditionalTokens
from interfaces import IERC20
from tokens import conditions

uses: owed_tokens

event DeliveryRefused:
    receiver: indexed(address)
    tokenId: indexed(uint256)
    amount: uint256


COLLATERAL_ASSET: constant(uint256) = 0

# What one delivery of tokens may use, at most 33,000 of it for the move itself. The call has it all, or the
# match reverts: too little gas of an operator's must not look like a refusal.
DELIVERY_GAS: constant(uint256) = 80_000
GAS_BEFORE_DELIVERY: constant(uint256) = DELIVERY_GAS + DELIVERY_GAS // 32

SAFE_TRANSFER_FROM: constant(bytes4) = method_id(
    "safeTransferFrom(address,address,uint256,uint256,bytes)", output_type=bytes4
)
# Where its calldata has its last argument, which is empty.
DATA_AT: constant(uint256) = 160

# Splits and merges have one form: their fourth argument, an array of the two outcomes, lies at the end.
SPLIT: constant(bytes4) = method_id(
    "splitPosition(address,bytes32,bytes32,uint256[],uint256)", output_type=bytes4
)
MERGE: constant(bytes4) = method_id(
    "mergePositions(address,bytes32,bytes32,uint256[],uint256)", output_type=bytes4
)
PARTITION_AT: constant(uint256) = 160

# What people pay and are paid.
COLLATERAL: immutable(address)
# The ERC-1155 that holds every position.
CONDITIONAL_TOKENS: immutable(address)
# Who splits and merges: Conditional Tokens itself, or the neg-risk adapter.
SPLITTER: immutable(address)
# What token ids are derived from: the collateral, or the adapter's wrapping of it.
TOKEN_COLLATERAL: immutable(address)


@deploy
def __init__(
    collateral: address,
    conditionalTokens: address,
    splitter: address,
    tokenCollateral: address,
):
    # A call of an address without code succeeds, and moves nothing.
    for each: address in [collateral, conditionalTokens, splitter, tokenCollateral]:
        if not each.is_contract:
            raw_revert(method_id("NotContract()"))
    COLLATERAL = collateral
    CONDITIONAL_TOKENS = conditionalTokens
    SPLITTER = splitter
    TOKEN_COLLATERAL = tokenCollateral
    extcall IERC20(collateral).approve(splitter, max_value(uint256), default_return_value=True)
    if splitter != conditionalTokens:
        extcall IConditionalTokens(conditionalTokens).setApprovalForAll(splitter, True)


@external
@view
def getCollateral() -> address:
    """
    @notice The ERC-20 that people pay and are paid with.
    @return The token's address
    """
    return COLLATERAL


@external
@view
def getCtf() -> address:
    """
    @notice The Conditional Tokens contract that holds the positions.
    @return Its address
    """
    return CONDITIONAL_TOKENS


@external
@view
def getSplitter() -> address:
    """
    @notice Who splits and merges for us: Conditional Tokens, or an adapter before it.
    @return Its address
    """
    return SPLITTER


@external
@view
def getTokenCollateral() -> address:
    """
    @notice The ERC-20 that the token ids are derived from.
    @return The token's address
    """
    return TOKEN_COLLATERAL


@external
@nonreentrant
def claimTokens(tokenId: uint256, receiver: address):
    """
    @notice Send the tokens that are kept for the caller.
    @param tokenId The token id
    @param receiver Who gets them, and must accept them
    """
    amount: uint256 = owed_tokens.owed[msg.sender][tokenId]
    if amount == 0 or receiver == self:
        raw_revert(method_id("NothingOwed()"))
    owed_tokens.owed[msg.sender][tokenId] = 0
    self._move_tokens(self, receiver, tokenId, amount)


@internal
def _pay(sender: address, receiver: address, amount: uint256):
    """
    @dev Collateral, of the exchange itself or of a sender that has approved it.
    """
    if amount == 0:
        return
    if sender == self:
        if not extcall IERC20(COLLATERAL).transfer(
            receiver, amount, default_return_value=True, skip_contract_check=True
        ):
            raw_revert(method_id("TransferFailed()"))
    elif not extcall IERC20(COLLATERAL).transferFrom(
        sender, receiver, amount, default_return_value=True, skip_contract_check=True
    ):
        raw_revert(method_id("TransferFailed()"))


@internal
def _move_tokens(sender: address, receiver: address, asset: uint256, amount: uint256):
    # As in `_deliver`: the compiler's own call of an interface costs 70 gas more.
    raw_call(
        CONDITIONAL_TOKENS,
        abi_encode(
            sender, receiver, asset, amount, DATA_AT, empty(uint256), method_id=SAFE_TRANSFER_FROM
        ),
    )


@internal
def _deliver(sender: address, receiver: address, asset: uint256, amount: uint256):
    """
    @dev Tokens, of the exchange itself or of a sender that has approved it. A sender without the tokens
         or the approval reverts the match, as ever: then they cannot be taken in either.
    """
    if amount == 0:
        return
    if msg.gas < GAS_BEFORE_DELIVERY:
        raw_revert(method_id("NotEnoughGas()"))
    success: bool = raw_call(
        CONDITIONAL_TOKENS,
        abi_encode(
            sender, receiver, asset, amount, DATA_AT, empty(uint256), method_id=SAFE_TRANSFER_FROM
        ),
        gas=DELIVERY_GAS,
        revert_on_failure=False,
    )
    if success:
        return
    if sender != self:
        self._move_tokens(sender, self, asset, amount)
    owed_tokens.owed[receiver][asset] += amount
    log DeliveryRefused(receiver=receiver, tokenId=asset, amount=amount)


@internal
def _convert(method: bytes4, condition_id: bytes32, amount: uint256):
    """
    @dev Split collateral into, or merge it from, the two tokens of a condition. A refusal reverts.
    """
    raw_call(
        SPLITTER,
        concat(
            method,
            abi_encode(
                COLLATERAL,
                empty(bytes32),
                condition_id,
                PARTITION_AT,
                amount,
                conditions.OUTCOMES,
                conditions.FIRST_OUTCOME,
                conditions.SECOND_OUTCOME,
            ),
        ),
    )
