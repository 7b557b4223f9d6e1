"""`foretell deploy`: the contracts on a chain, and deployment.json about them."""

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.vault import open_vault, required_key
from foretell.chain.blueprint import DeployPlan, sandbox_plan
from foretell.chain.deploy import deploy
from foretell.chain.rpc import Rpc
from foretell.domain.command_errors import MissingSetting
from foretell.domain.deployment import ContractName, Deployment
from foretell.domain.hexadecimal import Address, checksum_address, parse_address
from foretell.domain.typed_data import address_of_key
from foretell.settings import Settings


def run_deploy(settings: Settings, console: Console) -> None:
    """Deploy what is not there yet, check what is, and print where everything stands."""
    if settings.rpc_url is None:
        raise MissingSetting(
            "rpc_url", "name the node; foretell up deploys to its own chain itself"
        )
    uvloop.run(_deploy(settings, settings.rpc_url.get_secret_value(), console))


async def _deploy(settings: Settings, rpc_url: str, console: Console) -> None:
    async with Rpc(rpc_url) as rpc:
        client = await rpc.call("web3_clientVersion")
        is_sandbox = str(client).startswith("anvil") and settings.admin_key is None
        plan = sandbox_plan(settings.npm_folder) if is_sandbox else _plan(settings)
        deployment = await deploy(rpc, plan, settings.deployment_file)
    _print(console, deployment, settings)


def _plan(settings: Settings) -> DeployPlan:
    vault = open_vault(settings, ("operator", "registrar"))
    return DeployPlan(
        chain_id=settings.chain_id,
        npm_folder=settings.npm_folder,
        admin_key=required_key("admin_key", settings.admin_key),
        operators=(address_of_key(vault.operator),),
        registrars=(address_of_key(vault.registrar),),
        fee_receiver=_address("fee_receiver", settings.fee_receiver),
        community_pool=_address("community_pool", settings.community_pool),
        taken={ContractName.COLLATERAL: _address("collateral", settings.collateral)},
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
