"""What the worker answers, as its OpenAPI document describes it.

The documents themselves are made where what they tell of is known. A test reads every kind of
answer strictly as the type that is here, so that neither falls behind the other.
"""

import msgspec
from msgspec import UNSET, UnsetType


class Record(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """An answer's object: snake case here, camel case on the wire."""


class ImagePolicyResponse(Record, frozen=True, kw_only=True):
    """The limits of images."""

    max_upload_bytes: int
    target_px: int
    target_max_bytes: int


class ResolutionStack(Record, frozen=True, kw_only=True):
    """The contracts of one way to resolve."""

    oracle: str
    adapter: str
    neg_risk_adapter: str
    neg_risk_operator: str
    liveness_seconds: int
    proposal_bond_usdc: str
    reward_usdc: str


class Contracts(Record, frozen=True, kw_only=True):
    """The contracts that older clients know."""

    usdc_token: str
    uma_adapter: str
    ctf_exchange: str
    neg_risk_operator: str
    neg_risk_ctf_exchange: str
    neg_risk_uma_adapter: str


class Chain(Contracts, frozen=True, kw_only=True):
    """A chain and its contracts."""

    chain_id: int
    conditional_tokens: str
    market_registry: str
    proposer_whitelist_registry: str
    resolution_stacks: dict[str, ResolutionStack]


class Config(Contracts, frozen=True, kw_only=True):
    """What a creator must know before it asks; the contracts are those of the default chain."""

    default_chain_id: int
    default_resolution_type: str
    supported_chain_ids: list[int]
    required_creator_funding_usdc: str
    direct_normal_market_fee_usdc: str
    direct_neg_risk_question_fee_usdc: str
    image_policy: ImagePolicyResponse
    chains: list[Chain]
    execution_mode: str


class ChallengeDomain(Record, frozen=True, kw_only=True):
    """The domain to sign under, beside the chain's id."""

    name: str
    version: str
    verifying_contract: str


class TypeField(Record, frozen=True, kw_only=True):
    """A field of typed data."""

    name: str
    type: str


class ChallengeResponse(Record, frozen=True, kw_only=True):
    """All that a wallet needs to sign."""

    request_id: str
    nonce: str
    expires_at: int
    creator: str
    chain_id: int
    payload_hash: str
    domain: ChallengeDomain
    primary_type: str
    types: dict[str, list[TypeField]]


class OpenedResponse(Record, frozen=True, kw_only=True):
    """How a request stands that was accepted."""

    request_id: str
    chain_id: int
    creator: str
    status: str


class Tx(Record, frozen=True, kw_only=True):
    """The hash that was sent for an item of a plan."""

    id: str
    hash: str


class PlanItemResponse(Record, frozen=True, kw_only=True):
    """A call that the creator must send."""

    id: str
    to: str
    value: str
    data: str
    description: str
    market_key: str | UnsetType = UNSET


class Prepared(Record, frozen=True, kw_only=True):
    """What was prepared."""

    request_id: str
    chain_id: int
    creator: str
    tx_plan: list[PlanItemResponse]


class RegisterResult(Record, frozen=True, kw_only=True):
    """How a market's tokens came to be registered."""

    key: str
    condition_id: str
    exchange: str
    token_a: str
    token_b: str
    already_registered: bool
    tx_hash: str | None


class MetadataUpdate(Record, frozen=True, kw_only=True):
    """Where a market's metadata is."""

    key: str
    condition_id: str
    metadata_tx_id: str
    metadata_uri: str
    update_tx_hash: str | None


class CreationRecord(Record, frozen=True, kw_only=True):
    """A request as anyone may read it."""

    request_id: str
    payload_hash: str
    status: str
    creator: str
    chain_id: int
    expires_at: int
    updated_at: int
    error_message: str | None
    txs: list[Tx]
    register_results: list[RegisterResult]
    metadata_updates: list[MetadataUpdate]
    metadata_update_tx_plan: list[PlanItemResponse]
    prepared: Prepared | UnsetType = UNSET


class Pending(Record, frozen=True, kw_only=True):
    """The request that was asked about."""

    request: CreationRecord | None


class Confirmed(Record, frozen=True, kw_only=True):
    """Every hash that is kept for a request."""

    request_id: str
    status: str
    confirmed_txs: list[Tx]


class Finalized(Record, frozen=True, kw_only=True):
    """How a request stands; what came of it is there once its transactions were verified."""

    request_id: str
    status: str
    creator_tx_count: int | UnsetType = UNSET
    register_results: list[RegisterResult] | UnsetType = UNSET
    metadata_updates: list[MetadataUpdate] | UnsetType = UNSET
    metadata_update_tx_plan: list[PlanItemResponse] | UnsetType = UNSET
