"""What gas costs now: the last few blocks, and what the node itself suggests."""

from typing import Final

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.domain.errors.chain import ChainUnavailable, RpcRefused
from foretell.domain.evm.raw_transaction import Fees
from foretell.domain.evm.transaction import opening_fees

BLOCKS_LOOKED_AT: Final = 4
REWARD_PERCENTILE: Final = 50
PRIORITY_FEE_WEI_MIN: Final = 1_000_000
"""A tip that nobody misses, for a chain whose blocks were empty and tell nothing."""

_HISTORY: Final = "eth_feeHistory"
_SUGGESTION: Final = "eth_maxPriorityFeePerGas"


async def fetch_fees(rpc: Rpc, cap_wei: int) -> Fees:
    """Return the fees of a transaction that should be mined soon, never above the cap."""
    answer = await rpc.call(_HISTORY, hex(BLOCKS_LOOKED_AT), "latest", [REWARD_PERCENTILE])
    try:
        base_fee_wei = quantity_of(answer["baseFeePerGas"][-1], _HISTORY)
        rewards_wei = [quantity_of(reward[0], _HISTORY) for reward in answer.get("reward") or []]
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ChainUnavailable(_HISTORY, "the answer has another shape") from error
    suggested_wei = await _suggested_wei(rpc)
    priority_fee_wei = max([PRIORITY_FEE_WEI_MIN, suggested_wei, *rewards_wei])
    return opening_fees(base_fee_wei, priority_fee_wei, cap_wei)


async def _suggested_wei(rpc: Rpc) -> int:
    """Return the tip below which the node takes nothing, as far as it says so."""
    try:
        return quantity_of(await rpc.call(_SUGGESTION), _SUGGESTION)
    except RpcRefused:
        return 0
