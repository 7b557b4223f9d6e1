from pathlib import Path

import pytest
from rich.console import Console
from tests.rigs.in_process import installed, sandbox_settings
from tests.rigs.values import a_key

from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import new_trader
from foretell.sandbox.ready import NOT_SEEDED, describe
from foretell.sdk.trading import Wallet

pytestmark = pytest.mark.anyio


async def test_a_trader_gets_a_key_in_the_domain_of_the_installation(tmp_path: Path) -> None:
    """A finding: the demo signed in the default domain, whatever `l1_domain` was."""
    settings = sandbox_settings(tmp_path, l1_domain="Example Exchange", chain_block_s=0.1)
    async with installed(settings) as running:
        deployment = running.deployment
        assert deployment is not None
        ready = describe(
            settings.base_url, settings.devchain_url, deployment, NOT_SEEDED, settings.l1_domain
        )
        async with DemoSession.open(ready, deployment, console=Console(quiet=True)) as session:
            trader = await new_trader(session, Wallet(a_key("dana")))
            assert trader.credentials is not None
            listed = await trader.get("/auth/api-keys")
    assert listed == [trader.credentials.key_id]
