"""Challenges for creators. Anyone may request one for any creator: it has no effect until signed."""

from typing import Final

from foretell.creation.context import CreationContext
from foretell.creation.messages import AuthRequest
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS, Challenge
from foretell.domain.errors.creation import TooManyChallenges
from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.store.creation.requests import (
    count_unsigned,
    drop_expired,
    drop_surplus,
    record_challenge,
)
from foretell.store.database import Transaction

UNSIGNED_PER_CREATOR_MAX: Final = 50
KEPT_PER_WAITING_MAX: Final = 2
"""Stored challenges, with expired ones, for each that may wait for a signature."""
EXPIRED_KEPT_MS: Final = 24 * 60 * 60 * 1000
"""The time for which an expired challenge is refused as expired rather than as unknown."""


async def issue_challenge(context: CreationContext, wanted: AuthRequest) -> Challenge:
    """Return a new challenge, stored so that it can be resumed.

    The number of unsigned challenges is limited for each creator and in total. A request beyond the
    limit is refused and no valid challenge is dropped, so requests in a creator's name cannot take
    away the challenges that it has.
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
    async with context.database.writing() as tx:
        await _make_room(tx, context, challenge.creator, now_ms)
        await record_challenge(tx, challenge, now_ms)
        await drop_surplus(tx, UNSIGNED_PER_CREATOR_MAX, now_ms, wanted.creator)
    return challenge


async def _make_room(
    tx: Transaction, context: CreationContext, creator: Address, now_ms: int
) -> None:
    """Refuse beyond the limits, and drop expired challenges when too many rows are stored."""
    of_creator = await count_unsigned(tx, now_ms, creator)
    if of_creator.unexpired >= UNSIGNED_PER_CREATOR_MAX:
        raise TooManyChallenges(checksum_address(creator), UNSIGNED_PER_CREATOR_MAX)
    unsigned_max = context.options.unsigned_max
    of_all = await count_unsigned(tx, now_ms)
    if of_all.unexpired >= unsigned_max:
        raise TooManyChallenges("all creators", unsigned_max)
    if of_all.kept >= KEPT_PER_WAITING_MAX * unsigned_max:
        await drop_surplus(tx, unsigned_max, now_ms)


async def sweep_challenges(context: CreationContext) -> None:
    """Delete challenges that expired long ago, and the oldest expired ones if there are too many."""
    now_ms = context.now_ms()
    async with context.database.writing() as tx:
        await drop_expired(tx, now_ms - EXPIRED_KEPT_MS)
        await drop_surplus(tx, context.options.unsigned_max, now_ms)
