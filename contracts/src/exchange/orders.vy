# pragma version 0.4.3
"""
@title Orders
@license Apache-2.0
@notice One tuple for orders of both signed structs. A struct leaves some fields unsigned: those are
        zero, so that an order has one spelling and one identity.
"""

# Enough for a nested typed-data signature (317 bytes) and for common smart wallets.
SIGNATURE_BYTES_MAX: constant(uint256) = 512

# So that no product of two amounts, and no sum of two roundings, leaves 256 bits.
AMOUNT_UNITS_MAX: constant(uint256) = 2**128 - 1

# How many maker orders one call matches, or orders one call cancels.
ORDERS_MAX: constant(uint256) = 20

# An order's words before its signature, and the place of a call's first argument.
FIELDS_BYTES: constant(uint256) = 16 * 32
# The words of both tuples up to the fee rate, and the two of the side and the signature type.
FIRST_BYTES: constant(uint256) = 10 * 32
KIND_BYTES: constant(uint256) = 2 * 32
ARGUMENTS_AT: constant(uint256) = 4
WORD: constant(uint256) = 32

BUY: constant(uint8) = 0
SELL: constant(uint8) = 1


struct Order:
    salt: uint256
    maker: address
    signer: address
    taker: address  # v1
    tokenId: uint256
    makerAmount: uint256
    takerAmount: uint256
    expiration: uint256  # v1
    nonce: uint256  # v1
    feeRateBps: uint256  # v1
    timestamp: uint256  # v2
    metadata: bytes32  # v2
    builder: bytes32  # v2
    side: uint8
    signatureType: uint8
    profile: uint8  # which of the exchange's profiles it is signed for; not signed itself
    signature: Bytes[SIGNATURE_BYTES_MAX]


# An order without its signature: what is hashed, and what the rules are about.
struct Fields:
    salt: uint256
    maker: address
    signer: address
    taker: address
    tokenId: uint256
    makerAmount: uint256
    takerAmount: uint256
    expiration: uint256
    nonce: uint256
    feeRateBps: uint256
    timestamp: uint256
    metadata: bytes32
    builder: bytes32
    side: uint8
    signatureType: uint8
    profile: uint8


# What matching needs of an order that was found valid: small, for it is passed around a lot.
struct Terms:
    orderHash: bytes32
    maker: address
    tokenId: uint256
    makerAmount: uint256
    takerAmount: uint256
    feeRateBps: uint256
    metadata: bytes32
    builder: bytes32
    isBuy: bool
    isV1: bool
    making: uint256  # what this match takes off the maker amount
    fee: uint256  # what it takes from what the order receives
    end: uint256  # where calldata has the end of its record, in a packed match


@internal
@pure
def _fields(order: Order) -> Fields:
    return Fields(
        salt=order.salt,
        maker=order.maker,
        signer=order.signer,
        taker=order.taker,
        tokenId=order.tokenId,
        makerAmount=order.makerAmount,
        takerAmount=order.takerAmount,
        expiration=order.expiration,
        nonce=order.nonce,
        feeRateBps=order.feeRateBps,
        timestamp=order.timestamp,
        metadata=order.metadata,
        builder=order.builder,
        side=order.side,
        signatureType=order.signatureType,
        profile=order.profile,
    )


@internal
@view
def _fields_at(at: uint256) -> Fields:
    """
    @dev The order at this place of the calldata, whose signature is not looked at.
    """
    return self._decoded(slice(msg.data, at, FIELDS_BYTES))


@internal
@view
def _fields_at_v1(at: uint256) -> Fields:
    """
    @dev As `_fields_at`, of an order in the tuple of the ecosystem's v1 exchange, which has neither the
         three words of v2 nor a profile.
    """
    return self._decoded(
        concat(
            slice(msg.data, at, FIRST_BYTES),
            empty(bytes32),
            empty(bytes32),
            empty(bytes32),
            slice(msg.data, at + FIRST_BYTES, KIND_BYTES),
            empty(bytes32),
        )
    )


@internal
@pure
def _decoded(words: Bytes[FIELDS_BYTES]) -> Fields:
    return abi_decode(words, Fields)


@internal
@view
def _argument() -> uint256:
    """
    @dev Where calldata has the first argument of a call, an order or a list.
    """
    return ARGUMENTS_AT + self._word(ARGUMENTS_AT)


@internal
@view
def _word(at: uint256) -> uint256:
    return convert(slice(msg.data, at, WORD), uint256)


@internal
@pure
def _check_amounts(side: uint8, maker_amount: uint256, taker_amount: uint256):
    """
    @dev The side is one of two, zero is no amount, and no price is above one.
    """
    collateral: uint256 = maker_amount
    tokens: uint256 = taker_amount
    if side == SELL:
        collateral = taker_amount
        tokens = maker_amount
    elif side != BUY:
        raw_revert(method_id("InvalidSide()"))
    # One comparison for both, as zero less one is the largest number.
    if unsafe_sub(collateral, 1) >= tokens:
        if collateral == 0 or tokens == 0:
            raw_revert(method_id("ZeroAmount()"))
        raw_revert(method_id("PriceAboveOne()"))
    if tokens > AMOUNT_UNITS_MAX:
        raw_revert(method_id("AmountTooLarge()"))
