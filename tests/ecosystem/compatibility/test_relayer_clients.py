"""Every public method of the clients of relayers, called; the page of the documentation has the results."""

import time
from collections.abc import Iterable
from typing import Any, Final

import pytest
from tests.ecosystem.clients import NPM_RELAYER_CLIENT, RELAYER_CLIENTS, Family
from tests.ecosystem.compatibility.page import FOR_PROXY_WALLETS, held_against_the_page
from tests.ecosystem.compatibility.programs import (
    Step,
    WalletCall,
    python_proxies,
    python_relayer,
    typescript_proxies,
    typescript_relayer,
)
from tests.ecosystem.compatibility.running import results_of
from tests.ecosystem.test_relayer_clients import (
    FACTORY_OF,
    client,
    npm_proxy_client,
    owner,
    proxy_client,
    rig,
)
from tests.relayer.rig import OwnerClient, RelayerRig
from tests.rigs.applications import serving

from foretell.domain.contracts.calldata import Approve
from foretell.domain.values.hexadecimal import checksum_address

pytestmark = pytest.mark.anyio

DEADLINE_S: Final = 600
__all__ = ("client", "npm_proxy_client", "owner", "proxy_client", "rig")


async def test_every_method_of_a_client_in_python_is_called(
    rig: RelayerRig, owner: OwnerClient, client: Family
) -> None:
    async def call(step: Step) -> Any:
        return await client.ask(call=step.method, args=step.args, keep=step.keep)

    made = an_approval(rig, owner, FACTORY_OF[client.name])
    program = python_relayer(made, is_kuest=client.name == RELAYER_CLIENTS[1])
    await judge(rig, client, program, await client.ask(methods=True), call)


async def test_every_method_of_the_client_in_typescript_is_called(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    family = Family(NPM_RELAYER_CLIENT)
    await family.start()

    async def call(step: Step) -> Any:
        return await family.ask(client=1, call=step.method, args=step.args, keep=step.keep)

    async with serving(rig.app) as host:
        try:
            await family.ask(
                make=1,
                host=f"http://{host}",
                rpc=rig.sandbox.rpc_url,
                key="0x" + owner.account.private_key.hex(),
                builder={
                    "key": owner.credentials.key_id,
                    "secret": owner.credentials.secret,
                    "passphrase": owner.credentials.passphrase,
                },
            )
            program = typescript_relayer(an_approval(rig, owner, 1))
            await judge(rig, family, program, await family.ask(client=1, methods=True), call)
        finally:
            await family.stop()


async def test_every_method_for_proxy_wallets_of_the_client_in_python_is_called(
    rig: RelayerRig, owner: OwnerClient, proxy_client: Family
) -> None:
    async def call(step: Step) -> Any:
        return await proxy_client.ask(call=step.method, args=step.args, keep=step.keep)

    program = list(python_proxies(a_proxied_approval(rig, owner)))
    methods = [step.method for step in program]
    await judge(rig, proxy_client, program, methods, call, FOR_PROXY_WALLETS)


async def test_every_method_for_proxy_wallets_of_the_client_in_typescript_is_called(
    rig: RelayerRig, owner: OwnerClient, npm_proxy_client: Family
) -> None:
    async def call(step: Step) -> Any:
        return await npm_proxy_client.ask(
            client=1, call=step.method, args=step.args, keep=step.keep
        )

    program = list(typescript_proxies(a_proxied_approval(rig, owner)))
    methods = [step.method for step in program]
    await judge(rig, npm_proxy_client, program, methods, call, FOR_PROXY_WALLETS)


async def judge(
    rig: RelayerRig,
    family: Family,
    program: Iterable[Step],
    methods: list[str],
    call: Any,
    ending: str = "",
) -> None:
    """Run a client's program, mining what it sends, and hold its results against a section of the page."""

    async def call_and_mine(step: Step) -> Any:
        result = await call(step)
        await rig.settle()
        return result

    results = await results_of(program, methods, call_and_mine)
    held_against_the_page(family.version() + ending, results)


def a_proxied_approval(rig: RelayerRig, owner: OwnerClient) -> WalletCall:
    """Return the same call of the owner's proxy wallet."""
    wallet = rig.sandbox.deployment.proxy_wallet_of(owner.address)
    return an_approval(rig, owner, 0)._replace(wallet=checksum_address(wallet))


def an_approval(rig: RelayerRig, owner: OwnerClient, factory: int) -> WalletCall:
    """Return the call by which the owner's wallet of a factory approves the exchange."""
    deployment = rig.sandbox.deployment
    return WalletCall(
        checksum_address(deployment.deposit_wallets_of(owner.address)[factory]),
        checksum_address(deployment.collateral),
        "0x" + Approve(deployment.exchange, 5).encode().hex(),
        int(time.time()) + DEADLINE_S,
    )
