"""Permanent storage of items: a provider takes an item by POST, and answers with a short receipt."""

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Final, Self

import httpx

from foretell.domain.creation.data_items import DataItem
from foretell.domain.errors.storage import StorageUnavailable

POST_DEADLINE_S: Final = 30.0
RECEIPT_BYTES_MAX: Final = 64 * 1024
_CAUSE_CHARS_MAX: Final = 200


class PermanentStorage(ABC):
    """A client of one service."""

    name: str
    """What messages call the service."""

    def __init__(self, url: str, token: str | None, deadline_s: float) -> None:
        self._url = url
        self._deadline_s = deadline_s
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(timeout=deadline_s, trust_env=False, headers=headers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    @abstractmethod
    async def post(self, item: DataItem) -> None:
        """Post an item; raise StorageUnavailable unless the receipt has its id."""

    async def receipt(self, **request: Any) -> bytes:
        """Return the receipt of a post, or raise StorageUnavailable; the message has no token.

        The deadline is of the whole post: a service that sends a byte now and then would have all items wait.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                async with self._http.stream("POST", self._url, **request) as answer:
                    body = await self._read(answer)
        except TimeoutError as error:
            why = f"{self.name} gave no receipt within {self._deadline_s:g} s"
            raise StorageUnavailable(why) from error
        except httpx.HTTPError as error:
            raise StorageUnavailable(f"{self.name}: {type(error).__name__}") from error
        if not answer.is_success:
            words = body.decode(errors="replace")[:_CAUSE_CHARS_MAX]
            raise StorageUnavailable(f"{self.name} answers {answer.status_code}: {words}")
        return body

    async def _read(self, answer: httpx.Response) -> bytes:
        """Return an answer's body; more than a receipt can have is not read."""
        body = b""
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > RECEIPT_BYTES_MAX:
                raise StorageUnavailable(f"{self.name}'s receipt is too long")
        return body
