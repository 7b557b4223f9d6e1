import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chain.chains import LATER, head, started
from tests.rigs.fault_proxy import (
    BROADCAST,
    Fault,
    FaultProxy,
    change,
    honest,
    lose_answer,
    lose_request,
    refuse,
)
from tests.rigs.sandbox import Sandbox

from foretell.bench.rigs.ports import free_port
from foretell.chain.deploy import deploy, load_deployment, store_deployment
from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.deployed_code import is_intact
from foretell.chain.devchain import DevChainOptions
from foretell.chain.planned_contracts import CREATE2_FACTORY
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.chain.views import ViewCall, call_views
from foretell.domain.contracts.deployment import ContractName, check_usable
from foretell.domain.contracts.sandbox_accounts import (
    FAUCET_UNITS,
    SANDBOX_ACCOUNTS,
    TRADER_UNITS,
    AccountRole,
    sandbox_account,
)
from foretell.domain.errors.chain import (
    ChainUnavailable,
    InvalidDeployment,
    RpcRefused,
    SandboxOnly,
    WrongChain,
)
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

pytestmark = pytest.mark.anyio


def account(role: AccountRole) -> Address:
    return sandbox_account(role, 80002).address


async def test_a_new_chain_gets_every_contract_and_the_file_has_their_addresses(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    assert deployment.is_complete
    assert deployment.is_sandbox
    assert deployment.start_block == 0
    assert set(deployment.contracts) == set(ContractName)
    assert load_deployment(path) == deployment
    assert await is_intact(bare_rpc, deployment)


async def test_the_neg_risk_exchanges_domains_are_those_that_we_verify_orders_under(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    separator = contract_function("domainSeparator(uint256)", "(bytes32)")
    on_chain = await call_views(
        bare_rpc,
        [
            ViewCall(deployment.neg_risk_exchange, separator, (profile,))
            for profile in range(len(deployment.neg_risk_profiles))
        ],
    )
    assert tuple(on_chain) == deployment.neg_risk_separators().by_profile


async def test_the_exchanges_domains_are_those_that_we_verify_orders_under(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    separator = contract_function("domainSeparator(uint256)", "(bytes32)")
    on_chain = await call_views(
        bare_rpc,
        [
            ViewCall(deployment.exchange, separator, (profile,))
            for profile in range(len(deployment.profiles))
        ],
    )
    assert tuple(on_chain) == deployment.separators().by_profile


async def test_a_placed_factory_derives_from_its_own_address(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    compute = contract_function("computeProxyAddress(address)", "(address)")
    owners = [each.address for each in SANDBOX_ACCOUNTS]
    computed = await call_views(
        bare_rpc, [ViewCall(deployment.safe_factory, compute, (owner,)) for owner in owners]
    )
    assert computed == [deployment.safe_of(owner) for owner in owners]
    assert deployment.safe_of(account(AccountRole.FAUCET)) == (
        "0xd93b25cb943d14d0d34fbaf01fc93a0f8b5f6e47"
    )


async def test_deploying_again_changes_nothing(bare_rpc: Rpc, plan: DeployPlan, path: Path) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    before = await head(bare_rpc)
    assert await deploy(bare_rpc, plan, path) == deployment
    assert await head(bare_rpc) == before


async def test_without_its_file_a_deployment_is_found_again_and_nothing_is_created_twice(
    bare_rpc: Rpc, plan: DeployPlan, path: Path, tmp_path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    before = await head(bare_rpc)
    assert await deploy(bare_rpc, plan, tmp_path / "another.json") == deployment
    assert await head(bare_rpc) == before


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (0, lose_request),
        (1, lose_answer),
        (4, lose_request),
        (8, lose_answer),
        (12, lose_request),
        (14, lose_answer),
        (18, lose_request),
        (22, lose_answer),
    ],
)
async def test_an_interrupted_deployment_continues(
    bare_rpc: Rpc, bare_proxy: FaultProxy, plan: DeployPlan, path: Path, sent: int, fault: Fault
) -> None:
    bare_proxy.fail(BROADCAST, *[honest] * sent, fault)
    async with Rpc(bare_proxy.url) as faulty:
        with pytest.raises(ChainUnavailable):
            await deploy(faulty, plan, path)
    journal = load_deployment(path)
    assert journal is not None
    with pytest.raises(InvalidDeployment, match="incomplete"):
        check_usable(journal, 80002)
    deployment = await deploy(bare_rpc, plan, path)
    check_usable(deployment, 80002)
    reader = Reader(bare_rpc, deployment)
    assert await reader.collateral_units(account(AccountRole.FAUCET)) == FAUCET_UNITS
    assert await reader.collateral_units(account(AccountRole.TRADER)) == TRADER_UNITS
    assert await reader.proposer_whitelist(account(AccountRole.CREATOR)) is not None


@pytest.mark.parametrize(
    ("method", "done"),
    [
        ("anvil_setCode", 0),
        ("anvil_setCode", 1),
        ("anvil_setCode", 2),
        ("anvil_setCode", 3),
        ("anvil_setNonce", 0),
        ("anvil_setNonce", 1),
    ],
)
async def test_a_half_placed_contract_is_placed_again(
    bare_rpc: Rpc, bare_proxy: FaultProxy, plan: DeployPlan, path: Path, method: str, done: int
) -> None:
    bare_proxy.fail(method, *[honest] * done, refuse("stopped"))
    async with Rpc(bare_proxy.url) as faulty:
        with pytest.raises(RpcRefused, match="stopped"):
            await deploy(faulty, plan, path)
    deployment = await deploy(bare_rpc, plan, path)
    threshold = contract_function("getThreshold()", "(uint256)")
    compute = contract_function("computeProxyAddress(address)", "(address)")
    singleton, owner = deployment.address(ContractName.SAFE_SINGLETON), account(AccountRole.TRADER)
    views = [
        ViewCall(singleton, threshold),
        ViewCall(deployment.safe_factory, compute, (owner,)),
    ]
    assert await call_views(bare_rpc, views) == [1, deployment.safe_of(owner)]
    assert await bare_rpc.call("eth_getTransactionCount", singleton, "latest") == "0x1"


async def test_a_sandbox_that_lost_its_chain_is_deployed_again(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    snapshot = await bare_rpc.send("evm_snapshot")
    deployment = await deploy(bare_rpc, plan, path)
    await bare_rpc.send("evm_revert", snapshot)
    assert not await is_intact(bare_rpc, deployment)
    again = await deploy(bare_rpc, plan, path)
    assert again == deployment
    assert await is_intact(bare_rpc, again)


async def test_a_chain_that_mines_at_intervals_is_deployed_to_as_well(
    devchain_options: DevChainOptions, tmp_path: Path, plan: DeployPlan, path: Path
) -> None:
    options = replace(
        devchain_options, folder=tmp_path / "chain", port=free_port(), is_instant=False
    )
    async with started(options) as rpc:
        assert (await deploy(rpc, plan, path)).is_complete


async def test_another_chain_than_the_plans_is_refused(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    with pytest.raises(WrongChain, match="80002"):
        await deploy(bare_rpc, replace(plan, chain_id=137), path)
    assert load_deployment(path) is None


@pytest.mark.parametrize(
    "fault",
    [change(lambda _: "Geth/v1.16.0"), refuse("method not found", -32601)],
    ids=["another", "silent"],
)
async def test_a_sandbox_plan_is_refused_on_a_node_that_is_not_a_sandbox(
    bare_rpc: Rpc, bare_proxy: FaultProxy, plan: DeployPlan, path: Path, fault: Fault
) -> None:
    bare_proxy.fail("web3_clientVersion", fault)
    async with Rpc(bare_proxy.url) as faulty:
        with pytest.raises(SandboxOnly):
            await deploy(faulty, plan, path)
    assert await head(bare_rpc) == 0


async def test_a_chain_without_the_create2_factory_is_refused(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    await bare_rpc.send("anvil_setCode", CREATE2_FACTORY, "0x")
    with pytest.raises(InvalidDeployment, match="CREATE2"):
        await deploy(bare_rpc, plan, path)


async def test_code_that_changed_since_an_earlier_run_is_refused(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    store_deployment(path, replace(deployment, is_complete=False))
    await bare_rpc.send("anvil_setCode", deployment.exchange, "0x00")
    with pytest.raises(
        InvalidDeployment, match=r"the code of exchange .* is not the code of the artifact"
    ):
        await deploy(bare_rpc, plan, path)


async def test_a_sandboxs_file_of_an_earlier_version_is_completed(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    named = {name: made for name, made in deployment.contracts.items() if name not in LATER}
    store_deployment(path, replace(deployment, contracts=named, neg_risk_profiles=()))
    assert await deploy(bare_rpc, plan, path) == deployment
    assert load_deployment(path) == deployment


async def test_a_file_is_written_atomically(bare_rpc: Rpc, plan: DeployPlan, path: Path) -> None:
    await deploy(bare_rpc, plan, path)
    assert [each.name for each in path.parent.iterdir()] == ["deployment.json"]
    assert load_deployment(path.with_name("nothing.json")) is None


async def test_the_name_of_the_file_is_on_the_disk_before_anything_relies_on_it(
    sandbox: Sandbox, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, list[str]]] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        is_folder = os.path.samestat(os.fstat(handle), path.parent.stat())
        synced.append((is_folder, [each.name for each in path.parent.iterdir()]))
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    store_deployment(path, sandbox.deployment)
    assert synced == [(False, ["deployment.draft"]), (True, ["deployment.json"])]
