"""Budgets of 24 hours: of an owner, of an account that submits for other owners, and of all owners together.

An API key costs nothing, so an owner's budget alone bounds nobody who submits for many. What an admitted builder
submits for others counts toward its own gas alone, so that strangers cannot use up what it needs. Of the gas of all
owners, the second half is for those whose wallets have held something for a day, each of whom has a part.
"""

import structlog

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.relayer import (
    OwnerGasReached,
    OwnerLimitReached,
    RelayerGasReached,
    RelayerGasReserved,
)
from foretell.domain.relay.budgets import (
    DAY_MS,
    BuilderBudget,
    OwnerUse,
    check_all_owners,
    check_builder,
    check_reserve,
    is_reserved,
)
from foretell.domain.relay.request import RelayRequest
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.context import RelayerContext, RelayerOptions
from foretell.store.database import Transaction
from foretell.store.index.balances import is_holder
from foretell.store.index.blocks import load_block_ago
from foretell.store.outbox.relay_hours import load_all_hours, load_builder_hours
from foretell.store.outbox.relays import load_relay_gas, load_relay_time

log = structlog.get_logger(__name__)


async def check_budgets(tx: Transaction, context: RelayerContext, request: RelayRequest) -> None:
    """Refuse a new request for which a budget leaves no room: its owner's, its submitter's or that of all owners.

    In a transaction that has locked the budgets and stores the request, no two requests get the same room.
    """
    await _check_owner(tx, context.options, request)
    admitted, now_ms = context.options.relay_gas_by_builder, request.created_at_ms
    is_for_other = request.submitter != request.owner
    if is_for_other:
        hours = await load_builder_hours(tx, request.submitter, now_ms)
        check_builder(_budget(context.options, request.submitter), hours, request.gas, now_ms)
    if is_for_other and request.submitter in admitted:
        return
    try:
        await _check_all_owners(tx, context, request)
    except RelayerGasReached as refusal:
        log.warning("the relayer's gas of 24 hours is used up", cause=refusal.message)
        raise
    except RelayerGasReserved as refusal:
        log.info("the rest of the relayer's gas of 24 hours is for others", cause=refusal.message)
        raise


async def _check_owner(tx: Transaction, options: RelayerOptions, request: RelayRequest) -> None:
    """Refuse an owner whose transactions of the last 24 hours leave no room for this one."""
    owner, now_ms, relays_max = request.owner, request.created_at_ms, options.relays_per_owner_max
    if relays_max:
        at_ms = await load_relay_time(tx, owner, relays_max, now_ms - DAY_MS)
        left_ms = 0 if at_ms is None else at_ms + DAY_MS - now_ms
        if left_ms > 0:
            raise OwnerLimitReached(relays_max, -(-left_ms // 1000))
    gas_max = options.relay_gas_per_owner_max
    if gas_max:
        used = await load_relay_gas(tx, owner, now_ms - DAY_MS)
        if used + request.gas > gas_max:
            raise OwnerGasReached(gas_max, used, request.gas)


async def _check_all_owners(
    tx: Transaction, context: RelayerContext, request: RelayRequest
) -> None:
    gas_max, now_ms = context.options.relay_gas_per_day_max, request.created_at_ms
    hours = await load_all_hours(tx, context.options.relay_gas_by_builder.keys(), now_ms)
    check_all_owners(gas_max, hours, request.gas, now_ms)
    if is_reserved(gas_max, hours):
        used = await load_relay_gas(tx, request.owner, now_ms - DAY_MS)
        wallets, units = wallets_of(context.deployment, request.owner), context.options.known_units
        since_block = await load_block_ago(tx, DAY_MS // 1000)
        owner = OwnerUse(used, await is_holder(tx, wallets, units, since_block))
        check_reserve(gas_max, hours, owner, request.gas, now_ms)


def wallets_of(deployment: Deployment, owner: Address) -> list[Address]:
    """Return an owner and the wallets that it controls, whether they are deployed or not."""
    wallets = [owner, deployment.safe_of(owner), *deployment.deposit_wallets_of(owner)]
    if deployment.proxy_wallet_factory is not None:
        wallets.append(deployment.proxy_wallet_of(owner))
    return wallets


def _budget(options: RelayerOptions, builder: Address) -> BuilderBudget:
    if builder in options.relay_gas_by_builder:
        return BuilderBudget(0, options.relay_gas_by_builder[builder])
    return BuilderBudget(options.relays_per_builder_max, options.relay_gas_per_builder_max)
