"""Current gas fees, from the last few blocks and the node's own suggestion."""

from collections.abc import Callable
from typing import Final

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.domain.errors.chain import ChainUnavailable, RpcRefused
from foretell.domain.evm.raw_transaction import Fees
from foretell.domain.evm.transaction import opening_fees

HISTORY_BLOCKS: Final = 4
REWARD_PERCENTILE: Final = 50
PRIORITY_FEE_WEI_MIN: Final = 1_000_000
"""The lowest tip, for a chain with empty blocks, which have no rewards to go by."""

FEES_KEPT_MS: Final = 2_000
"""The age up to which fees open transactions: their headroom covers six full blocks."""

_HISTORY: Final = "eth_feeHistory"
_SUGGESTION: Final = "eth_maxPriorityFeePerGas"


async def fetch_fees(rpc: Rpc, cap_wei: int) -> Fees:
    """Return fees that get a transaction into a block soon, never above the cap."""
    answer = await rpc.call(_HISTORY, hex(HISTORY_BLOCKS), "latest", [REWARD_PERCENTILE])
    try:
        base_fee_wei = quantity_of(answer["baseFeePerGas"][-1], _HISTORY)
        rewards_wei = [quantity_of(reward[0], _HISTORY) for reward in answer.get("reward") or []]
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ChainUnavailable(_HISTORY, "the answer has another shape") from error
    suggested_wei = await _suggested_wei(rpc)
    priority_fee_wei = max([PRIORITY_FEE_WEI_MIN, suggested_wei, *rewards_wei])
    return opening_fees(base_fee_wei, priority_fee_wei, cap_wei)


class OpeningFees:
    """The fees of first attempts, fetched once in `FEES_KEPT_MS`."""

    def __init__(self, rpc: Rpc, cap_wei: int, now_ms: Callable[[], int]) -> None:
        self._rpc = rpc
        self._cap_wei = cap_wei
        self._now_ms = now_ms
        self._kept: Fees | None = None
        self._fetched_at_ms = 0

    async def current(self) -> Fees:
        """Return fees that are not too old."""
        now_ms = self._now_ms()
        if self._kept is None or not 0 <= now_ms - self._fetched_at_ms < FEES_KEPT_MS:
            self._kept = await fetch_fees(self._rpc, self._cap_wei)
            self._fetched_at_ms = now_ms
        return self._kept


async def _suggested_wei(rpc: Rpc) -> int:
    """Return the tip that the node suggests, or 0 when it suggests none."""
    try:
        return quantity_of(await rpc.call(_SUGGESTION), _SUGGESTION)
    except RpcRefused:
        return 0
