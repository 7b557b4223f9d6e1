"""Current gas fees, from the last blocks and the node's own suggestion, neither of which is believed alone.

A stranger sets the rewards of an otherwise empty block with one small transaction, and nodes derive their
suggestion from the same few blocks. The tip is therefore what most of many blocks paid, where blocks that are nearly
empty count as paying none, and what one of the two sources says is limited by the other. A chain that became busy still
gets its price: the base fee, which nobody moves with a few blocks, raises the limit, and fees of a transaction that
waits rise.
"""

import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.domain.errors.chain import ChainUnavailable, RpcRefused
from foretell.domain.evm.raw_transaction import Fees
from foretell.domain.evm.transaction import opening_fees

HISTORY_BLOCKS: Final = 20
"""A stranger has to pay in more than half of these to set what most of them paid."""
REWARD_PERCENTILE: Final = 50
NEARLY_EMPTY_RATIO: Final = 0.01
"""A block that used less of its gas than this had room at any tip: its rewards are what someone chose to pay."""
PRIORITY_FEE_WEI_MIN: Final = 1_000_000
"""The lowest tip, for a chain with empty blocks, which have no rewards to go by."""
PRIORITY_FEE_WEI_IDLE_MAX: Final = 30_000_000_000
"""The highest tip on one source's word alone, unless the base fee is higher: nodes of Polygon refuse less than 25 gwei."""
PRIORITY_FEE_TIMES_MAX: Final = 2
"""The most that the higher of the two sources counts, as a multiple of the lower one."""

FEES_KEPT_MS: Final = 2_000
"""The age up to which fees open transactions: their headroom covers six full blocks."""

_HISTORY: Final = "eth_feeHistory"
_SUGGESTION: Final = "eth_maxPriorityFeePerGas"


async def fetch_fees(rpc: Rpc, cap_wei: int) -> Fees:
    """Return fees that get a transaction into a block soon, never above the cap."""
    answer = await rpc.call(_HISTORY, hex(HISTORY_BLOCKS), "latest", [REWARD_PERCENTILE])
    try:
        base_fee_wei = quantity_of(answer["baseFeePerGas"][-1], _HISTORY)
        rewards_wei = _rewards_wei(answer)
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ChainUnavailable(_HISTORY, "the answer has another shape") from error
    suggested_wei = await _suggested_wei(rpc)
    return opening_fees(base_fee_wei, _tip_wei(base_fee_wei, rewards_wei, suggested_wei), cap_wei)


def _rewards_wei(answer: Any) -> list[int]:
    """Return the median tip of each block, which is 0 in a block that is nearly empty."""
    ratios = itertools.chain(answer.get("gasUsedRatio") or [], itertools.repeat(1))
    return [
        0 if ratio < NEARLY_EMPTY_RATIO else quantity_of(reward[0], _HISTORY)
        for reward, ratio in zip(answer.get("reward") or [], ratios, strict=False)
    ]


def _tip_wei(base_fee_wei: int, rewards_wei: Sequence[int], suggested_wei: int | None) -> int:
    """Return the higher of what most blocks paid and what the node suggests, limited by the other and the base fee.

    One source alone at most doubles the price, or makes the tip that of an idle chain.
    """
    paid_wei = statistics.median_low(rewards_wei) if rewards_wei else 0
    if suggested_wei is None:
        return max(paid_wei, PRIORITY_FEE_WEI_MIN)
    lower, higher = sorted([paid_wei, suggested_wei])
    limit = max(PRIORITY_FEE_TIMES_MAX * lower, base_fee_wei, PRIORITY_FEE_WEI_IDLE_MAX)
    return max(min(higher, limit), PRIORITY_FEE_WEI_MIN)


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


async def _suggested_wei(rpc: Rpc) -> int | None:
    """Return the tip that the node suggests, or None when it suggests none."""
    try:
        return quantity_of(await rpc.call(_SUGGESTION), _SUGGESTION)
    except RpcRefused:
        return None
