"""What market creation needs to do its work, made once where the program is put together."""

from collections.abc import Callable
from dataclasses import dataclass, field

from foretell.chain.reader import Reader
from foretell.chain.sender import Sender
from foretell.creation.uploads import UploadBudget
from foretell.domain.chain_errors import SandboxOnly
from foretell.domain.deployment import ContractName, Deployment
from foretell.domain.hexadecimal import Bytes32
from foretell.domain.metadata import Resolver
from foretell.domain.payload import PayloadRules
from foretell.domain.plan import PlanContracts
from foretell.media.blobs import BlobStore
from foretell.media.images import ImageNormalizer
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class CreationOptions:
    """What an operator may choose."""

    confirmations: int = 1
    """How many blocks must lie on top of a creator's transaction."""
    ticks_per_one: int = 100
    size_units_min: int = 5_000_000
    fee_rate_bps: int = 0
    prepare_deadline_ms: int = 15 * 60 * 1000
    """How long preparation waits for the creator's whitelist, the chain or the storage."""
    finalize_deadline_ms: int = 60 * 60 * 1000
    """How long finalization waits for confirmations, the chain or the storage."""
    unsigned_max: int = 20_000
    """How many challenges wait for a signature at once."""
    has_optimistic_alias: bool = False
    may_store_locally: bool = False
    """Whether metadata may be kept on this machine on a chain that is not the sandbox's."""


@dataclass(frozen=True, slots=True)
class CreationServices:
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

    def __post_init__(self) -> None:
        if not (self.deployment.is_sandbox or self.options.may_store_locally):
            raise SandboxOnly(
                "metadata that is stored on this machine alone",
                f"chain {self.deployment.chain_id}",
            )

    @property
    def rules(self) -> PayloadRules:
        """What a payload is judged by."""
        return PayloadRules(
            supported_chain_ids=(self.deployment.chain_id,),
            default_chain_id=self.deployment.chain_id,
            has_optimistic_alias=self.options.has_optimistic_alias,
        )

    @property
    def contracts(self) -> PlanContracts:
        """The contracts that a plan speaks to."""
        return PlanContracts(
            collateral=self.deployment.collateral,
            adapter=self.deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER),
            market_registry=self.deployment.address(ContractName.MARKET_REGISTRY),
        )

    @property
    def resolver(self) -> Resolver:
        """Who answers the questions."""
        return Resolver(
            oracle=self.deployment.address(ContractName.DIRECT_RESOLUTION_ORACLE),
            adapter=self.deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER),
        )
