from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.rigs.chain_snapshots import wait_until_mined
from tests.rigs.fault_proxy import FaultProxy, change, honest, lose_request, refuse
from tests.rigs.sandbox import Sandbox

from foretell.chain.logs import BlockLogs, LogReader
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.contracts.logs import (
    ChainLog,
    CollateralApproved,
    CollateralTransferred,
    ConditionPrepared,
    ConditionResolved,
    CreatorRecorded,
    PositionSplit,
    QuestionInitialized,
    QuestionResolved,
    SafeCreated,
    TokenRegistered,
    TokensTransferred,
)
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ChainInconsistent, ChainUnavailable
from foretell.domain.values.hexadecimal import Address

pytestmark = pytest.mark.anyio

GET_LOGS = "eth_getLogs"
GET_RECEIPTS = "eth_getBlockReceipts"
GET_BLOCK = "eth_getBlockByNumber"
RECEIVER = Address("0x" + "4e" * 20)

Change = Callable[[Any], Any]


@pytest.fixture
def logs(faulty_rpc: Rpc, sandbox: Sandbox) -> LogReader:
    return LogReader(faulty_rpc, sandbox.deployment.kind_by_contract())


@pytest.fixture
def first_block(sandbox: Sandbox) -> int:
    return sandbox.deployment.start_block


async def pay(sandbox: Sandbox, units: int = 5) -> None:
    calldata = Transfer(RECEIVER, units).encode()
    await sandbox.call(sandbox.trader(), sandbox.deployment.collateral, calldata)


async def pay_twice_in_a_block(sandbox: Sandbox) -> int:
    """Return the number of a block with two logs of ours."""
    await sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - as the protocol has it
    for account, units in ((sandbox.trader(0), 1), (sandbox.trader(1), 2)):
        await sandbox.rpc.send(
            "eth_sendTransaction",
            {
                "from": account.address,
                "to": sandbox.deployment.collateral,
                "data": "0x" + Transfer(RECEIVER, units).encode().hex(),
            },
        )
    await sandbox.mine()
    await sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - as the protocol has it
    return await sandbox.reader.head()


def logs_in(blocks: list[BlockLogs]) -> list[ChainLog]:
    return [placed.log for block in blocks for placed in block.logs]


async def test_logs_are_read_in_the_order_of_the_chain(
    logs: LogReader, fresh_sandbox: Sandbox
) -> None:
    start = await fresh_sandbox.reader.head() + 1
    market = await fresh_sandbox.ask()
    trader = fresh_sandbox.trader()
    safe = await fresh_sandbox.make_safe(trader)
    await fresh_sandbox.split(trader, market, 5)
    await fresh_sandbox.answer(market)
    blocks = await logs.read(start, await fresh_sandbox.reader.head())
    seen = logs_in(blocks)
    kinds = [
        kind
        for kind in dict.fromkeys(type(log) for log in seen)
        if kind not in {CollateralApproved, CollateralTransferred}
    ]
    assert kinds == [
        ConditionPrepared,
        CreatorRecorded,
        QuestionInitialized,
        TokenRegistered,
        SafeCreated,
        TokensTransferred,
        PositionSplit,
        ConditionResolved,
        QuestionResolved,
    ]
    assert SafeCreated(safe, trader.address) in seen
    yes, no = str(market.tokens.yes), str(market.tokens.no)
    assert TokenRegistered(yes, no, market.condition_id) in seen
    assert sum(block.ignored for block in blocks) == 0


async def test_each_block_has_its_header_and_each_log_its_place(
    logs: LogReader, fresh_sandbox: Sandbox
) -> None:
    number = await pay_twice_in_a_block(fresh_sandbox)
    before, block = await logs.read(number - 1, number)
    assert block.header == await fresh_sandbox.reader.header(hex(number))
    assert block.header.parent_hash == before.header.block_hash
    first, second = block.logs
    assert first.contract == fresh_sandbox.deployment.collateral
    assert (first.place.log_index, second.place.log_index) == (0, 1)
    assert first.place.tx_hash != second.place.tx_hash
    assert first.place.block_hash == block.header.block_hash
    assert first.place.timestamp_s == block.header.timestamp_s
    assert {first.log, second.log} == {
        CollateralTransferred(fresh_sandbox.trader(0).address, RECEIVER, 1),
        CollateralTransferred(fresh_sandbox.trader(1).address, RECEIVER, 2),
    }


@pytest.mark.case("E-03")
async def test_logs_of_other_contracts_are_not_read(
    faulty_rpc: Rpc, fresh_sandbox: Sandbox
) -> None:
    kinds = fresh_sandbox.deployment.kind_by_contract()
    elsewhere = {RECEIVER: kinds[fresh_sandbox.deployment.collateral]}
    number = await pay_twice_in_a_block(fresh_sandbox)
    (block,) = await LogReader(faulty_rpc, elsewhere).read(number, number)
    assert (block.logs, block.ignored) == ((), 0)


@pytest.mark.case("E-03")
async def test_an_unknown_log_is_counted_as_ignored(
    faulty_rpc: Rpc, fresh_sandbox: Sandbox
) -> None:
    kinds = fresh_sandbox.deployment.kind_by_contract()
    spoofed = dict(kinds)
    # The collateral taken for Conditional Tokens: it logs a name that another contract has.
    collateral = fresh_sandbox.deployment.collateral
    spoofed[collateral] = kinds[fresh_sandbox.deployment.conditional_tokens]
    spoofed[RECEIVER] = kinds[collateral]
    await pay(fresh_sandbox)
    number = await fresh_sandbox.reader.head()
    blocks = await LogReader(faulty_rpc, spoofed).read(number - 1, number)
    assert logs_in(blocks) == []
    assert sum(block.ignored for block in blocks) == 1


@pytest.mark.case("E-02")
async def test_a_range_that_a_node_refuses_is_split_until_it_fits(
    logs: LogReader, first_block: int, sandbox: Sandbox, proxy: FaultProxy
) -> None:
    head = await sandbox.reader.head()
    proxy.fail(GET_LOGS, *[refuse("query returned more than 10000 results", -32005)] * 3)
    part = await logs.read(first_block, head)
    assert 0 < len(part) < head - first_block
    read = list(part)
    while len(read) <= head - first_block:
        last = read[-1].header
        read += await logs.read(last.block_number + 1, head, last.block_hash)
    assert [block.header.block_number for block in read] == list(range(first_block, head + 1))
    assert logs_in(read) == logs_in(await logs.read(first_block, head))


async def test_a_node_that_does_not_answer_gets_smaller_ranges(
    faulty_rpc: Rpc, first_block: int, sandbox: Sandbox, proxy: FaultProxy
) -> None:
    small = LogReader(faulty_rpc, sandbox.deployment.kind_by_contract(), blocks_per_read_max=8)
    proxy.fail(GET_LOGS, *[lose_request] * 3)
    with pytest.raises(ChainUnavailable):
        await small.read(first_block, first_block + 30)
    assert len(await small.read(first_block, first_block + 30)) == 4
    assert len(await small.read(first_block, first_block + 30)) == 8
    assert len(await small.read(first_block, first_block + 30)) == 8


def without_one(logs: list[Any]) -> list[Any]:
    return logs[:1]


def without_any(_logs: list[Any]) -> list[Any]:
    return []


def twice(logs: list[Any]) -> list[Any]:
    return [logs[0], *logs]


def backwards(logs: list[Any]) -> list[Any]:
    return logs[::-1]


def elsewhere(logs: list[Any]) -> list[Any]:
    return [log | {"blockHash": "0x" + "ee" * 32} for log in logs]


def with_other_data(logs: list[Any]) -> list[Any]:
    return [log | {"data": "0x" + "00" * 31 + "63"} for log in logs]


def removed(logs: list[Any]) -> list[Any]:
    return [log | {"removed": True} for log in logs]


@pytest.mark.case("E-02")
@pytest.mark.parametrize("has_receipts", [True, False])
@pytest.mark.parametrize(
    "wrong", [without_one, without_any, twice, backwards, elsewhere, with_other_data, removed]
)
async def test_wrong_logs_are_refused(
    faulty_rpc: Rpc, fresh_sandbox: Sandbox, proxy: FaultProxy, wrong: Change, *, has_receipts: bool
) -> None:
    kinds = fresh_sandbox.deployment.kind_by_contract()
    logs = LogReader(faulty_rpc, kinds, has_receipts=has_receipts)
    number = await pay_twice_in_a_block(fresh_sandbox)
    proxy.fail(GET_LOGS, change(wrong))
    with pytest.raises(ChainInconsistent):
        await logs.read(number - 1, number)
    blocks = await logs.read(number - 1, number)
    assert len(logs_in(blocks)) == 2


async def test_a_log_that_the_bloom_filter_excludes_is_refused(
    logs: LogReader, fresh_sandbox: Sandbox, proxy: FaultProxy
) -> None:
    number = await pay_twice_in_a_block(fresh_sandbox)
    emptied = {"logsBloom": "0x" + "00" * 256}
    proxy.fail(GET_BLOCK, honest, change(lambda block: block | emptied))
    with pytest.raises(ChainInconsistent, match="differ"):
        await logs.read(number - 1, number)


@pytest.mark.parametrize("answer", [None, []])
async def test_missing_receipts_are_refused(
    logs: LogReader, fresh_sandbox: Sandbox, proxy: FaultProxy, answer: object
) -> None:
    number = await pay_twice_in_a_block(fresh_sandbox)
    proxy.fail(GET_RECEIPTS, change(lambda _: answer))
    with pytest.raises(ChainInconsistent):
        await logs.read(number, number)


@pytest.mark.parametrize(
    "answer", [[{}], [None], "0x", [{"logs": None}], [{"logs": [{"address": 1}]}]]
)
async def test_malformed_receipts_count_as_none_and_those_of_each_transaction_are_compared(
    logs: LogReader, fresh_sandbox: Sandbox, proxy: FaultProxy, answer: object
) -> None:
    number = await pay_twice_in_a_block(fresh_sandbox)
    proxy.fail_always(GET_RECEIPTS, change(lambda _: answer))
    proxy.fail(GET_LOGS, change(without_one))
    with pytest.raises(ChainInconsistent, match="differ"):
        await logs.read(number, number)
    assert len(logs_in(await logs.read(number, number))) == 2


@pytest.mark.parametrize("places", [(0, 1), (0,), (1,)])
async def test_receipts_of_another_block_are_refused(
    logs: LogReader, fresh_sandbox: Sandbox, proxy: FaultProxy, places: Sequence[int]
) -> None:
    """A node that went to another block and back between two requests would else lose this one's logs."""
    number = await pay_twice_in_a_block(fresh_sandbox)

    def of_another_block(receipts: list[Any]) -> list[Any]:
        for place in places:
            receipts[place]["blockHash"] = "0x" + "ee" * 32
        return receipts

    proxy.fail(GET_LOGS, change(without_any))
    proxy.fail(GET_RECEIPTS, change(lambda _: []), change(of_another_block))
    for _ in range(2):
        with pytest.raises(ChainInconsistent):
            await logs.read(number, number)
    (block,) = await logs.read(number, number)
    assert len(block.logs) == 2


async def test_a_false_positive_of_the_bloom_filter_costs_one_request(
    logs: LogReader, fresh_sandbox: Sandbox, proxy: FaultProxy
) -> None:
    paid = {"from": fresh_sandbox.trader().address, "to": RECEIVER, "value": "0x1"}
    await fresh_sandbox.rpc.send("eth_sendTransaction", paid)
    await wait_until_mined(fresh_sandbox.rpc)
    await fresh_sandbox.mine()
    number = await fresh_sandbox.reader.head() - 1
    full = {"logsBloom": "0x" + "ff" * 256}
    proxy.fail(GET_BLOCK, change(lambda block: block | full))
    (block,) = await logs.read(number, number)
    assert block.logs == ()
    assert proxy.asked[GET_RECEIPTS] == 1
    await logs.read(number, number)
    assert proxy.asked[GET_RECEIPTS] == 1


def not_there(_block: Any) -> Any:
    return None


def another_number(block: Any) -> Any:
    return block | {"number": "0x1"}


def another_parent(block: Any) -> Any:
    return block | {"parentHash": "0x" + "ee" * 32}


@pytest.mark.parametrize("wrong", [not_there, another_number, another_parent])
async def test_headers_that_do_not_form_a_chain_are_refused(
    logs: LogReader, fresh_sandbox: Sandbox, proxy: FaultProxy, wrong: Change
) -> None:
    await fresh_sandbox.mine(2)
    number = await fresh_sandbox.reader.head()
    proxy.fail(GET_BLOCK, honest, change(wrong))
    with pytest.raises(ChainInconsistent, match=f"block {number}"):
        await logs.read(number - 1, number)


async def test_a_reorg_is_found_in_the_first_block_with_another_parent(
    logs: LogReader, still_sandbox: Sandbox
) -> None:
    fork = await still_sandbox.reader.head()
    snapshot = await still_sandbox.rpc.send("evm_snapshot")
    await pay(still_sandbox, units=1)
    common, abandoned = await logs.read(fork, fork + 1)
    await still_sandbox.rpc.send("evm_revert", snapshot)
    approval = Approve(RECEIVER, 9).encode()
    creator = still_sandbox.account(AccountRole.CREATOR)
    await still_sandbox.call(creator, still_sandbox.deployment.collateral, approval)
    await still_sandbox.mine()
    with pytest.raises(ChainInconsistent, match="another parent"):
        await logs.read(fork + 2, fork + 2, abandoned.header.block_hash)
    (other,) = await logs.read(fork + 1, fork + 1, common.header.block_hash)
    assert logs_in([other]) == [CollateralApproved(creator.address, RECEIVER, 9)]


async def test_a_block_that_does_not_exist_yet_is_refused(
    logs: LogReader, sandbox: Sandbox
) -> None:
    head = await sandbox.reader.head()
    with pytest.raises(ChainInconsistent, match="does not have block"):
        await logs.read(head, head + 1)
