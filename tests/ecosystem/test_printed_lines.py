"""The lines that `foretell clients` prints, run by the clients that they are for."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.ecosystem.clients import FOLDER, NPM, Family, node_program
from tests.rigs.trading import TradingRig
from tests.rigs.values import a_deployment, a_key, an_address, an_asset

from foretell.cli.clients import client_parts
from foretell.domain.contracts.deployment import encode_deployment
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sandbox.known_clients import KNOWN_CLIENTS, KnownClient
from foretell.sandbox.ready import Ready, ReadyAccount, SeededMarket, write_ready
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

WITHIN_S: Final = 90.0
FOLDER_OF: Final = {("kuest-py-clob-client", "2.0.15"): "kuest-py-clob-client-2"}
"""The folders of clients whose package has another name than it."""
ALICE: Final = an_address("alice")


@pytest.fixture
def settings(host: str, tmp_path: Path) -> Settings:
    """The settings of a data folder whose sandbox is the rig."""
    settings = Settings(data=tmp_path)
    account = ReadyAccount("trader", checksum_address(ALICE), "0x" + a_key("alice").hex())
    market = SeededMarket("", an_asset(is_yes=True), "", "")
    url = f"http://{host}"
    ready = Ready(url, "", url, "", "", "", "http://127.0.0.1:1", 80002, {}, [account], market)
    write_ready(tmp_path, ready)
    settings.deployment_file.write_bytes(encode_deployment(a_deployment()))
    return settings


def in_python(client: KnownClient, lines: str) -> tuple[list[str], Path]:
    """Return the command that runs a client's lines and prints whose key it has, and its packages."""
    code = f"{lines}\nprint(client.get_address())"
    if "relayer" in client.package:
        given = "api_key, api_secret, api_passphrase = 'key', 'c2VjcmV0', 'passphrase'\n"
        code = given + lines.replace(
            "relayer.deploy_deposit_wallet()", "print(relayer.signer.address())"
        )
    name = FOLDER_OF.get((client.package, client.version), client.package)
    return [sys.executable, "-c", code], FOLDER / name


def in_typescript(client: KnownClient, lines: str) -> tuple[list[str], Path]:
    """Return the same of a client in TypeScript."""
    code = f"{lines}\nawait client.getApiKeys();\nconsole.log(await signer_of(client));"
    code = "const signer_of = (each) => each.signer.getAddress();\n" + code
    if "relayer" in client.package:
        given = "const creds = { key: 'key', secret: 'c2VjcmV0', passphrase: 'passphrase' };\n"
        code = given + lines.replace(
            "relayer.deployDepositWallet()", "relayer.signer.getAddress().then(console.log)"
        )
    return [node_program(), "--input-type=module", "-e", code], FOLDER


@pytest.mark.parametrize("number", range(len(KNOWN_CLIENTS)))
async def test_the_lines_of_a_client_run(rig: TradingRig, settings: Settings, number: int) -> None:
    client, lines = KNOWN_CLIENTS[number], client_parts(settings)[number]
    assert f" {client.package} {client.version}, " in lines.splitlines()[0]
    for wallet in rig.context.wallets.deposit_wallets_of(ALICE):
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
    lines = client_parts(settings)
    assert f"funder='{second}'" in lines[2]
    assert f"funder='{first}'" in lines[4]
    assert f'funderAddress: "{second}"' in lines[9]
