from typing import Any

import pytest
from tests.rigs.fault_proxy import FaultProxy, change, refuse

from foretell.chain.fees import PRIORITY_FEE_WEI_MIN, fetch_fees
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.evm.raw_transaction import Fees

pytestmark = pytest.mark.anyio

HISTORY = "eth_feeHistory"
SUGGESTION = "eth_maxPriorityFeePerGas"
GWEI = 10**9


def saying(base_fee_wei: int, *rewards_wei: int) -> dict[str, Any]:
    return {
        "baseFeePerGas": ["0x1", hex(base_fee_wei)],
        "reward": [[hex(reward)] for reward in rewards_wei],
    }


@pytest.mark.parametrize(
    ("history", "suggested", "fees"),
    [
        (saying(10 * GWEI, GWEI, 3 * GWEI), "0x1", Fees(23 * GWEI, 3 * GWEI)),
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
