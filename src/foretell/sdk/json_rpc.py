"""JSON-RPC to a node or a signer. A read is repeated when nobody answers; a broadcast is sent once."""

import asyncio
import itertools
from typing import Any, Final, Self

import httpx
import msgspec

from foretell.domain.errors.chain import ChainUnavailable, ExecutionReverted, RpcRefused
from foretell.sdk.http import usual_authorities
from foretell.sdk.pauses import growing_pauses_s

ATTEMPTS_MAX: Final = 4
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
TIMEOUT_S: Final = 20.0

_REVERTED_CODE: Final = 3


class JsonRpc:
    """A connection to one program; `headers` may carry its access token."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._url = url
        self._ids = itertools.count(1)
        self._client = httpx.AsyncClient(
            timeout=TIMEOUT_S, trust_env=False, headers=headers, verify=usual_authorities()
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def call(self, method: str, *params: object) -> Any:
        """Return the result of a read, requested again with growing pauses while nobody answers."""
        for pause_s in itertools.islice(growing_pauses_s(), ATTEMPTS_MAX - 1):
            try:
                return await self.send(method, *params)
            except ChainUnavailable:
                await asyncio.sleep(pause_s)
        return await self.send(method, *params)

    async def send(self, method: str, *params: object) -> Any:
        """Return the result of a call that is sent exactly once."""
        request = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = _decoded(method, await self._post(method, request))
        if not isinstance(answer, dict) or answer.get("id") != request["id"]:
            raise ChainUnavailable(method, "the answer is not that of the request")
        if answer.get("error") is not None:
            raise _refusal(method, answer["error"])
        return answer.get("result")

    async def _post(self, method: str, request: object) -> bytes:
        content = msgspec.json.encode(request)
        head = {"content-type": "application/json"}
        try:
            async with self._client.stream(
                "POST", self._url, content=content, headers=head
            ) as response:
                parts, size = [], 0
                async for part in response.aiter_bytes():
                    size += len(part)
                    if size > ANSWER_BYTES_MAX:
                        raise ChainUnavailable(method, f"more than {ANSWER_BYTES_MAX} bytes")
                    parts.append(part)
        except httpx.HTTPError as error:
            raise ChainUnavailable(method, type(error).__name__) from error
        if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise ChainUnavailable(method, f"HTTP {response.status_code}")
        return b"".join(parts)


def _decoded(method: str, raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ChainUnavailable(method, "the answer is not JSON-RPC") from error


def _refusal(method: str, error: Any) -> RpcRefused:
    fields = error if isinstance(error, dict) else {}
    code, message = int(fields.get("code", 0)), str(fields.get("message", "no reason"))
    data = fields.get("data")
    is_reverted = code == _REVERTED_CODE or "revert" in message
    kind = ExecutionReverted if is_reverted else RpcRefused
    return kind(method, code, message, data if isinstance(data, str) else "")
