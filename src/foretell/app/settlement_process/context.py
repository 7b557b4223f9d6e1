"""The context of settlement, built from what the process that settles is given."""

from foretell.app.clock_and_ids import now_ms
from foretell.app.settlement_process.messages import BeginSettlement
from foretell.chain.rpc import Rpc
from foretell.chain.sender import Sender, SenderOptions
from foretell.domain.contracts.deployment import parse_deployment
from foretell.domain.exchange.wallets.wallet_bars import BarOptions
from foretell.indexer.contracts import IndexedContracts
from foretell.settlement.context import SettlementContext
from foretell.settlement.metrics import SettlementCounts
from foretell.store.database import Database
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox


def build_settlement(
    begin: BeginSettlement, database: Database, rpc: Rpc, counts: SettlementCounts | None = None
) -> SettlementContext:
    """Return the context of settlement, over a database and a node that are open."""
    deployment = parse_deployment(begin.deployment)
    options = SenderOptions(deployment.chain_id, begin.confirmations, has_simulated_price=True)
    outbox = TxOutbox(database, SETTLEMENT)
    operator, *further = [Sender(rpc, key, outbox, options, now_ms) for key in begin.operator_keys]
    wrapped = IndexedContracts.of(deployment).wrapped_collateral
    tokens = deployment.collateral, deployment.conditional_tokens, wrapped
    return SettlementContext(
        database,
        operator,
        now_ms,
        begin.options,
        batch_settler=deployment.batch_settler,
        bars=BarOptions(gas_per_day_max=begin.wallet_gas_per_day_max),
        conditional_tokens=deployment.conditional_tokens,
        collateral=deployment.collateral,
        assets=frozenset(filter(None, tokens)),
        further_operators=tuple(further),
        counts=SettlementCounts() if counts is None else counts,
    )
