"""Groups of refusals, for the document of the relayer."""

from typing import Final

from foretell.domain.errors.chain import (
    CallFailed,
    ChainInconsistent,
    ChainUnavailable,
    MalformedCalldata,
    RpcRefused,
    WrongChain,
)
from foretell.domain.errors.families import ForetellError, IllegalTransition, MalformedSignature
from foretell.domain.errors.relayer import (
    BuilderGasReached,
    BuilderLimitReached,
    CallReverts,
    ExecutionFailed,
    InvalidField,
    MergeImpossible,
    NonceMismatch,
    NotEnoughToMerge,
    NothingToRedeem,
    NotSentYet,
    OwnerAddressMismatch,
    OwnerGasReached,
    OwnerLimitReached,
    RelayerGasReached,
    RelayerGasReserved,
    TooManyQueued,
    WalletExists,
    WalletInUse,
    WalletServiceDisabled,
)

Refused = tuple[type[ForetellError], ...]

HEALTH: Final[Refused] = (WalletServiceDisabled,)
CHAIN: Final[Refused] = (ChainUnavailable, WrongChain, ChainInconsistent, RpcRefused)
SUBMIT: Final[Refused] = (
    InvalidField,
    MalformedSignature,
    WalletExists,
    NonceMismatch,
    TooManyQueued,
    WalletInUse,
    OwnerLimitReached,
    OwnerGasReached,
    BuilderLimitReached,
    BuilderGasReached,
    RelayerGasReached,
    RelayerGasReserved,
    IllegalTransition,
    CallReverts,
    ExecutionFailed,
    CallFailed,
    OwnerAddressMismatch,
    MalformedCalldata,
    *CHAIN,
)
OPERATION: Final[Refused] = (*SUBMIT, NotSentYet)
REDEEM: Final[Refused] = (*OPERATION, NothingToRedeem)
MERGE: Final[Refused] = (*OPERATION, NotEnoughToMerge, MergeImpossible)
