"""The lines that `foretell clients` prints, run by the clients that they are for."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.ecosystem.clients import FOLDER, NPM, PROXY_CHAIN, Family, node_program
from tests.rigs.trading import TradingRig
from tests.rigs.values import a_deployment, a_key, an_address, an_asset

from foretell.cli.clients import client_parts
from foretell.domain.contracts.deployment import (
    PROXY_CONTRACTS,
    ContractName,
    DeployedContract,
    encode_deployment,
)
from foretell.domain.values.hexadecimal import ZERO_BYTES32, checksum_address
from foretell.sandbox.known_clients import KNOWN_CLIENTS, KnownClient
from foretell.sandbox.ready import Ready, ReadyAccount, SeededMarket, write_ready
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

WITHIN_S: Final = 600.0
FOLDER_OF: Final = {("kuest-py-clob-client", "2.0.15"): "kuest-py-clob-client-2"}
"""The folders of clients whose package has another name than it."""
ALICE: Final = an_address("alice")
COLLATERAL: Final = DeployedContract(an_address("collateral"), ZERO_BYTES32)
DEPLOYMENT: Final = replace(
    a_deployment(), contracts={**a_deployment().contracts, ContractName.COLLATERAL: COLLATERAL}
)


@pytest.fixture
def settings(host: str, tmp_path: Path) -> Settings:
    """The settings of a data folder whose sandbox is the rig."""
    settings = Settings(data=tmp_path)
    account = ReadyAccount("trader", checksum_address(ALICE), "0x" + a_key("alice").hex())
    market = SeededMarket("", an_asset(is_yes=True), "", "")
    url = f"http://{host}"
    ready = Ready(url, "", url, "", "", "", "http://127.0.0.1:1", 80002, {}, [account], market)
    write_ready(tmp_path, ready)
    settings.deployment_file.write_bytes(encode_deployment(DEPLOYMENT))
    return settings


def in_python(client: KnownClient, lines: str) -> tuple[list[str], Path]:
    """Return the command that runs a client's lines and prints whose key it has, and its packages."""
    code = f"{lines}\nprint(client.get_address())"
    if "relayer" in client.package:
        given = "api_key, api_secret, api_passphrase = 'key', 'c2VjcmV0', 'passphrase'\n"
        code = given + lines.rpartition("\n")[0] + "\nprint(relayer.signer.address())"
    name = FOLDER_OF.get((client.package, client.version), client.package)
    return [sys.executable, "-c", code], FOLDER / name


def in_typescript(client: KnownClient, lines: str) -> tuple[list[str], Path]:
    """Return the same of a client in TypeScript."""
    code = f"{lines}\nawait client.getApiKeys();\nconsole.log(await signer_of(client));"
    code = "const signer_of = (each) => each.signer.getAddress();\n" + code
    if "relayer" in client.package:
        given = "const creds = { key: 'key', secret: 'c2VjcmV0', passphrase: 'passphrase' };\n"
        code = given + lines.rpartition("\n")[0]
        code += "\nawait relayer.signer.getAddress().then(console.log);"
    return [node_program(), "--input-type=module", "-e", code], FOLDER


@pytest.mark.parametrize("number", range(len(KNOWN_CLIENTS)))
async def test_the_lines_of_a_client_run(rig: TradingRig, settings: Settings, number: int) -> None:
    client, lines = KNOWN_CLIENTS[number], client_parts(settings)[number]
    assert f" {client.package} {client.version}, " in lines.splitlines()[0]
    wallets = rig.context.wallets
    for wallet in (*wallets.deposit_wallets_of(ALICE), wallets.proxy_wallet_of(ALICE)):
        rig.chain.contracts.add(wallet)
    command, packages = (in_typescript if client.is_in_typescript else in_python)(client, lines)
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=NPM,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(packages), "NO_PROXY": "*"},
    )
    async with asyncio.timeout(WITHIN_S):
        said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert said.decode().strip().endswith(checksum_address(ALICE))


@pytest.mark.parametrize("client", [each for each in KNOWN_CLIENTS if each.is_in_typescript])
def test_a_client_in_typescript_is_printed_in_the_version_that_the_tests_run(
    client: KnownClient,
) -> None:
    assert Family(client.package).version() == f"{client.package} {client.version}"


async def test_a_deposit_wallet_s_lines_have_the_wallet_that_the_client_derives(
    settings: Settings,
) -> None:
    first, second = map(checksum_address, a_deployment().deposit_wallets_of(ALICE))
    parts = {
        (client.package, client.version): part
        for client, part in zip(KNOWN_CLIENTS, client_parts(settings), strict=True)
        if "deposit" in client.wallet
    }
    assert f"funder='{second}'" in parts["py-clob-client-v2", "1.2.1"]
    assert f"funder='{first}'" in parts["kuest-py-clob-client", "2.0.15"]
    assert f'funderAddress: "{second}"' in parts["@polymarket/clob-client-v2", "1.1.0"]


async def test_a_proxy_wallet_s_lines_have_the_wallet_and_the_chain_on_which_clients_know_it(
    settings: Settings,
) -> None:
    wallet = checksum_address(a_deployment().proxy_wallet_of(ALICE))
    parts = {
        client.package: part
        for client, part in zip(KNOWN_CLIENTS, client_parts(settings), strict=True)
        if "proxy" in client.wallet
    }
    assert f"signature_type=1, funder='{wallet}'" in parts["py-clob-client"]
    assert f'creds, 1, "{wallet}")' in parts["@polymarket/clob-client"]
    for package in ("py-builder-relayer-client", "@polymarket/builder-relayer-client"):
        assert f", {PROXY_CHAIN}, " in parts[package]


async def test_an_exchange_without_proxy_wallets_prints_no_lines_for_them(
    settings: Settings,
) -> None:
    contracts = {
        name: each for name, each in DEPLOYMENT.contracts.items() if name not in PROXY_CONTRACTS
    }
    deployment = replace(DEPLOYMENT, contracts=contracts)
    settings.deployment_file.write_bytes(encode_deployment(deployment))
    titles = [part.splitlines()[0] for part in client_parts(settings)]
    assert not [title for title in titles if "proxy wallet" in title]
    assert len(titles) == len([each for each in KNOWN_CLIENTS if "proxy" not in each.wallet])
