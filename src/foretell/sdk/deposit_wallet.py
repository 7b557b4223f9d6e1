"""The client of a deposit wallet's owner: it signs batches of the wallet, and the relayer sends them."""

from collections.abc import Sequence

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.deposit_wallet import WalletBatch
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.values.eip712 import address_of_key, sign_digest
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.sdk.http import HttpClient
from foretell.sdk.relayer import RelayerClient


class DepositWalletClient:
    """One owner's wallet of the first factory of a deployment, driven by the relayer."""

    def __init__(
        self, http: HttpClient, relayer: RelayerClient, deployment: Deployment, private_key: bytes
    ) -> None:
        self._http = http
        self._relayer = relayer
        self._deployment = deployment
        self._key = private_key
        self._owner = address_of_key(private_key)
        self.wallet: Address = deployment.deposit_wallets_of(self._owner)[0]

    async def create(self) -> Address:
        """Have the wallet deployed, and return its address."""
        factory = self._deployment.deposit_wallet_factories[0]
        body = {
            "type": "WALLET-CREATE",
            "from": checksum_address(self._owner),
            "to": checksum_address(factory),
        }
        await self._relayer.wait_until_mined(await self._relayer.post("/submit", body))
        return self.wallet

    async def execute(self, calls: Sequence[InnerCall], deadline_s: int) -> str:
        """Make calls from the wallet, and return the hash of the transaction in its block."""
        nonce = await self._http.get("/nonce", address=self.wallet, type="WALLET")
        batch = WalletBatch(self.wallet, tuple(calls), int(nonce["nonce"]), deadline_s)
        signature = sign_digest(batch.digest(self._deployment.chain_id), self._key)
        body = {
            "type": "WALLET",
            "from": checksum_address(self._owner),
            "to": checksum_address(self._deployment.deposit_wallet_factories[0]),
            "nonce": nonce["nonce"],
            "signature": "0x" + signature.hex(),
            "depositWalletParams": {
                "depositWallet": checksum_address(self.wallet),
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
        return await self._relayer.wait_until_mined(await self._relayer.post("/submit", body))
