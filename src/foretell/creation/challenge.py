"""Challenges for creators. Anyone may request one for any creator: it has no effect until signed.

Unsigned challenges are limited for each source, for each creator and in total. At a limit the source that
holds most of them gives up its oldest, so no client is refused for what others asked for, and a few sources
cannot take away the challenges of another.
"""

from typing import Final

from foretell.creation.context import CreationContext
from foretell.creation.messages import AuthRequest
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS, Challenge
from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.store.creation.challenges import (
    EVERYWHERE,
    Unsigned,
    count_unsigned,
    drop_expired,
    drop_surplus,
    make_room,
    record_challenge,
)

UNSIGNED_PER_SOURCE_MAX: Final = 200
UNSIGNED_PER_CREATOR_MAX: Final = 250
KEPT_PER_WAITING_MAX: Final = 2
"""Stored challenges, with expired ones, for each that may wait for a signature."""
EXPIRED_KEPT_MS: Final = 24 * 60 * 60 * 1000
"""The time for which an expired challenge is refused as expired rather than as unknown."""


async def issue_challenge(context: CreationContext, wanted: AuthRequest, source: str) -> Challenge:
    """Return a new challenge, stored so that it can be resumed.

    `source` is the client's address, as for the rate limits.
    """
    chain_id = context.deployment.chain_id
    if wanted.chain_id != chain_id:
        raise InvalidFields([FieldProblem("chainId", f"must be one of {chain_id}")])
    now_ms = context.now_ms()
    challenge = Challenge(
        request_id=context.new_uuid(),
        creator=wanted.creator,
        payload_hash=wanted.payload_hash,
        nonce=context.new_word(),
        expires_at_ms=now_ms + CHALLENGE_LIFETIME_MS,
        chain_id=chain_id,
    )
    of_creator = Unsigned(creator=challenge.creator)
    unsigned_max = context.options.unsigned_max
    async with context.database.writing() as tx:
        await make_room(tx, Unsigned(source=source), UNSIGNED_PER_SOURCE_MAX, now_ms)
        await make_room(tx, of_creator, UNSIGNED_PER_CREATOR_MAX, now_ms)
        await make_room(tx, EVERYWHERE, unsigned_max, now_ms)
        if (await count_unsigned(tx, EVERYWHERE)) >= KEPT_PER_WAITING_MAX * unsigned_max:
            await drop_surplus(tx, EVERYWHERE, unsigned_max, now_ms)
        await record_challenge(tx, challenge, source, now_ms)
        await drop_surplus(tx, of_creator, UNSIGNED_PER_CREATOR_MAX, now_ms)
    return challenge


async def sweep_challenges(context: CreationContext) -> None:
    """Delete challenges that expired long ago, and the oldest expired ones if there are too many."""
    now_ms = context.now_ms()
    async with context.database.writing() as tx:
        await drop_expired(tx, now_ms - EXPIRED_KEPT_MS)
        await drop_surplus(tx, EVERYWHERE, context.options.unsigned_max, now_ms)
