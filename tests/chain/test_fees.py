from typing import Any

import pytest
from tests.rigs.fault_proxy import FaultProxy, change, refuse
from tests.rigs.sandbox import Sandbox

from foretell.chain.fees import (
    HISTORY_BLOCKS,
    PRIORITY_FEE_WEI_IDLE_MAX,
    PRIORITY_FEE_WEI_MIN,
    fetch_fees,
)
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.evm.raw_transaction import Fees

pytestmark = pytest.mark.anyio

HISTORY = "eth_feeHistory"
SUGGESTION = "eth_maxPriorityFeePerGas"
GWEI = 10**9


PAID = (6 * GWEI,) * HISTORY_BLOCKS
FULL, NEARLY_EMPTY = 0.9, 0.0007


def saying(base_fee_wei: int, *rewards_wei: int, ratio: float = FULL) -> dict[str, Any]:
    return {
        "baseFeePerGas": ["0x1", hex(base_fee_wei)],
        "reward": [[hex(reward)] for reward in rewards_wei],
        "gasUsedRatio": [ratio for _ in rewards_wei],
    }


async def priority_fee_wei(rpc: Rpc, proxy: FaultProxy, history: object, suggested_wei: int) -> int:
    """Return the tip of the fees that follow from what the node says."""
    proxy.fail(HISTORY, change(lambda _: history))
    proxy.fail(SUGGESTION, change(lambda _: hex(suggested_wei)))
    return (await fetch_fees(rpc, 10**12)).priority_fee_wei


@pytest.mark.parametrize(
    ("history", "suggested", "fees"),
    [
        (saying(10 * GWEI, GWEI, 3 * GWEI, 3 * GWEI), "0x1", Fees(23 * GWEI, 3 * GWEI)),
        (saying(10 * GWEI, GWEI), hex(2 * GWEI), Fees(22 * GWEI, 2 * GWEI)),
        (saying(0), "0x0", Fees(PRIORITY_FEE_WEI_MIN, PRIORITY_FEE_WEI_MIN)),
        ({"baseFeePerGas": ["0x0"]}, "0x0", Fees(PRIORITY_FEE_WEI_MIN, PRIORITY_FEE_WEI_MIN)),
        (saying(80 * GWEI, GWEI), "0x1", Fees(100 * GWEI, GWEI)),
    ],
)
async def test_fees_follow_the_last_blocks_and_the_nodes_suggestion_within_the_cap(
    faulty_rpc: Rpc, proxy: FaultProxy, history: object, suggested: str, fees: Fees
) -> None:
    proxy.fail(HISTORY, change(lambda _: history))
    proxy.fail(SUGGESTION, change(lambda _: suggested))
    assert await fetch_fees(faulty_rpc, 100 * GWEI) == fees


async def test_a_nodes_suggestion_is_optional(faulty_rpc: Rpc, proxy: FaultProxy) -> None:
    proxy.fail(HISTORY, change(lambda _: saying(GWEI)))
    proxy.fail(SUGGESTION, refuse("method not found", -32601))
    fees = await fetch_fees(faulty_rpc, 100 * GWEI)
    assert fees.priority_fee_wei == PRIORITY_FEE_WEI_MIN


async def test_without_a_suggestion_the_tip_is_what_most_blocks_paid(
    faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    proxy.fail(HISTORY, change(lambda _: saying(GWEI, *PAID)))
    proxy.fail(SUGGESTION, refuse("method not found", -32601))
    assert (await fetch_fees(faulty_rpc, 100 * GWEI)).priority_fee_wei == PAID[0]


async def test_fees_are_two_requests(faulty_rpc: Rpc, proxy: FaultProxy) -> None:
    await fetch_fees(faulty_rpc, 100 * GWEI)
    assert proxy.asked == {HISTORY: 1, SUGGESTION: 1}


@pytest.mark.parametrize("suggested_wei", [GWEI, 6 * GWEI])
async def test_on_a_busy_chain_the_tip_is_what_most_blocks_paid(
    faulty_rpc: Rpc, proxy: FaultProxy, suggested_wei: int
) -> None:
    history = saying(
        6 * GWEI, *(GWEI,) * (HISTORY_BLOCKS // 2 - 1), *PAID[HISTORY_BLOCKS // 2 - 1 :]
    )
    assert await priority_fee_wei(faulty_rpc, proxy, history, suggested_wei) == 6 * GWEI


async def test_a_suggestion_up_to_the_base_fee_counts_before_most_blocks_paid_it(
    faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    """A chain that became busy raises its base fee at once."""
    history = saying(40 * GWEI, *(GWEI,) * HISTORY_BLOCKS)
    assert await priority_fee_wei(faulty_rpc, proxy, history, 30 * GWEI) == 30 * GWEI


@pytest.mark.parametrize("blocks", [1, 4, HISTORY_BLOCKS // 2])
async def test_attack_l7_the_tips_of_a_stranger_in_a_few_blocks_do_not_count(
    faulty_rpc: Rpc, proxy: FaultProxy, blocks: int
) -> None:
    history = saying(GWEI, *PAID[blocks:], *(800 * GWEI,) * blocks)
    assert await priority_fee_wei(faulty_rpc, proxy, history, 6 * GWEI) == 6 * GWEI


async def test_attack_l7_tips_in_nearly_empty_blocks_do_not_count_however_many_have_them(
    faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    history = saying(GWEI, *(800 * GWEI,) * HISTORY_BLOCKS, ratio=NEARLY_EMPTY)
    assert await priority_fee_wei(faulty_rpc, proxy, history, GWEI) == GWEI


@pytest.mark.parametrize(
    ("base_fee_wei", "paid_wei", "limit_wei"),
    [
        (1, 0, PRIORITY_FEE_WEI_IDLE_MAX),
        (50 * GWEI, 0, 50 * GWEI),
        (GWEI, 40 * GWEI, 80 * GWEI),
    ],
)
async def test_attack_l7_a_suggestion_that_a_stranger_set_is_limited_by_blocks_and_base_fee(
    faulty_rpc: Rpc, proxy: FaultProxy, base_fee_wei: int, paid_wei: int, limit_wei: int
) -> None:
    history = saying(base_fee_wei, *(paid_wei,) * HISTORY_BLOCKS)
    assert await priority_fee_wei(faulty_rpc, proxy, history, 800 * GWEI) == limit_wei


async def test_attack_l7_blocks_that_a_stranger_filled_are_limited_by_the_suggestion(
    faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    history = saying(GWEI, *(800 * GWEI,) * HISTORY_BLOCKS)
    assert await priority_fee_wei(faulty_rpc, proxy, history, 40 * GWEI) == 80 * GWEI


@pytest.mark.parametrize("blocks", [1, 4])
async def test_attack_l7_a_strangers_tip_in_an_otherwise_empty_block_sets_no_fees(
    fresh_sandbox: Sandbox, blocks: int
) -> None:
    rpc, stranger = fresh_sandbox.rpc, fresh_sandbox.trader().address
    transfer = {"from": stranger, "to": stranger, "gas": hex(21_000)}
    tip = {"maxFeePerGas": hex(900 * GWEI), "maxPriorityFeePerGas": hex(800 * GWEI)}
    await rpc.send("anvil_impersonateAccount", stranger)
    for _ in range(blocks):
        await rpc.send("eth_sendTransaction", transfer | tip)
        await fresh_sandbox.mine()
        assert (await fetch_fees(rpc, 10**12)).priority_fee_wei <= PRIORITY_FEE_WEI_IDLE_MAX


@pytest.mark.parametrize(
    "history",
    [None, [], {}, {"baseFeePerGas": []}, saying(1) | {"reward": [[]]}, {"baseFeePerGas": [1]}],
)
async def test_a_fee_history_of_another_shape_counts_as_no_answer(
    faulty_rpc: Rpc, proxy: FaultProxy, history: object
) -> None:
    proxy.fail(HISTORY, change(lambda _: history))
    with pytest.raises(ChainUnavailable):
        await fetch_fees(faulty_rpc, GWEI)


async def test_a_real_node_returns_usable_fees(faulty_rpc: Rpc) -> None:
    fees = await fetch_fees(faulty_rpc, 10**12)
    assert 0 < fees.priority_fee_wei <= fees.max_fee_wei <= 10**12
