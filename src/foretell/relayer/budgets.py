"""Budgets of 24 hours: of an owner, of an account that submits for other owners, and of all owners together.

An API key costs nothing, so an owner's budget alone bounds nobody who submits for many. What an admitted builder
submits for others counts toward its own gas alone, so that strangers cannot use up what it needs.
"""

import structlog

from foretell.domain.errors.relayer import OwnerGasReached, OwnerLimitReached, RelayerGasReached
from foretell.domain.relay.budgets import (
    DAY_MS,
    BuilderBudget,
    check_all_owners,
    check_builder,
)
from foretell.domain.relay.request import RelayRequest
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.context import RelayerContext, RelayerOptions
from foretell.store.database import Transaction
from foretell.store.outbox.relay_hours import load_all_hours, load_builder_hours
from foretell.store.outbox.relays import load_relay_gas, load_relay_time
from foretell.store.public_reads.places import ReadKind

log = structlog.get_logger(__name__)


async def check_owner_relays(context: RelayerContext, owner: Address) -> None:
    """Refuse an owner who had as many transactions in the last 24 hours as one may have."""
    most, now_ms = context.options.relays_per_owner_max, context.now_ms()
    if not most:
        return
    async with context.database.public_reading(ReadKind.OWN) as tx:
        at_ms = await load_relay_time(tx, owner, most)
    left_ms = 0 if at_ms is None else at_ms + DAY_MS - now_ms
    if left_ms > 0:
        raise OwnerLimitReached(most, -(-left_ms // 1000))


async def check_owner_gas(context: RelayerContext, request: RelayRequest) -> None:
    """Refuse an owner whose transactions of the last 24 hours leave no gas for this one."""
    most = context.options.relay_gas_per_owner_max
    if not most:
        return
    async with context.database.public_reading(ReadKind.OWN) as tx:
        used = await load_relay_gas(tx, request.owner, context.now_ms() - DAY_MS)
    if used + request.gas > most:
        raise OwnerGasReached(most, used, request.gas)


async def check_shared_budgets(
    tx: Transaction, options: RelayerOptions, request: RelayRequest
) -> None:
    """Refuse a new request for which its submitter's budget leaves no room, or that of all owners.

    In a transaction that has locked the budgets and stores the request, no two requests get the same room.
    """
    admitted, now_ms = options.relay_gas_by_builder, request.created_at_ms
    is_for_other = request.submitter != request.owner
    if is_for_other:
        hours = await load_builder_hours(tx, request.submitter, now_ms)
        check_builder(_budget(options, request.submitter), hours, request.gas, now_ms)
    if is_for_other and request.submitter in admitted:
        return
    hours = await load_all_hours(tx, admitted.keys(), now_ms)
    try:
        check_all_owners(options.relay_gas_per_day_max, hours, request.gas, now_ms)
    except RelayerGasReached as refusal:
        log.warning("the relayer's gas of 24 hours is used up", cause=refusal.message)
        raise


def _budget(options: RelayerOptions, builder: Address) -> BuilderBudget:
    if builder in options.relay_gas_by_builder:
        return BuilderBudget(0, options.relay_gas_by_builder[builder])
    return BuilderBudget(options.relays_per_builder_max, options.relay_gas_per_builder_max)
