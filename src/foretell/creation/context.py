"""The context of market creation, built once by the composition root."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from foretell.chain.reader import Reader
from foretell.chain.sender import Sender
from foretell.creation.refusals import worker_body
from foretell.creation.uploads import UploadBudget
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.creation.metadata import Resolver
from foretell.domain.creation.payload import Payload, PayloadRules, ResolutionType
from foretell.domain.creation.plan import EventContracts, MarketIds, PlanContracts
from foretell.domain.creation.preparation_bounds import (
    WITH_WHITELIST,
    WITHOUT_WHITELIST,
    PreparationBounds,
)
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.signed_requests import KEYS_OF_ANYONE_MAX, RequestBounds, SignedRequests
from foretell.media.blobs import BlobStore
from foretell.media.images import CHILDREN_MAX, ImageNormalizer
from foretell.media.permanent_storage import PermanentStorage
from foretell.runtime.shared_calls import SharedCalls
from foretell.store.database import Database
from foretell.store.public_reads.places import ReadPlaces, WaitBounds


class StackNames(NamedTuple):
    """The contracts of a resolution stack, with a second set for events."""

    oracle: ContractName
    adapter: ContractName
    event_adapter: ContractName
    operator: ContractName


STACKS: Final[Mapping[ResolutionType, StackNames]] = MappingProxyType(
    {
        ResolutionType.DIRECT: StackNames(
            ContractName.DIRECT_RESOLUTION_ORACLE,
            ContractName.DIRECT_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_DIRECT_ADAPTER,
            ContractName.NEG_RISK_OPERATOR,
        ),
        ResolutionType.OPTIMISTIC: StackNames(
            ContractName.OPTIMISTIC_ORACLE,
            ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
            ContractName.NEG_RISK_OPTIMISTIC_OPERATOR,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class CreationOptions:
    """Options of the operator."""

    confirmations: int = 1
    """The confirmations that a creator's transaction needs."""
    ticks_per_one: int = 100
    size_units_min: int = 5_000_000
    fee_rate_bps: int = 0
    prepare_deadline_ms: int = 15 * 60 * 1000
    """The longest wait of a preparation for the creator's whitelist, the chain or the storage."""
    finalize_deadline_ms: int = 60 * 60 * 1000
    """The longest wait of a finalization for confirmations, the chain or the storage."""
    unsigned_max: int = 20_000
    """The most challenges that wait for a signature at once."""
    preparations: PreparationBounds = WITHOUT_WHITELIST
    """The most preparations that run at once."""
    preparations_with_whitelist: PreparationBounds = WITH_WHITELIST
    """The same for creators that have a whitelist."""
    reward_units: int = 5_000_000
    """The reward that the creator of an `alt_moov2` question offers for its answer."""
    accepts_uma_moov2: bool = False
    may_store_locally: bool = False
    """Whether metadata may be stored on this machine on a chain other than the sandbox's."""


DECODINGS_BOUNDS: Final = WaitBounds(wait_s=30.0, per_client=4, total=200)
"""Images that wait to be decoded, and for how long: of a request one at a time."""


def image_places() -> ReadPlaces:
    """Return places of which a client has one at a time, so that costly images delay those of others by one each."""
    return ReadPlaces(CHILDREN_MAX, 1, DECODINGS_BOUNDS)


@dataclass(frozen=True, slots=True)
class CreationContext:
    """Market creation on one chain."""

    database: Database
    deployment: Deployment
    reader: Reader
    registrar: Sender
    images: ImageNormalizer
    blobs: BlobStore
    storage_key: bytes
    options: CreationOptions
    now_ms: Callable[[], int]
    new_uuid: Callable[[], str]
    new_word: Callable[[], Bytes32]
    uploads: UploadBudget = field(default_factory=UploadBudget)
    decodings: ReadPlaces = field(default_factory=image_places)
    """Places to decode an image, for clients in turn."""
    shared_calls: SharedCalls = field(default_factory=SharedCalls)
    """Answers of the chain that are the same for all clients."""
    permanent_storage: PermanentStorage | None = None
    """Stores metadata and images permanently; without one they are on this machine only."""
    signed_requests: SignedRequests = field(init=False)

    def __post_init__(self) -> None:
        bounds = RequestBounds(keys_max=KEYS_OF_ANYONE_MAX)
        answered = SignedRequests(self.database, self.now_ms, worker_body, bounds)
        object.__setattr__(self, "signed_requests", answered)
        may_store = self.deployment.is_sandbox or self.options.may_store_locally
        if not (may_store or self.permanent_storage is not None):
            raise SandboxOnly(
                "storing metadata on this machine only",
                f"chain {self.deployment.chain_id}",
                "set FORETELL_STORAGE_UPLOAD_URL to a bundler or an IPFS node, or FORETELL_STORES_LOCALLY=true",
            )

    def for_anyone(self) -> Self:
        """Return this context for what anyone may ask: its reads of the chain have the places of those."""
        public = copy.copy(self)
        object.__setattr__(public, "reader", self.reader.public)
        return public

    @property
    def rules(self) -> PayloadRules:
        """The rules for payloads."""
        return PayloadRules(
            supported_chain_ids=(self.deployment.chain_id,),
            default_chain_id=self.deployment.chain_id,
            accepts_uma_moov2=self.options.accepts_uma_moov2,
        )

    def contracts(self, payload: Payload) -> PlanContracts:
        """Return the contracts that a payload's plan calls."""
        stack, address = STACKS[payload.resolution_type], self.deployment.address
        registry = address(ContractName.MARKET_REGISTRY)
        if not payload.is_neg_risk:
            return PlanContracts(self.deployment.collateral, address(stack.adapter), registry)
        event = EventContracts(
            operator=address(stack.operator),
            neg_risk_adapter=address(ContractName.NEG_RISK_ADAPTER),
            wrapped_collateral=address(ContractName.WRAPPED_COLLATERAL),
        )
        return PlanContracts(
            self.deployment.collateral, address(stack.event_adapter), registry, event
        )

    def exchange(self, ids: MarketIds) -> Address:
        """Return the exchange that trades a market's tokens."""
        is_event = ids.neg_risk_market_id is not None
        return self.deployment.neg_risk_exchange if is_event else self.deployment.exchange

    def resolver(self, payload: Payload) -> Resolver:
        """Return the oracle and the adapter that resolve a payload's questions."""
        oracle = self.deployment.address(STACKS[payload.resolution_type].oracle)
        return Resolver(oracle, self.contracts(payload).adapter)
