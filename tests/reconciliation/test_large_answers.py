"""A verification at nodes that refuse answers of many logs, and with answers that are too large together."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

import pytest
from tests.chain.large_answers.spam import SPAMMER, make_spammer, send, small_rpc
from tests.chain.large_answers.test_large_blocks import at_most
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import EventActs
from tests.rigs.fault_proxy import FaultProxy, proxying, refuse
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.chain import RpcRefused
from foretell.domain.values.hexadecimal import Address
from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.recount import contracts_of
from foretell.reconciliation.traded_matches import NOT_ASKED, find_missing
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.spill import SpillFile

pytestmark = pytest.mark.anyio

GET_LOGS: Final = "eth_getLogs"
GET_RECEIPT: Final = "eth_getTransactionReceipt"
ACTS: Final = 12
BYTES_MAX: Final = 512 * 1024
SPENDER: Final = Address("0x" + "ac" * 20)
SPENDER_GAS: Final = 1_500_000
"""The gas of a transaction whose receipt has less than the bound, and two such receipts have more."""

Market = tuple[IndexerRig, EventActs]


@pytest.fixture
async def proxy(fresh_sandbox: Sandbox) -> AsyncIterator[FaultProxy]:
    async with proxying(fresh_sandbox.rpc_url) as proxy:
        yield proxy


async def mine_large_block(sandbox: Sandbox, market: Market) -> tuple[int, int]:
    """Mine many acts in one block; return the most logs of a block, and of a contract in one block."""
    _, acts = market
    for _ in range(ACTS):
        await acts.act()
    await sandbox.mine()
    contracts = sorted(contracts_of(sandbox.deployment).all)
    query = {"fromBlock": "0x0", "toBlock": "latest", "address": contracts}
    logs = await sandbox.rpc.call(GET_LOGS, query)
    of_block = Counter(log["blockNumber"] for log in logs)
    of_contract = Counter((log["blockNumber"], log["address"]) for log in logs)
    return max(of_block.values()), max(of_contract.values())


async def verify(sandbox: Sandbox, database: Database, rpc: Rpc) -> dict[str, int]:
    """Assert that a verification at this node finds no difference; return the numbers of rows."""
    report = await verify_data(database, rpc, sandbox.deployment)
    assert [str(each) for each in report.differences] == []
    return dict(report.rows)


@pytest.mark.parametrize("is_by_contract", [True, False])
async def test_a_block_with_more_logs_than_a_node_gives_is_verified(
    fresh_sandbox: Sandbox,
    market: Market,
    fresh_database: Database,
    proxy: FaultProxy,
    *,
    is_by_contract: bool,
) -> None:
    """It is read contract by contract, and when one contract has too many logs, by transaction."""
    most, largest = await mine_large_block(fresh_sandbox, market)
    assert most > largest > 1
    await catch_up(an_indexer(fresh_sandbox, fresh_database))
    rows = await verify(fresh_sandbox, fresh_database, fresh_sandbox.rpc)
    proxy.fail_always(GET_LOGS, at_most(largest if is_by_contract else largest - 1))
    async with Rpc(proxy.url) as rpc:
        assert await verify(fresh_sandbox, fresh_database, rpc) == rows
    assert (proxy.asked[GET_RECEIPT] == 0) is is_by_contract


async def test_a_node_that_gives_no_logs_in_any_way_is_a_refusal(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database, proxy: FaultProxy
) -> None:
    await mine_large_block(fresh_sandbox, market)
    await catch_up(an_indexer(fresh_sandbox, fresh_database))
    for method in (GET_LOGS, GET_RECEIPT):
        proxy.fail_always(method, refuse("query timed out"))
    async with Rpc(proxy.url) as rpc:
        with pytest.raises(RpcRefused, match="timed out"):
            await verify_data(fresh_database, rpc, fresh_sandbox.deployment)


@pytest.mark.parametrize("count", [1, 2])
async def test_logs_of_ours_that_are_too_large_together_are_verified_in_parts(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database, count: int
) -> None:
    """Of blocks together, or of two transactions in each: they transfer nothing to themselves until their gas is used up."""
    del market
    collateral = fresh_sandbox.deployment.collateral
    call = "5f5f60445f5f73" + collateral[2:] + "5af150"
    code = "7fa9059cbb" + "00" * 28 + "5f52" + "30600452" + "5f602452"
    start = len(code) // 2
    code += "5b" + call * 4 + "5a6200ea6010" + f"60{start:02x}57" + "00"
    await fresh_sandbox.rpc.send("anvil_setCode", SPENDER, "0x" + code)
    for _ in range(3):
        for trader in range(count):
            sender = fresh_sandbox.trader(trader).address
            sent = {"from": sender, "to": SPENDER, "gas": hex(SPENDER_GAS)}
            await fresh_sandbox.rpc.send("eth_sendTransaction", sent)
        await fresh_sandbox.mine()
    await catch_up(an_indexer(fresh_sandbox, fresh_database))
    async with Rpc(fresh_sandbox.rpc_url, SANDBOX_CHAIN_ID, answer_bytes_max=BYTES_MAX) as rpc:
        await verify(fresh_sandbox, fresh_database, rpc)


@pytest.mark.usefixtures("market")
async def test_receipts_of_missing_transactions_that_are_too_large_together_are_read_in_parts(
    fresh_sandbox: Sandbox,
) -> None:
    await make_spammer(fresh_sandbox)
    hashes = [
        await send(fresh_sandbox, fresh_sandbox.trader(trader), SPAMMER) for trader in (0, 1, 2)
    ]
    await fresh_sandbox.mine()
    number = await fresh_sandbox.reader.head()
    with SpillFile() as spill:
        figures = ChainFigures(contracts_of(fresh_sandbox.deployment), spill)
        for tx_hash in (*hashes, "0x" + "ee" * 32):
            figures.missing_txs[tx_hash] = NOT_ASKED
        async with small_rpc(fresh_sandbox.rpc_url) as rpc:
            assert await find_missing(figures, rpc, number - 1)
        assert [figures.missing_txs[tx_hash] for tx_hash in hashes] == [number] * 3
        assert figures.missing_txs["0x" + "ee" * 32] == 0
