"""A builder with a key of its own, that signs requests beside their owners or alone."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
from tests.rigs.trading import Headers, Trader

from foretell.domain.exchange.order import SignedOrder
from foretell.domain.values.credentials import L2Signer
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.builders.keys import builder_code

PATH = "/auth/builder-api-key"


class Builder:
    """The holder of a builder's key that a trader created."""

    def __init__(self, owner: Trader, made: Any, prefix: str = "SERVICE_") -> None:
        self.rig = owner.rig
        self.prefix = prefix
        self.code: Bytes32 = builder_code(owner.address)
        self.key: str = made["key"]
        self.secret: str = made["secret"]
        self.passphrase: str = made["passphrase"]

    def headers(self, method: str, path: str, body: bytes = b"", **changed: str) -> Headers:
        """Return the builder's headers of a request."""
        timestamp = str(self.rig.clock.at_ms // 1000)
        values = {
            "API_KEY": self.key,
            "TIMESTAMP": timestamp,
            "PASSPHRASE": self.passphrase,
            "SIGNATURE": L2Signer(self.secret).sign(timestamp, method, path, body),
        }
        return {f"{self.prefix}BUILDER_{name}": each for name, each in (values | changed).items()}

    async def send(self, method: str, path: str, **query: Any) -> httpx.Response:
        """Send a request that the builder alone signs."""
        headers = self.headers(method, path)
        return await self.rig.client.request(method, path, params=query, headers=headers)

    async def bring(
        self,
        owner: Trader,
        order: SignedOrder,
        order_type: str = "GTC",
        *,
        path: str = "/order",
        client: httpx.AsyncClient | None = None,
        changed: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Place an owner's order with the builder's headers beside the owner's."""
        raw = json.dumps(owner.body(order, order_type), separators=(",", ":")).encode()
        headers = owner.l2_headers("POST", "/order", raw)
        headers |= self.headers("POST", "/order", raw, **(changed or {}))
        headers["content-type"] = "application/json"
        return await (client or self.rig.client).post(path, content=raw, headers=headers)


async def a_builder_of(owner: Trader, prefix: str = "SERVICE_") -> Builder:
    """Return a builder with a new key of an address."""
    answer = await owner.send("POST", PATH)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return Builder(owner, answer.json(), prefix)
