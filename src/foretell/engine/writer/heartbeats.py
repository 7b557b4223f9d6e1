"""The dead man's switch: an API key that sends heartbeats loses its orders when they stop.

The store keeps which keys send heartbeats, not the heartbeats: after a restart every such key has
the whole time again, and its next heartbeat is refused with the id that it must name. A heartbeat
that is taken counts however late it is: an overdue key is stopped only if it was not renewed since.
What is due goes by time that has passed, so that a clock which is set neither stops a key nor spares one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import structlog

from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.order import HeartbeatMismatch
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.requests import CancelMatchingRequest, CancelOrdersReply
from foretell.runtime.worker import PollIntervals, run_worker
from foretell.store.database import Database
from foretell.store.trading.heartbeats import (
    HeartbeatRow,
    load_heartbeats,
    record_heartbeats,
    remove_heartbeats,
)

BEAT_WITHIN_MS: Final = 10_000
PACE: Final = PollIntervals(busy_s=0.5, idle_s=0.5)

Cancel = Callable[[CancelMatchingRequest], Awaitable[CancelOrdersReply]]
"""Cancels orders in all engines."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Pulse:
    address: Address
    heartbeat_id: str
    due_at_ms: int


class Heartbeats:
    """Every key that sends heartbeats, and when its next one is due."""

    def __init__(
        self,
        database: Database,
        cancel: Cancel,
        wallets: Wallets,
        *,
        now_ms: Callable[[], int],
        elapsed_ms: Callable[[], int],
        new_uuid: Callable[[], str],
    ) -> None:
        self._database = database
        self._cancel = cancel
        self._wallets = wallets
        self._now_ms = now_ms
        self._elapsed_ms = elapsed_ms
        self._new_uuid = new_uuid
        self._pulse_by_key: dict[str, _Pulse] = {}
        self._changing_by_key: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock for each key that begins or stops: the write of one key's may wait long for its turn."""

    async def start(self) -> None:
        """Give every key that sent heartbeats before the restart the whole time again."""
        async with self._database.reading() as tx:
            beatings = await load_heartbeats(tx)
        for beating in beatings:
            self._pulse_by_key[beating.key_id] = self._pulse(beating.address)

    async def beat(self, key_id: str, address: Address, heartbeat_id: str | None) -> str:
        """Take a heartbeat, which names the last one, and return the id of this one."""
        pulse = self._pulse_by_key.get(key_id)
        if pulse is None:
            if heartbeat_id:
                raise HeartbeatMismatch(await self._begin(key_id, address))
            return await self._begin(key_id, address)
        if heartbeat_id != pulse.heartbeat_id:
            raise HeartbeatMismatch(pulse.heartbeat_id)
        self._pulse_by_key[key_id] = renewed = self._pulse(address)
        return renewed.heartbeat_id

    async def run(self) -> None:
        """Cancel the orders of keys whose heartbeats stop, until cancelled."""
        await run_worker("heartbeats", self.run_once, PACE, expected=(ForetellError,))

    async def run_once(self) -> bool:
        """Cancel the orders of keys whose next heartbeat is overdue, and return that none is left.

        A failure of one key's is raised after the other keys were tried.
        """
        elapsed_ms, failure = self._elapsed_ms(), None
        for key_id, pulse in list(self._pulse_by_key.items()):
            if pulse.due_at_ms < elapsed_ms:
                try:
                    await self._stop(key_id, pulse)
                except ForetellError as error:
                    failure = error
        if failure is not None:
            raise failure
        return False

    async def _begin(self, key_id: str, address: Address) -> str:
        """Store that the key sends heartbeats, and expect them from then on: none from a key that was refused."""
        async with self._changing(key_id):
            pulse = self._pulse_by_key.get(key_id)
            if pulse is None:
                async with self._database.writing() as tx:
                    await record_heartbeats(tx, HeartbeatRow(key_id, address, self._now_ms()))
                pulse = self._pulse_by_key[key_id] = self._pulse(address)
            return pulse.heartbeat_id

    async def _stop(self, key_id: str, pulse: _Pulse) -> None:
        """Cancel the orders, then forget the key: after a failure or a restart both are repeated.

        Do nothing if the key was renewed since `pulse` was read.
        """
        async with self._changing(key_id):
            if self._pulse_by_key.get(key_id) is not pulse:
                return
            del self._pulse_by_key[key_id]
            try:
                wallets = self._wallets.of(pulse.address)
                request = CancelMatchingRequest(pulse.address, wallets, owner=key_id)
                count = len((await self._cancel(request)).canceled)
                async with self._database.writing() as tx:
                    await remove_heartbeats(tx, key_id)
            except ForetellError:
                self._pulse_by_key[key_id] = pulse
                raise
        log.info("heartbeats stopped", key_id=key_id, orders=count)

    def _changing(self, key_id: str) -> asyncio.Lock:
        return self._changing_by_key.setdefault(key_id, asyncio.Lock())

    def _pulse(self, address: Address) -> _Pulse:
        return _Pulse(address, self._new_uuid(), self._elapsed_ms() + BEAT_WITHIN_MS)
