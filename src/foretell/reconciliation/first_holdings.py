"""The collateral and the allowances that wallets had before the first block, which no log shows.

The index reads it from the chain for the wallets that trading asks for. Here it follows from what they hold in
the end, so that a log that the index missed since its reading shows as a difference.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foretell.chain.rpc import Rpc
from foretell.chain.views import BlockTag, ViewCall, at_block, call_views
from foretell.domain.errors.chain import ExecutionReverted
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.reconciliation.chain_figures import ReadContracts
from foretell.reconciliation.holdings import UNITS_MAX

WALLETS_PER_REQUEST_MAX: Final = 100

_BALANCE_OF: Final = contract_function("balanceOf(address)", "(uint256)")
_ALLOWANCE: Final = contract_function("allowance(address,address)", "(uint256)")
_IS_APPROVED: Final = contract_function("isApprovedForAll(address,address)", "(bool)")


class HeldFirst(NamedTuple):
    """The collateral of a wallet, and what each spender may move: of its collateral, or of all its tokens."""

    units: int
    allowances: Mapping[tuple[str, bool], int]


async def fetch_held(
    rpc: Rpc, contracts: ReadContracts, wallets: Sequence[Address], last_hash: Bytes32
) -> dict[Address, HeldFirst]:
    """Return what these wallets hold and allow at the last block.

    A wallet that the contract refuses is left out: its reading was nothing, and its logs add up.
    """
    held: dict[Address, HeldFirst] = {}
    for start in range(0, len(wallets), WALLETS_PER_REQUEST_MAX):
        part = wallets[start : start + WALLETS_PER_REQUEST_MAX]
        held |= await _held(rpc, contracts, part, at_block(last_hash))
    return held


async def _held(
    rpc: Rpc, contracts: ReadContracts, wallets: Sequence[Address], at: BlockTag
) -> dict[Address, HeldFirst]:
    spenders = sorted(map(Address, contracts.spenders))
    cash, tokens = Address(contracts.collateral), Address(contracts.tokens)
    calls = [
        call
        for wallet in wallets
        for call in (
            ViewCall(cash, _BALANCE_OF, (wallet,)),
            *(ViewCall(cash, _ALLOWANCE, (wallet, spender)) for spender in spenders),
            *(ViewCall(tokens, _IS_APPROVED, (wallet, spender)) for spender in spenders),
        )
    ]
    try:
        answers = await call_views(rpc, calls, at)
    except ExecutionReverted:
        if len(wallets) == 1:
            return {}
        middle = len(wallets) // 2
        return {
            **await _held(rpc, contracts, wallets[:middle], at),
            **await _held(rpc, contracts, wallets[middle:], at),
        }
    size = 1 + 2 * len(spenders)
    found = {}
    for place, wallet in enumerate(wallets):
        units, *allowed = answers[place * size : (place + 1) * size]
        of_cash, of_tokens = allowed[: len(spenders)], allowed[len(spenders) :]
        allowances: dict[tuple[str, bool], int] = {}
        for spender, left, is_approved in zip(spenders, of_cash, of_tokens, strict=True):
            allowances[spender, True] = min(left, UNITS_MAX)
            allowances[spender, False] = UNITS_MAX * bool(is_approved)
        found[wallet] = HeldFirst(min(units, UNITS_MAX), allowances)
    return found
