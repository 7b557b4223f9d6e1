# pragma version 0.4.3
"""
@title Matching
@license Apache-2.0
@notice One taker order meets resting maker orders. Opposite sides of a token swap directly between
        the two wallets. Equal sides of complementary tokens meet in one split (both buy) or one
        merge (both sell) for all such makers together. Fill amounts are in each order's own maker
        asset; the execution price is the maker's, so any improvement stays with the taker. Assets of
        neighbouring makers of one wallet move together; each order has its own log.
"""

from exchange import crossing
from exchange import custody
from exchange import fees
from exchange import orders
from exchange import packed
from exchange import parameters
from exchange import pausing
from exchange import roles
from exchange import settling
from exchange import status
from exchange import stops
from exchange import token_registry
from exchange import trade_logs
from exchange import validity

uses: custody
uses: packed
uses: parameters
uses: roles
uses: settling
uses: status
uses: stops
uses: token_registry
uses: validity


@external
@view
def makersMax() -> uint256:
    """
    @notice How many maker orders one call may match.
    @return The number
    """
    return orders.ORDERS_MAX


@external
@nonreentrant
def matchOrders(
    takerOrder: orders.Order,
    makerOrders: DynArray[orders.Order, orders.ORDERS_MAX],
    takerFillAmount: uint256,
    makerFillAmounts: DynArray[uint256, orders.ORDERS_MAX],
    takerFeeAmount: uint256,
    makerFeeAmounts: DynArray[uint256, orders.ORDERS_MAX],
):
    """
    @notice Match a taker order with maker orders, for an operator.
    @param takerOrder The taker's order
    @param makerOrders The makers' orders, 1 to 20
    @param takerFillAmount How much is taken off the taker order: what the match costs at its limit
    @param makerFillAmounts How much is taken off each maker order
    @param takerFeeAmount Taken from what the taker receives
    @param makerFeeAmounts Taken from what each maker receives
    """
    word: uint256 = self._start()
    self._check_lengths(len(makerOrders), len(makerFillAmounts), len(makerFeeAmounts))
    raised: uint256 = stops.raised
    taker: orders.Terms = self._take(takerOrder, takerFillAmount, takerFeeAmount, raised)
    makers: DynArray[orders.Terms, orders.ORDERS_MAX] = []
    for i: uint256 in range(len(makerOrders), bound=orders.ORDERS_MAX):
        makers.append(
            self._take(makerOrders[i], makerFillAmounts[i], makerFeeAmounts[i], raised)
        )
    self._match(taker, makers, 0, raised, word)


@internal
def _match_packed():
    """
    @dev `matchPacked`, whose arguments are still in calldata.
    """
    word: uint256 = self._start()
    token_id: uint256 = 0
    end: uint256 = 0
    token_id, end = packed._call()
    raised: uint256 = stops.raised
    taker: orders.Terms = packed._take(packed.RECORDS_AT, token_id, token_id, raised)
    if taker.end >= end:
        raw_revert(method_id("NoMakerOrders()"))
    self._match(taker, [], end, raised, word)


@internal
@view
def _start() -> uint256:
    """
    @dev The word of `parameters`, for an operator who may match now.
    """
    roles._check_operator()
    word: uint256 = parameters.word
    pausing._check_trading(word)
    validity._check_chain()
    return word


@internal
def _match(
    taker: orders.Terms,
    makers: DynArray[orders.Terms, orders.ORDERS_MAX],
    records_end: uint256,
    raised: uint256,
    word: uint256,
):
    """
    @dev The makers are those of the list, or, where that is empty, those of the records that follow the
         taker's. `raised` is that of `stops`, `word` that of `parameters`.
    """
    complement: uint256 = token_registry._complement(taker.tokenId)
    # What the taker gives and gets, and the same for makers who meet it in complete sets. Sums need
    # no check: amounts are below 2^128, and a fee is never more than what it is taken from.
    taker_gives: uint256 = custody.COLLATERAL_ASSET
    taker_gets: uint256 = taker.tokenId
    sets_give: uint256 = custody.COLLATERAL_ASSET
    sets_get: uint256 = complement
    if not taker.isBuy:
        taker_gives = taker.tokenId
        taker_gets = custody.COLLATERAL_ASSET
        sets_give = complement
        sets_get = custody.COLLATERAL_ASSET

    # What a maker trades: opposite sides of the taker's token, equal sides of complements. One of each
    # two is the collateral, which is zero.
    buys: uint256 = taker_gives | sets_get
    sells: uint256 = taker_gets | sets_give

    paid: uint256 = 0
    received: uint256 = 0
    # The taker's fee is held back from what the first fills bring it.
    fee_due: uint256 = taker.fee
    swap_fees: uint256 = 0
    fee_receiver: address = fees._receiver(word)
    fee_limit: uint256 = fees._max_fee_rate(word)
    sets: settling.Sets = empty(settling.Sets)
    # The maker whose assets are still to move, what it gives and gets, and whether that is a swap with
    # the taker or a part of the sets. The next maker of another wallet moves them, or the end, for
    # which zero stands: no maker is zero.
    moving: address = empty(address)
    gives: uint256 = 0
    gets: uint256 = 0
    is_swap: bool = False
    maker: orders.Terms = empty(orders.Terms)
    at: uint256 = taker.end
    for i: uint256 in range(orders.ORDERS_MAX + 1):
        if records_end != 0:
            if at < records_end:
                maker = packed._take(at, buys, sells, raised)
                at = maker.end
            else:
                maker.maker = empty(address)
        elif i == len(makers):
            maker.maker = empty(address)
        else:
            maker = makers[i]
            if maker.tokenId != (buys if maker.isBuy else sells):
                raw_revert(method_id("MismatchedTokenIds()"))
        if moving != empty(address):
            if maker.maker != moving or is_swap == (maker.isBuy == taker.isBuy):
                if is_swap:
                    if taker.isBuy:
                        custody._pay(taker.maker, moving, gets)
                        custody._deliver(moving, taker.maker, taker_gets, gives)
                    else:
                        custody._deliver(taker.maker, moving, taker_gives, gets)
                        custody._pay(moving, taker.maker, gives)
                else:
                    if taker.isBuy:
                        custody._pay(moving, self, gives)
                    else:
                        custody._move_tokens(moving, self, sets_give, gives)
                    sets.makers[sets.count] = moving
                    sets.payouts[sets.count] = gets
                    sets.count = unsafe_add(sets.count, 1)
                moving = empty(address)
                gives = 0
                gets = 0
        if maker.maker == empty(address):
            break
        moving = maker.maker
        is_swap = maker.isBuy != taker.isBuy
        # Rounded up: a maker never gets less than its price. Amounts are below 2^128.
        taking: uint256 = unsafe_div(
            unsafe_add(unsafe_mul(maker.making, maker.takerAmount), unsafe_sub(maker.makerAmount, 1)),
            maker.makerAmount,
        )
        if maker.fee != 0:
            fees._check(maker, maker.making, taking, fee_limit)
        gives = unsafe_add(gives, maker.making)
        gets = unsafe_add(gets, unsafe_sub(taking, maker.fee))
        if is_swap:
            crossing._check_swap(
                taker.makerAmount, taker.takerAmount, maker.makerAmount, maker.takerAmount
            )
            if fee_due != 0:
                withheld: uint256 = min(maker.making, fee_due)
                fee_due = unsafe_sub(fee_due, withheld)
                gives = unsafe_sub(gives, withheld)
                settling._pay_fee(taker.isV1, taker_gets, maker.maker, fee_receiver, withheld)
            paid = unsafe_add(paid, taking)
            received = unsafe_add(received, maker.making)
            swap_fees = unsafe_add(swap_fees, maker.fee)
        else:
            crossing._check_sets(
                taker.isBuy,
                taker.makerAmount,
                taker.takerAmount,
                maker.makerAmount,
                maker.takerAmount,
            )
            sets.given = unsafe_add(sets.given, maker.making)
            sets.received = unsafe_add(sets.received, taking)
            sets.fees = unsafe_add(sets.fees, maker.fee)
        trade_logs._log_filled(maker, taker.maker, maker.making, taking)

    if maker.maker != empty(address) or (records_end != 0 and at != records_end):
        raw_revert(method_id("MalformedRecords()"))
    if sets.count != 0:
        sets_paid: uint256 = 0
        sets_received: uint256 = 0
        sets_paid, sets_received = settling._part_of_taker(taker.isBuy, sets)
        paid = unsafe_add(paid, sets_paid)
        received = unsafe_add(received, sets_received)
    crossing._check_limit(taker, taker.making, paid, received)
    if taker.fee != 0:
        fees._check(taker, paid, received, fee_limit)
    if sets.count != 0:
        condition_id: bytes32 = token_registry.registry[taker.tokenId].conditionId
        settling._settle_sets(taker, sets_get, condition_id, sets, fee_due, fee_receiver)
    if swap_fees != 0:
        settling._pay_fee(taker.isV1, taker_gives, taker.maker, fee_receiver, swap_fees)
    trade_logs._log_filled(taker, self, paid, received)
    trade_logs._log_matched(taker, paid, received)


@internal
def _take(
    order: orders.Order, making: uint256, fee: uint256, raised: uint256
) -> orders.Terms:
    """
    @dev A valid order, with this much taken off it.
    """
    terms: orders.Terms = validity._checked(orders._fields(order), raised)
    slot: uint256 = status.slots[terms.orderHash]
    # An order with a status was filled before, and its signature found good, which no owner of a key
    # can take back. A wallet of type 3 can.
    if slot == 0 or order.signatureType == validity.signatures.ERC1271:
        validity._check_signature(order, terms.orderHash)
    status._fill(terms.orderHash, slot, terms.makerAmount, making)
    terms.making = making
    terms.fee = fee
    return terms


@internal
@pure
def _check_lengths(makers: uint256, fills: uint256, fee_amounts: uint256):
    if makers == 0:
        raw_revert(method_id("NoMakerOrders()"))
    if fills != makers or fee_amounts != makers:
        raw_revert(method_id("MismatchedArrayLengths()"))
