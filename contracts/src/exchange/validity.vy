# pragma version 0.4.3
"""
@title Validity
@license Apache-2.0
@notice What makes an order fillable at all, whomever it meets.
"""

from exchange import fees
from exchange import maker_nonces
from exchange import orders
from exchange import profiles
from exchange import token_registry
from exchange import signatures
from exchange import status

uses: maker_nonces
uses: profiles
uses: token_registry
uses: signatures
uses: status


@external
@view
def validateOrder(order: orders.Order):
    """
    @notice Revert with the reason why the order cannot be filled by the caller now, if there is
            one. Balances and approvals are not looked at.
    """
    terms: orders.Terms = self._checked(order)
    token_registry._complement(terms.tokenId)
    if status._remaining(terms.orderHash, terms.makerAmount) == 0:
        raw_revert(method_id("OrderFilledOrCancelled()"))


@external
@view
def remaining(order: orders.Order) -> uint256:
    """
    @notice What can still be filled of the order's maker amount: zero for one that is filled,
            cancelled, expired, or signed with a nonce that its maker has left behind.
    """
    order_hash: bytes32 = profiles._order_hash(order)
    if profiles._is_v1(order.profile):
        is_expired: bool = order.expiration != 0 and order.expiration < block.timestamp
        if is_expired or order.nonce != maker_nonces._nonce(order.maker):
            return 0
    return status._remaining(order_hash, order.makerAmount)


@internal
@view
def _checked(order: orders.Order) -> orders.Terms:
    """
    @dev The order's terms, when it is valid. What of it remains, and whether its token is
         registered, is for the caller to check.
    """
    order_hash: bytes32 = profiles._order_hash(order)
    orders._check_amounts(order.side, order.makerAmount, order.takerAmount)
    is_v1: bool = profiles.V2_PROFILES & (1 << convert(order.profile, uint256)) == 0
    if is_v1:
        if order.taker != empty(address) and order.taker != msg.sender:
            raw_revert(method_id("NotTaker()"))
        if order.expiration != 0 and order.expiration < block.timestamp:
            raw_revert(method_id("OrderExpired()"))
        if order.nonce != maker_nonces._nonce(order.maker):
            raw_revert(method_id("InvalidNonce()"))
        if order.feeRateBps > fees.FEE_RATE_BPS_MAX:
            raw_revert(method_id("FeeTooHigh()"))
    if chain.id != profiles.CHAIN_ID:
        # Our domains are of the chain we were deployed on. On a fork that took another id, an
        # order signed for the original must not pass.
        raw_revert(method_id("ChainChanged()"))
    if order.signatureType == signatures.ERC1271 and not is_v1:
        signatures._check_wallet(order_hash, order.signer, order.maker, order.signature)
    else:
        if len(order.signature) != signatures.ECDSA_BYTES:
            raw_revert(method_id("InvalidSignature()"))
        signatures._check_ecdsa(
            order_hash,
            order.signer,
            order.maker,
            order.signatureType,
            extract32(order.signature, 0, output_type=uint256),
            extract32(order.signature, 32, output_type=uint256),
            extract32(order.signature, 33, output_type=uint256) & 255,
        )
    return orders.Terms(
        orderHash=order_hash,
        maker=order.maker,
        tokenId=order.tokenId,
        makerAmount=order.makerAmount,
        takerAmount=order.takerAmount,
        feeRateBps=order.feeRateBps,
        metadata=order.metadata,
        builder=order.builder,
        isBuy=order.side == orders.BUY,
        isV1=is_v1,
    )
