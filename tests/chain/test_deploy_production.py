from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chain.chains import LATER, head, started, url_of
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

from foretell.bench.rigs.ports import free_port
from foretell.chain.artifacts import own_artifact
from foretell.chain.deploy import deploy, load_deployment, store_deployment
from foretell.chain.deploy_plan import CreatorWhitelist, DeployPlan
from foretell.chain.deployed_code import is_intact
from foretell.chain.devchain import DevChainOptions
from foretell.chain.planned_contracts import (
    CREATE2_FACTORY,
    SALT,
    create2_contract,
    plan_contracts,
)
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox.plan import sandbox_plan
from foretell.chain.setup_caller import SetupCaller
from foretell.chain.views import ViewCall, call_views
from foretell.domain.contracts.deployment import PROXY_CONTRACTS, ContractName, Deployment
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.domain.errors.chain import ChainUnavailable, InvalidDeployment, SandboxOnly
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

pytestmark = pytest.mark.anyio

PRODUCTION_CHAIN_ID = 31337


@pytest.fixture(scope="module")
def production_options(
    devchain_options: DevChainOptions, tmp_path_factory: pytest.TempPathFactory
) -> DevChainOptions:
    folder = tmp_path_factory.mktemp("production")
    chain = replace(devchain_options, chain_id=PRODUCTION_CHAIN_ID)
    return replace(chain, folder=folder, port=free_port())


@pytest.fixture(scope="module")
async def production_chain(production_options: DevChainOptions) -> AsyncIterator[Rpc]:
    """A chain without contracts, with another id than the sandbox's."""
    async with started(production_options) as rpc:
        yield rpc


@pytest.fixture
async def production_rpc(production_chain: Rpc) -> AsyncIterator[Rpc]:
    snapshot = await production_chain.send("evm_snapshot")
    yield production_chain
    await take_back(production_chain, snapshot)


@pytest.fixture
async def production_plan(production_rpc: Rpc) -> DeployPlan:
    """A plan for a chain that has its collateral already."""
    admin_key = SANDBOX_ACCOUNTS[0].private_key
    admin = SANDBOX_ACCOUNTS[0].address
    dollar = create2_contract(own_artifact("CollateralToken").init_code("Dollar", "USD", admin))
    caller = SetupCaller(production_rpc, admin_key, PRODUCTION_CHAIN_ID)
    assert dollar.init_code is not None
    await caller.call(CREATE2_FACTORY, SALT + dollar.init_code)
    return DeployPlan(
        chain_id=PRODUCTION_CHAIN_ID,
        npm_folder=NPM_FOLDER,
        admin_key=admin_key,
        operators=(SANDBOX_ACCOUNTS[1].address,),
        registrars=(SANDBOX_ACCOUNTS[2].address,),
        fee_receiver=SANDBOX_ACCOUNTS[3].address,
        community_pool=SANDBOX_ACCOUNTS[4].address,
        existing={ContractName.COLLATERAL: dollar.address},
        whitelists=(CreatorWhitelist(SANDBOX_ACCOUNTS[5].private_key, (admin,)),),
    )


async def an_earlier_version(rpc: Rpc, plan: DeployPlan, path: Path) -> Deployment:
    """Deploy as a version without events and the optimistic stack did.

    Other constructor arguments stand for other sources, so its contracts differ from the plan's.
    """
    newest = await deploy(rpc, replace(plan, fee_receiver=SANDBOX_ACCOUNTS[6].address), path)
    lacked = LATER | PROXY_CONTRACTS
    named = {name: made for name, made in newest.contracts.items() if name not in lacked}
    earlier = replace(newest, contracts=named, neg_risk_profiles=())
    store_deployment(path, earlier)
    return earlier


async def test_the_sandboxs_keys_are_refused_on_another_chain(
    production_rpc: Rpc, path: Path
) -> None:
    plan = sandbox_plan(NPM_FOLDER)
    with pytest.raises(SandboxOnly, match="31337"):
        await deploy(production_rpc, replace(plan, chain_id=PRODUCTION_CHAIN_ID), path)
    assert await head(production_rpc) == 0


async def test_a_production_chain_keeps_its_collateral_and_gets_the_other_contracts(
    production_rpc: Rpc, production_plan: DeployPlan, path: Path
) -> None:
    start = await head(production_rpc)
    deployment = await deploy(production_rpc, production_plan, path)
    assert not deployment.is_sandbox
    assert deployment.start_block == start
    assert deployment.collateral == production_plan.existing[ContractName.COLLATERAL]
    assert await is_intact(production_rpc, deployment)
    reader = Reader(production_rpc, deployment)
    assert await reader.collateral_units(SANDBOX_ACCOUNTS[0].address) == 0
    whitelist = await reader.proposer_whitelist(SANDBOX_ACCOUNTS[5].address)
    assert whitelist is not None
    assert await deploy(production_rpc, production_plan, path) == deployment


async def test_a_production_chain_that_differs_from_the_file_is_not_changed(
    production_rpc: Rpc, production_plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(production_rpc, production_plan, path)
    await production_rpc.send("anvil_setCode", deployment.exchange, "0x00")
    before = await head(production_rpc)
    with pytest.raises(InvalidDeployment, match="differ from"):
        await deploy(production_rpc, production_plan, path)
    assert await head(production_rpc) == before


async def test_a_production_chain_with_a_lost_file_needs_its_start_block(
    production_rpc: Rpc, production_plan: DeployPlan, path: Path, tmp_path: Path
) -> None:
    deployment = await deploy(production_rpc, production_plan, path)
    another = tmp_path / "another.json"
    with pytest.raises(InvalidDeployment, match="was deployed before"):
        await deploy(production_rpc, production_plan, another)
    with_start = replace(production_plan, start_block=deployment.start_block)
    assert await deploy(production_rpc, with_start, another) == deployment


async def test_an_interrupted_production_deployment_keeps_its_start_block(
    production_rpc: Rpc,
    production_options: DevChainOptions,
    production_plan: DeployPlan,
    path: Path,
) -> None:
    start = await head(production_rpc)
    async with proxying(url_of(production_options)) as proxy, Rpc(proxy.url) as faulty:
        proxy.fail(BROADCAST, honest, honest, lose_answer)
        with pytest.raises(ChainUnavailable):
            await deploy(faulty, production_plan, path)
    assert (await deploy(production_rpc, production_plan, path)).start_block == start


async def test_a_collateral_without_code_is_refused(
    production_rpc: Rpc, production_plan: DeployPlan, path: Path
) -> None:
    nowhere = {ContractName.COLLATERAL: Address("0x" + "0d" * 20)}
    with pytest.raises(InvalidDeployment, match=r"no contract at .*, the address of collateral"):
        await deploy(production_rpc, replace(production_plan, existing=nowhere), path)


async def test_a_file_of_another_chain_is_not_changed(
    production_rpc: Rpc, production_plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(production_rpc, production_plan, path)
    other = replace(deployment, chain_id=1)
    store_deployment(path, other)
    with pytest.raises(InvalidDeployment, match="chain 1"):
        await deploy(production_rpc, production_plan, path)
    assert load_deployment(path) == other


async def test_an_interrupted_deployment_waits_for_its_pending_transactions(
    production_rpc: Rpc,
    production_options: DevChainOptions,
    production_plan: DeployPlan,
    path: Path,
) -> None:
    async def then_seal(_request: Request, forward: Forward) -> Answer | None:
        answer = await forward()
        await production_rpc.send("evm_mine")
        await production_rpc.send("evm_setAutomine", True)  # noqa: FBT003 - as the protocol has it
        return answer

    await production_rpc.send("evm_setAutomine", False)  # noqa: FBT003 - as the protocol has it
    async with proxying(url_of(production_options)) as proxy, Rpc(proxy.url) as faulty:
        proxy.fail(BROADCAST, honest, honest, lose_answer)
        with pytest.raises(ChainUnavailable):
            await deploy(faulty, production_plan, path)
        proxy.fail("eth_getTransactionCount", honest, then_seal)
        deployment = await deploy(faulty, production_plan, path)
    assert await is_intact(production_rpc, deployment)


async def test_a_file_of_an_earlier_version_keeps_its_contracts_and_gets_the_missing_ones(
    production_rpc: Rpc, production_plan: DeployPlan, path: Path
) -> None:
    earlier = await an_earlier_version(production_rpc, production_plan, path)
    assert set(earlier.missing) == LATER
    assert (
        earlier.exchange != plan_contracts(production_plan).contracts[ContractName.EXCHANGE].address
    )
    completed = await deploy(production_rpc, production_plan, path)
    assert completed.missing == ()
    assert completed.proxy_wallet_factory is None, "the exchange does not know proxy wallets"
    assert load_deployment(path) == completed
    assert {name: completed.contracts[name] for name in earlier.contracts} == earlier.contracts
    assert (completed.start_block, completed.profiles) == (earlier.start_block, earlier.profiles)
    assert await is_intact(production_rpc, completed)
    splitter = contract_function("getSplitter()", "(address)")
    assert await call_views(production_rpc, [ViewCall(completed.neg_risk_exchange, splitter)]) == [
        completed.address(ContractName.NEG_RISK_ADAPTER)
    ]
    head_before = await head(production_rpc)
    assert await deploy(production_rpc, production_plan, path) == completed
    assert await head(production_rpc) == head_before


async def test_a_file_of_an_earlier_version_can_be_used_while_it_is_completed(
    production_rpc: Rpc,
    production_options: DevChainOptions,
    production_plan: DeployPlan,
    path: Path,
) -> None:
    earlier = await an_earlier_version(production_rpc, production_plan, path)
    async with proxying(url_of(production_options)) as proxy, Rpc(proxy.url) as faulty:
        proxy.fail(BROADCAST, lose_request)
        with pytest.raises(ChainUnavailable):
            await deploy(faulty, production_plan, path)
    assert load_deployment(path) == earlier
    assert (await deploy(production_rpc, production_plan, path)).missing == ()


async def test_a_file_of_an_earlier_version_is_not_completed_for_another_collateral(
    production_rpc: Rpc, production_plan: DeployPlan, path: Path
) -> None:
    earlier = await an_earlier_version(production_rpc, production_plan, path)
    other = replace(production_plan, existing={ContractName.COLLATERAL: earlier.conditional_tokens})
    with pytest.raises(InvalidDeployment, match=r"has collateral at .* is required"):
        await deploy(production_rpc, other, path)
    assert load_deployment(path) == earlier
