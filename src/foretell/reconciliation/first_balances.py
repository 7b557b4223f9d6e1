"""The collateral that wallets had before the first block, which no log shows.

The index reads it from the chain for the wallets that trading asks for. Here it follows from what they hold in
the end, so that a log that the index missed since its reading shows as a difference.
"""

from collections.abc import Sequence
from typing import Final

from foretell.chain.rpc import Rpc
from foretell.chain.views import BlockTag, ViewCall, at_block, call_views
from foretell.domain.errors.chain import ExecutionReverted
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.reconciliation.holdings import UNITS_MAX

WALLETS_PER_REQUEST_MAX: Final = 500

_BALANCE_OF: Final = contract_function("balanceOf(address)", "(uint256)")


async def fetch_collateral(
    rpc: Rpc, collateral: Address, wallets: Sequence[Address], last_hash: Bytes32
) -> dict[Address, int]:
    """Return the collateral of these wallets at the last block.

    A wallet that the contract refuses is left out: its reading was nothing, and its logs add up.
    """
    held: dict[Address, int] = {}
    for start in range(0, len(wallets), WALLETS_PER_REQUEST_MAX):
        part = wallets[start : start + WALLETS_PER_REQUEST_MAX]
        held |= await _held(rpc, collateral, part, at_block(last_hash))
    return held


async def _held(
    rpc: Rpc, collateral: Address, wallets: Sequence[Address], at: BlockTag
) -> dict[Address, int]:
    calls = [ViewCall(collateral, _BALANCE_OF, (wallet,)) for wallet in wallets]
    try:
        units = await call_views(rpc, calls, at)
    except ExecutionReverted:
        if len(wallets) == 1:
            return {}
        middle = len(wallets) // 2
        return {
            **await _held(rpc, collateral, wallets[:middle], at),
            **await _held(rpc, collateral, wallets[middle:], at),
        }
    return {wallet: min(each, UNITS_MAX) for wallet, each in zip(wallets, units, strict=True)}
