"""A wallet's next nonce: the chain's own, and then those that requests of ours have.

What is said here is accepted as long as nothing else was sent in between.
"""

from foretell.domain.relay.request import next_safe_nonce
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.body import NONCE_MAX
from foretell.relayer.checks import fetch_safe
from foretell.relayer.context import RelayerContext
from foretell.store.outbox.relays import load_claimed_nonces


async def load_next_nonce(context: RelayerContext, wallet: Address, used: int) -> int:
    """Return the nonce for a wallet's next transaction, of which the chain has used so many."""
    if used > NONCE_MAX:
        return used
    async with context.database.reading() as tx:
        claimed = await load_claimed_nonces(tx, wallet, used)
    return next_safe_nonce(used, claimed)


async def find_next_nonce(context: RelayerContext, address: Address) -> int:
    """Return the nonce for the next transaction of an owner's wallet, or of the wallet named."""
    wallet = context.deployment.safe_of(address)
    state = await fetch_safe(context, wallet)
    if state is None and (named := await fetch_safe(context, address)) is not None:
        wallet, state = address, named
    return 0 if state is None else await load_next_nonce(context, wallet, state.nonce)
