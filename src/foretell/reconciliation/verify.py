"""The verification of the index: the chain's logs again, and every figure compared."""

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.chain import NothingIndexed
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.reconciliation.chain_figures import CASH
from foretell.reconciliation.comparison import DataReport, compare_all
from foretell.reconciliation.fetched_logs import fetch_times
from foretell.reconciliation.first_holdings import fetch_held
from foretell.reconciliation.recount import contracts_of, recount
from foretell.store.database import Database
from foretell.store.index.wallet_readings import TO_READ_AGAIN
from foretell.store.queries.index_tables import load_index_tables


async def verify_data(database: Database, rpc: Rpc, deployment: Deployment) -> DataReport:
    """Compare the tables of the index, all of one block, with what the node's logs up to it lead to.

    Wallets that were read from the chain are compared with the chain at that block.

    Raises ChainInconsistent when the node has another block there, or logs that cannot be, and RpcRefused when
    it no longer has the state of that block.
    """
    async with database.reading() as tx:
        tables = await load_index_tables(tx)
    if tables.last is None:
        raise NothingIndexed
    last = tables.last
    read = [
        Address(row.wallet)
        for row in tables.rows["wallet_readings"]
        if row.block_number != TO_READ_AGAIN
    ]
    held = await fetch_held(rpc, contracts_of(deployment), read, Bytes32(last.block_hash))
    figures = await recount(rpc, deployment, last.block_number)
    for wallet, first in held.items():
        figures.balances[wallet, CASH] = first.units
        for (spender, is_collateral), units in first.allowances.items():
            figures.allowances[wallet, spender, is_collateral] = units
    report = DataReport(last.block_number, last.block_hash)
    compare_all(figures, tables, report)
    await fetch_times(rpc, {last.block_number: Bytes32(last.block_hash)})
    return report
