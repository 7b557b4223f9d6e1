"""API keys: their creation by a wallet's signature (L1), and requests that they sign (L2)."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from foretell.domain.errors.command import KeyFileDamaged
from foretell.domain.values.credentials import (
    L1_DOMAIN_NAME,
    L1_DOMAIN_VERSION,
    Credentials,
    L2Signer,
)
from foretell.domain.values.eip712 import Eip712Domain
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sdk.http import HttpClient
from foretell.sdk.key_file import read_key_file, wrap, write_key_file
from foretell.sdk.signing.signers import Signer
from foretell.sdk.signing.typed_data import key_request

PREFIX: Final = "SERVICE_"
AHEAD_S_MAX: Final = 20
"""How far ahead of the clock a request may be signed; the server accepts 60 s."""


def usual_l1_domain(chain_id: int, name: str = L1_DOMAIN_NAME) -> Eip712Domain:
    """Return the domain in which wallets sign for API keys if no installation is named."""
    return Eip712Domain(name, L1_DOMAIN_VERSION, chain_id)


class AuthenticatedClient:
    """One signer at an API that takes API keys. The secret and the passphrase stay in this process."""

    def __init__(
        self,
        http: HttpClient,
        signer: Signer,
        chain_id: int,
        now_s: Callable[[], int],
        l1_domain: Eip712Domain | None = None,
    ) -> None:
        """`l1_domain` is the domain in which wallets sign for keys, if it is not the usual one."""
        self.http = http
        self.signer = signer
        self.chain_id = chain_id
        self._now_s = now_s
        self._l1_domain = l1_domain or usual_l1_domain(chain_id)
        self.credentials: Credentials | None = None
        self._seconds: dict[tuple[str, bytes], int] = {}

    async def create_key(self, nonce: int = 0) -> Credentials:
        """Create the credentials of a nonce by a signature of the wallet, or get them again."""
        return await self._request_key("POST", "/auth/api-key", nonce)

    async def derive_key(self, nonce: int = 0) -> Credentials:
        """Get credentials that were created before."""
        return await self._request_key("GET", "/auth/derive-api-key", nonce)

    async def _request_key(self, method: str, path: str, nonce: int) -> Credentials:
        timestamp, address = str(self._now_s()), self.signer.address
        typed = key_request(self._l1_domain, address, timestamp, nonce)
        headers = {
            f"{PREFIX}ADDRESS": checksum_address(address),
            f"{PREFIX}SIGNATURE": "0x" + (await self.signer.sign_typed(typed)).hex(),
            f"{PREFIX}TIMESTAMP": timestamp,
            f"{PREFIX}NONCE": str(nonce),
        }
        answer = await self.http.send(method, path, b"", headers, is_repeatable=True)
        self.credentials = Credentials(answer["apiKey"], answer["secret"], answer["passphrase"])
        return self.credentials

    async def revoke_key(self) -> None:
        """Revoke the credentials: their streams close, and they never sign again."""
        await self.send("DELETE", "/auth/api-key", None)
        self.credentials = None

    def write_key(self, file: Path) -> None:
        """Write the credentials to a key file, which has no passphrase; keep that elsewhere."""
        assert self.credentials is not None
        write_key_file(file, wrap(self.signer.address, self.credentials))

    def read_key(self, file: Path, passphrase: str) -> Credentials:
        """Take the credentials of a key file, or refuse another wallet's file or a wrong passphrase."""
        contents = read_key_file(file)
        if contents.address != self.signer.address:
            raise KeyFileDamaged(str(file), f"it is of the address {contents.address}")
        self.credentials = contents.unwrap(passphrase)
        return self.credentials

    def l2_headers(
        self, method: str, path: str, body: bytes = b"", signed_at_s: int | None = None
    ) -> Mapping[str, str]:
        """Return the headers that authenticate one request by the credentials (L2)."""
        assert self.credentials is not None
        timestamp = str(signed_at_s or self._now_s())
        signature = L2Signer(self.credentials.secret).sign(timestamp, method, path, body)
        return {
            f"{PREFIX}ADDRESS": checksum_address(self.signer.address),
            f"{PREFIX}SIGNATURE": signature,
            f"{PREFIX}TIMESTAMP": timestamp,
            f"{PREFIX}API_KEY": self.credentials.key_id,
            f"{PREFIX}PASSPHRASE": self.credentials.passphrase,
        }

    async def get(self, path: str, /, **query: str | int) -> Any:
        """Return the answer of a private path."""
        return await self.http.get(path, self.l2_headers("GET", path), **query)

    async def send(
        self, method: str, path: str, body: object, *, is_repeatable: bool = True
    ) -> Any:
        """Return the answer to a private body; without a body, nothing is sent.

        The server carries out a signed request once, so that it may be sent again. Two cancellations
        with the same words would therefore be one if they were signed in the same second.
        """
        raw = b"" if body is None else msgspec.json.encode(body)
        signed_at_s = await self._new_second(path, raw) if method == "DELETE" else None
        headers = self.l2_headers(method, path, raw, signed_at_s)
        return await self.http.send(method, path, raw, headers, is_repeatable=is_repeatable)

    async def _new_second(self, path: str, raw: bytes) -> int:
        """Return a time of signing that no earlier request with the same words has.

        It may be a little ahead of the clock, as the server allows.
        """
        now_s = self._now_s()
        self._seconds = {key: at_s for key, at_s in self._seconds.items() if at_s >= now_s}
        at_s = max(now_s, self._seconds.get((path, raw), 0) + 1)
        self._seconds[path, raw] = at_s
        if at_s > now_s + AHEAD_S_MAX:
            await asyncio.sleep(at_s - now_s - AHEAD_S_MAX)
        return at_s
