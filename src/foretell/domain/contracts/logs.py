"""What the chain tells us, as typed values. `log_decoding` makes them."""

import enum
from dataclasses import dataclass

from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address, Bytes32


class ContractKind(enum.Enum):
    """What a contract is to us, which says what its logs may be."""

    COLLATERAL = "collateral"
    CONDITIONAL_TOKENS = "conditional tokens"
    EXCHANGE = "exchange"
    RESOLUTION_ADAPTER = "resolution adapter"
    MARKET_REGISTRY = "market registry"
    NEG_RISK_ADAPTER = "neg-risk adapter"
    OPTIMISTIC_ORACLE = "optimistic oracle"
    SAFE_FACTORY = "safe factory"
    SAFE = "safe"


@dataclass(frozen=True, slots=True)
class CollateralMoved:
    """Collateral went from one account to another; from the zero address it is new."""

    sender: Address
    receiver: Address
    amount_units: int


@dataclass(frozen=True, slots=True)
class CollateralAllowed:
    """An owner allowed a spender this much from now on."""

    owner: Address
    spender: Address
    amount_units: int


@dataclass(frozen=True, slots=True)
class TokensMoved:
    """Outcome tokens went from one account to another; the zero address makes and burns."""

    operator: Address
    sender: Address
    receiver: Address
    token_ids: tuple[str, ...]
    amounts_units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokensAllowed:
    """An owner allowed an operator all its outcome tokens, or no longer."""

    owner: Address
    operator: Address
    is_approved: bool


@dataclass(frozen=True, slots=True)
class ConditionPrepared:
    """A condition came into being."""

    condition_id: Bytes32
    oracle: Address
    question_id: Bytes32
    outcome_slots: int


@dataclass(frozen=True, slots=True)
class ConditionResolved:
    """The oracle reported the payouts."""

    condition_id: Bytes32
    oracle: Address
    question_id: Bytes32
    payout_numerators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PositionSplit:
    """Collateral became complete sets."""

    holder: Address
    collateral: Address
    parent_collection_id: Bytes32
    condition_id: Bytes32
    partition: tuple[int, ...]
    amount_units: int


@dataclass(frozen=True, slots=True)
class PositionsMerged:
    """Complete sets became collateral."""

    holder: Address
    collateral: Address
    parent_collection_id: Bytes32
    condition_id: Bytes32
    partition: tuple[int, ...]
    amount_units: int


@dataclass(frozen=True, slots=True)
class PayoutRedeemed:
    """Outcome tokens became their payout."""

    holder: Address
    collateral: Address
    parent_collection_id: Bytes32
    condition_id: Bytes32
    index_sets: tuple[int, ...]
    payout_units: int


@dataclass(frozen=True, slots=True)
class EventSetsSplit:
    """Collateral became complete sets of a question of an event, through the neg-risk adapter."""

    holder: Address
    condition_id: Bytes32
    amount_units: int


@dataclass(frozen=True, slots=True)
class EventSetsMerged:
    """Complete sets of a question of an event became collateral, through the neg-risk adapter."""

    holder: Address
    condition_id: Bytes32
    amount_units: int


@dataclass(frozen=True, slots=True)
class EventPayoutRedeemed:
    """Outcome tokens of a question of an event became their payout, in collateral."""

    holder: Address
    condition_id: Bytes32
    amounts_units: tuple[int, int]
    payout_units: int


@dataclass(frozen=True, slots=True)
class PositionsConverted:
    """No's of some questions of an event became collateral and the other questions' Yes."""

    holder: Address
    market_id: Bytes32
    index_set: int
    amount_units: int


@dataclass(frozen=True, slots=True)
class OrderFilledLog:
    """An order was filled in part or whole. The counterparty of a taker order is the exchange."""

    order_id: Bytes32
    maker: Address
    counterparty: Address
    side: Side
    token_id: str
    size_units: int
    cost_units: int
    fee_units: int
    builder: Bytes32 | None = None


@dataclass(frozen=True, slots=True)
class OrdersMatched:
    """A taker order was matched; what it took in all."""

    order_id: Bytes32
    maker: Address
    side: Side
    token_id: str
    size_units: int
    cost_units: int


@dataclass(frozen=True, slots=True)
class FeeCharged:
    """A fee was held back, in collateral when the token id is "0"."""

    receiver: Address
    token_id: str
    amount_units: int


@dataclass(frozen=True, slots=True)
class OrderCancelled:
    """A maker ended an order on chain."""

    order_id: Bytes32


@dataclass(frozen=True, slots=True)
class NonceIncremented:
    """A maker ended every order that it signed with an earlier nonce."""

    maker: Address
    nonce: int


@dataclass(frozen=True, slots=True)
class TokenRegistered:
    """A token was opened to trading; each of a pair has its own log."""

    token_id: str
    complement_id: str
    condition_id: Bytes32


@dataclass(frozen=True, slots=True)
class QuestionInitialized:
    """A creator asked a question."""

    question_id: Bytes32
    asked_at_s: int
    creator: Address
    ancillary_data: bytes
    reward_token: Address
    reward_units: int
    bond_units: int


@dataclass(frozen=True, slots=True)
class QuestionResolved:
    """A question was answered."""

    question_id: Bytes32
    price: int
    payouts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AnswerProposed:
    """Somebody answered a question that an adapter asked, and can be disputed until it expires."""

    adapter: Address
    question_id: Bytes32
    proposer: Address
    price: int
    expires_at_s: int


@dataclass(frozen=True, slots=True)
class AnswerDisputed:
    """Somebody disputed the answer to a question that an adapter asked."""

    adapter: Address
    question_id: Bytes32
    disputer: Address
    price: int


@dataclass(frozen=True, slots=True)
class CreatorRecorded:
    """The registry wrote down who made a condition."""

    condition_id: Bytes32
    creator: Address
    adapter: Address


@dataclass(frozen=True, slots=True)
class MetadataSet:
    """A creator named the stored metadata of a condition."""

    condition_id: Bytes32
    creator: Address
    metadata_id: str


@dataclass(frozen=True, slots=True)
class SafeMade:
    """An owner's Safe came into being."""

    safe: Address
    owner: Address


@dataclass(frozen=True, slots=True)
class SafeExecuted:
    """A Safe did what its owner signed, or failed to."""

    safe_tx_hash: Bytes32
    is_success: bool


ChainLog = (
    CollateralMoved
    | CollateralAllowed
    | TokensMoved
    | TokensAllowed
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
    | TokenRegistered
    | QuestionInitialized
    | QuestionResolved
    | AnswerProposed
    | AnswerDisputed
    | CreatorRecorded
    | MetadataSet
    | SafeMade
    | SafeExecuted
)


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where on the chain a log is. A block's hash says which of two chains it belongs to."""

    block_number: int
    block_hash: Bytes32
    timestamp_s: int
    log_index: int
    tx_hash: Bytes32


@dataclass(frozen=True, slots=True)
class PlacedLog:
    """A log, its place, and the contract that it comes from."""

    place: LogPlace
    contract: Address
    log: ChainLog
