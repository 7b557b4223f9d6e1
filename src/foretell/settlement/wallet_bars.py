"""Bar wallets that make settlements fail, and probe them until they have proved themselves.

A probe sends none of a token to the wallet: the tokens' contract calls the wallet as it does in a
settlement, in a transaction that costs little. A wallet that signs by its own code is asked for the signature of
the order that is to blame instead, as the exchange does. One that fails stays barred for twice the time.
"""

from collections.abc import Sequence
from typing import Final

import structlog

from foretell.chain.artifacts import reason_of
from foretell.chain.views import LATEST, SIGNATURE_GAS_MAX
from foretell.domain.contracts.calldata import SAFE_TRANSFER_FROM, encode_validate_order
from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.evm.transaction import OutgoingTx, SentTx, TxStatus
from foretell.domain.exchange.order import SignatureType
from foretell.domain.exchange.settlement import (
    Settlement,
    end_of,
    report_of_reverting,
    settlement_after_revert,
)
from foretell.domain.exchange.wallets.wallet_bars import (
    Offence,
    WalletBar,
    day_of,
    ended,
    kept,
    postponed,
    probed,
)
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.context import SettlementContext
from foretell.settlement.stored import Progress, load_matched, record
from foretell.store.outbox.refused_orders import load_blamed_of
from foretell.store.outbox.transactions import SETTLEMENT, load_txs
from foretell.store.outbox.wallet_bars import (
    add_gas,
    load_bar,
    load_bars_in_trades,
    load_probes,
    record_bar,
)
from foretell.store.trading.orders import load_orders

PROBE_GAS: Final = 150_000
"""Gas of a probe: the transaction, the tokens' contract, and any wallet that takes tokens."""
SIGNATURE_PROBE_GAS: Final = PROBE_GAS + SIGNATURE_GAS_MAX
"""Gas of a probe of a signature: the transaction, the exchange, and what it gives to the wallet."""
PROBE_TOKEN: Final = 0
PROBES_AT_ONCE_MAX: Final = 8
"""Most probes on their way at a time: the places of trades are not theirs."""
NOBODY: Final = "nobody"
WALLET: Final = "wallet"

log = structlog.get_logger(__name__)


def count_offences(context: SettlementContext, offences: Sequence[Offence], gas: int) -> None:
    """Count the gas of a settlement that was mined in vain in the metrics, once for all its wallets."""
    context.counts.gas(WALLET if offences else NOBODY, gas)
    for offence in offences:
        log.warning("wallet made a settlement fail", **offence._asdict())


async def without_barred(
    context: SettlementContext, due: Sequence[Settlement]
) -> Sequence[Settlement]:
    """Return the due trades without those of barred wallets, which are not sent any more.

    The fills of a barred maker leave a trade, and one of a barred taker ends.
    """
    async with context.database.reading() as tx:
        bars = await load_bars_in_trades(tx, [each.trade_id for each in due])
    if not bars:
        return due
    cause_by_wallet = {bar.wallet: f"wallet is barred: {bar.cause}" for bar in bars}
    sent: list[Settlement] = []
    for settlement, matched in zip(due, await load_matched(context, due), strict=True):
        trade = matched.row.trade
        wallets = [trade.taker, *(fill.maker for fill in trade.fills)]
        barred = next((wallet for wallet in wallets if wallet in cause_by_wallet), None)
        if barred is None:
            sent.append(settlement)
            continue
        cause = cause_by_wallet[barred]
        report = report_of_reverting(trade, barred, cause)
        after = settlement_after_revert(
            settlement, cause, report, context.now_ms(), context.options
        )
        log.warning("trade of a barred wallet", trade_id=trade.trade_id, wallet=barred)
        await record(context, [Progress(settlement, after)], report.refused)
    return sent


async def probe_wallets(context: SettlementContext) -> None:
    """Send the probes that are due, and end the bars of wallets that passed one."""
    if context.conditional_tokens is None:
        return
    async with context.database.reading() as tx:
        bars = await load_probes(tx, context.now_ms(), PROBES_AT_ONCE_MAX)
        txs = await load_txs(tx, SETTLEMENT, [bar.probe_tx_id or "" for bar in bars])
    sent_by_id = {each.tx_id: each for each in txs}
    for bar in bars:
        if bar.probe_tx_id is None:
            named = probed(bar)
            await _record(context, named)
            await _send(context, context.conditional_tokens, named)
        elif (sent := sent_by_id.get(bar.probe_tx_id)) is None:
            await _send(context, context.conditional_tokens, bar)
        else:
            await _follow(context, bar, sent)


async def _send(context: SettlementContext, tokens: Address, bar: WalletBar) -> None:
    """Send the probe that a bar names, unless its simulation fails, which costs nothing."""
    now_ms, options = context.now_ms(), context.bars
    try:
        await context.operator.send(await _probe(context, tokens, bar))
    except ExecutionReverted as reverted:
        await _record(context, kept(bar, f"fails a probe: {reason_of(reverted)}", now_ms, options))
    except RpcRefused as refusal:
        log.warning("probe refused by the node", wallet=bar.wallet, cause=refusal.message)
        await _record(context, postponed(bar, now_ms, options))


async def _probe(context: SettlementContext, tokens: Address, bar: WalletBar) -> OutgoingTx:
    """Return the transaction that probes a wallet: of its signature, if the order to blame has one of its code.

    An order that is over for another reason says nothing about its wallet any more.
    """
    assert bar.probe_tx_id is not None
    async with context.database.reading() as tx:
        blamed = await load_blamed_of(tx, bar.wallet)
        row_by_id = {} if blamed is None else await load_orders(tx, [blamed[0]])
    if blamed is not None and (row := row_by_id.get(blamed[0])) is not None:
        signed, exchange = row.signed, blamed[1]
        check = OutgoingTx(
            bar.probe_tx_id, exchange, encode_validate_order(signed), SIGNATURE_PROBE_GAS
        )
        is_by_code = signed.signature_type is SignatureType.CONTRACT
        reverted = await context.operator.revert_of(check, LATEST) if is_by_code else None
        if is_by_code and (reverted is None or end_of(reason_of(reverted)) is None):
            return check
    sender = context.operator.address
    calldata = SAFE_TRANSFER_FROM.encode(sender, bar.wallet, PROBE_TOKEN, 0, b"")
    return OutgoingTx(bar.probe_tx_id, tokens, calldata, PROBE_GAS)


async def _follow(context: SettlementContext, bar: WalletBar, sent: SentTx) -> None:
    """End a bar once its probe is confirmed, or keep it when that was mined in vain."""
    now_ms = context.now_ms()
    if sent.status is TxStatus.CONFIRMED:
        log.warning("wallet passed its probe", wallet=bar.wallet)
        await _record(context, ended(bar))
    elif sent.status is TxStatus.FAILED:
        async with context.database.writing() as tx:
            await add_gas(tx, bar.wallet, day_of(now_ms), sent.gas)
        await _record(context, kept(bar, "fails a probe when it is mined", now_ms, context.bars))
    elif sent.status is TxStatus.CANCELED:
        await _record(context, postponed(bar, now_ms, context.bars))


async def _record(context: SettlementContext, bar: WalletBar) -> None:
    """Store a bar, unless the operator has changed it meanwhile: then only its probe is forgotten."""
    async with context.database.writing() as tx:
        known = await load_bar(tx, bar.wallet)
        if known is not None and known.barred_at_ms != bar.barred_at_ms:
            bar = known._replace(probes=bar.probes, probe_tx_id=bar.probe_tx_id)
        await record_bar(tx, bar)
