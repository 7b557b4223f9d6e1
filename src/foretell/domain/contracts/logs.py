"""Logs of the contracts as typed values, decoded by `log_decoder`.

They are structs, because one is made for each log of the chain: a frozen dataclass takes several times as long.
"""

import enum

import msgspec

from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address, Bytes32


class ContractKind(enum.Enum):
    """The kind of a contract, which decides the schemas of its logs."""

    COLLATERAL = "collateral"
    CONDITIONAL_TOKENS = "conditional tokens"
    EXCHANGE = "exchange"
    RESOLUTION_ADAPTER = "resolution adapter"
    MARKET_REGISTRY = "market registry"
    NEG_RISK_ADAPTER = "neg-risk adapter"
    OPTIMISTIC_ORACLE = "optimistic oracle"
    SAFE_FACTORY = "safe factory"
    SAFE = "safe"


class CollateralTransferred(msgspec.Struct, frozen=True, gc=False):
    """Collateral went from one account to another; the zero address mints."""

    sender: Address
    receiver: Address
    amount_units: int


class CollateralApproved(msgspec.Struct, frozen=True, gc=False):
    """An owner set a spender's allowance."""

    owner: Address
    spender: Address
    amount_units: int


class TokensTransferred(msgspec.Struct, frozen=True, gc=False):
    """Outcome tokens went from one account to another; the zero address mints and burns."""

    operator: Address
    sender: Address
    receiver: Address
    token_ids: tuple[str, ...]
    amounts_units: tuple[int, ...]


class TokensApproved(msgspec.Struct, frozen=True, gc=False):
    """An owner approved an operator for all its outcome tokens, or withdrew that."""

    owner: Address
    operator: Address
    is_approved: bool


class ConditionPrepared(msgspec.Struct, frozen=True, gc=False):
    """A condition was prepared."""

    condition_id: Bytes32
    oracle: Address
    question_id: Bytes32
    outcome_slots: int


class ConditionResolved(msgspec.Struct, frozen=True, gc=False):
    """The oracle reported the payout of a condition."""

    condition_id: Bytes32
    oracle: Address
    question_id: Bytes32
    payout_numerators: tuple[int, ...]


class PositionSplit(msgspec.Struct, frozen=True, gc=False):
    """Collateral was split into complete sets."""

    holder: Address
    collateral: Address
    parent_collection_id: Bytes32
    condition_id: Bytes32
    partition: tuple[int, ...]
    amount_units: int


class PositionsMerged(msgspec.Struct, frozen=True, gc=False):
    """Complete sets were merged into collateral."""

    holder: Address
    collateral: Address
    parent_collection_id: Bytes32
    condition_id: Bytes32
    partition: tuple[int, ...]
    amount_units: int


class PayoutRedeemed(msgspec.Struct, frozen=True, gc=False):
    """Outcome tokens were redeemed."""

    holder: Address
    collateral: Address
    parent_collection_id: Bytes32
    condition_id: Bytes32
    index_sets: tuple[int, ...]
    payout_units: int


class EventSetsSplit(msgspec.Struct, frozen=True, gc=False):
    """Collateral was split into complete sets of a question of an event, by the neg-risk adapter."""

    holder: Address
    condition_id: Bytes32
    amount_units: int


class EventSetsMerged(msgspec.Struct, frozen=True, gc=False):
    """Complete sets of a question of an event were merged, by the neg-risk adapter."""

    holder: Address
    condition_id: Bytes32
    amount_units: int


class EventPayoutRedeemed(msgspec.Struct, frozen=True, gc=False):
    """Outcome tokens of a question of an event were redeemed, by the neg-risk adapter."""

    holder: Address
    condition_id: Bytes32
    amounts_units: tuple[int, int]
    payout_units: int


class PositionsConverted(msgspec.Struct, frozen=True, gc=False):
    """Some No tokens of an event became collateral and the other questions' Yes tokens."""

    holder: Address
    market_id: Bytes32
    index_set: int
    amount_units: int


class OrderFilledLog(msgspec.Struct, frozen=True, gc=False):
    """An order was filled, in part or whole. The counterparty of a taker order is the exchange."""

    order_id: Bytes32
    maker: Address
    counterparty: Address
    side: Side
    token_id: str
    size_units: int
    cost_units: int
    fee_units: int
    builder: Bytes32 | None = None


class OrdersMatched(msgspec.Struct, frozen=True, gc=False):
    """A taker order was matched, with the totals of its fills."""

    order_id: Bytes32
    maker: Address
    side: Side
    token_id: str
    size_units: int
    cost_units: int


class FeeCharged(msgspec.Struct, frozen=True, gc=False):
    """A fee was charged, in collateral when the token id is "0"; None where the log names no asset."""

    receiver: Address
    token_id: str | None
    amount_units: int


class OrderCancelled(msgspec.Struct, frozen=True, gc=False):
    """A maker cancelled an order on chain."""

    order_id: Bytes32


class NonceIncremented(msgspec.Struct, frozen=True, gc=False):
    """A maker cancelled every order that it signed with an earlier nonce."""

    maker: Address
    nonce: int


class OrdersCancelledBefore(msgspec.Struct, frozen=True, gc=False):
    """A maker cancelled every order of struct version 2 that it signed with an earlier timestamp."""

    maker: Address
    timestamp_ms: int


class OwnerSigningChanged(msgspec.Struct, frozen=True, gc=False):
    """A Safe said whether orders count that its first owner signs alone."""

    safe: Address
    is_allowed: bool


class TokenRegistered(msgspec.Struct, frozen=True, gc=False):
    """A token was registered for trading; each of a pair has its own log."""

    token_id: str
    complement_id: str
    condition_id: Bytes32


class QuestionInitialized(msgspec.Struct, frozen=True, gc=False):
    """A creator asked a question."""

    question_id: Bytes32
    asked_at_s: int
    creator: Address
    ancillary_data: bytes
    reward_token: Address
    reward_units: int
    bond_units: int


class QuestionResolved(msgspec.Struct, frozen=True, gc=False):
    """A question was answered."""

    question_id: Bytes32
    price: int
    payouts: tuple[int, ...]


class AnswerProposed(msgspec.Struct, frozen=True, gc=False):
    """An answer to an adapter's question was proposed; it can be disputed until it expires."""

    adapter: Address
    question_id: Bytes32
    proposer: Address
    price: int
    expires_at_s: int


class AnswerDisputed(msgspec.Struct, frozen=True, gc=False):
    """The proposed answer to an adapter's question was disputed."""

    adapter: Address
    question_id: Bytes32
    disputer: Address
    price: int


class CreatorRecorded(msgspec.Struct, frozen=True, gc=False):
    """The registry recorded the creator of a condition."""

    condition_id: Bytes32
    creator: Address
    adapter: Address


class MetadataSet(msgspec.Struct, frozen=True, gc=False):
    """A creator set the metadata id of a condition."""

    condition_id: Bytes32
    creator: Address
    metadata_id: str


class SafeCreated(msgspec.Struct, frozen=True, gc=False):
    """The factory created an owner's Safe."""

    safe: Address
    owner: Address


class SafeExecuted(msgspec.Struct, frozen=True, gc=False):
    """A Safe executed its owner's transaction, successfully or not."""

    safe_tx_hash: Bytes32
    is_success: bool


ChainLog = (
    CollateralTransferred
    | CollateralApproved
    | TokensTransferred
    | TokensApproved
    | ConditionPrepared
    | ConditionResolved
    | PositionSplit
    | PositionsMerged
    | PayoutRedeemed
    | EventSetsSplit
    | EventSetsMerged
    | EventPayoutRedeemed
    | PositionsConverted
    | OrderFilledLog
    | OrdersMatched
    | FeeCharged
    | OrderCancelled
    | NonceIncremented
    | OrdersCancelledBefore
    | OwnerSigningChanged
    | TokenRegistered
    | QuestionInitialized
    | QuestionResolved
    | AnswerProposed
    | AnswerDisputed
    | CreatorRecorded
    | MetadataSet
    | SafeCreated
    | SafeExecuted
)


class LogPlace(msgspec.Struct, frozen=True, gc=False):
    """The place of a log on the chain; the block's hash identifies the fork."""

    block_number: int
    block_hash: Bytes32
    timestamp_s: int
    log_index: int
    tx_hash: Bytes32


class PlacedLog(msgspec.Struct, frozen=True, gc=False):
    """A log, its place, and the contract that emitted it."""

    place: LogPlace
    contract: Address
    log: ChainLog
