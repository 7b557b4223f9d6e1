# pragma version 0.4.3
"""
@title Validity
@license Apache-2.0
@notice What makes an order fillable at all, whomever it meets.
"""

from evm import ecdsa
from exchange import fees
from exchange import orders
from exchange import preapproval
from exchange import profiles
from exchange import signatures
from exchange import status
from exchange import stops
from exchange import token_registry

uses: preapproval
uses: profiles
uses: signatures
uses: status
uses: stops
uses: token_registry


@external
@view
def validateOrder(order: orders.Order):
    """
    @notice Revert with the reason why the order cannot be filled by the caller now, if there is
            one. Balances and approvals are not looked at.
    @param order The order with its signature
    """
    self._check_chain()
    order_hash: bytes32 = self._checked(orders._fields(order), stops.raised).orderHash
    self._check_signature(order, order_hash)
    token_registry._complement(order.tokenId)
    if status._remaining(order_hash, order.makerAmount) == 0:
        raw_revert(method_id("OrderFilledOrCancelled()"))


@external
@view
def remaining(order: orders.Order) -> uint256:
    """
    @notice What can still be filled of an order, whose signature is not looked at.
    @param order The order
    @return Of its maker amount; zero for one that is filled, cancelled, expired, or ended by its
            maker's nonce or timestamp
    """
    order_hash: bytes32 = profiles._order_hash(orders._fields(order))
    is_v1: bool = profiles._is_v1(order.profile)
    if is_v1 and order.expiration != 0 and order.expiration < block.timestamp:
        return 0
    stop: uint256 = stops._word(order.maker, stops.raised)
    if is_v1 and order.nonce != stop & stops.NONCE:
        return 0
    if not is_v1 and order.timestamp < stops._timestamp(stop):
        return 0
    return status._remaining(order_hash, order.makerAmount)


@internal
@view
def _checked(order: orders.Fields, raised: uint256) -> orders.Terms:
    """
    @dev The terms of an order that could be filled now, if it is signed, its token is registered, and
         something of it remains: those are for the caller to check. `raised` is that of `stops`.
    """
    order_hash: bytes32 = profiles._order_hash(order)
    orders._check_amounts(order.side, order.makerAmount, order.takerAmount)
    is_v1: bool = profiles._is_v1(order.profile)
    stop: uint256 = stops._word(order.maker, raised)
    if is_v1:
        if order.taker != empty(address) and order.taker != msg.sender:
            raw_revert(method_id("NotTaker()"))
        self._check_v1(order.expiration, order.nonce, order.feeRateBps, stop)
    if stop != 0:
        self._check_stop(is_v1, order.timestamp, order.signatureType, stop)
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
        making=0,
        fee=0,
        end=0,
    )


@internal
@view
def _check_v1(expiration: uint256, nonce: uint256, fee_rate_bps: uint256, stop: uint256):
    """
    @dev What a v1 order signs and a v2 order does not. `stop` is the maker's word of `stops`.
    """
    if expiration != 0 and expiration < block.timestamp:
        raw_revert(method_id("OrderExpired()"))
    if nonce != stop & stops.NONCE:
        raw_revert(method_id("InvalidNonce()"))
    if fee_rate_bps > fees.FEE_RATE_BPS_MAX:
        raw_revert(method_id("FeeTooHigh()"))


@internal
@pure
def _check_stop(is_v1: bool, timestamp: uint256, signature_type: uint8, stop: uint256):
    """
    @dev What a maker with a word of `stops` may have ended besides by its nonce.
    """
    if not is_v1 and timestamp < stops._timestamp(stop):
        raw_revert(method_id("OrderFilledOrCancelled()"))
    is_owned: bool = (
        signature_type == signatures.SAFE or signature_type == signatures.PROXY
    )
    if is_owned and stop & stops.NO_OWNER != 0:
        raw_revert(method_id("InvalidSigner()"))


@internal
@view
def _check_chain():
    """
    @dev Our domains are of the chain we were deployed on. On a fork that took another id, an order
         signed for the original must not pass.
    """
    if chain.id != profiles.CHAIN_ID:
        raw_revert(method_id("ChainChanged()"))


@internal
@view
def _check_signature(order: orders.Order, order_hash: bytes32):
    if order.signatureType == signatures.ERC1271 and not profiles._is_v1(order.profile):
        self._check_contract(order_hash, order.signer, order.maker, order.signature)
        return
    if len(order.signature) != ecdsa.SIGNATURE_BYTES:
        raw_revert(method_id("InvalidSignature()"))
    signatures._check_signer(order.signer, order.maker, order.signatureType)
    recovered: address = ecdsa._signer(
        order_hash,
        extract32(order.signature, 0, output_type=uint256),
        extract32(order.signature, 32, output_type=uint256),
        extract32(order.signature, 33, output_type=uint256) & 255,
    )
    if recovered == empty(address) or recovered != order.signer:
        raw_revert(method_id("InvalidSignature()"))


@internal
@view
def _check_contract(
    order_hash: bytes32,
    signer: address,
    wallet: address,
    signature: Bytes[orders.SIGNATURE_BYTES_MAX],
):
    """
    @dev Type 3. No signature at all stands for the wallet's own approval of the order.
    """
    if len(signature) != 0 or not preapproval._is_preapproved(order_hash):
        signatures._check_wallet(order_hash, signer, wallet, signature)
