"""Groups of refusals, for the document of market creation."""

from typing import Final

from foretell.domain.errors.chain import (
    ChainInconsistent,
    ChainUnavailable,
    RpcRefused,
    SandboxOnly,
)
from foretell.domain.errors.creation import (
    AlreadyInitialized,
    AuthExpired,
    AuthInvalid,
    ChallengeUsed,
    RequestNotFound,
    TxInvalid,
    TxPending,
)
from foretell.domain.errors.families import ForetellError, IllegalTransition, InvalidFields
from foretell.domain.errors.http import (
    OriginRefused,
    UnsupportedMedia,
    UploadsBusy,
    UploadTooLarge,
    UploadTooSlow,
)
from foretell.domain.errors.storage import BlobDamaged, BlobNotFound, StorageUnavailable
from foretell.edge.documents.errors import PUBLIC_READ

Refused = tuple[type[ForetellError], ...]

CHAIN: Final[Refused] = (ChainUnavailable, ChainInconsistent, RpcRefused)
STORAGE: Final[Refused] = (StorageUnavailable, BlobDamaged)
BLOB: Final[Refused] = (BlobNotFound, *STORAGE)
PREPARE: Final[Refused] = (
    *PUBLIC_READ,
    InvalidFields,
    AuthInvalid,
    AuthExpired,
    RequestNotFound,
    ChallengeUsed,
    AlreadyInitialized,
    UnsupportedMedia,
    UploadTooLarge,
    UploadTooSlow,
    UploadsBusy,
    OriginRefused,
    SandboxOnly,
    *CHAIN,
    *STORAGE,
)
FINALIZE: Final[Refused] = (
    *PUBLIC_READ,
    InvalidFields,
    RequestNotFound,
    IllegalTransition,
    TxInvalid,
    TxPending,
    OriginRefused,
    *CHAIN,
)
