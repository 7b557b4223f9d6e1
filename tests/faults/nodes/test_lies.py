"""The lies of the lying node: each does what its name says, and an honest node answers as the real one."""

import contextlib
from typing import Any, Final

import pytest
from tests.faults.nodes.conftest import OTHER_CHAIN_ID
from tests.faults.nodes.lying_node import (
    BROADCAST,
    BROADCAST_LIES,
    LIES,
    REFUSALS,
    Lie,
    answer_html,
    be_another_chain,
    be_stale,
    cut,
    delay,
    duplicate,
    fail_gateway,
    hang,
    hide_transactions,
    limit_rate,
    lose_answer,
    lose_request,
    lying,
    refuse_broadcast,
    reorder,
)
from tests.rigs.chain_snapshots import wait_until_mined
from tests.rigs.sandbox import Sandbox

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.calldata import Approve
from foretell.domain.errors.chain import ChainUnavailable, RpcRefused

pytestmark = pytest.mark.anyio

TIMEOUT_S: Final = 0.5
EXECUTED_S: Final = 1.5
"""The deadline of a call that is never answered: a busy machine executes it within that."""
REQUESTS: Final = 600
MINE: Final = "evm_mine"
HEAD: Final = "eth_blockNumber"
BATCH: Final[list[tuple[str, list[object]]]] = [
    (HEAD, []),
    ("eth_chainId", []),
    ("net_version", []),
]


async def head_of(sandbox: Sandbox) -> int:
    return int(await sandbox.rpc.send(HEAD), 16)


@pytest.mark.parametrize(
    ("lie", "blocks", "is_answered"),
    [
        (delay, {1}, True),
        (lose_request, {0}, False),
        (lose_answer, {1}, False),
        (duplicate, {2}, True),
        (reorder, {1}, False),
        (limit_rate, {0}, False),
        (fail_gateway, {0, 1}, False),
        (answer_html, {0}, False),
        (cut, {1}, False),
        (hang, {1}, False),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
async def test_a_call_is_executed_and_answered_as_the_lie_has_it(
    fresh_sandbox: Sandbox, lie: Lie, blocks: set[int], *, is_answered: bool
) -> None:
    seen = set()
    async with (
        lying(fresh_sandbox.rpc_url, "one call", [lie], rate=1) as node,
        Rpc(node.url, timeout_s=EXECUTED_S if lie is hang else 60) as rpc,
    ):
        node.is_lying = True
        for _ in range(8):
            before = await head_of(fresh_sandbox)
            try:
                await rpc.send(MINE)
                assert is_answered
            except (ChainUnavailable, RpcRefused):
                assert not is_answered
            seen.add(await head_of(fresh_sandbox) - before)
        assert node.lies == {lie.__name__: 8}
    assert seen == blocks


async def answers_to(
    sandbox: Sandbox, lie: Lie, calls: list[tuple[str, list[object]]]
) -> list[Any]:
    """Return the answers to a batch at a node with one lie."""
    async with lying(sandbox.rpc_url, "a batch", [lie], rate=1) as node, Rpc(node.url) as rpc:
        node.is_lying = True
        return await rpc.batch(calls)


async def test_answers_of_a_batch_come_in_another_order_with_their_own_ids(
    fresh_sandbox: Sandbox,
) -> None:
    honest = await fresh_sandbox.rpc.batch(BATCH)
    assert await answers_to(fresh_sandbox, reorder, BATCH) == honest


async def test_another_chain_takes_over_the_port_and_leaves_it(
    fresh_sandbox: Sandbox, other_chain: str
) -> None:
    honest = await fresh_sandbox.rpc.send("eth_chainId")
    async with (
        lying(fresh_sandbox.rpc_url, "a port", [], rate=1, other_url=other_chain) as node,
        Rpc(node.url) as rpc,
    ):
        assert await rpc.send("eth_chainId") == honest
        node.is_lying = True
        with pytest.raises(ChainUnavailable):
            await rpc.send("eth_chainId")
        assert int(await rpc.send("eth_chainId"), 16) == OTHER_CHAIN_ID
        node.heal()
        with pytest.raises(ChainUnavailable):
            await rpc.send("eth_chainId")
        assert await rpc.send("eth_chainId") == honest
    assert node.lies.keys() == {be_another_chain.__name__}


async def test_a_broadcast_is_refused_in_known_words(fresh_sandbox: Sandbox) -> None:
    with pytest.raises(RpcRefused) as refused:
        await answers_to(fresh_sandbox, refuse_broadcast, [(BROADCAST, ["0x00"])])
    assert refused.value.rpc_message in REFUSALS


async def test_a_call_that_is_no_broadcast_passes(fresh_sandbox: Sandbox) -> None:
    before = await head_of(fresh_sandbox)
    await answers_to(fresh_sandbox, refuse_broadcast, [(MINE, [])])
    assert await head_of(fresh_sandbox) == before + 1


async def test_a_hidden_transaction_has_neither_receipt_nor_hash(fresh_sandbox: Sandbox) -> None:
    call = Approve(fresh_sandbox.deployment.exchange, 1).encode()
    trader, collateral = fresh_sandbox.trader(), fresh_sandbox.deployment.collateral
    receipt = await fresh_sandbox.call(trader, collateral, call)
    methods = ("eth_getTransactionReceipt", "eth_getTransactionByHash")
    calls: list[tuple[str, list[object]]] = [(method, [receipt.tx_hash]) for method in methods]
    assert None not in await fresh_sandbox.rpc.batch(calls)
    assert await answers_to(fresh_sandbox, hide_transactions, calls) == [None, None]


async def test_a_stale_replica_knows_nothing_of_its_missing_blocks(fresh_sandbox: Sandbox) -> None:
    trader, collateral = fresh_sandbox.trader(), fresh_sandbox.deployment.collateral
    calldata = Approve(fresh_sandbox.deployment.exchange, 1).encode()
    call = {"from": trader.address, "to": collateral, "data": "0x" + calldata.hex()}
    # A chain that was reverted to a snapshot has no states from before it.
    await fresh_sandbox.mine(4)
    before = await head_of(fresh_sandbox)
    tx_hash = await fresh_sandbox.rpc.send("eth_sendTransaction", call)
    await wait_until_mined(fresh_sandbox.rpc)
    head = await head_of(fresh_sandbox)
    calls: list[tuple[str, list[object]]] = [
        (HEAD, []),
        ("eth_getBlockByNumber", ["latest", False]),
        ("eth_getBlockByNumber", [hex(head), False]),
        ("eth_getTransactionCount", [trader.address, "pending"]),
        ("eth_getTransactionReceipt", [tx_hash]),
        ("eth_getLogs", [{"fromBlock": hex(before + 1), "toBlock": hex(head)}]),
    ]
    number, newest, missing, count, unknown, logs = await answers_to(fresh_sandbox, be_stale, calls)
    assert before - 3 < int(number, 16) < head == before + 1
    assert newest["number"] == number
    assert [missing, unknown, logs] == [None, None, []]
    assert int(count, 16) == 0


async def test_every_lie_comes_and_the_same_seed_lies_the_same(
    fresh_sandbox: Sandbox, other_chain: str
) -> None:
    runs = []
    for _ in range(2):
        async with (
            lying(fresh_sandbox.rpc_url, 1, rate=1, other_url=other_chain) as node,
            Rpc(node.url, timeout_s=TIMEOUT_S) as rpc,
        ):
            node.is_lying = True
            for _ in range(REQUESTS):
                try:
                    await rpc.send("eth_chainId")
                except (ChainUnavailable, RpcRefused):
                    continue
            runs.append(node.lies)
            node.heal()
            with contextlib.suppress(ChainUnavailable):  # the connection may have ended
                await rpc.send("eth_chainId")
            assert await rpc.send("eth_chainId") == await fresh_sandbox.rpc.send("eth_chainId")
    assert runs[0] == runs[1]
    wanted = {*LIES, be_another_chain} - BROADCAST_LIES
    assert runs[0].keys() == {lie.__name__ for lie in wanted}
