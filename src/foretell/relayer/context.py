"""What the relayer needs to do its work, made once where the program is put together."""

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from foretell.chain.reader import Reader
from foretell.chain.sender import Sender
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.relay.allowed_calls import CallRules, EventTargets, ServedCall
from foretell.domain.values.hexadecimal import Address
from foretell.edge.auth import KeyRing
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class RelayerOptions:
    """What an operator may choose."""

    calls: Collection[ServedCall] = frozenset(ServedCall)
    """What wallets may do through this relayer."""
    confirmation_deadline_s: float = 60.0
    """How long an operation's answer waits for a block."""
    queue_deadline_ms: int = 10 * 60 * 1000
    """How long a transaction waits to be sent: for an earlier one of its wallet, or for the node."""
    open_per_wallet_max: int = 16


class WalletLocks:
    """One lock for each wallet that something is done for just now."""

    def __init__(self) -> None:
        self._lock_by_wallet: weakref.WeakValueDictionary[Address, asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    def of(self, wallet: Address) -> asyncio.Lock:
        """Return the wallet's lock."""
        return self._lock_by_wallet.setdefault(wallet, asyncio.Lock())


class Pulse:
    """Wakes everyone who waits for a request of this process to move."""

    def __init__(self) -> None:
        self._moved = asyncio.Event()

    def beat(self) -> None:
        """Wake them."""
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """What the next beat sets; take it before looking, so that no beat is missed."""
        return self._moved


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set, and so many seconds at most."""
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

    @property
    def rules(self) -> CallRules:
        """What wallets may call."""
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
