"""Blocks with more logs, or larger receipts, than a node gives in one answer."""

from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

import pytest
from tests.chain.large_answers.spam import RECEIVER, make_spammer, mine_spam, small_rpc
from tests.rigs.fault_proxy import (
    Answer,
    Fault,
    FaultProxy,
    Forward,
    Request,
    change,
    lose_answer,
    refuse,
)
from tests.rigs.sandbox import Sandbox

from foretell.chain.logs import BlockLogs, LogReader
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.logs import ChainLog, CollateralApproved, CollateralTransferred
from foretell.domain.errors.chain import ChainInconsistent, ChainUnavailable, RpcRefused

pytestmark = pytest.mark.anyio

GET_LOGS = "eth_getLogs"
GET_RECEIPTS = "eth_getBlockReceipts"
GET_RECEIPT = "eth_getTransactionReceipt"
GET_BLOCK_BY_HASH = "eth_getBlockByHash"
WAYS = (GET_LOGS, GET_RECEIPTS, GET_RECEIPT)
BEYOND = "query returned more than 10000 results"


@pytest.fixture
async def chain(still_sandbox: Sandbox) -> Sandbox:
    await make_spammer(still_sandbox)
    return still_sandbox


@pytest.fixture
async def rpc(chain: Sandbox, proxy: FaultProxy) -> AsyncIterator[Rpc]:
    del chain
    async with small_rpc(proxy.url) as rpc:
        yield rpc


@pytest.fixture
def logs(rpc: Rpc, chain: Sandbox) -> LogReader:
    return LogReader(rpc, chain.deployment.kind_by_contract())


def expected(chain: Sandbox) -> list[ChainLog]:
    """Return the logs of one block of spam."""
    payer = chain.trader(0).address
    return [CollateralTransferred(payer, RECEIVER, 1), CollateralApproved(payer, RECEIVER, 2)]


def logs_in(blocks: Collection[BlockLogs]) -> list[ChainLog]:
    return [placed.log for block in blocks for placed in block.logs]


async def read_all(logs: LogReader, first: int, last: int) -> list[BlockLogs]:
    read: list[BlockLogs] = []
    while first + len(read) <= last:
        parent_hash = read[-1].header.block_hash if read else None
        read += await logs.read(first + len(read), last, parent_hash)
    return read


def at_most(count: int) -> Fault:
    """The node refuses an answer of more logs."""

    async def fault(request: Request, forward: Forward) -> Answer | None:
        answer = await forward()
        if len(answer["result"]) > count:
            return await refuse(BEYOND, -32005)(request, forward)
        return answer

    return fault


async def test_attack_m1_blocks_whose_receipts_are_too_large_together_are_read(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy
) -> None:
    first = await mine_spam(chain)
    last = first + 3
    for _ in range(first, last):
        await mine_spam(chain)
    assert logs_in(await read_all(logs, first, last)) == expected(chain) * 4
    assert proxy.asked[GET_RECEIPT] == 0


async def test_attack_m1_a_block_whose_receipts_are_too_large_alone_is_read(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy
) -> None:
    number = await mine_spam(chain, calls=3)
    (block,) = await logs.read(number, number)
    assert logs_in([block]) == expected(chain)
    assert block.ignored == 0
    assert proxy.asked[GET_RECEIPT] >= 5


async def test_attack_m1_a_range_that_begins_and_ends_with_too_large_blocks_is_read(
    logs: LogReader, chain: Sandbox
) -> None:
    first = await mine_spam(chain, calls=2)
    await chain.mine(9)
    last = await mine_spam(chain, calls=2)
    read = await read_all(logs, first, last)
    assert [block.header.block_number for block in read] == list(range(first, last + 1))
    assert logs_in(read) == expected(chain) * 2


async def test_attack_m1_receipts_that_a_node_refuses_together_are_asked_for_in_parts(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy
) -> None:
    """Geth refuses the rest of a batch whose answers are beyond its own bound, of 25 MB."""
    first = await mine_spam(chain, calls=0)
    last = await mine_spam(chain, calls=0)
    proxy.fail(GET_RECEIPTS, refuse("response too large", -32003))
    assert logs_in(await read_all(logs, first, last)) == expected(chain) * 2
    assert proxy.asked[GET_RECEIPT] == 0


@pytest.mark.parametrize(("logs_max", "has_receipts"), [(1, False), (0, True)])
async def test_attack_m1_a_block_with_more_logs_than_a_node_gives_is_read(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy, logs_max: int, *, has_receipts: bool
) -> None:
    """Its logs are asked for by topic, and when one topic has too many, by transaction."""
    number = await mine_spam(chain, calls=0)
    proxy.fail_always(GET_LOGS, at_most(logs_max))
    (block,) = await logs.read(number, number)
    assert logs_in([block]) == expected(chain)
    assert block.ignored == 0
    assert (proxy.asked[GET_RECEIPT] > 0) is has_receipts


@pytest.mark.parametrize("silent", [GET_LOGS, GET_RECEIPTS])
async def test_attack_m1_a_block_is_read_when_one_way_is_left(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy, silent: str
) -> None:
    number = await mine_spam(chain, calls=2)
    proxy.fail_always(silent, refuse(BEYOND))
    (block,) = await logs.read(number, number)
    assert logs_in([block]) == expected(chain)


async def test_attack_m1_a_block_is_read_whose_receipts_a_node_takes_too_long_for(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy
) -> None:
    number = await mine_spam(chain, calls=0)
    proxy.fail_always(GET_RECEIPTS, lose_answer)
    (block,) = await logs.read(number, number)
    assert logs_in([block]) == expected(chain)


async def test_attack_m1_a_block_without_receipts_at_the_node_is_read_by_its_hash(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy
) -> None:
    number = await mine_spam(chain, calls=2)
    proxy.fail_always(GET_RECEIPT, refuse("response too large"))
    (block,) = await logs.read(number, number)
    assert logs_in([block]) == expected(chain)


async def test_attack_m1_more_than_10000_logs_of_ours_in_a_block_are_read(
    chain: Sandbox, proxy: FaultProxy
) -> None:
    """Two contracts transfer nothing to themselves until their gas is used up."""
    collateral = chain.deployment.collateral
    spender = "0x" + "ac" * 20
    call = "5f5f60445f5f73" + collateral[2:] + "5af150"
    code = "7fa9059cbb" + "00" * 28 + "5f52" + "30600452" + "5f602452"
    start = len(code) // 2
    code += "5b" + call * 4 + "5a6200ea6010" + f"60{start:02x}57" + "00"
    await chain.rpc.send("anvil_setCode", spender, "0x" + code)
    for trader in (0, 1):
        sent = {"from": chain.trader(trader).address, "to": spender, "gas": hex(14_900_000)}
        await chain.rpc.send("eth_sendTransaction", sent)
    await chain.mine()
    number = await chain.reader.head()
    proxy.fail_always(GET_LOGS, at_most(10_000))
    async with Rpc(proxy.url) as rpc:
        (block,) = await LogReader(rpc, chain.deployment.kind_by_contract()).read(number, number)
    assert len(block.logs) > 10_000
    assert [placed.place.log_index for placed in block.logs] == list(range(len(block.logs)))


def emptied(receipt: Any) -> Any:
    return receipt | {"logs": []}


def none_of(_logs: Any) -> Any:
    return []


def last_left_out(logs: Any) -> Any:
    return logs[:-1]


@pytest.mark.parametrize(
    ("method", "wrong"),
    [(GET_LOGS, none_of), (GET_LOGS, last_left_out), (GET_RECEIPT, emptied)],
)
async def test_attack_m1_a_large_block_is_still_checked_against_a_second_answer(
    logs: LogReader,
    chain: Sandbox,
    proxy: FaultProxy,
    method: str,
    wrong: Callable[[Any], Any],
) -> None:
    number = await mine_spam(chain, calls=3)
    proxy.fail_always(method, change(wrong))
    with pytest.raises(ChainInconsistent):
        await logs.read(number, number)
    proxy.heal()
    assert logs_in(await logs.read(number, number)) == expected(chain)


@pytest.mark.parametrize("wrong", [emptied, none_of])
async def test_a_block_that_is_read_by_transaction_is_checked_against_its_receipts(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy, wrong: Callable[[Any], Any]
) -> None:
    number = await mine_spam(chain, calls=0)
    proxy.fail_always(GET_LOGS, refuse(BEYOND))
    proxy.fail(GET_RECEIPT if wrong is emptied else GET_RECEIPTS, change(wrong))
    with pytest.raises(ChainInconsistent):
        await logs.read(number, number)
    assert logs_in(await logs.read(number, number)) == expected(chain)


@pytest.mark.parametrize(
    "answer", [None, {"hash": "0x" + "ee" * 32, "transactions": []}, {"hash": "0x"}]
)
async def test_the_transactions_of_another_block_are_refused(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy, answer: object
) -> None:
    number = await mine_spam(chain, calls=2)
    proxy.fail_always(GET_BLOCK_BY_HASH, change(lambda _: answer))
    with pytest.raises((ChainInconsistent, ChainUnavailable), match=r"does not have|another shape"):
        await logs.read(number, number)


@pytest.mark.parametrize("answer", [None, {"blockHash": "0x" + "ee" * 32, "logs": []}])
async def test_a_receipt_of_another_block_is_refused(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy, answer: object
) -> None:
    number = await mine_spam(chain, calls=2)
    proxy.fail_always(GET_RECEIPT, change(lambda _: answer))
    with pytest.raises(ChainInconsistent, match="another block"):
        await logs.read(number, number)


async def test_a_block_that_is_refused_in_every_way_is_a_refusal(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy
) -> None:
    number = await mine_spam(chain, calls=0)
    for method in WAYS:
        proxy.fail_always(method, refuse("query timed out"))
    with pytest.raises(RpcRefused, match="timed out"):
        await logs.read(number - 8, number)
    assert proxy.asked.total() < 100
    proxy.heal()
    assert logs_in(await logs.read(number, number)) == expected(chain)


async def test_small_blocks_take_one_request_in_each_way(
    logs: LogReader, chain: Sandbox, proxy: FaultProxy
) -> None:
    first = await mine_spam(chain, calls=0)
    last = await mine_spam(chain, calls=0)
    await logs.read(first, last)
    asked = {method: count for method, count in proxy.asked.items() if method != "eth_chainId"}
    assert asked == {GET_LOGS: 1, GET_RECEIPTS: 2, "eth_getBlockByNumber": 2}
