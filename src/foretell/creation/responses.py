"""Responses of market creation, each with its keys in the order of the wire."""

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from foretell.edge.codec import WireObject


class ImagePolicyResponse(WireObject, frozen=True, kw_only=True):
    """The limits of images."""

    max_upload_bytes: int
    target_px: int
    target_max_bytes: int


class ResolutionStack(WireObject, frozen=True, kw_only=True):
    """The contracts and terms of a resolution stack."""

    oracle: str
    adapter: str
    neg_risk_adapter: str
    neg_risk_operator: str
    liveness_seconds: int
    proposal_bond_usdc: str
    reward_usdc: str


class Chain(WireObject, frozen=True, kw_only=True):
    """A chain and its contracts; the first six are those of the default resolution stack."""

    chain_id: int
    usdc_token: str
    uma_adapter: str
    ctf_exchange: str
    neg_risk_operator: str
    neg_risk_ctf_exchange: str
    neg_risk_uma_adapter: str
    conditional_tokens: str
    market_registry: str
    proposer_whitelist_registry: str
    position_adapter: str
    safe_factory: str
    safe_factory_name: str
    multi_send: str
    deposit_wallet_factories: list[str]
    proxy_wallet_factory: str
    relay_hub: str
    resolution_stacks: dict[str, ResolutionStack]


class Config(WireObject, frozen=True, kw_only=True):
    """The configuration; older clients read the contracts of the default chain from it."""

    default_chain_id: int
    default_resolution_type: str
    supported_chain_ids: list[int]
    required_creator_funding_usdc: str
    direct_normal_market_fee_usdc: str
    direct_neg_risk_question_fee_usdc: str
    image_policy: ImagePolicyResponse
    chains: list[Chain]
    usdc_token: str
    uma_adapter: str
    ctf_exchange: str
    neg_risk_operator: str
    neg_risk_ctf_exchange: str
    neg_risk_uma_adapter: str
    execution_mode: str


class ChallengeDomain(WireObject, frozen=True, kw_only=True):
    """The EIP-712 domain of the signature, without its chain id."""

    name: str
    version: str
    verifying_contract: str


class TypeField(WireObject, frozen=True, kw_only=True):
    """A field of typed data."""

    name: str
    type: str


class ChallengeResponse(WireObject, frozen=True, kw_only=True):
    """The challenge as typed data, ready for a wallet to sign."""

    request_id: str
    nonce: str
    expires_at: int
    creator: str
    chain_id: int
    payload_hash: str
    domain: ChallengeDomain
    primary_type: str
    types: dict[str, list[TypeField]]


class Problem(WireObject, frozen=True, kw_only=True):
    """A rule that a payload breaks; the JSON pointer of a problem of the whole payload is empty."""

    pointer: str
    field: str
    message: str


class PlannedMarket(WireObject, frozen=True, kw_only=True):
    """A market that a payload would create, with its ids on the chain."""

    market_key: str
    slug: str
    question: str
    title: str
    outcomes: list[str]
    question_id: str
    condition_id: str
    exchange: str
    token_a: str
    token_b: str


class CreationFees(WireObject, frozen=True, kw_only=True):
    """What the creator would pay, in collateral; gas comes on top."""

    fee_per_market: str
    reward_per_market: str
    total: str
    creator_holds: str


class ValidationResponse(WireObject, frozen=True, kw_only=True):
    """The verdict on a payload, and what it would create; the rest is absent if it breaks a rule."""

    valid: bool
    payload_hash: str
    problems: list[Problem]
    duplicates: list[Mapping[str, str | Mapping[str, str]]]
    slug: str | UnsetType = UNSET
    chain_id: int | UnsetType = UNSET
    markets: list[PlannedMarket] | UnsetType = UNSET
    fees: CreationFees | UnsetType = UNSET
    creator_is_whitelisted: bool | UnsetType = UNSET


class OpenedResponse(WireObject, frozen=True, kw_only=True):
    """The status of an accepted request."""

    request_id: str
    chain_id: int
    creator: str
    status: str


class Tx(WireObject, frozen=True, kw_only=True):
    """The transaction hash of an item of a plan."""

    id: str
    hash: str


class PlanItemResponse(WireObject, frozen=True, kw_only=True):
    """A call that the creator must send."""

    id: str
    to: str
    value: str
    data: str
    description: str
    market_key: str | UnsetType = UNSET


class Prepared(WireObject, frozen=True, kw_only=True):
    """The plan of a prepared request."""

    request_id: str
    chain_id: int
    creator: str
    tx_plan: list[PlanItemResponse]


class RegisterResult(WireObject, frozen=True, kw_only=True):
    """The registration of a market's tokens."""

    key: str
    condition_id: str
    exchange: str
    token_a: str
    token_b: str
    already_registered: bool
    tx_hash: str | None


class MetadataUpdate(WireObject, frozen=True, kw_only=True):
    """The metadata of a market, and the transaction that set it on the chain."""

    key: str
    condition_id: str
    metadata_tx_id: str
    metadata_uri: str
    update_tx_hash: str | None


class RequestStep(WireObject, frozen=True, kw_only=True):
    """A step of a request: its state (done, running, waiting, open, failed) and what to do.

    `until` is when the request gives up waiting, in milliseconds since 1970; null for no such time.
    """

    step: str
    state: str
    message: str
    until: int | None = None
    waits_for: list[str] | UnsetType = UNSET


class CreationRecord(WireObject, frozen=True, kw_only=True):
    """The public record of a request."""

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
    steps: list[RequestStep]
    prepared: Prepared | UnsetType = UNSET


class Pending(WireObject, frozen=True, kw_only=True):
    """The request that a query matches, or null."""

    request: CreationRecord | None


class Confirmed(WireObject, frozen=True, kw_only=True):
    """Every stored hash of a request."""

    request_id: str
    status: str
    confirmed_txs: list[Tx]


class Finalized(WireObject, frozen=True, kw_only=True):
    """The status of a request, with its results once its transactions are verified."""

    request_id: str
    status: str
    creator_tx_count: int | UnsetType = UNSET
    register_results: list[RegisterResult] | UnsetType = UNSET
    metadata_updates: list[MetadataUpdate] | UnsetType = UNSET
    metadata_update_tx_plan: list[PlanItemResponse] | UnsetType = UNSET
