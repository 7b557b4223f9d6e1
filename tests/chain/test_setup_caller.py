import pytest
from tests.chain.chains import head
from tests.chain.large_answers.spam import SPAMMER, make_spammer, send, small_rpc
from tests.rigs.fault_proxy import BROADCAST, FaultProxy, lose_answer, lose_request
from tests.rigs.sandbox import Sandbox

from foretell.chain.rpc import Rpc
from foretell.chain.setup_caller import SetupCaller, wait_for_receipts
from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.contracts.sandbox_accounts import TRADER_UNITS
from foretell.domain.errors.chain import CallFailed, ChainUnavailable, ExecutionReverted
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32

pytestmark = pytest.mark.anyio

RECEIVER = Address("0x" + "4e" * 20)


@pytest.fixture
def caller(fresh_sandbox: Sandbox) -> SetupCaller:
    return SetupCaller(fresh_sandbox.rpc, fresh_sandbox.trader().private_key, 80002)


def paying(sandbox: Sandbox, units: int, gas: int | None = None) -> ContractCall:
    calldata = Transfer(RECEIVER, units).encode()
    return ContractCall(sandbox.deployment.collateral, calldata, gas)


async def test_calls_are_sent_in_their_order_and_waited_for(
    caller: SetupCaller, fresh_sandbox: Sandbox
) -> None:
    receipts = await caller.call_all([paying(fresh_sandbox, units) for units in (1, 2, 3)])
    numbers = [receipt.block_number for receipt in receipts]
    assert numbers == sorted(numbers)
    assert await fresh_sandbox.reader.collateral_units(RECEIVER) == 6
    assert await caller.call_all([]) == []


async def test_a_call_with_value_pays_it(caller: SetupCaller, fresh_sandbox: Sandbox) -> None:
    await caller.call_all([ContractCall(RECEIVER, b"", value_wei=12)])
    assert await fresh_sandbox.rpc.call("eth_getBalance", RECEIVER, "latest") == "0xc"


async def test_a_call_that_would_revert_is_not_sent(
    caller: SetupCaller, fresh_sandbox: Sandbox
) -> None:
    with pytest.raises(ExecutionReverted):
        await caller.call_all([paying(fresh_sandbox, TRADER_UNITS + 1)])
    count = await fresh_sandbox.rpc.call("eth_getTransactionCount", caller.address, "latest")
    assert count == "0x0"


async def test_a_call_that_reverts_in_its_block_is_a_failure(
    caller: SetupCaller, fresh_sandbox: Sandbox
) -> None:
    too_much = paying(fresh_sandbox, TRADER_UNITS + 1, gas=200_000)
    with pytest.raises(CallFailed, match="0x"):
        await caller.call_all([too_much])


async def test_a_chain_without_automining_is_mined_on_demand(still_sandbox: Sandbox) -> None:
    key = still_sandbox.trader().private_key
    caller = SetupCaller(still_sandbox.rpc, key, 80002, mines=True)
    receipt = await caller.call(still_sandbox.deployment.collateral, Approve(RECEIVER, 1).encode())
    assert receipt.is_success


async def test_waiting_for_a_receipt_has_a_deadline(sandbox: Sandbox) -> None:
    with pytest.raises(ChainUnavailable, match="1 transactions are in no block"):
        await wait_for_receipts(sandbox.rpc, [ZERO_BYTES32], deadline_s=0.1)


async def test_a_call_with_a_lost_answer_is_not_repeated(
    fresh_sandbox: Sandbox, faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    proxy.fail(BROADCAST, lose_request)
    caller = SetupCaller(faulty_rpc, fresh_sandbox.trader().private_key, 80002)
    with pytest.raises(ChainUnavailable):
        await caller.call_all([paying(fresh_sandbox, 1)])
    assert proxy.asked[BROADCAST] == 1


@pytest.fixture
async def sent_earlier(still_sandbox: Sandbox, faulty_rpc: Rpc, proxy: FaultProxy) -> bytes:
    """The key of an account with a pending transfer, whose run received no answer."""
    key = still_sandbox.trader().private_key
    proxy.fail(BROADCAST, lose_answer)
    with pytest.raises(ChainUnavailable):
        await SetupCaller(faulty_rpc, key, 80002).call_all([paying(still_sandbox, 1)])
    return key


async def test_a_transaction_of_an_earlier_run_is_mined_on_demand(
    still_sandbox: Sandbox, sent_earlier: bytes
) -> None:
    await SetupCaller(still_sandbox.rpc, sent_earlier, 80002, mines=True).wait_for_earlier()
    assert await still_sandbox.reader.collateral_units(RECEIVER) == 1


async def test_waiting_for_an_earlier_run_has_a_deadline(
    still_sandbox: Sandbox, sent_earlier: bytes
) -> None:
    caller = SetupCaller(still_sandbox.rpc, sent_earlier, 80002)
    with pytest.raises(ChainUnavailable, match=f"1 transactions of {caller.address} are pending"):
        await caller.wait_for_earlier(deadline_s=0.05)


async def test_a_key_without_pending_transactions_mines_nothing(still_sandbox: Sandbox) -> None:
    before = await head(still_sandbox.rpc)
    key = still_sandbox.trader().private_key
    await SetupCaller(still_sandbox.rpc, key, 80002, mines=True).wait_for_earlier()
    assert await head(still_sandbox.rpc) == before


async def test_receipts_that_are_too_large_together_are_read_in_parts(
    still_sandbox: Sandbox,
) -> None:
    await make_spammer(still_sandbox)
    hashes = [await send(still_sandbox, still_sandbox.trader(each), SPAMMER) for each in range(3)]
    await still_sandbox.mine()
    async with small_rpc(still_sandbox.rpc_url) as rpc:
        receipts = await wait_for_receipts(rpc, [Bytes32(each) for each in hashes])
    assert [receipt.tx_hash for receipt in receipts] == hashes
