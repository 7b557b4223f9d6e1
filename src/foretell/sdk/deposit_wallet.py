"""The client of a deposit wallet's owner: it signs batches of the wallet, and the relayer sends them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from foretell.domain.contracts.deposit_wallet import CALLS_PER_BATCH_MAX, WalletBatch
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.signing.typed_data import wallet_batch_data

BATCH_LASTS_S: Final = 600
"""How long a signed batch may be executed: longer than the relayer waits for a transaction."""


class DepositWalletClient:
    """One owner's wallet of a factory, driven by the relayer with the owner's API key."""

    def __init__(
        self,
        relayer: RelayerClient,
        factory: Address,
        wallet: Address,
        fetch_now_s: Callable[[], Awaitable[int]],
    ) -> None:
        """`fetch_now_s` returns the server's time, by which the deadline of a batch is judged."""
        self._relayer = relayer
        self._factory = factory
        self._fetch_now_s = fetch_now_s
        self.wallet = wallet

    async def is_deployed(self) -> bool:
        """Return whether the wallet exists."""
        answer = await self._relayer.http.get(
            "/deployed", address=checksum_address(self.wallet), type="WALLET"
        )
        return bool(answer["deployed"])

    async def create(self) -> Address:
        """Have the wallet deployed, and return its address; one that exists stays as it is."""
        if not await self.is_deployed():
            await self._submit({"type": "WALLET-CREATE"})
        return self.wallet

    async def execute(self, calls: Sequence[InnerCall]) -> str:
        """Make calls from the wallet, and return the hash of the last transaction in its block.

        Up to 16 calls are made all or none; more are made in several transactions, in their order.
        """
        assert calls
        tx_hash = ""
        for first in range(0, len(calls), CALLS_PER_BATCH_MAX):
            tx_hash = await self._execute_batch(calls[first : first + CALLS_PER_BATCH_MAX])
        return tx_hash

    async def _execute_batch(self, calls: Sequence[InnerCall]) -> str:
        wallet, chain_id = checksum_address(self.wallet), self._relayer.chain_id
        nonce = await self._relayer.http.get("/nonce", address=wallet, type="WALLET")
        deadline_s = await self._fetch_now_s() + BATCH_LASTS_S
        batch = WalletBatch(self.wallet, tuple(calls), int(nonce["nonce"]), deadline_s)
        signature = await self._relayer.owner.signer.sign_typed(wallet_batch_data(chain_id, batch))
        return await self._submit(
            {
                "type": "WALLET",
                "nonce": nonce["nonce"],
                "signature": "0x" + signature.hex(),
                "depositWalletParams": {
                    "depositWallet": wallet,
                    "deadline": str(deadline_s),
                    "calls": [
                        {
                            "target": checksum_address(call.to),
                            "value": str(call.value_wei),
                            "data": "0x" + call.calldata.hex(),
                        }
                        for call in calls
                    ],
                },
            }
        )

    async def _submit(self, fields: dict[str, Any]) -> str:
        owner = checksum_address(self._relayer.owner.signer.address)
        body = {"from": owner, "to": checksum_address(self._factory), **fields}
        return await self._relayer.wait_until_mined(await self._relayer.post("/submit", body))
