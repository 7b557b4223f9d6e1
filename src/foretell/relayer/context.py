"""The context of the relayer, built once by the composition root."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from foretell.chain.reader import Reader
from foretell.chain.sender import Sender
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.relay.allowed_calls import CallRules, EventTargets, ServedCall
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.hexadecimal import Address
from foretell.edge.auth import KeyRing
from foretell.edge.signed_requests import SignedRequests
from foretell.relayer.refusals import relayer_body
from foretell.relayer.wallet_locks import WalletLocks
from foretell.runtime.shared_calls import SharedCalls
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class RelayerOptions:
    """Options of the operator."""

    calls: Collection[ServedCall] = frozenset(ServedCall)
    """Calls that wallets may make through this relayer."""
    confirmation_deadline_s: float = 60.0
    """The longest wait of an operation's answer for a block."""
    queue_deadline_ms: int = 10 * 60 * 1000
    """The longest wait of a transaction to be sent: for an earlier one of its wallet, or the node."""
    open_per_wallet_max: int = 16
    relays_per_owner_max: int = 1_000
    """Transactions of an owner in 24 hours; 0: any number."""
    relay_gas_per_owner_max: int = 0
    """Gas that these may use; 0: any amount."""
    relays_per_builder_max: int = 5_000
    """Transactions that an account submits for other owners in 24 hours; 0: any number."""
    relay_gas_per_builder_max: int = 0
    """Gas that these may use; 0: any amount."""
    relay_gas_by_builder: Mapping[Address, int] = field(default_factory=dict)
    """Gas of the accounts that the operator admits, in the place of both limits; 0: any amount."""
    relay_gas_per_day_max: int = 0
    """Gas that all may use in 24 hours, without those accounts; 0: any amount."""
    known_units: int = 5 * UNITS_PER_TOKEN
    """What an owner's wallet has held of collateral or of a token for a day, for whom the second half of that gas is."""


class Pulse:
    """Wakes the tasks that wait for a request of this process to move."""

    def __init__(self) -> None:
        self._moved = asyncio.Event()

    def beat(self) -> None:
        """Wake all waiting tasks."""
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """The event of the next beat; take it before reading a request, so that no beat is missed."""
        return self._moved


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set, but not longer than a number of seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


@dataclass(frozen=True, slots=True)
class RelayerContext:
    """The relayer on one chain; the sender's account pays for everything."""

    database: Database
    deployment: Deployment
    reader: Reader
    sender: Sender
    key_ring: KeyRing
    now_ms: Callable[[], int]
    new_uuid: Callable[[], str]
    options: RelayerOptions = field(default_factory=RelayerOptions)
    locks: WalletLocks = field(default_factory=WalletLocks)
    pulse: Pulse = field(default_factory=Pulse)
    shared_calls: SharedCalls = field(default_factory=SharedCalls)
    """Answers of the chain that are the same for all clients."""
    signed_requests: SignedRequests = field(init=False)

    def __post_init__(self) -> None:
        answered = SignedRequests(self.database, self.now_ms, relayer_body)
        object.__setattr__(self, "signed_requests", answered)

    @property
    def rules(self) -> CallRules:
        """The rules for calls of wallets."""
        return CallRules(
            collateral=self.deployment.collateral,
            conditional_tokens=self.deployment.conditional_tokens,
            exchange=self.deployment.exchange,
            multi_send=self.deployment.multi_send,
            calls=self.options.calls,
            events=self._events,
        )

    @property
    def _events(self) -> EventTargets | None:
        deployment = self.deployment
        if ContractName.NEG_RISK_ADAPTER not in deployment.contracts:
            return None
        return EventTargets(
            deployment.neg_risk_exchange,
            deployment.address(ContractName.NEG_RISK_ADAPTER),
            deployment.address(ContractName.WRAPPED_COLLATERAL),
        )
