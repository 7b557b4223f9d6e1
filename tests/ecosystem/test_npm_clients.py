"""Unmodified clients in TypeScript, run by Node.js."""

import asyncio
import json
import os
from typing import Any, Final

import pytest
from tests.ecosystem.clients import NPM, node_program
from tests.ecosystem.test_version_2_clients import endow
from tests.rigs.orders.version_2 import a_deposit_wallet
from tests.rigs.trading import TradingRig
from tests.rigs.values import a_key, an_address, an_asset

from foretell.domain.values.hexadecimal import Address, checksum_address

pytestmark = pytest.mark.anyio

WITHIN_S: Final = 600.0
PACKAGES: Final = ("@polymarket/clob-client", "@polymarket/clob-client-v2")


async def run(host: str, package: str, kind: int, funder: Address | None) -> Any:
    """Return what a client says of an order that it places, reads and cancels."""
    given = {
        "package": package,
        "host": f"http://{host}",
        "key": "0x" + a_key("alice").hex(),
        "type": kind,
        "token": an_asset(is_yes=True),
    }
    if funder is not None:
        given["funder"] = checksum_address(funder)
    process = await asyncio.create_subprocess_exec(
        node_program(),
        "driver.mjs",
        json.dumps(given),
        cwd=NPM,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"NO_PROXY": "*"},
    )
    async with asyncio.timeout(WITHIN_S):
        said, errors = await process.communicate()
    assert process.returncode == 0, (said + errors).decode()
    return json.loads(said.decode().strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("package", "kind"),
    [
        *((PACKAGES[0], kind) for kind in (0, 1, 2)),
        *((PACKAGES[1], kind) for kind in (0, 1, 2, 3)),
    ],
)
async def test_a_client_in_typescript_places_reads_and_cancels(
    rig: TradingRig, host: str, package: str, kind: int
) -> None:
    alice = an_address("alice")
    funder = {
        0: None,
        1: rig.context.wallets.proxy_wallet_of(alice),
        2: rig.context.wallets.safe_of(alice),
        3: a_deposit_wallet("alice", 1),
    }[kind]
    await endow(rig, funder or alice)
    said = await run(host, package, kind, funder)
    assert (said["placed"]["success"], said["placed"]["status"]) == (True, "live")
    assert said["found"]["maker_address"] == checksum_address(funder or alice)
    assert said["bids"] == [{"price": "0.4", "size": "10"}]
    assert said["canceled"] == [said["placed"]["orderID"]]
