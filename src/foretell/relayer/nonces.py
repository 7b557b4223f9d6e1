"""The next nonce of a wallet: the chain's, after which those of open requests are skipped.

The nonce is accepted unless another transaction of the wallet is submitted first.
"""

from foretell.domain.relay.request import next_safe_nonce
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.body import NONCE_MAX
from foretell.relayer.checks import fetch_safe
from foretell.relayer.context import RelayerContext
from foretell.store.outbox.relays import load_claimed_nonces


async def load_next_nonce(context: RelayerContext, wallet: Address, used: int) -> int:
    """Return the nonce of a wallet's next transaction; the chain has used all below `used`."""
    if used > NONCE_MAX:
        return used
    async with context.database.reading() as tx:
        claimed = await load_claimed_nonces(tx, wallet, used)
    return next_safe_nonce(used, claimed)


async def find_next_nonce(context: RelayerContext, address: Address) -> int:
    """Return the nonce of the next transaction of an owner's wallet, or of the wallet itself."""
    wallet = context.deployment.safe_of(address)
    state = await fetch_safe(context, wallet)
    if state is None and (named := await fetch_safe(context, address)) is not None:
        wallet, state = address, named
    return 0 if state is None else await load_next_nonce(context, wallet, state.nonce)
