"""JSON over HTTP with a deadline, retries where they are safe, and waiting by polling.

An answer that says that nothing was done is followed by another attempt. After a connection that
broke, nobody knows: then only a request that may be repeated is sent again.
"""

import asyncio
import functools
import itertools
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar

import httpx

from foretell.domain.errors.command import ApiRefused, ApiUnreachable, NotInTime
from foretell.sdk.pauses import growing_pauses_s

DEADLINE_S: Final = 90.0
POLL_S: Final = 0.25
IDLE_CONNECTIONS: Final = httpx.Limits(
    max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0
)
"""A connection is kept for so many seconds for the next request; an exchange has to keep it for longer."""
OK: Final = 200
RETRY_STATUSES: Final = frozenset({425, 429, 503})
"""Statuses of requests that may be repeated: nothing was done, or a repetition does it once."""
ATTEMPTS_MAX: Final = 10
RETRY_AFTER_S_MAX: Final = 60
"""The longest pause that an answer may ask for."""
ATTEMPTS_WITHIN_S: Final = 120.0
"""Time in which a request is repeated: less than a signed one is valid for."""
UNREACHABLE_ATTEMPTS: Final = 6
"""The attempts of a client that waits for a server: it gives up after about 3 s."""

Value = TypeVar("Value")


@functools.cache
def usual_authorities() -> ssl.SSLContext:
    """Return the usual authorities of certificates; reading them takes 30 ms, so all clients share them."""
    return httpx.create_ssl_context(trust_env=False)


class HttpClient:
    """A client of one API."""

    def __init__(
        self, base_url: str, tls: ssl.SSLContext | None = None, *, unreachable_attempts: int = 1
    ) -> None:
        """`tls` has the authorities of the API's certificate, if they are not the usual ones.

        Requests that may be repeated are sent up to `unreachable_attempts` times while nobody answers.
        """
        assert unreachable_attempts >= 1
        self.base_url = base_url
        self.attempts_within_s = ATTEMPTS_WITHIN_S
        self._unreachable_attempts = unreachable_attempts
        verify = usual_authorities() if tls is None else tls
        self._client = httpx.AsyncClient(
            timeout=DEADLINE_S, limits=IDLE_CONNECTIONS, trust_env=False, verify=verify
        )

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
        return (await self._answer("GET", path, is_repeatable=True)).text

    async def send(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        is_repeatable: bool = False,
    ) -> Any:
        """Return the answer to a JSON body, which is sent byte for byte.

        A request that has the same effect once or twice is repeatable, such as an order.
        """
        head = {"content-type": "application/json", **(headers or {})}
        return (
            await self._answer(
                method, path, is_repeatable=is_repeatable, headers=head, content=body
            )
        ).json()

    async def upload(
        self, path: str, fields: Mapping[str, str], files: Mapping[str, tuple[str, bytes, str]]
    ) -> Any:
        """Return the answer to a form with files."""
        return await self._request("POST", path, data=fields, files=files)

    async def _request(self, method: str, path: str, **parts: Any) -> Any:
        return (await self._answer(method, path, is_repeatable=method == "GET", **parts)).json()

    async def _answer(
        self, method: str, path: str, *, is_repeatable: bool, **parts: Any
    ) -> httpx.Response:
        attempts = self._unreachable_attempts if is_repeatable else 1
        pauses_s = growing_pauses_s()
        give_up_at_s = time.monotonic() + self.attempts_within_s
        for _ in range(ATTEMPTS_MAX - 1):
            response = await self._reach(
                method, path, itertools.islice(pauses_s, attempts - 1), parts
            )
            if not _is_retryable(response):
                break
            pause_s = min(int(response.headers["retry-after"]), RETRY_AFTER_S_MAX)
            if time.monotonic() + pause_s > give_up_at_s:
                break
            await asyncio.sleep(pause_s)
        else:
            response = await self._attempt(method, path, **parts)
        if response.status_code != OK:
            raise ApiRefused(f"{method} {path}", response.status_code, response.text)
        return response

    async def _reach(
        self, method: str, path: str, pauses_s: Iterator[float], parts: Mapping[str, Any]
    ) -> httpx.Response:
        """Return an answer of any status, after as many attempts as there are pauses and one more."""
        for pause_s in pauses_s:
            try:
                return await self._attempt(method, path, **parts)
            except ApiUnreachable:
                await asyncio.sleep(pause_s)
        return await self._attempt(method, path, **parts)

    async def _attempt(self, method: str, path: str, **parts: Any) -> httpx.Response:
        try:
            return await self._client.request(method, self.base_url + path, **parts)
        except httpx.HTTPError as error:
            raise ApiUnreachable(self.base_url, type(error).__name__) from error


def _is_retryable(response: httpx.Response) -> bool:
    pause = response.headers.get("retry-after", "")
    return response.status_code in RETRY_STATUSES and pause.isdecimal()


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
