"""Dependencies of settlement, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from foretell.chain.sender import Sender
from foretell.domain.evm.fee_cap import FeeBound
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.exchange.wallets.wallet_bars import BarOptions
from foretell.domain.values.hexadecimal import Address
from foretell.runtime.repeated_lines import RepeatedLines
from foretell.settlement.call_forms import CallForms
from foretell.settlement.grants import Grants
from foretell.settlement.metrics import SettlementCounts
from foretell.settlement.node_view import NodeViews
from foretell.settlement.plain_accounts import PlainAccounts
from foretell.store.database import Database


@dataclass(slots=True)
class UnknownWait:
    """The time since when unknown transactions of the accounts wait, and that of the last line of the log."""

    _since_ms: int | None = None
    _logged_ms: int | None = None

    def waited_ms(self, now_ms: int) -> int:
        """Return how long they wait by now."""
        if self._since_ms is None:
            self._since_ms = now_ms
        return now_ms - self._since_ms

    def is_to_log(self, now_ms: int, every_ms: int) -> bool:
        """Return whether a line is due, which then counts as logged."""
        if self._logged_ms is not None and now_ms - self._logged_ms < every_ms:
            return False
        self._logged_ms = now_ms
        return True

    def end(self) -> None:
        """Forget the times: none waits."""
        self._since_ms = self._logged_ms = None


@dataclass(slots=True)
class StartBlock:
    """The newest block when what may be on the chain was asked for, and whether the index has read it.

    While the index has not, the node is asked again: one that named a block of the far future would stop everything.
    """

    head_number: int | None = None
    asked_ms: int = 0
    is_indexed: bool = False
    unknown: UnknownWait = field(default_factory=UnknownWait)

    def is_to_repeat(self, now_ms: int, every_ms: int) -> bool:
        """Return whether the node is asked again: some time has passed, or the clock was set back."""
        return not 0 <= now_ms - self.asked_ms < every_ms

    def ask_again(self) -> None:
        """Have the newest block asked for again: a transaction that is not known here was mined."""
        self.head_number, self.is_indexed = None, False


@dataclass(frozen=True, slots=True)
class SettlementContext:
    """Settlement by an operator account, and further ones that send batches; without a batch settler each trade has a transaction.

    Without the address of the outcome tokens no barred wallet is probed, and without that of the collateral, too,
    nobody is asked for its funds when a trade is given up.
    """

    database: Database
    operator: Sender
    now_ms: Callable[[], int]
    options: SettlementOptions = field(default_factory=SettlementOptions)
    batch_settler: Address | None = None
    bars: BarOptions = field(default_factory=BarOptions)
    conditional_tokens: Address | None = None
    assets: frozenset[Address] = frozenset()
    """The tokens that trades move: collateral, what wraps it, and the outcome tokens."""
    call_forms: CallForms = field(default_factory=CallForms)
    collateral: Address | None = None
    further_operators: tuple[Sender, ...] = ()
    grants: Grants = field(default_factory=Grants)
    fee_bound: FeeBound = field(default_factory=FeeBound)
    lines: RepeatedLines = field(default_factory=partial(RepeatedLines, lines_max=1))
    """What the log says once a minute at most."""
    start: StartBlock = field(default_factory=StartBlock)
    plain_accounts: PlainAccounts = field(default_factory=PlainAccounts)
    node_views: NodeViews = field(default_factory=NodeViews)
    counts: SettlementCounts = field(default_factory=SettlementCounts)
