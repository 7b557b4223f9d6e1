"""The next nonce of a wallet: the chain's, after which those of open requests are skipped.

The nonce is accepted unless another transaction of the wallet is submitted first.
"""

from foretell.chain.reader import Reader
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.relay.request import DEPOSIT_KINDS, RelayKind, next_safe_nonce
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.body import NONCE_MAX
from foretell.relayer.context import RelayerContext
from foretell.store.outbox.relays import load_claimed_nonces
from foretell.store.public_reads.places import ReadKind


async def load_next_nonce(
    context: RelayerContext, wallet: Address, used: int, kind: ReadKind
) -> int:
    """Return the nonce of a wallet's next transaction; the chain has used all below `used`."""
    if used > NONCE_MAX:
        return used
    async with context.database.public_reading(kind) as tx:
        claimed = await load_claimed_nonces(tx, wallet, used)
    return next_safe_nonce(used, claimed)


async def find_next_nonce(
    context: RelayerContext, address: Address, kind: RelayKind, read_kind: ReadKind
) -> int:
    """Return the nonce of the next transaction of an owner's wallet of a kind, or of the wallet itself.

    Of an owner's deposit wallets it is the first that is deployed. The address may be any contract's, so only
    its nonce is asked for.
    """
    deployment = context.deployment
    reader = context.reader.public if read_kind is ReadKind.LISTING else context.reader
    if kind is RelayKind.PROXY:
        return await _next_proxy_nonce(context, reader, address, read_kind)
    is_deposit = kind in DEPOSIT_KINDS
    wallets = (
        deployment.deposit_wallets_of(address) if is_deposit else (deployment.safe_of(address),)
    )
    for wallet in (*wallets, address):
        used = await reader.wallet_nonce(wallet)
        if used is not None:
            return await load_next_nonce(context, wallet, used, read_kind)
    return 0


async def _next_proxy_nonce(
    context: RelayerContext, reader: Reader, owner: Address, read_kind: ReadKind
) -> int:
    """Return the nonce of an owner's next call through the relay hub."""
    deployment = context.deployment
    if deployment.proxy_wallet_factory is None:
        return 0
    used = await reader.relay_nonce(deployment.address(ContractName.RELAY_HUB), owner)
    return await load_next_nonce(context, deployment.proxy_wallet_of(owner), used, read_kind)
