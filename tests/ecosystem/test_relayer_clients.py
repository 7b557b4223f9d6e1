"""Unmodified clients of relayers: they create deposit wallets and have them make calls, on a real chain."""

import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.ecosystem.clients import (
    NPM_RELAYER_CLIENT,
    PROXY_CHAIN,
    RELAYER_CLIENTS,
    RELAYER_DRIVER,
    Family,
    Refused,
)
from tests.ecosystem.conftest import RealClock
from tests.relayer.rig import DATABASE_FILE, OwnerClient, RelayerRig
from tests.rigs.applications import serving
from tests.rigs.sandbox import Sandbox

from foretell.domain.contracts.calldata import Approve, SetApprovalForAll, Transfer
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import checksum_address

pytestmark = pytest.mark.anyio

UNIT: Final = 10**6
FACTORY_OF: Final = {RELAYER_CLIENTS[0]: 1, RELAYER_CLIENTS[1]: 0}
"""The number of the factory that each client derives its wallets from."""


@pytest.fixture
async def rig(
    fresh_sandbox: Sandbox, empty_database: Path, tmp_path: Path
) -> AsyncIterator[RelayerRig]:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    rig = RelayerRig(fresh_sandbox, tmp_path, clock=RealClock())
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
async def owner(rig: RelayerRig) -> OwnerClient:
    return await rig.owner("alice")


@pytest.fixture(params=RELAYER_CLIENTS)
async def client(
    request: pytest.FixtureRequest, rig: RelayerRig, owner: OwnerClient
) -> AsyncIterator[Family]:
    """A client of the parameter's kind with the key of alice, and her API key as builder's."""
    family = Family(request.param, RELAYER_DRIVER)
    await family.start()
    async with serving(rig.app) as host:
        await family.ask(**making(rig, owner, host))
        yield family
    await family.stop()


@pytest.fixture
async def proxy_client(rig: RelayerRig, owner: OwnerClient) -> AsyncIterator[Family]:
    """The client in Python that knows proxy wallets, as it is: made for the chain on which it knows them."""
    family = Family(RELAYER_CLIENTS[0], RELAYER_DRIVER)
    await family.start()
    async with serving(rig.app) as host:
        await family.ask(**making(rig, owner, host), proxy_chain=PROXY_CHAIN)
        yield family
    await family.stop()


@pytest.fixture
async def npm_proxy_client(rig: RelayerRig, owner: OwnerClient) -> AsyncIterator[Family]:
    """The client in TypeScript, made likewise."""
    family = Family(NPM_RELAYER_CLIENT)
    await family.start()
    async with serving(rig.app) as host:
        made = making(rig, owner, host)
        fields = {"host": made["url"], "builder": made["credentials"], "proxy_chain": PROXY_CHAIN}
        await family.ask(make=1, rpc=made["rpc"], key=made["key"], **fields)
        yield family
    await family.stop()


def making(rig: RelayerRig, owner: OwnerClient, host: str) -> dict[str, Any]:
    """Return the request that makes a client of an owner."""
    credentials = owner.credentials
    return {
        "make": True,
        "url": f"http://{host}",
        "rpc": rig.sandbox.rpc_url,
        "key": "0x" + owner.account.private_key.hex(),
        "credentials": {
            "key": credentials.key_id,
            "secret": credentials.secret,
            "passphrase": credentials.passphrase,
        },
    }


def is_kuest(client: Family) -> bool:
    return client.name == RELAYER_CLIENTS[1]


async def call(client: Family, name: str, *args: Any, **fields: Any) -> Any:
    return await client.ask(call=name, args=args, **fields)


async def execute(client: Family, wallet: str, calls: list[Any], deadline_s: int) -> str:
    """Have a wallet make calls; one of the clients asks for the nonce itself."""
    sent = [
        {"target": checksum_address(target), "value": "0", "data": "0x" + each.encode().hex()}
        for target, each in calls
    ]
    args = [wallet, str(deadline_s)]
    if not is_kuest(client):
        address = await call(client, "get_expected_deposit_wallet")
        nonce = await call(client, "get_nonce", address, "WALLET")
        args.insert(1, nonce["nonce"])
    return str(await call(client, "execute_deposit_wallet_batch", *args, calls=sent))


async def test_a_client_creates_a_deposit_wallet_and_drives_it(
    rig: RelayerRig, owner: OwnerClient, client: Family
) -> None:
    deployment = rig.sandbox.deployment
    wallet = await call(client, "get_expected_deposit_wallet")
    own = deployment.deposit_wallets_of(owner.address)[FACTORY_OF[client.name]]
    assert wallet == checksum_address(own)
    assert await call(client, "get_deployed", wallet) is False
    created = await call(client, "deploy_deposit_wallet")
    await rig.settle()
    assert (await rig.transaction(created))["state"] == "STATE_CONFIRMED"
    assert await call(client, "get_deployed", wallet) is True
    calls = [
        (deployment.collateral, Approve(deployment.exchange, 5 * UNIT)),
        (
            deployment.conditional_tokens,
            SetApprovalForAll(deployment.exchange, is_approved=True),
        ),
    ]
    sent = await execute(client, wallet, calls, int(time.time()) + 600)
    await rig.settle()
    assert (await rig.transaction(sent))["state"] == "STATE_CONFIRMED"
    assert await rig.sandbox.is_approved(own, deployment.exchange)
    (record,) = await call(client, "get_transaction", sent)
    assert (record["type"], record["state"]) == ("WALLET", "STATE_CONFIRMED")


async def test_a_client_pays_out_of_its_wallet(
    rig: RelayerRig, owner: OwnerClient, client: Family
) -> None:
    deployment = rig.sandbox.deployment
    await call(client, "deploy_deposit_wallet")
    await rig.settle()
    wallet = deployment.deposit_wallets_of(owner.address)[FACTORY_OF[client.name]]
    gift = Transfer(wallet, 3 * UNIT).encode()
    await rig.sandbox.call(rig.sandbox.account(AccountRole.FAUCET), deployment.collateral, gift)
    calls = [(deployment.collateral, Transfer(owner.address, 2 * UNIT))]
    await execute(client, checksum_address(wallet), calls, int(time.time()) + 600)
    await rig.settle()
    assert await rig.sandbox.reader.collateral_units(owner.address) == 2 * UNIT
    assert await rig.sandbox.reader.collateral_units(wallet) == UNIT


async def test_a_late_batch_is_refused(rig: RelayerRig, client: Family) -> None:
    await call(client, "deploy_deposit_wallet")
    await rig.settle()
    wallet = await call(client, "get_expected_deposit_wallet")
    calls = [(rig.sandbox.deployment.collateral, Approve(rig.sandbox.deployment.exchange, 5))]
    with pytest.raises(Refused) as refused:
        await execute(client, wallet, calls, int(time.time()) - 1)
    assert "depositWalletParams.deadline" in str(refused.value)


def approving(deployment: Deployment) -> list[dict[str, str]]:
    """Return the calls that approve 5 collateral and all tokens to the exchange, as clients name them."""
    calls = [
        (deployment.collateral, Approve(deployment.exchange, 5 * UNIT).encode()),
        (
            deployment.conditional_tokens,
            SetApprovalForAll(deployment.exchange, is_approved=True).encode(),
        ),
    ]
    return [
        {"to": checksum_address(target), "data": "0x" + calldata.hex(), "value": "0"}
        for target, calldata in calls
    ]


async def test_a_client_drives_a_proxy_wallet_that_its_first_calls_create(
    rig: RelayerRig, owner: OwnerClient, proxy_client: Family
) -> None:
    deployment = rig.sandbox.deployment
    wallet = deployment.proxy_wallet_of(owner.address)
    assert await call(proxy_client, "get_expected_proxy_wallet") == checksum_address(wallet)
    sent = [{"__type": "Transaction", **each} for each in approving(deployment)]
    for _ in range(2):
        made = await call(proxy_client, "execute", sent, "approvals")
        await rig.settle()
        assert (await rig.transaction(made))["state"] == "STATE_CONFIRMED"
    assert await rig.sandbox.reader.allowance_units(wallet, deployment.exchange) == 5 * UNIT
    assert await rig.sandbox.is_approved(wallet, deployment.exchange)


async def test_the_client_in_typescript_drives_a_proxy_wallet_that_its_first_calls_create(
    rig: RelayerRig, owner: OwnerClient, npm_proxy_client: Family
) -> None:
    deployment = rig.sandbox.deployment
    wallet = deployment.proxy_wallet_of(owner.address)
    for _ in range(2):
        args = [approving(deployment), "approvals"]
        made = await npm_proxy_client.ask(client=1, call="execute", args=args)
        await rig.settle()
        record = await rig.transaction(made["transactionID"])
        assert (record["state"], record["type"]) == ("STATE_CONFIRMED", "PROXY")
        assert record["proxyAddress"] == checksum_address(wallet)
    assert await npm_proxy_client.ask(
        client=1, call="getDeployed", args=[checksum_address(wallet), "PROXY"]
    )
    assert await rig.sandbox.reader.allowance_units(wallet, deployment.exchange) == 5 * UNIT
    assert await rig.sandbox.is_approved(wallet, deployment.exchange)
