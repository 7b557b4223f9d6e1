"""Find the trades that are sent in a batch without a simulation.

One read of the tables and one view of the node serve all trades of a pass; `simulation_reason` decides.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import structlog

from foretell.domain.errors.chain import RpcRefused
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side, SignatureType
from foretell.domain.exchange.wallets.simulation import (
    Payment,
    SettlementView,
    simulation_reason,
    troubled_since,
)
from foretell.domain.exchange.wallets.wallet_bars import day_of
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.batch_call import BatchedTrade
from foretell.settlement.context import SettlementContext
from foretell.store.index.balances import load_allowances, load_balances
from foretell.store.index.blocks import load_last_block
from foretell.store.outbox.settlement_views import (
    load_gas_of_failures,
    load_owed,
    load_troubled,
)
from foretell.store.trading.orders import OrderRow

_Payments = Mapping[str, Sequence[Payment]]
"""What the orders of each trade give."""

log = structlog.get_logger(__name__)


async def unsimulated_trades(
    context: SettlementContext, settler: Address, trades: Sequence[BatchedTrade]
) -> frozenset[str]:
    """Return the ids of the trades that are sent without a simulation.

    None is if the node refuses to say what must be known.
    """
    payments = {each.settlement.trade_id: _payments(each) for each in trades if each.may_share}
    if not payments or not context.options.unsimulated_gas_per_day_max:
        return frozenset()
    try:
        view = await _view(context, settler, trades, payments)
    except RpcRefused as refusal:
        log.warning("batches are simulated", cause=refusal.message)
        return frozenset()
    reasons = {
        each.settlement.trade_id: simulation_reason(
            each.matched.exchange,
            payments[each.settlement.trade_id],
            view,
            context.options,
        )
        for each in trades
        if each.settlement.trade_id in payments
    }
    counts = Counter(reason.value for reason in reasons.values() if reason is not None)
    if counts:
        log.debug("trades are simulated", **counts)
    return frozenset(trade_id for trade_id, reason in reasons.items() if reason is None)


def _payments(batched: BatchedTrade) -> list[Payment]:
    """Return what the orders of a trade give."""
    matched = batched.matched
    row = matched.row
    paid = [(matched.taker, row.token_id)]
    paid += [
        (matched.maker(fill), token)
        for fill, token in zip(row.trade.fills, row.fill_tokens, strict=True)
    ]
    return [_payment(order, token) for order, token in paid]


def _payment(order: OrderRow, token: AssetId) -> Payment:
    signed = order.signed
    is_own = signed.signature_type is SignatureType.EOA and signed.signer == signed.maker
    asset = COLLATERAL if signed.side is Side.BUY else token
    return Payment(signed.maker, asset, is_own, signed.expiration_s if signed.v2 is None else 0)


async def _view(
    context: SettlementContext,
    settler: Address,
    trades: Sequence[BatchedTrade],
    payments: _Payments,
) -> SettlementView:
    """Return what must be known of these trades, as of the last indexed block."""
    exchanges = sorted({each.matched.exchange for each in trades})
    paid = [payment for each in payments.values() for payment in each if payment.is_own]
    wallets = {payment.wallet for payment in paid}
    node, plain = await asyncio.gather(
        context.node_views.view(context.operator, settler, exchanges, context.now_ms),
        _plain_accounts(context, wallets),
    )
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        last = await load_last_block(tx)
        troubled = await load_troubled(tx, wallets, troubled_since(now_ms))
        gas_of_day = await load_gas_of_failures(tx, day_of(now_ms))
        balances = await load_balances(tx, {(each.wallet, each.asset) for each in paid})
        permissions = {
            (each.wallet, exchange, each.asset == COLLATERAL)
            for each in paid
            for exchange in exchanges
        }
        allowances = await load_allowances(tx, permissions)
        owed_units = await load_owed(tx)
    return SettlementView(
        now_ms=now_ms,
        lag_blocks=node.head if last is None else max(0, node.head - last.block_number),
        gas_of_day=gas_of_day,
        open_exchanges=node.open_exchanges,
        plain=plain,
        troubled=troubled,
        held_units={(each.wallet, each.asset): each.units for each in balances},
        allowed_units={
            (each.wallet, each.spender, each.is_collateral): each.units for each in allowances
        },
        owed_units=owed_units,
    )


async def _plain_accounts(
    context: SettlementContext, wallets: Collection[Address]
) -> frozenset[Address]:
    """Return which of these wallets have no code; that is asked for again after some time."""
    known, now_ms = context.plain_accounts, context.now_ms()
    unknown = [each for each in sorted(wallets) if not known.has(each, now_ms)]
    found = await context.operator.accounts_without_code(unknown)
    known.add(found, now_ms)
    return frozenset(found) | (frozenset(wallets) - frozenset(unknown))
