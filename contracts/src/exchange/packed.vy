# pragma version 0.4.3
"""
@title Packed
@license Apache-2.0
@notice The arguments of `matchPacked`: a match in a fifth of the calldata of `matchOrders`. Each order
        is a record with its fill, first the taker's. Nothing is in a record that follows from something
        else: makers trade the taker's token or its complement, and the maker of an order is who signed
        it, or the signer's Safe. What was signed is put together again and hashed as ever, so a record
        that says anything else than the signed order has no valid signature.

        A record has five words: account, time, flags, and fee rate or signature length in one; the
        salt; maker amount, taker amount, fill and fee; r; s. The words that few orders have may follow,
        and a contract's signature.
"""

from evm import ecdsa
from exchange import orders
from exchange import profiles
from exchange import signatures
from exchange import status
from exchange import stops
from exchange import validity

uses: profiles
uses: signatures
uses: status
uses: stops
uses: validity


struct Record:
    head: uint256  # account (160 bits), time (64), flags (16), rate or length (16)
    salt: uint256
    amounts: uint256  # maker amount, taker amount, what is taken off the former, fee (64 bits each)
    r: uint256
    s: uint256


# The ABI for `build.py`; `Exchange.__default__` finds the call by its selector.
# @notice Match a taker order with maker orders, for an operator.
# @param records The id of the taker's token, and the records of the taker and of 1 to 20 makers
# abi: function matchPacked(bytes records)
MATCH_PACKED: constant(bytes4) = method_id("matchPacked(bytes)", output_type=bytes4)

# `records` must lie where every encoder puts it. It begins with the taker's token.
LENGTH_AT: constant(uint256) = 36
TOKEN_AT: constant(uint256) = 68
RECORDS_AT: constant(uint256) = 100
RECORDS_OFFSET: constant(uint256) = 32

WORD: constant(uint256) = orders.WORD
RECORD_BYTES: constant(uint256) = 5 * 32
SIGNATURE_WORDS_MAX: constant(uint256) = orders.SIGNATURE_BYTES_MAX // WORD

LAST: constant(uint256) = 2**16 - 1
FLAGS_AT: constant(uint256) = 16
TIME_AT: constant(uint256) = 32
ACCOUNT_AT: constant(uint256) = 96
UINT64: constant(uint256) = 2**64 - 1
MAKER_AMOUNT_AT: constant(uint256) = 192
TAKER_AMOUNT_AT: constant(uint256) = 128
FILL_AT: constant(uint256) = 64

# Flags: three bits of the profile, the side, two bits of the signature type, v of 28, extra words, and
# the operator as v1's `taker`.
PROFILE: constant(uint256) = 7
SELL: constant(uint256) = 1 << 3
TYPE_AT: constant(uint256) = 4
TYPE: constant(uint256) = 3
V_28: constant(uint256) = 1 << 6
EXTRA: constant(uint256) = 1 << 7
OPERATOR: constant(uint256) = 1 << 8


@internal
@view
def _call() -> (uint256, uint256):
    """
    @dev The taker's token, and where calldata has the last record's end.
    """
    if orders._word(orders.ARGUMENTS_AT) != RECORDS_OFFSET:
        raw_revert(method_id("MalformedRecords()"))
    return orders._word(TOKEN_AT), TOKEN_AT + orders._word(LENGTH_AT)


@internal
def _take(at: uint256, buys: uint256, sells: uint256, raised: uint256) -> orders.Terms:
    """
    @dev The order of the record at this place of the calldata, with its fill taken off. A BUY is for
         the first token, a SELL of the second.
    """
    record: Record = abi_decode(slice(msg.data, at, RECORD_BYTES), Record)
    flags: uint256 = record.head >> FLAGS_AT
    time: uint256 = (record.head >> TIME_AT) & UINT64
    profile: uint256 = flags & PROFILE
    signature_type: uint8 = convert((flags >> TYPE_AT) & TYPE, uint8)
    signer: address = convert(record.head >> ACCOUNT_AT, address)
    order: orders.Terms = empty(orders.Terms)
    order.end = unsafe_add(at, RECORD_BYTES)
    order.maker = signer
    if signature_type == signatures.SAFE:
        order.maker = signatures._safe_address(signer)
    order.makerAmount = record.amounts >> MAKER_AMOUNT_AT
    order.takerAmount = (record.amounts >> TAKER_AMOUNT_AT) & UINT64
    order.making = (record.amounts >> FILL_AT) & UINT64
    order.fee = record.amounts & UINT64
    order.tokenId = buys
    order.isBuy = True
    side: uint8 = orders.BUY
    if flags & SELL != 0:
        order.tokenId = sells
        order.isBuy = False
        side = orders.SELL
    orders._check_amounts(side, order.makerAmount, order.takerAmount)
    if profile >= profiles.PROFILE_COUNT:
        raw_revert(method_id("InvalidProfile()"))
    stop: uint256 = stops._word(order.maker, raised)
    struct_hash: bytes32 = empty(bytes32)
    if profiles.V2_PROFILES & (1 << profile) == 0:
        nonce: uint256 = 0
        if flags & EXTRA != 0:
            nonce = orders._word(order.end)
            order.end = unsafe_add(order.end, WORD)
        taker: address = empty(address)
        if flags & OPERATOR != 0:
            taker = msg.sender
        order.isV1 = True
        order.feeRateBps = record.head & LAST
        validity._check_v1(time, nonce, order.feeRateBps, stop)
        struct_hash = keccak256(
            abi_encode(
                profiles.ORDER_V1_TYPE_HASH,
                record.salt,
                order.maker,
                signer,
                taker,
                order.tokenId,
                order.makerAmount,
                order.takerAmount,
                time,
                nonce,
                order.feeRateBps,
                side,
                signature_type,
            )
        )
    else:
        if flags & EXTRA != 0:
            order.metadata = convert(orders._word(order.end), bytes32)
            order.builder = convert(orders._word(unsafe_add(order.end, WORD)), bytes32)
            order.end = unsafe_add(order.end, 2 * WORD)
        struct_hash = keccak256(
            abi_encode(
                profiles.ORDER_V2_TYPE_HASH,
                record.salt,
                order.maker,
                signer,
                order.tokenId,
                order.makerAmount,
                order.takerAmount,
                side,
                signature_type,
                time,
                order.metadata,
                order.builder,
            )
        )
    order.orderHash = profiles._digest(profile, struct_hash)
    if stop != 0:
        validity._check_stop(order.isV1, time, signature_type, stop)
    slot: uint256 = status.slots[order.orderHash]
    if signature_type == signatures.ERC1271:
        if order.isV1:
            raw_revert(method_id("InvalidSignatureType()"))
        length: uint256 = record.head & LAST
        validity._check_contract(
            order.orderHash, signer, order.maker, self._signature(order.end, length)
        )
        order.end = unsafe_add(order.end, (length + WORD - 1) // WORD * WORD)
    elif slot == 0:
        if signature_type == signatures.PROXY:
            raw_revert(method_id("InvalidSignatureType()"))
        recovered: address = ecdsa._signer(
            order.orderHash, record.r, record.s, 28 if flags & V_28 != 0 else 27
        )
        if recovered == empty(address) or recovered != signer:
            raw_revert(method_id("InvalidSignature()"))
    status._fill(order.orderHash, slot, order.makerAmount, order.making)
    return order


@internal
@view
def _signature(at: uint256, length: uint256) -> Bytes[orders.SIGNATURE_BYTES_MAX]:
    """
    @dev A contract's signature, a word at a time: what is cut out of calldata has a length that the
         compiler knows.
    """
    if length > orders.SIGNATURE_BYTES_MAX:
        raw_revert(method_id("InvalidSignature()"))
    words: uint256[SIGNATURE_WORDS_MAX] = empty(uint256[SIGNATURE_WORDS_MAX])
    for i: uint256 in range((length + WORD - 1) // WORD, bound=SIGNATURE_WORDS_MAX):
        words[i] = orders._word(at + WORD * i)
    return slice(abi_encode(words), 0, length)
