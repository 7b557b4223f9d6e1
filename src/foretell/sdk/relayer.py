"""The client of a wallet's owner: it signs what its Safe or deposit wallet does, and the relayer sends it."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.deposit_wallet import WalletBatch
from foretell.domain.contracts.safe import (
    OPERATION_CALL,
    OPERATION_DELEGATECALL,
    InnerCall,
    SafeTx,
    create_proxy_digest,
    encode_multi_send,
    sign_safe_tx,
)
from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, checksum_address
from foretell.sdk.http import POLL_S, HttpClient, wait_for
from foretell.sdk.trading import TradingClient

DONE: Final = frozenset({"STATE_MINED", "STATE_CONFIRMED"})
FAILED: Final = frozenset({"STATE_FAILED", "STATE_INVALID"})


class RelayerClient:
    """One owner at the relayer, authenticated by trading credentials."""

    def __init__(
        self,
        http: HttpClient,
        trader: TradingClient,
        deployment: Deployment,
        *,
        poll_s: float = POLL_S,
    ) -> None:
        self._http = http
        self._trader = trader
        self._deployment = deployment
        self._poll_s = poll_s
        self.safe = deployment.safe_of(trader.wallet.address)

    async def create_safe(self) -> Address:
        """Have the owner's Safe deployed, and return its address."""
        deployment, wallet = self._deployment, self._trader.wallet
        digest = create_proxy_digest(
            deployment.safe_factory, deployment.safe_factory_name, deployment.chain_id
        )
        body = {
            "type": "SAFE-CREATE",
            "from": checksum_address(wallet.address),
            "to": checksum_address(deployment.safe_factory),
            "proxyWallet": checksum_address(self.safe),
            "data": "0x",
            "signature": "0x" + sign_digest(digest, wallet.private_key).hex(),
            "signatureParams": {
                "paymentToken": ZERO_ADDRESS,
                "payment": "0",
                "paymentReceiver": ZERO_ADDRESS,
            },
        }
        await self.wait_until_mined(await self._post("/submit", body))
        return self.safe

    async def execute(self, calls: Sequence[InnerCall]) -> str:
        """Make calls from the Safe, and return the hash of the transaction once it is in a block."""
        return await self.wait_until_mined(await self.submit(calls))

    async def submit(self, calls: Sequence[InnerCall]) -> Any:
        """Sign calls of the Safe, bundled when there are several, and return the relayer's acceptance."""
        if len(calls) == 1:
            to, calldata, operation = calls[0].to, calls[0].calldata, OPERATION_CALL
        else:
            to, calldata = self._deployment.multi_send, encode_multi_send(calls)
            operation = OPERATION_DELEGATECALL
        body = await self._safe_body(to, calldata, operation)
        return await self._post("/submit", body)

    async def create_deposit_wallet(self) -> Address:
        """Have the owner's deposit wallet of the first factory deployed, and return its address."""
        owner = self._trader.wallet.address
        body = {
            "type": "WALLET-CREATE",
            "from": checksum_address(owner),
            "to": checksum_address(self._deployment.deposit_wallet_factories[0]),
        }
        await self.wait_until_mined(await self._post("/submit", body))
        return self._deployment.deposit_wallets_of(owner)[0]

    async def execute_batch(self, calls: Sequence[InnerCall], deadline_s: int) -> str:
        """Make calls from the deposit wallet, and return the hash of the transaction in its block."""
        wallet, deployment = self._trader.wallet, self._deployment
        own = deployment.deposit_wallets_of(wallet.address)[0]
        nonce = await self._http.get("/nonce", address=own, type="WALLET")
        batch = WalletBatch(own, tuple(calls), int(nonce["nonce"]), deadline_s)
        digest = batch.digest(deployment.chain_id)
        body = {
            "type": "WALLET",
            "from": checksum_address(wallet.address),
            "to": checksum_address(deployment.deposit_wallet_factories[0]),
            "nonce": nonce["nonce"],
            "signature": "0x" + sign_digest(digest, wallet.private_key).hex(),
            "depositWalletParams": {
                "depositWallet": checksum_address(own),
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
        return await self.wait_until_mined(await self._post("/submit", body))

    async def operate(self, operation: str, calldata: bytes) -> Any:
        """Have the Safe redeem or merge at the conditional tokens, and return the answer."""
        tokens = self._deployment.conditional_tokens
        body = await self._safe_body(tokens, calldata, OPERATION_CALL)
        return await self._post(f"/operations/{operation}", body)

    async def _safe_body(self, to: Address, calldata: bytes, operation: int) -> dict[str, Any]:
        wallet = self._trader.wallet
        nonce = await self._http.get("/nonce", address=wallet.address, type="SAFE")
        safe_tx = SafeTx(self.safe, to, calldata, int(nonce["nonce"]), operation)
        digest = safe_tx.digest(self._deployment.chain_id)
        return {
            "type": "SAFE",
            "from": checksum_address(wallet.address),
            "to": checksum_address(to),
            "proxyWallet": checksum_address(self.safe),
            "data": "0x" + calldata.hex(),
            "nonce": nonce["nonce"],
            "signature": "0x" + sign_safe_tx(digest, wallet.private_key).hex(),
            "signatureParams": {
                "operation": str(operation),
                "safeTxnGas": "0",
                "baseGas": "0",
                "gasPrice": "0",
                "gasToken": ZERO_ADDRESS,
                "refundReceiver": ZERO_ADDRESS,
            },
            "metadata": "",
        }

    async def _post(self, path: str, body: object) -> Any:
        raw = msgspec.json.encode(body)
        return await self._http.send("POST", path, raw, self._trader.l2_headers("POST", path, raw))

    async def wait_until_mined(self, answer: Any) -> str:
        """Return the hash of an accepted transaction once it is in a block."""

        async def fetch_hash() -> str | None:
            found = await self._http.get("/transaction", id=answer["transactionID"])
            state = found[0]["state"] if found else "STATE_NEW"
            if state in FAILED:
                raise ApiRefused("POST /submit", 200, str(found[0]["failureReason"]))
            return str(found[0]["transactionHash"]) if state in DONE else None

        return await wait_for("the relayer's transaction", fetch_hash, poll_s=self._poll_s)
