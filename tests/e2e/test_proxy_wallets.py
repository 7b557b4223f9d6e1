"""A proxy wallet's whole story in a running sandbox, told by unmodified clients and checked on the chain."""

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
from tests.ecosystem.clients import KUEST_V2, NAMES, PROXY_CHAIN, RELAYER_CLIENTS
from tests.rigs.installation import Running

from foretell.domain.contracts.calldata import RedeemPositions
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import checksum_address, parse_bytes32
from foretell.sandbox.demo.resolution import resolve
from foretell.sandbox.market_creation import SandboxMarket

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

PROXY: Final = 1
DEPOSIT: Final = 3
"""The signature types of the two wallets."""


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
