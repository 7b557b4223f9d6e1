"""A Safe wallet: deployed, funded, and used without paying for gas. The relayer sends its transactions."""

import asyncio

import sandbox
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sdk import wallet_calls
from foretell.sdk.client import Foretell, KeySigner
from foretell.sdk.http import wait_for


async def main() -> None:
    """Split and merge in a new Safe."""
    owner = KeySigner.new()  # keep it: `KeySigner.from_keystore` reads a wallet's file
    async with Foretell.connect(sandbox.urls(), owner, wallet="safe") as foretell:
        safe = await foretell.deploy_wallet()
        print(f"Safe {checksum_address(safe)} of {checksum_address(owner.address)}")

        async with Foretell.connect(sandbox.urls(), sandbox.signer("faucet")) as faucet:
            await faucet.execute([wallet_calls.transfer(faucet.contracts, safe, 50_000_000)])

        market = await foretell.apis.discovery.market(sandbox.seeded_market())
        print("split:", await foretell.split(market.condition, "30"))
        print("merge:", await foretell.merge(market.condition, "12.5"))

        async def fetch_tokens() -> list[float] | None:
            sizes = [row["size"] for row in await foretell.portfolio.positions()]
            return sizes if sizes == [17.5, 17.5] else None  # the indexer follows the chain

        print("tokens:", await wait_for("the positions", fetch_tokens))


asyncio.run(main())
