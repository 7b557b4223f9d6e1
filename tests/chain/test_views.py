import itertools
from collections.abc import Mapping
from typing import Final

import pytest
from tests.relayer.strange_safes import (
    LOOPS,
    NONCE,
    OWNERS,
    THRESHOLD,
    answer,
    answer_list,
    by_selector,
    make_strange,
)
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import an_address

from foretell.chain.views import (
    LISTED_ADDRESSES_MAX,
    ViewCall,
    bounded_views,
    call_view,
    call_views,
    lacks_block,
)
from foretell.chain.wallet_states import WalletStates
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ChainInconsistent, ExecutionReverted, RpcRefused
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address, address_bytes, keccak256

pytestmark = pytest.mark.anyio

DECIMALS = contract_function("decimals()", "(uint8)")
SYMBOL = contract_function("symbol()", "(string)")
EMPTY_ACCOUNT = Address("0x" + "99" * 20)


async def test_views_return_their_results_in_order(sandbox: Sandbox) -> None:
    collateral = sandbox.deployment.collateral
    views = [ViewCall(collateral, DECIMALS), ViewCall(collateral, SYMBOL)]
    assert await call_views(sandbox.rpc, views) == [6, "FSD"]
    assert await call_view(sandbox.rpc, views[0]) == 6
    assert await call_views(sandbox.rpc, []) == []


async def test_a_view_of_several_values_returns_a_tuple(sandbox: Sandbox) -> None:
    registry = contract_function("registry(uint256)", "(uint256,bytes32)")
    answer = await call_view(sandbox.rpc, ViewCall(sandbox.deployment.exchange, registry, (5,)))
    assert answer == (0, bytes(32))


async def test_an_account_without_code_is_not_the_contract(sandbox: Sandbox) -> None:
    with pytest.raises(ChainInconsistent, match="decimals"):
        await call_view(sandbox.rpc, ViewCall(EMPTY_ACCOUNT, DECIMALS))


async def test_a_view_that_reverts_is_a_revert(sandbox: Sandbox) -> None:
    separator = contract_function("domainSeparator(uint256)", "(bytes32)")
    with pytest.raises(ExecutionReverted):
        await call_view(sandbox.rpc, ViewCall(sandbox.deployment.exchange, separator, (99,)))


@pytest.mark.parametrize(
    ("code", "message", "is_missing"),
    [
        (-32001, "Resource not found", True),
        (-32000, "header for hash not found", True),
        (-32000, "hash 0x12 is not currently canonical", True),
        (-32000, "block 0x12 not found", True),
        (-32000, "unknown block", True),
        (-32602, "BlockOutOfRangeError: block height is 9 but requested was 3", True),
        (-32000, "missing trie node 12 (path ) state 0x12 is not available", True),
        (-32000, "historical state 12 is not available", True),
        (-32000, "max fee per gas less than block base fee", False),
        (-32602, "invalid argument 1", False),
    ],
)
def test_a_node_without_the_block_is_not_one_that_refuses_the_call(
    code: int, message: str, *, is_missing: bool
) -> None:
    assert lacks_block(RpcRefused("eth_call", code, message)) is is_missing
    assert not lacks_block(ExecutionReverted("eth_call", code, message))


STRANGE: Final = an_address("strange")
NONCE_VIEW: Final = ViewCall(STRANGE, contract_function("nonce()", "(uint256)"))
OWNERS_VIEW: Final = ViewCall(STRANGE, contract_function("getOwners()", "(address[])"))
ADD_PROPOSERS: Final = contract_function("addProposers(address[])")
CREATOR: Final = contract_function("creator()").selector
SENTINEL: Final = 1
"""The first and the last entry of a Safe's list of owners."""

LISTS: Final[Mapping[str, bytes]] = {
    "one too many": answer_list(LISTED_ADDRESSES_MAX + 1),
    "very many": answer_list(110_000),
    "runs on": LOOPS,
    "is no code": b"\xfe",
    "says nothing": b"\0",
}


def a_safe(owners: bytes) -> bytes:
    branches = {NONCE: answer(b"\x07"), THRESHOLD: answer(b"\x01"), OWNERS: owners}
    return by_selector(branches, LOOPS)


@pytest.mark.parametrize("name", LISTS)
async def test_guard_a_safe_of_too_many_owners_or_that_runs_on_is_none(
    fresh_sandbox: Sandbox, name: str
) -> None:
    await make_strange(fresh_sandbox, STRANGE, a_safe(LISTS[name]))
    assert await fresh_sandbox.reader.safe(STRANGE) is None
    assert await fresh_sandbox.reader.wallet_nonce(STRANGE) == 7
    state = await WalletStates(fresh_sandbox.rpc, fresh_sandbox.deployment).read(STRANGE)
    assert (state.key.owners, state.key.threshold) == ((), 0)


async def test_one_answer_that_is_too_large_leaves_none_of_its_batch(
    fresh_sandbox: Sandbox,
) -> None:
    await make_strange(fresh_sandbox, STRANGE, a_safe(answer_list(1_000)))
    views = [NONCE_VIEW, OWNERS_VIEW]
    assert await bounded_views(fresh_sandbox.rpc, views) == [None, None]
    await make_strange(fresh_sandbox, STRANGE, a_safe(LOOPS))
    assert await bounded_views(fresh_sandbox.rpc, views) == [7, None]


async def test_a_node_without_the_block_refuses_a_bounded_view(sandbox: Sandbox) -> None:
    with pytest.raises(RpcRefused):
        await bounded_views(sandbox.rpc, [NONCE_VIEW], "0xffffff")


async def test_a_safe_of_as_many_owners_as_allowed_is_read_within_the_gas(
    fresh_sandbox: Sandbox,
) -> None:
    safe = await fresh_sandbox.make_safe(fresh_sandbox.trader())
    owners = [an_address(f"owner {number}") for number in range(LISTED_ADDRESSES_MAX)]
    await _set_owners(fresh_sandbox, safe, owners)
    state = await fresh_sandbox.reader.safe(safe)
    assert state is not None
    assert state.owners == tuple(owners)
    read = await WalletStates(fresh_sandbox.rpc, fresh_sandbox.deployment).read(safe)
    assert read.key.owners == tuple(sorted(owners))


async def _set_owners(sandbox: Sandbox, safe: Address, owners: list[Address]) -> None:
    """Write the list of a Safe's owners, of which each names the next, and their number."""
    words = [
        SENTINEL.to_bytes(32, "big"),
        *(address_bytes(owner).rjust(32, b"\0") for owner in owners),
        SENTINEL.to_bytes(32, "big"),
    ]
    slot = {word: "0x" + keccak256(word + (2).to_bytes(32, "big")).hex() for word in words}
    writes = [
        ("anvil_setStorageAt", [safe, slot[word], "0x" + following.hex()])
        for word, following in itertools.pairwise(words)
    ]
    writes.append(("anvil_setStorageAt", [safe, f"0x{3:064x}", f"0x{len(owners):064x}"]))
    await sandbox.rpc.batch(writes)


@pytest.mark.parametrize("name", LISTS)
async def test_guard_a_creators_whitelist_of_too_many_proposers_or_that_runs_on_is_none(
    fresh_sandbox: Sandbox, name: str
) -> None:
    creator = fresh_sandbox.account(AccountRole.CREATOR).address
    whitelist = await fresh_sandbox.reader.proposer_whitelist(creator)
    assert whitelist is not None
    code = by_selector({CREATOR: answer(address_bytes(creator))}, LISTS[name])
    await make_strange(fresh_sandbox, whitelist.address, code)
    assert await fresh_sandbox.reader.proposer_whitelist(creator) is None


async def test_a_full_whitelist_is_read_within_the_gas(fresh_sandbox: Sandbox) -> None:
    creator = fresh_sandbox.account(AccountRole.CREATOR)
    whitelist = await fresh_sandbox.reader.proposer_whitelist(creator.address)
    assert whitelist is not None
    count = LISTED_ADDRESSES_MAX - len(whitelist.proposers)
    added = [an_address(f"proposer {number}") for number in range(count)]
    await fresh_sandbox.call(creator, whitelist.address, ADD_PROPOSERS.encode(added))
    full = await fresh_sandbox.reader.proposer_whitelist(creator.address)
    assert full is not None
    assert len(full.proposers) == LISTED_ADDRESSES_MAX
