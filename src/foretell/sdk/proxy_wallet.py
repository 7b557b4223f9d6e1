"""The client of a proxy wallet's owner: it signs calls of the wallet, and the relayer sends them.

Nothing deploys the wallet by itself: its first calls make it.
"""

from collections.abc import Sequence
from typing import Any, Final

from foretell.domain.contracts.proxy_wallet import (
    CALLS_PER_PROXY_MAX,
    RelayedCall,
    encode_proxy_calls,
)
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.values.hexadecimal import Address, checksum_address, parse_address
from foretell.sdk.relayer import RelayerClient

GAS_LIMIT: Final = 10_000_000
"""The gas that signed calls may use, more than 16 of them need; the relayer pays for what they use."""


class ProxyWalletClient:
    """One owner's proxy wallet, driven by the relayer with the owner's API key."""

    def __init__(
        self, relayer: RelayerClient, factory: Address, hub: Address, wallet: Address
    ) -> None:
        self._relayer = relayer
        self._factory = factory
        self._hub = hub
        self.wallet = wallet

    async def is_deployed(self) -> bool:
        """Return whether the wallet exists."""
        answer = await self._relayer.http.get(
            "/deployed", address=checksum_address(self.wallet), type="PROXY"
        )
        return bool(answer["deployed"])

    async def execute(self, calls: Sequence[InnerCall]) -> str:
        """Make calls from the wallet, and return the hash of the last transaction in its block.

        Up to 16 calls are made all or none; more are made in several transactions, in their order.
        """
        assert calls
        tx_hash = ""
        for first in range(0, len(calls), CALLS_PER_PROXY_MAX):
            answer = await self.submit(calls[first : first + CALLS_PER_PROXY_MAX])
            tx_hash = await self._relayer.wait_until_mined(answer)
        return tx_hash

    async def submit(self, calls: Sequence[InnerCall]) -> Any:
        """Sign up to 16 calls of the wallet, and return the relayer's acceptance."""
        owner = self._relayer.owner.signer
        payload = await self._relayer.http.get(
            "/relay-payload", address=checksum_address(owner.address), type="PROXY"
        )
        relayed = RelayedCall(
            owner=owner.address,
            factory=self._factory,
            calldata=encode_proxy_calls(tuple(calls)),
            gas_limit=GAS_LIMIT,
            nonce=int(payload["nonce"]),
            hub=self._hub,
            relay=parse_address(payload["address"]),
        )
        signature = await owner.sign_message(relayed.message())
        return await self._relayer.post("/submit", self._body(relayed, signature))

    def _body(self, relayed: RelayedCall, signature: bytes) -> dict[str, Any]:
        return {
            "type": "PROXY",
            "from": checksum_address(relayed.owner),
            "to": checksum_address(relayed.factory),
            "proxyWallet": checksum_address(self.wallet),
            "data": "0x" + relayed.calldata.hex(),
            "nonce": str(relayed.nonce),
            "signature": "0x" + signature.hex(),
            "signatureParams": {
                "gasPrice": "0",
                "gasLimit": str(relayed.gas_limit),
                "relayerFee": "0",
                "relayHub": checksum_address(relayed.hub),
                "relay": checksum_address(relayed.relay),
            },
            "metadata": "",
        }
