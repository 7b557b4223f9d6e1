# pragma version 0.4.3
"""
@title Trade logs
@license Apache-2.0
@notice Logs of a match, in the form of each order's own generation: indexers of
        v1 and of v2 orders both find what they look for.
"""

from exchange import orders

event OrderFilled:
    orderHash: indexed(bytes32)
    maker: indexed(address)
    taker: indexed(address)
    makerAssetId: uint256
    takerAssetId: uint256
    makerAmountFilled: uint256
    takerAmountFilled: uint256
    fee: uint256


event OrdersMatched:
    takerOrderHash: indexed(bytes32)
    takerOrderMaker: indexed(address)
    makerAssetId: uint256
    takerAssetId: uint256
    makerAmountFilled: uint256
    takerAmountFilled: uint256


# A contract cannot declare two events of one name, so those of v2 are written out. `build.py` reads
# their signatures here and adds them to the ABI.
# abi: event OrderFilled(bytes32 indexed orderHash, address indexed maker, address indexed taker, uint8 side, uint256 tokenId, uint256 makerAmountFilled, uint256 takerAmountFilled, uint256 fee, bytes32 builder, bytes32 metadata)
ORDER_FILLED_V2: constant(bytes32) = keccak256(
    "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)"
)
# abi: event OrdersMatched(bytes32 indexed takerOrderHash, address indexed takerOrderMaker, uint8 side, uint256 tokenId, uint256 makerAmountFilled, uint256 takerAmountFilled)
ORDERS_MATCHED_V2: constant(bytes32) = keccak256(
    "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)"
)


@internal
def _log_filled(order: orders.Terms, counterparty: address, making: uint256, taking: uint256):
    if order.isV1:
        log OrderFilled(
            orderHash=order.orderHash,
            maker=order.maker,
            taker=counterparty,
            makerAssetId=0 if order.isBuy else order.tokenId,
            takerAssetId=order.tokenId if order.isBuy else 0,
            makerAmountFilled=making,
            takerAmountFilled=taking,
            fee=order.fee,
        )
        return
    raw_log(
        [
            ORDER_FILLED_V2,
            order.orderHash,
            convert(order.maker, bytes32),
            convert(counterparty, bytes32),
        ],
        abi_encode(
            orders.BUY if order.isBuy else orders.SELL,
            order.tokenId,
            making,
            taking,
            order.fee,
            order.builder,
            order.metadata,
        ),
    )


@internal
def _log_matched(taker: orders.Terms, paid: uint256, received: uint256):
    if taker.isV1:
        log OrdersMatched(
            takerOrderHash=taker.orderHash,
            takerOrderMaker=taker.maker,
            makerAssetId=0 if taker.isBuy else taker.tokenId,
            takerAssetId=taker.tokenId if taker.isBuy else 0,
            makerAmountFilled=paid,
            takerAmountFilled=received,
        )
        return
    raw_log(
        [ORDERS_MATCHED_V2, taker.orderHash, convert(taker.maker, bytes32)],
        abi_encode(
            orders.BUY if taker.isBuy else orders.SELL,
            taker.tokenId,
            paid,
            received,
        ),
    )
