# pragma version 0.4.3
"""
@title Settling
@license Apache-2.0
@notice Complete sets: where the taker and some makers are on the same side of complementary tokens,
        all of them meet in one split, which they pay together, or one merge, which they share.
"""

from exchange import custody
from exchange import fees
from exchange import orders

uses: custody


# The makers of one match who meet the taker in complete sets; what they give is taken in already.
struct Sets:
    given: uint256
    received: uint256  # before their fees
    fees: uint256
    count: uint256
    makers: address[orders.ORDERS_MAX]
    payouts: uint256[orders.ORDERS_MAX]  # after their fees


@internal
@pure
def _part_of_taker(is_buy: bool, sets: Sets) -> (uint256, uint256):
    """
    @dev What the taker gives and gets. In a split the makers get as many tokens as there are sets,
         and the taker pays what they leave; in a merge they give as many, and it gets the rest.
         No price is above one, so that no part is negative.
    """
    if is_buy:
        return unsafe_sub(sets.received, sets.given), sets.received
    return sets.given, unsafe_sub(sets.given, sets.received)


@internal
def _settle_sets(
    taker: orders.Terms,
    makers_get: uint256,
    condition_id: bytes32,
    sets: Sets,
    fee: uint256,
    receiver: address,
):
    """
    @dev Take in the taker's part, split or merge once, and pay out all that comes of it. `fee` is
         what is still to take of the taker's, `receiver` who gets the fees.
    """
    paid: uint256 = 0
    received: uint256 = 0
    paid, received = self._part_of_taker(taker.isBuy, sets)
    if taker.isBuy:
        custody._pay(taker.maker, self, paid)
        custody._convert(custody.SPLIT, condition_id, sets.received)
        for i: uint256 in range(sets.count, bound=orders.ORDERS_MAX):
            custody._deliver(self, sets.makers[i], makers_get, sets.payouts[i])
        custody._deliver(self, taker.maker, taker.tokenId, unsafe_sub(received, fee))
    else:
        custody._move_tokens(taker.maker, self, taker.tokenId, paid)
        custody._convert(custody.MERGE, condition_id, sets.given)
        for i: uint256 in range(sets.count, bound=orders.ORDERS_MAX):
            custody._pay(self, sets.makers[i], sets.payouts[i])
        custody._pay(self, taker.maker, unsafe_sub(received, fee))
    if sets.fees != 0:
        self._pay_fee(taker.isV1, makers_get, self, receiver, sets.fees)
    if fee != 0:
        taker_gets: uint256 = taker.tokenId if taker.isBuy else custody.COLLATERAL_ASSET
        self._pay_fee(taker.isV1, taker_gets, self, receiver, fee)


@internal
def _pay_fee(is_v1: bool, asset: uint256, payer: address, receiver: address, amount: uint256):
    if asset == custody.COLLATERAL_ASSET:
        custody._pay(payer, receiver, amount)
    else:
        custody._deliver(payer, receiver, asset, amount)
    fees._log_paid(is_v1, receiver, asset, amount)
