"""JSON over HTTP with a deadline, and waiting by polling."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self, TypeVar

import httpx

from foretell.domain.errors.command import ApiRefused, ApiUnreachable, NotInTime

DEADLINE_S: Final = 90.0
POLL_S: Final = 0.25
OK: Final = 200
RETRY_STATUSES: Final = frozenset({425, 503})
"""Statuses of requests that may be repeated: nothing was done, or a repetition does it once."""
ATTEMPTS_MAX: Final = 10

Value = TypeVar("Value")


class HttpClient:
    """A client of one API."""

    def __init__(self, base_url: str, tls: ssl.SSLContext | None = None) -> None:
        """`tls` has the authorities of the API's certificate, if they are not the usual ones."""
        self.base_url = base_url
        verify = True if tls is None else tls
        self._client = httpx.AsyncClient(timeout=DEADLINE_S, trust_env=False, verify=verify)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(
        self, path: str, headers: Mapping[str, str] | None = None, **query: str | int
    ) -> Any:
        """Return the JSON of a path; refuse a status other than 200."""
        return await self._request("GET", path, headers=headers, params=query)

    async def get_text(self, path: str) -> str:
        """Return the text of a path, unparsed."""
        return (await self._answer("GET", path)).text

    async def send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Return the answer to a JSON body, which is sent byte for byte."""
        head = {"content-type": "application/json", **(headers or {})}
        return await self._request(method, path, headers=head, content=body)

    async def upload(
        self, path: str, fields: Mapping[str, str], files: Mapping[str, tuple[str, bytes, str]]
    ) -> Any:
        """Return the answer to a form with files."""
        return await self._request("POST", path, data=fields, files=files)

    async def _request(self, method: str, path: str, **parts: Any) -> Any:
        return (await self._answer(method, path, **parts)).json()

    async def _answer(self, method: str, path: str, **parts: Any) -> httpx.Response:
        response = await self._attempt(method, path, **parts)
        attempts = 1
        while _is_retryable(response) and attempts < ATTEMPTS_MAX:
            await asyncio.sleep(int(response.headers["retry-after"]))
            response = await self._attempt(method, path, **parts)
            attempts += 1
        if response.status_code != OK:
            raise ApiRefused(f"{method} {path}", response.status_code, response.text)
        return response

    async def _attempt(self, method: str, path: str, **parts: Any) -> httpx.Response:
        try:
            return await self._client.request(method, self.base_url + path, **parts)
        except httpx.HTTPError as error:
            raise ApiUnreachable(self.base_url, type(error).__name__) from error


def _is_retryable(response: httpx.Response) -> bool:
    return response.status_code in RETRY_STATUSES and "retry-after" in response.headers


async def wait_for(
    what: str,
    fetch: Callable[[], Awaitable[Value | None]],
    deadline_s: float = DEADLINE_S,
    poll_s: float = POLL_S,
) -> Value:
    """Return the first result other than None, fetching again and again until the deadline."""
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                found = await fetch()
                if found is not None:
                    return found
                await asyncio.sleep(poll_s)
    except TimeoutError as error:
        raise NotInTime(what, deadline_s) from error
