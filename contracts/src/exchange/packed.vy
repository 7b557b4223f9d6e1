# pragma version 0.4.3
"""
@title Packed
@license Apache-2.0
@notice The arguments of `matchPacked`: a match in a quarter of the calldata of `matchOrders`. Each order
        is a record with its fill, first the taker's. Nothing is in a record that follows from something
        else: makers trade the taker's token or its complement, and the maker of an order is who signed
        it, or the signer's Safe. What was signed is put together again and hashed as ever, so a record
        that says anything else than the signed order has no valid signature.

        A record has six words: account, time, flags and signature length in one; the salt; maker
        amount and taker amount; fill and fee; r; s. Two words may follow, and a contract's signature.
"""

from exchange import orders
from exchange import profiles
from exchange import signatures
from exchange import status
from exchange import validity

uses: profiles
uses: signatures
uses: status
uses: validity


struct Call:
    tokenId: uint256  # the taker's
    end: uint256  # where calldata has the last record's end


struct Record:
    head: uint256  # account (160 bits), time (64), flags (16), length of a contract's signature (16)
    salt: uint256
    amounts: uint256  # maker amount (128 bits), taker amount (128)
    fill: uint256  # what is taken off the maker amount (128 bits), fee (128)
    r: uint256
    s: uint256


# The ABI for `build.py`; `Exchange.__default__` finds the call by its selector.
# abi: function matchPacked(uint256 tokenId, bytes records)
MATCH_PACKED: constant(bytes4) = method_id("matchPacked(uint256,bytes)", output_type=bytes4)

# Where the arguments begin, and the records; `records` must lie where every encoder puts it.
ARGUMENTS_AT: constant(uint256) = 4
RECORDS_AT: constant(uint256) = 100
RECORDS_OFFSET: constant(uint256) = 64

WORD: constant(uint256) = 32
RECORD_BYTES: constant(uint256) = 6 * 32
EXTRA_BYTES: constant(uint256) = 2 * 32
SIGNATURE_WORDS_MAX: constant(uint256) = orders.SIGNATURE_BYTES_MAX // WORD

LENGTH: constant(uint256) = 2**16 - 1
FLAGS_AT: constant(uint256) = 16
TIME_AT: constant(uint256) = 32
TIME: constant(uint256) = 2**64 - 1
ACCOUNT_AT: constant(uint256) = 96
LOW: constant(uint256) = 2**128 - 1
HIGH_AT: constant(uint256) = 128

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
def _call() -> Call:
    """
    @dev The arguments, of which the records are read one by one.
    """
    token_id: uint256 = 0
    offset: uint256 = 0
    length: uint256 = 0
    token_id, offset, length = abi_decode(
        slice(msg.data, ARGUMENTS_AT, RECORDS_AT - ARGUMENTS_AT), (uint256, uint256, uint256)
    )
    if offset != RECORDS_OFFSET:
        raw_revert(method_id("MalformedRecords()"))
    return Call(tokenId=token_id, end=RECORDS_AT + length)


@internal
def _take(
    at: uint256, buys: uint256, sells: uint256, raised: uint256
) -> (orders.Terms, uint256):
    """
    @dev The order of the record at this place of the calldata, with its fill taken off, and where the
         next record begins. A BUY is for the first token, a SELL of the second.
    """
    record: Record = abi_decode(slice(msg.data, at, RECORD_BYTES), Record)
    next: uint256 = unsafe_add(at, RECORD_BYTES)
    flags: uint256 = record.head >> FLAGS_AT
    order: orders.Fields = empty(orders.Fields)
    order.salt = record.salt
    order.signer = convert(record.head >> ACCOUNT_AT, address)
    order.makerAmount = record.amounts >> HIGH_AT
    order.takerAmount = record.amounts & LOW
    order.profile = convert(flags & PROFILE, uint8)
    order.signatureType = convert((flags >> TYPE_AT) & TYPE, uint8)
    order.tokenId = buys
    if flags & SELL != 0:
        order.side = orders.SELL
        order.tokenId = sells
    order.maker = order.signer
    if order.signatureType == signatures.SAFE:
        order.maker = signatures._safe_address(order.signer)
    extra: uint256[2] = [0, 0]
    if flags & EXTRA != 0:
        extra = abi_decode(slice(msg.data, next, EXTRA_BYTES), uint256[2])
        next = unsafe_add(next, EXTRA_BYTES)
    if profiles._is_v1(order.profile):
        order.expiration = (record.head >> TIME_AT) & TIME
        order.nonce = extra[0]
        order.feeRateBps = extra[1]
        if flags & OPERATOR != 0:
            order.taker = msg.sender
    else:
        order.timestamp = (record.head >> TIME_AT) & TIME
        order.metadata = convert(extra[0], bytes32)
        order.builder = convert(extra[1], bytes32)
    terms: orders.Terms = validity._checked(order, raised)
    terms.making = record.fill >> HIGH_AT
    terms.fee = record.fill & LOW
    slot: uint256 = status.slots[terms.orderHash]
    if order.signatureType == signatures.ERC1271:
        if terms.isV1:
            raw_revert(method_id("InvalidSignatureType()"))
        length: uint256 = record.head & LENGTH
        validity._check_contract(
            terms.orderHash, order.signer, order.maker, self._signature(next, length)
        )
        next = unsafe_add(next, (length + WORD - 1) // WORD * WORD)
    elif slot == 0:
        if order.signatureType != signatures.EOA and order.signatureType != signatures.SAFE:
            raw_revert(method_id("InvalidSignatureType()"))
        signatures._check_ecdsa(
            terms.orderHash, order.signer, record.r, record.s, 28 if flags & V_28 != 0 else 27
        )
    status._fill(terms.orderHash, slot, terms.makerAmount, terms.making)
    return terms, next


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
        words[i] = convert(slice(msg.data, at + WORD * i, WORD), uint256)
    return slice(abi_encode(words), 0, length)
