import pytest
from tests.conftest import NPM_FOLDER
from tests.rigs.fault_proxy import FaultProxy, change
from tests.rigs.sandbox import Sandbox

from foretell.chain import artifacts
from foretell.chain.artifacts import npm_artifact, own_artifact
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox.placement import check_sandbox_node, place_contracts
from foretell.chain.setup_caller import SetupCaller
from foretell.chain.views import ViewCall, call_view
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

pytestmark = pytest.mark.anyio

PLACE = Address("0x" + "ace0" * 10)
OTHER_PLACE = Address("0x" + "ace1" * 10)


@pytest.fixture
def caller(fresh_sandbox: Sandbox) -> SetupCaller:
    return fresh_sandbox.caller(fresh_sandbox.account(AccountRole.ADMIN))


async def test_a_constructor_runs_in_place_with_the_given_address(
    caller: SetupCaller, fresh_sandbox: Sandbox
) -> None:
    rpc = fresh_sandbox.rpc
    token = own_artifact("CollateralToken").init_code("Name", "SYM", caller.address)
    bundler = npm_artifact(NPM_FOLDER, artifacts.MULTI_SEND).init_code()
    await place_contracts(rpc, caller, {PLACE: token, OTHER_PLACE: bundler})
    symbol = contract_function("symbol()", "(string)")
    minter = contract_function("minter()", "(address)")
    assert await call_view(rpc, ViewCall(PLACE, symbol)) == "SYM"
    assert await call_view(rpc, ViewCall(PLACE, minter)) == caller.address
    # The bundler keeps its own address in its code.
    code = await fresh_sandbox.reader.code(OTHER_PLACE)
    assert bytes.fromhex(OTHER_PLACE[2:]) in code


async def test_a_contract_that_is_placed_already_is_not_replaced(
    caller: SetupCaller, fresh_sandbox: Sandbox
) -> None:
    first = own_artifact("CollateralToken").init_code("Name", "ONE", caller.address)
    second = own_artifact("CollateralToken").init_code("Name", "TWO", caller.address)
    await place_contracts(fresh_sandbox.rpc, caller, {PLACE: first})
    await place_contracts(fresh_sandbox.rpc, caller, {PLACE: second})
    symbol = contract_function("symbol()", "(string)")
    assert await call_view(fresh_sandbox.rpc, ViewCall(PLACE, symbol)) == "ONE"


async def test_nothing_is_placed_on_a_node_that_is_not_a_sandbox(
    caller: SetupCaller, faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    await check_sandbox_node(faulty_rpc)
    proxy.fail_always("web3_clientVersion", change(lambda _: "erigon/3.0"))
    with pytest.raises(SandboxOnly, match="erigon"):
        await place_contracts(faulty_rpc, caller, {PLACE: b"\x00"})
    assert proxy.asked["anvil_setCode"] == 0
