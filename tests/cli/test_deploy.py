import asyncio
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from rich.console import Console
from tests.rigs.in_process import sandbox_settings
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_key, an_address

from foretell.chain.deploy import load_deployment, store_deployment
from foretell.cli.deploy import run_deploy
from foretell.domain.contracts.calldata import IS_OPERATOR
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.networks import NetworkName
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.errors.command import MissingKey, MissingSetting
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.sources import NodeUnavailable
from foretell.domain.evm.abi import ContractFunction, contract_function
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

GAS_MONEY = hex(10**20)
IS_REGISTRAR = contract_function("isRegistrar(address)", "(bool)")

MakeSettings = Callable[..., Settings]


@pytest.fixture
def operators(sandbox: Sandbox, tmp_path: Path) -> MakeSettings:
    """Make settings of an operator who deploys to the node, but for what is given."""
    names = ("master_key", "operator_key", "registrar_key", "relayer_key", "storage_key")
    chosen: dict[str, object] = {
        name: SecretStr(a_key(name).hex()) for name in (*names, "admin_key")
    }
    chosen |= {
        "rpc_url": SecretStr(sandbox.rpc_url),
        "collateral": sandbox.deployment.collateral,
        "fee_receiver": an_address("fees"),
        "community_pool": an_address("pool"),
    }
    return lambda **given: sandbox_settings(tmp_path, **chosen | given)


async def deployed(settings: Settings, *, is_check: bool = False) -> str:
    """Deploy, or only compare, and return what was printed."""
    console = Console(file=io.StringIO(), width=200)
    await asyncio.to_thread(run_deploy, settings, console, is_check=is_check)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def is_granted(
    sandbox: Sandbox, check: ContractFunction, exchange: Address, key: str
) -> bool:
    subject = address_of_key(a_key(key))
    data = "0x" + check.encode(subject).hex()
    answer = await sandbox.rpc.call("eth_call", {"to": exchange, "data": data}, "latest")
    return int(answer, 16) == 1


async def test_the_sandboxs_contracts_are_deployed_to_a_dev_chain(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    settings = sandbox_settings(tmp_path, rpc_url=SecretStr(sandbox.rpc_url))
    printed = await deployed(settings)
    assert load_deployment(settings.deployment_file) == sandbox.deployment
    assert f"written to {settings.deployment_file}" in printed
    assert [name for name in ContractName if name not in printed] == []
    assert checksum_address(sandbox.deployment.exchange) in printed


async def test_contracts_of_an_operator_grant_roles_to_the_operators_keys(
    fresh_sandbox: Sandbox, operators: MakeSettings
) -> None:
    further = SecretStr(a_key("further").hex())
    settings, sandbox = operators(operator_keys=further), fresh_sandbox
    admin = address_of_key(a_key("admin_key"))
    await sandbox.rpc.send("anvil_setBalance", admin, GAS_MONEY)
    await deployed(settings)
    made = load_deployment(settings.deployment_file)
    assert made is not None
    assert (made.is_complete, made.is_sandbox) == (True, False)
    assert made.collateral == sandbox.deployment.collateral
    assert made.exchange != sandbox.deployment.exchange
    assert await is_granted(sandbox, IS_OPERATOR, made.exchange, "operator_key")
    assert await is_granted(sandbox, IS_OPERATOR, made.exchange, "further")
    assert await is_granted(sandbox, IS_OPERATOR, made.neg_risk_exchange, "further")
    assert await is_granted(sandbox, IS_REGISTRAR, made.exchange, "registrar_key")
    assert not await is_granted(sandbox, IS_OPERATOR, made.exchange, "relayer_key")


async def test_a_node_must_be_named(settings: Settings) -> None:
    with pytest.raises(MissingSetting, match=r"^FORETELL_RPC_URL is not set"):
        run_deploy(settings, Console(quiet=True))


@pytest.mark.parametrize("name", ["collateral", "fee_receiver", "community_pool"])
async def test_an_address_that_is_missing_or_malformed_is_named(
    operators: MakeSettings, name: str
) -> None:
    with pytest.raises(MissingSetting, match=f"^FORETELL_{name.upper()} is not set"):
        await deployed(operators(**{name: None}))
    with pytest.raises(MalformedHex, match=f"^{name} must be"):
        await deployed(operators(**{name: "0x12"}))


@pytest.mark.parametrize("name", ["operator_key", "registrar_key"])
async def test_a_key_that_is_missing_is_named(operators: MakeSettings, name: str) -> None:
    with pytest.raises(MissingKey, match=f"^FORETELL_{name.upper()} is not set"):
        await deployed(operators(**{name: None}))


async def test_nothing_is_deployed_to_a_node_of_another_chain(operators: MakeSettings) -> None:
    settings = operators(chain_id=137)
    with pytest.raises(NodeUnavailable, match="serves chain 80002, and chain 137 is required"):
        await deployed(settings)
    assert not settings.deployment_file.exists()


@pytest.fixture
def written(sandbox: Sandbox, tmp_path: Path) -> Settings:
    """Settings with the file of the deployment on the node."""
    settings = sandbox_settings(tmp_path, rpc_url=SecretStr(sandbox.rpc_url))
    store_deployment(settings.deployment_file, sandbox.deployment)
    return settings


async def test_a_check_compares_every_contract_and_sends_nothing(
    sandbox: Sandbox, written: Settings
) -> None:
    before = await sandbox.rpc.call("eth_blockNumber")
    printed = await deployed(written, is_check=True)
    assert printed.count("as written") == len(ContractName)
    assert checksum_address(sandbox.deployment.neg_risk_exchange) in printed
    assert await sandbox.rpc.call("eth_blockNumber") == before


@pytest.mark.parametrize(("code", "found"), [("0x", "nothing"), ("0x00", "other code")])
async def test_a_check_fails_where_the_chain_holds_something_else(
    fresh_sandbox: Sandbox, written: Settings, code: str, found: str
) -> None:
    await fresh_sandbox.rpc.send("anvil_setCode", fresh_sandbox.deployment.exchange, code)
    console = Console(file=io.StringIO(), width=200)
    with pytest.raises(
        InvalidDeployment, match=r"these contracts on the chain differ from the file: exchange$"
    ):
        await asyncio.to_thread(run_deploy, written, console, is_check=True)
    assert isinstance(console.file, io.StringIO)
    (row,) = [line for line in console.file.getvalue().splitlines() if " exchange " in line]
    assert found in row


async def test_a_check_fails_for_a_file_of_an_earlier_version(
    sandbox: Sandbox, written: Settings
) -> None:
    contracts = dict(sandbox.deployment.contracts)
    del contracts[ContractName.OPTIMISTIC_ORACLE]
    store_deployment(written.deployment_file, replace(sandbox.deployment, contracts=contracts))
    with pytest.raises(
        InvalidDeployment, match="it lacks optimisticOracle; run foretell deploy again"
    ):
        await deployed(written, is_check=True)


async def test_a_check_fails_without_a_file(sandbox: Sandbox, tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, rpc_url=SecretStr(sandbox.rpc_url))
    with pytest.raises(InvalidDeployment, match=r"deployment\.json does not exist"):
        await deployed(settings, is_check=True)


async def test_a_check_fails_for_a_deployment_that_broke_off(
    sandbox: Sandbox, written: Settings
) -> None:
    store_deployment(written.deployment_file, replace(sandbox.deployment, is_complete=False))
    with pytest.raises(InvalidDeployment, match="it is incomplete"):
        await deployed(written, is_check=True)


async def test_a_check_of_another_network_is_refused(written: Settings) -> None:
    with pytest.raises(InvalidDeployment, match="it is for chain 80002, and chain 137 is required"):
        await asyncio.to_thread(
            run_deploy, written, Console(quiet=True), NetworkName.POLYGON, is_check=True
        )


async def test_the_next_deploy_completes_a_file_of_an_earlier_version(
    sandbox: Sandbox, written: Settings
) -> None:
    contracts = dict(sandbox.deployment.contracts)
    del contracts[ContractName.NEG_RISK_OPERATOR]
    store_deployment(written.deployment_file, replace(sandbox.deployment, contracts=contracts))
    await deployed(written)
    assert load_deployment(written.deployment_file) == sandbox.deployment
