"""Health of the relayer: its chain answers and has the expected id."""

import asyncio
from typing import Final

from foretell.domain.errors.families import Upstream
from foretell.domain.errors.relayer import WalletServiceDisabled
from foretell.relayer.context import RelayerContext

DEADLINE_S: Final = 2.0


async def check_health(context: RelayerContext) -> None:
    """Refuse when transactions cannot be sent."""
    wanted = context.deployment.chain_id
    try:
        async with asyncio.timeout(DEADLINE_S):
            seen = await context.reader.chain_id()
    except (Upstream, TimeoutError) as error:
        raise WalletServiceDisabled("the chain does not answer") from error
    if seen != wanted:
        raise WalletServiceDisabled(f"the node serves chain {seen}, and chain {wanted} is required")
