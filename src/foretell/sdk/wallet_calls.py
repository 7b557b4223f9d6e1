"""The calls of a wallet: approve, split, merge, convert, redeem, transfer.

A wallet that is an address sends them itself; a Safe has the relayer send them. Positions of an
event (neg-risk) go through the adapter, all others through the conditional tokens.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    CLAIM_TOKENS,
    Approve,
    MergePositions,
    RedeemPositions,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
)
from foretell.domain.contracts.neg_risk import (
    CONVERT_POSITIONS,
    MERGE_SETS,
    REDEEM_SETS,
    SPLIT_SETS,
)
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.errors.families import InvalidInput
from foretell.domain.values.hexadecimal import Address, Bytes32, word_bytes
from foretell.sdk.contracts import Contracts

OUTCOMES: Final = 2


class MarketCondition(NamedTuple):
    """A market as the contracts know it."""

    condition_id: Bytes32
    is_neg_risk: bool


class NoPositions(InvalidInput):
    """A conversion names no market of the event."""

    def __init__(self) -> None:
        super().__init__("name at least one market whose No is converted")


def approvals(contracts: Contracts) -> list[InnerCall]:
    """Return the calls that let exchanges and the contracts that split and merge move a wallet's assets."""
    movers = (contracts.exchange, contracts.neg_risk_exchange, contracts.neg_risk_adapter)
    spenders = (contracts.conditional_tokens, *movers)
    return [
        *(
            InnerCall(contracts.collateral, Approve(each, ALLOWANCE_UNITS_MAX).encode())
            for each in spenders
        ),
        *(
            InnerCall(
                contracts.conditional_tokens, SetApprovalForAll(each, is_approved=True).encode()
            )
            for each in movers
        ),
    ]


def transfer(contracts: Contracts, receiver: Address, units: int) -> InnerCall:
    """Return the transfer of collateral."""
    return InnerCall(contracts.collateral, Transfer(receiver, units).encode())


def split(contracts: Contracts, condition: MarketCondition, units: int) -> InnerCall:
    """Return the split of collateral into complete sets."""
    if condition.is_neg_risk:
        calldata = SPLIT_SETS.encode(word_bytes(condition.condition_id), units)
        return InnerCall(contracts.neg_risk_adapter, calldata)
    wanted = SplitPosition(contracts.collateral, condition.condition_id, units)
    return InnerCall(contracts.conditional_tokens, wanted.encode())


def merge(contracts: Contracts, condition: MarketCondition, units: int) -> InnerCall:
    """Return the merge of complete sets into collateral."""
    if condition.is_neg_risk:
        calldata = MERGE_SETS.encode(word_bytes(condition.condition_id), units)
        return InnerCall(contracts.neg_risk_adapter, calldata)
    wanted = MergePositions(contracts.collateral, condition.condition_id, units)
    return InnerCall(contracts.conditional_tokens, wanted.encode())


def redeem(
    contracts: Contracts, condition: MarketCondition, held_units: Sequence[int]
) -> InnerCall:
    """Return the redemption of everything held; the units by outcome count for an event's market alone."""
    assert len(held_units) == OUTCOMES
    if condition.is_neg_risk:
        calldata = REDEEM_SETS.encode(word_bytes(condition.condition_id), list(held_units))
        return InnerCall(contracts.neg_risk_adapter, calldata)
    wanted = RedeemPositions(contracts.collateral, condition.condition_id)
    return InnerCall(contracts.conditional_tokens, wanted.encode())


def convert(
    contracts: Contracts, event_id: Bytes32, question_indexes: Sequence[int], units: int
) -> InnerCall:
    """Return the conversion of an event's No's into Yes's of its other markets, and collateral."""
    if not question_indexes:
        raise NoPositions
    index_set = 0
    for index in question_indexes:
        index_set |= 1 << index
    calldata = CONVERT_POSITIONS.encode(word_bytes(event_id), index_set, units)
    return InnerCall(contracts.neg_risk_adapter, calldata)


def claim(exchange: Address, token_id: str, receiver: Address) -> InnerCall:
    """Return the claim of all tokens that an exchange keeps for the caller; the receiver must accept them."""
    return InnerCall(exchange, CLAIM_TOKENS.encode(int(token_id), receiver))
