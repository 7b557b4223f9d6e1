"""Health of the relayer: its chain answers and has the expected id."""

import asyncio
from typing import Final

from foretell.domain.errors.chain import WrongChain
from foretell.domain.errors.families import Upstream
from foretell.domain.errors.relayer import WalletServiceDisabled
from foretell.relayer.context import RelayerContext

DEADLINE_S: Final = 2.0


async def check_health(context: RelayerContext) -> None:
    """Refuse when transactions cannot be sent; the node is asked once for all who want to know at a time."""

    async def fetch_chain_id() -> int:
        async with asyncio.timeout(DEADLINE_S):
            return await context.reader.chain_id()

    try:
        await context.shared_calls.result("health", fetch_chain_id)
    except WrongChain as error:
        raise WalletServiceDisabled(error.message) from error
    except (Upstream, TimeoutError) as error:
        raise WalletServiceDisabled("the chain does not answer") from error
