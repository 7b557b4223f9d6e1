"""The whole story of a proxy wallet in a running sandbox, by unmodified clients, and what the chain says of it."""

import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

import pytest
from tests.e2e.test_clients_together import (
    Holdings,
    a_party,
    a_relayer_client,
    execute_from_proxy,
    placed,
    until_held,
)
from tests.e2e.test_readme import play
from tests.ecosystem.clients import (
    FOLDER,
    KUEST_V2,
    NAMES,
    NPM,
    NPM_RELAYER_CLIENT,
    PROXY_CHAIN,
    RELAYER_CLIENTS,
    node_program,
)
from tests.rigs.installation import Running

from foretell.chain.reader import Reader
from foretell.cli.clients import client_parts
from foretell.domain.contracts.calldata import RedeemPositions
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import checksum_address, parse_address, parse_bytes32
from foretell.sandbox.demo.resolution import resolve
from foretell.sandbox.known_clients import KNOWN_CLIENTS
from foretell.sandbox.market_creation import SandboxMarket
from foretell.sdk.http import wait_for
from foretell.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

PROXY: Final = 1
DEPOSIT: Final = 3
"""The signature types of the two wallets."""
MADE_WITHIN_S: Final = 600.0


async def test_a_proxy_wallet_is_made_trades_with_a_deposit_wallet_and_redeems(
    running: Running,
) -> None:
    async with running.session() as session, AsyncExitStack() as stack:
        keys = [each.key for each in session.ready.accounts if each.role == AccountRole.TRADER]
        alice = await a_party(session, stack, NAMES[0], keys[0], PROXY)
        dora = await a_party(session, stack, KUEST_V2, keys[1], DEPOSIT)
        market = session.ready.market
        yes, no = market.token_yes, market.token_no

        # Version 1 of the struct meets version 2: a mint, and then a sale.
        await placed(alice, (yes, "BUY", 0.6, 10), "live")
        await placed(dora, (no, "BUY", 0.4, 10), "matched")
        await until_held(
            session, {alice.wallet: Holdings.of(-6, 10, 0), dora.wallet: Holdings.of(-4, 0, 10)}
        )
        await placed(alice, (yes, "SELL", 0.7, 5), "live")
        await placed(dora, (yes, "BUY", 0.7, 5), "matched")
        await until_held(
            session,
            {alice.wallet: Holdings.of(-2.5, 5, 0), dora.wallet: Holdings.of(-7.5, 5, 10)},
        )

        condition = parse_bytes32(market.condition_id)
        await resolve(session, SandboxMarket(condition, yes, no))
        tokens, collateral = session.deployment.conditional_tokens, session.deployment.collateral
        redemption = InnerCall(tokens, RedeemPositions(collateral, condition).encode())
        async with a_relayer_client(
            session, RELAYER_CLIENTS[0], keys[0], alice.client, proxy_chain=PROXY_CHAIN
        ) as relayer:
            await execute_from_proxy(relayer, [redemption])
        await until_held(session, {alice.wallet: Holdings.of(2.5, 0, 0)})

        wallet = checksum_address(alice.wallet)
        activity = await session.data.get("/activity", user=wallet)
        assert {"TRADE", "REDEEM"} <= {row["type"] for row in activity}
        assert {row["proxyWallet"] for row in activity} == {wallet}
    assert running.stop() == 0, running.output


def printed_for_proxies(running: Running, package: str) -> str:
    """Return the lines that `foretell clients` prints of a client that trades for a proxy wallet."""
    parts = client_parts(Settings(data=running.data))
    (found,) = (
        part
        for client, part in zip(KNOWN_CLIENTS, parts, strict=True)
        if client.package == package and "proxy" in client.wallet
    )
    return found


def played_in_python(running: Running) -> None:
    """Run the lines of both clients in Python, the credentials of the first in those of the second."""
    shown = "print(json.dumps([client.creds.api_key, client.creds.api_secret, client.creds.api_passphrase]))"
    trading = f"{printed_for_proxies(running, NAMES[0])}\n{shown}"
    made = play([sys.executable, "-c", trading], running.folder, FOLDER / NAMES[0])
    assert made.returncode == 0, made.stderr
    given = f"api_key, api_secret, api_passphrase = {json.loads(made.stdout)}\n"
    relaying = given + printed_for_proxies(running, RELAYER_CLIENTS[0])
    done = play([sys.executable, "-c", relaying], running.folder, FOLDER / RELAYER_CLIENTS[0])
    assert done.returncode == 0, done.stderr


def played_in_typescript(running: Running) -> None:
    """Run the lines of both clients in TypeScript likewise."""
    (running.folder / "node_modules").symlink_to(NPM / "node_modules")
    run = [node_program(), "--input-type=module", "-e"]
    trading = printed_for_proxies(running, "@polymarket/clob-client")
    made = play([*run, f"{trading}\nconsole.log(JSON.stringify(creds));"], running.folder)
    assert made.returncode == 0, made.stderr
    given = f"const creds = {made.stdout.strip().splitlines()[-1]};\n"
    done = play([*run, given + printed_for_proxies(running, NPM_RELAYER_CLIENT)], running.folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("played", [played_in_python, played_in_typescript])
async def test_the_lines_that_are_printed_make_the_proxy_wallet(
    running: Running, played: Callable[[Running], None]
) -> None:
    played(running)
    async with running.session() as session:
        owner = parse_address(session.ready.account(AccountRole.TRADER).address)
        wallet = session.deployment.proxy_wallet_of(owner)
        reader = Reader(session.rpc, session.deployment)

        async def fetch_allowed() -> bool | None:
            units = await reader.allowance_units(wallet, session.deployment.exchange)
            return True if units else None

        await wait_for("the approval of the printed lines", fetch_allowed, MADE_WITHIN_S)
        assert await reader.code(wallet)
