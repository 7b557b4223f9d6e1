"""`foretell deploy`: the contracts on a chain, described in deployment.json."""

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.keys import open_keys, required_key
from foretell.app.roles import KeyName
from foretell.chain.deploy import deploy, load_deployment
from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.deployed_code import CodeMatch, compare_code
from foretell.chain.devchain import is_dev_chain
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox.plan import sandbox_plan
from foretell.cli.sources import naming, node_address
from foretell.domain.contracts.deployment import ContractName, Deployment, check_usable
from foretell.domain.contracts.networks import NETWORKS, NetworkName
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.errors.command import MissingSetting
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, checksum_address, parse_address
from foretell.settings import Settings


def run_deploy(
    settings: Settings,
    console: Console,
    network: NetworkName | None = None,
    *,
    is_check: bool = False,
) -> None:
    """Deploy the contracts that are missing, check the others, and print all addresses.

    A check sends nothing: it compares the chain with the file, and fails when they differ or when the
    file is of an earlier version with fewer contracts.
    """
    if network is not None:
        settings = settings.model_copy(update={"chain_id": NETWORKS[network].chain_id})
    if settings.rpc_url is None:
        raise MissingSetting(
            "rpc_url", "foretell deploy needs your node; foretell up deploys to its own chain"
        )
    node = node_address(settings)
    with naming(node):
        if is_check:
            uvloop.run(_check(settings, node.url, console))
        else:
            uvloop.run(_deploy(settings, node.url, console, network))


async def _check(settings: Settings, rpc_url: str, console: Console) -> None:
    deployment = load_deployment(settings.deployment_file)
    if deployment is None:
        raise InvalidDeployment(f"{settings.deployment_file} does not exist; run foretell deploy")
    check_usable(deployment, settings.chain_id)
    async with Rpc(rpc_url) as rpc:
        found_by_name = await compare_code(rpc, deployment)
    table = Table("contract", "address", "found", title=f"chain {deployment.chain_id}")
    for name, found in found_by_name.items():
        table.add_row(name.value, checksum_address(deployment.address(name)), found.value)
    console.print(table)
    different = [name for name, found in found_by_name.items() if found != CodeMatch.SAME]
    if different:
        raise InvalidDeployment(
            f"these contracts on the chain differ from the file: {', '.join(different)}"
        )
    if deployment.missing:
        raise InvalidDeployment(
            f"it lacks {', '.join(deployment.missing)}; run foretell deploy again"
        )


async def _deploy(
    settings: Settings, rpc_url: str, console: Console, network: NetworkName | None
) -> None:
    async with Rpc(rpc_url) as rpc:
        is_bare = settings.admin_key is None and network is None
        is_sandbox = is_bare and await is_dev_chain(rpc)
        plan = sandbox_plan(settings.npm_folder) if is_sandbox else _plan(settings, network)
        deployment = await deploy(rpc, plan, settings.deployment_file)
    _print(console, deployment, settings)


def _plan(settings: Settings, network: NetworkName | None) -> DeployPlan:
    needed = frozenset({KeyName.OPERATOR, KeyName.REGISTRAR})
    keys = open_keys(settings, needed)
    existing = {} if network is None else dict(NETWORKS[network].existing)
    if settings.collateral is not None or network is None:
        existing[ContractName.COLLATERAL] = _address("collateral", settings.collateral)
    return DeployPlan(
        chain_id=settings.chain_id,
        npm_folder=settings.npm_folder,
        admin_key=required_key(settings, KeyName.ADMIN),
        operators=tuple(map(address_of_key, (keys.operator, *keys.further_operators))),
        registrars=(address_of_key(keys.registrar),),
        fee_receiver=_address("fee_receiver", settings.fee_receiver),
        community_pool=_address("community_pool", settings.community_pool),
        existing=existing,
    )


def _address(name: str, text: str | None) -> Address:
    if text is None:
        raise MissingSetting(name, "foretell deploy needs it")
    return parse_address(text, name)


def _print(console: Console, deployment: Deployment, settings: Settings) -> None:
    table = Table("contract", "address", title=f"chain {deployment.chain_id}")
    for name, contract in deployment.contracts.items():
        table.add_row(name.value, checksum_address(contract.address))
    console.print(table)
    console.print(f"written to {settings.deployment_file}")
