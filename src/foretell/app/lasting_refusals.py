"""Refusals that a start would repeat until an operator changes settings or data.

A child process that ends with one of them is not started again. Every other error, such as a lost lease
or a database that does not answer, may pass.
"""

from typing import Final

from foretell.domain.errors.chain import InvalidDeployment, SandboxOnly, WrongChain
from foretell.domain.errors.command import (
    ForeignChain,
    InsecureSocketFolder,
    MissingKey,
    MissingSetting,
)
from foretell.domain.errors.exchange import ForeignProfile
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.storage import (
    ForeignJournal,
    InvalidShardMap,
    JournalBehindTables,
    JournalDamaged,
    JournalForked,
    JournalFormUnknown,
    SchemaNewer,
    ShardCountChanged,
    SnapshotUnknown,
    TablesBehindSnapshot,
)

LASTING_REFUSALS: Final[tuple[type[ForetellError], ...]] = (
    InvalidDeployment,
    ForeignChain,
    ForeignJournal,
    ForeignProfile,
    JournalBehindTables,
    JournalDamaged,
    JournalForked,
    JournalFormUnknown,
    MissingKey,
    MissingSetting,
    SandboxOnly,
    SchemaNewer,
    ShardCountChanged,
    InvalidShardMap,
    SnapshotUnknown,
    InsecureSocketFolder,
    TablesBehindSnapshot,
    WrongChain,
)
