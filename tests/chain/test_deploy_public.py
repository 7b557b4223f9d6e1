from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chain.chains import LATER, head, started
from tests.conftest import NPM_FOLDER
from tests.rigs.chain_snapshots import take_back
from tests.rigs.fault_proxy import (
    BROADCAST,
    Answer,
    Forward,
    Request,
    honest,
    lose_answer,
    lose_request,
    proxying,
)
from tests.rigs.ports import free_port

from foretell.chain.artifacts import own_artifact
from foretell.chain.deploy import deploy, is_intact, load_deployment, store_deployment
from foretell.chain.deploy_plan import (
    CREATE2_FACTORY,
    SALT,
    CreatorWhitelist,
    DeployPlan,
    created,
    draw,
    sandbox_plan,
)
from foretell.chain.devchain import DevChainOptions
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.chain.setup_caller import SetupCaller
from foretell.chain.views import ViewCall, ask_all
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.domain.errors.chain import ChainUnavailable, DeploymentUnfit, SandboxOnly
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

pytestmark = pytest.mark.anyio

PUBLIC_CHAIN_ID = 31337


@pytest.fixture(scope="module")
async def public_chain(
    devchain_options: DevChainOptions, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Rpc]:
    """A chain with nothing on it whose id is not the sandbox's: to us, a chain of value."""
    folder = tmp_path_factory.mktemp("public")
    options = replace(devchain_options, folder=folder, port=free_port(), chain_id=PUBLIC_CHAIN_ID)
    async with started(options) as rpc:
        yield rpc


@pytest.fixture
async def public_rpc(public_chain: Rpc) -> AsyncIterator[Rpc]:
    snapshot = await public_chain.send("evm_snapshot")
    yield public_chain
    await take_back(public_chain, snapshot)


@pytest.fixture
async def public_plan(public_rpc: Rpc) -> DeployPlan:
    """A plan for a chain of value, where a dollar is already."""
    admin_key = SANDBOX_ACCOUNTS[0].private_key
    admin = SANDBOX_ACCOUNTS[0].address
    dollar = created(own_artifact("CollateralToken").init_code("Dollar", "USD", admin))
    caller = SetupCaller(public_rpc, admin_key, PUBLIC_CHAIN_ID)
    assert dollar.init_code is not None
    await caller.call(CREATE2_FACTORY, SALT + dollar.init_code)
    return DeployPlan(
        chain_id=PUBLIC_CHAIN_ID,
        npm_folder=NPM_FOLDER,
        admin_key=admin_key,
        operators=(SANDBOX_ACCOUNTS[1].address,),
        registrars=(SANDBOX_ACCOUNTS[2].address,),
        fee_receiver=SANDBOX_ACCOUNTS[3].address,
        community_pool=SANDBOX_ACCOUNTS[4].address,
        taken={ContractName.COLLATERAL: dollar.address},
        whitelists=(CreatorWhitelist(SANDBOX_ACCOUNTS[5].private_key, (admin,)),),
    )


async def an_earlier_version(rpc: Rpc, plan: DeployPlan, path: Path) -> Deployment:
    """Deploy as a version did that knew neither events nor the optimistic stack.

    Its contracts are other ones than the plan's now: other arguments stand for other sources.
    """
    newest = await deploy(rpc, replace(plan, fee_receiver=SANDBOX_ACCOUNTS[6].address), path)
    named = {name: made for name, made in newest.contracts.items() if name not in LATER}
    earlier = replace(newest, contracts=named, neg_risk_profiles=())
    store_deployment(path, earlier)
    return earlier


async def test_the_sandboxs_keys_are_refused_on_another_chain(public_rpc: Rpc, path: Path) -> None:
    plan = sandbox_plan(NPM_FOLDER)
    with pytest.raises(SandboxOnly, match="31337"):
        await deploy(public_rpc, replace(plan, chain_id=PUBLIC_CHAIN_ID), path)
    assert await head(public_rpc) == 0


async def test_a_chain_of_value_keeps_its_collateral_and_gets_the_rest(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    start = await head(public_rpc)
    deployment = await deploy(public_rpc, public_plan, path)
    assert not deployment.is_sandbox
    assert deployment.start_block == start
    assert deployment.collateral == public_plan.taken[ContractName.COLLATERAL]
    assert await is_intact(public_rpc, deployment)
    reader = Reader(public_rpc, deployment)
    assert await reader.collateral_units(SANDBOX_ACCOUNTS[0].address) == 0
    whitelist = await reader.proposer_whitelist(SANDBOX_ACCOUNTS[5].address)
    assert whitelist is not None
    assert await deploy(public_rpc, public_plan, path) == deployment


async def test_a_chain_of_value_that_is_not_what_the_file_says_is_left_alone(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(public_rpc, public_plan, path)
    await public_rpc.send("anvil_setCode", deployment.exchange, "0x00")
    before = await head(public_rpc)
    with pytest.raises(DeploymentUnfit, match="does not hold"):
        await deploy(public_rpc, public_plan, path)
    assert await head(public_rpc) == before


async def test_a_chain_of_value_whose_file_is_lost_must_be_told_where_it_starts(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path, tmp_path: Path
) -> None:
    deployment = await deploy(public_rpc, public_plan, path)
    another = tmp_path / "another.json"
    with pytest.raises(DeploymentUnfit, match="since which block"):
        await deploy(public_rpc, public_plan, another)
    told = replace(public_plan, start_block=deployment.start_block)
    assert await deploy(public_rpc, told, another) == deployment


async def test_a_chain_of_value_goes_on_from_the_block_where_it_broke_off(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    start = await head(public_rpc)
    async with proxying(public_rpc._url) as proxy, Rpc(proxy.url) as faulty:
        proxy.fail(BROADCAST, honest, honest, lose_answer)
        with pytest.raises(ChainUnavailable):
            await deploy(faulty, public_plan, path)
    assert (await deploy(public_rpc, public_plan, path)).start_block == start


async def test_a_collateral_that_is_not_there_is_refused(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    nowhere = {ContractName.COLLATERAL: Address("0x" + "0d" * 20)}
    with pytest.raises(DeploymentUnfit, match="no collateral"):
        await deploy(public_rpc, replace(public_plan, taken=nowhere), path)


async def test_a_file_of_another_chain_is_left_alone(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(public_rpc, public_plan, path)
    other = replace(deployment, chain_id=1)
    store_deployment(path, other)
    with pytest.raises(DeploymentUnfit, match="chain 1"):
        await deploy(public_rpc, public_plan, path)
    assert load_deployment(path) == other


async def test_a_deployment_that_broke_off_waits_for_what_it_has_sent_already(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    async def then_seal(_request: Request, forward: Forward) -> Answer | None:
        answer = await forward()
        await public_rpc.send("evm_mine")
        await public_rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own
        return answer

    await public_rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    async with proxying(public_rpc._url) as proxy, Rpc(proxy.url) as faulty:
        proxy.fail(BROADCAST, honest, honest, lose_answer)
        with pytest.raises(ChainUnavailable):
            await deploy(faulty, public_plan, path)
        proxy.fail("eth_getTransactionCount", honest, then_seal)
        deployment = await deploy(faulty, public_plan, path)
    assert await is_intact(public_rpc, deployment)


async def test_a_file_of_an_earlier_version_keeps_what_it_names_and_gets_the_rest(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    earlier = await an_earlier_version(public_rpc, public_plan, path)
    assert set(earlier.missing) == LATER
    assert earlier.exchange != draw(public_plan).contracts[ContractName.EXCHANGE].address
    completed = await deploy(public_rpc, public_plan, path)
    assert completed.missing == ()
    assert load_deployment(path) == completed
    assert {name: completed.contracts[name] for name in earlier.contracts} == earlier.contracts
    assert (completed.start_block, completed.profiles) == (earlier.start_block, earlier.profiles)
    assert await is_intact(public_rpc, completed)
    splitter = contract_function("getSplitter()", "(address)")
    assert await ask_all(public_rpc, [ViewCall(completed.neg_risk_exchange, splitter)]) == [
        completed.address(ContractName.NEG_RISK_ADAPTER)
    ]
    head_before = await head(public_rpc)
    assert await deploy(public_rpc, public_plan, path) == completed
    assert await head(public_rpc) == head_before


async def test_a_file_of_an_earlier_version_can_be_used_while_it_is_completed(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    earlier = await an_earlier_version(public_rpc, public_plan, path)
    async with proxying(public_rpc._url) as proxy, Rpc(proxy.url) as faulty:
        proxy.fail(BROADCAST, lose_request)
        with pytest.raises(ChainUnavailable):
            await deploy(faulty, public_plan, path)
    assert load_deployment(path) == earlier
    assert (await deploy(public_rpc, public_plan, path)).missing == ()


async def test_a_file_of_an_earlier_version_is_not_completed_for_another_collateral(
    public_rpc: Rpc, public_plan: DeployPlan, path: Path
) -> None:
    earlier = await an_earlier_version(public_rpc, public_plan, path)
    other = replace(public_plan, taken={ContractName.COLLATERAL: earlier.conditional_tokens})
    with pytest.raises(DeploymentUnfit, match=r"has collateral at .* is wanted"):
        await deploy(public_rpc, other, path)
    assert load_deployment(path) == earlier
