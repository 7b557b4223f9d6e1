import pytest
from tests.rigs.sandbox import Sandbox

from foretell.chain.views import ViewCall, call_view, call_views, lacks_block
from foretell.domain.errors.chain import ChainInconsistent, ExecutionReverted, RpcRefused
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

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
