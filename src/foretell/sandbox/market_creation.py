"""The creation of markets through the public API, from the signed request to tradable tokens."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol

from typing_extensions import override

from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.hexadecimal import Bytes32, parse_bytes32
from foretell.sandbox.session import SandboxSession
from foretell.sdk.creation import CreatorClient
from foretell.sdk.payloads import picture
from foretell.sdk.signing.signers import KeySigner

NOT_FOUND: Final = 404
METADATA_UPDATE_PENDING: Final = "metadata_update_pending"
CHECKED: Final = frozenset({"finalize_running", METADATA_UPDATE_PENDING, "finalized"})
"""Statuses of a request after the worker has checked its transactions."""


class SandboxMarket(NamedTuple):
    """A market that was created in the sandbox."""

    condition_id: Bytes32
    token_yes: str
    token_no: str


class Narrator(Protocol):
    """Receives what happens during a creation."""

    def state(self, text: str) -> None:
        """Report a fact."""

    def waiting(self, text: str) -> contextlib.AbstractContextManager[None]:
        """Report that something takes a moment."""


class SilentNarrator(Narrator):
    """Reports nothing."""

    @override
    def state(self, text: str) -> None:
        """Report nothing."""

    @override
    def waiting(self, text: str) -> contextlib.AbstractContextManager[None]:
        """Report nothing."""
        return contextlib.nullcontext()


class MarketCreator:
    """One creator in a sandbox."""

    def __init__(self, session: SandboxSession, private_key: bytes, narrator: Narrator) -> None:
        caller = session.caller(private_key)
        self._client = CreatorClient(
            session.worker, caller, KeySigner(private_key), session.ready.chain_id
        )
        self._narrator = narrator

    async def create(
        self, payload: str, note: Callable[[str], object] = lambda _: None
    ) -> tuple[SandboxMarket, ...]:
        """Create the markets of a payload, and return them in its order.

        The id of the request is noted as soon as there is one, so that an interrupted creation can continue.
        """
        client, narrator = self._client, self._narrator
        challenge = await client.open_request(payload)
        note(challenge.request_id)
        narrator.state(
            f"challenge {challenge.request_id} is bound to payload {challenge.payload_hash[:18]}…"
        )
        images = {"eventImage": ("cover.png", picture(), "image/png")}
        await client.prepare(challenge, payload, images)
        with narrator.waiting("the worker stores picture and metadata, and draws up the plan"):
            plan = await client.wait_for_plan(challenge.request_id)
        narrator.state(f"plan: {', '.join(item['id'] for item in plan)}")
        with narrator.waiting("the creator sends the plan from its own wallet"):
            sent = await client.execute(plan)
        confirmed = await client.confirm(challenge.request_id, sent)
        narrator.state(f"{len(confirmed['confirmedTxs'])} transactions confirmed to the worker")
        return await self._finalize(challenge.request_id)

    async def resume(self, request_id: str) -> tuple[SandboxMarket, ...]:
        """Continue an interrupted creation, and return its markets; none if it must be repeated.

        Until its transactions are checked, repeating a creation costs nothing: the new request uses what
        the earlier one has put on the chain. A worker with another database does not know the request.
        """
        try:
            status = await self._client.status(request_id)
        except ApiRefused as refusal:
            if refusal.status != NOT_FOUND:
                raise
            return ()
        return await self._finalize(request_id) if status in CHECKED else ()

    async def _finalize(self, request_id: str) -> tuple[SandboxMarket, ...]:
        client, narrator = self._client, self._narrator
        with narrator.waiting("the worker checks them and opens the tokens to trading"):
            answer = await client.finalize(request_id)
        for result in answer["registerResults"]:
            condition = result["conditionId"][:18]
            narrator.state(f"condition {condition}… is registered ({answer['status']})")
        if answer["status"] == METADATA_UPDATE_PENDING:
            with narrator.waiting("the creator attaches the final metadata"):
                updates = await client.execute(answer["metadataUpdateTxPlan"])
            await client.confirm(request_id, updates)
            with narrator.waiting("the worker checks that too"):
                answer = await client.finalize(request_id)
        uri = answer["metadataUpdates"][0]["metadataUri"]
        count = answer["creatorTxCount"]
        narrator.state(f"{answer['status']}: {count} transactions, metadata at {uri}")
        return tuple(
            SandboxMarket(parse_bytes32(each["conditionId"]), each["tokenA"], each["tokenB"])
            for each in answer["registerResults"]
        )


def iso_time_in(session: SandboxSession, days: int) -> str:
    """Return the time this many days from now, as payloads have it."""
    ends_at = datetime.fromtimestamp(session.now_s(), UTC) + timedelta(days=days)
    return ends_at.isoformat().replace("+00:00", "Z")
