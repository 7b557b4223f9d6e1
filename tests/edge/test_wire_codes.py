"""Codes of refusals: a status for each, and a place in the reference."""

from pathlib import Path
from typing import Final

from tests.rigs.refusals import a_refusal, every_refusal

from foretell.creation.refusals import WORKER, worker_code
from foretell.data.refusals import DATA
from foretell.discovery.refusals import DISCOVERY
from foretell.domain.errors import command as command_errors
from foretell.domain.errors import creation as creation_errors
from foretell.domain.errors import sources as source_errors
from foretell.domain.errors.chain import (
    AnswerTooLarge,
    CallFailed,
    ChainStartTooSlow,
    ChainStateDamaged,
    ChainStateTooLarge,
    DevChainFailed,
    DevChainStillRuns,
    ExchangeClosed,
    ExecutionReverted,
    InvalidDeployment,
    MalformedTransaction,
    ProgramMissing,
    SandboxOnly,
    TransactionReplaced,
    TxIdReused,
)
from foretell.domain.errors.exchange import ForeignProfile, NotEnoughFunds, TickNotFiner
from foretell.domain.errors.families import (
    ForetellError,
    InvalidFields,
    MalformedAmount,
    MalformedHex,
)
from foretell.domain.errors.http import ClientGone, UnknownRecord, UnknownSortField
from foretell.domain.errors.storage import (
    FolderInUse,
    ForeignJournal,
    InvalidShardMap,
    JournalBehindTables,
    JournalDamaged,
    JournalFailed,
    JournalForked,
    JournalFormUnknown,
    JournalRowsDamaged,
    LeaseHeld,
    LeaseLost,
    RebuildOvertaken,
    RebuildRunning,
    RowsLocked,
    SchemaNewer,
    ShardCountChanged,
    SnapshotFailed,
    SnapshotUnknown,
    SumsHeld,
    SumsReplaced,
    TablesBehindSnapshot,
    TablesSetBack,
)
from foretell.edge.refusals import STATUS_BY_FAMILY
from foretell.relayer.refusals import RELAYER
from foretell.trading.refusals import TRADING

REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference"

FAMILIES: Final = {*STATUS_BY_FAMILY, NotEnoughFunds}
ENDS_A_COMMAND: Final = {
    InvalidDeployment,
    ChainStartTooSlow,
    ChainStateDamaged,
    ChainStateTooLarge,
    DevChainFailed,
    DevChainStillRuns,
    ProgramMissing,
    SandboxOnly,
    TransactionReplaced,
    ForeignProfile,
    FolderInUse,
    ForeignJournal,
    JournalBehindTables,
    JournalDamaged,
    JournalFailed,
    JournalForked,
    JournalFormUnknown,
    JournalRowsDamaged,
    LeaseHeld,
    LeaseLost,
    SchemaNewer,
    ShardCountChanged,
    InvalidShardMap,
    RebuildOvertaken,
    RebuildRunning,
    SnapshotUnknown,
    SumsHeld,
    SumsReplaced,
    TablesBehindSnapshot,
}
"""Printed by a command that ends, by their message."""
STAYS_INSIDE: Final = {
    AnswerTooLarge,
    TablesSetBack,
    CallFailed,
    ExchangeClosed,
    ExecutionReverted,
    MalformedTransaction,
    TxIdReused,
    creation_errors.RegistrationBlocked,
    creation_errors.RegistrationPending,
    RowsLocked,
    SnapshotFailed,
    ClientGone,
    MalformedAmount,
    MalformedHex,
    TickNotFiner,
}
"""Caught by a worker, or at a product's border, which answers with another refusal."""
SAYS_NO_CODE: Final = {UnknownRecord, UnknownSortField}
"""Refusals of the discovery API, whose body has a type and a message only."""
OFF_THE_WIRE: Final = FAMILIES | ENDS_A_COMMAND | STAYS_INSIDE | SAYS_NO_CODE
WORKERS_ALONE: Final = {InvalidFields, *WORKER}
"""Refusals with a code of the worker, where it has one."""

ON_THE_WIRE: Final = [
    kind
    for kind in every_refusal()
    if kind.__module__.startswith("foretell.")
    and not kind.__module__.startswith("foretell.sdk.")
    and kind.__module__ not in {command_errors.__name__, source_errors.__name__}
    and kind not in OFF_THE_WIRE
]


def wire_code(kind: type[ForetellError]) -> str:
    """Return the code that clients see of a refusal."""
    refusal = a_refusal(kind)
    is_workers = kind in WORKERS_ALONE or kind.__module__ == creation_errors.__name__
    return worker_code(refusal) if is_workers else refusal.code


def test_a_refusal_on_the_wire_has_a_status_that_says_whose_fault_it_is() -> None:
    rows = {*STATUS_BY_FAMILY, *TRADING, *WORKER, *RELAYER, *DATA, *DISCOVERY} - {ForetellError}
    assert [kind for kind in ON_THE_WIRE if rows.isdisjoint(kind.__mro__)] == []


def test_a_code_on_the_wire_is_documented() -> None:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    codes = [wire_code(kind) for kind in ON_THE_WIRE]
    assert [code for code in codes if f"`{code}`" not in pages] == []
