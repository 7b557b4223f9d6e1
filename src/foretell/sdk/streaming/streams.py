"""WebSocket streams that survive a lost connection.

A stream is opened again with growing pauses, and goes on where it was if the server kept it. Every
message is numbered: after a gap, books are forgotten and asked for once more, so that a book is
either exact or known to be missing.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from foretell.domain.errors.command import ApiRefused, StreamLost
from foretell.domain.values.credentials import Credentials
from foretell.sdk.pauses import growing_pauses_s
from foretell.sdk.streaming.book import LiveBook, Message

QUIET_S: Final = 30.0
"""A connection that answers no ping within this time is given up."""
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
CONNECT_S: Final = 10.0


class Restarted(NamedTuple):
    """A new stream begins after a lost one; what happened in between is unknown."""

    reconnects: int


StreamEvent = Message | Restarted


class _Position(NamedTuple):
    """A stream, and the number of its last message that arrived."""

    stream_id: str
    sequence: int


class Stream:
    """The messages of one subscription, over as many connections as it takes.

    A server that keeps streams is asked to go on with the last one; then nothing is missing.
    """

    def __init__(
        self, url: str, subscription: Callable[[], Message], attempts_max: int | None = None
    ) -> None:
        """`attempts_max` bounds the attempts to open it again; None means that it never gives up."""
        self._url = url
        self._subscription = subscription
        self._attempts_max = attempts_max
        self._position: _Position | None = None
        self._has_begun = False
        self.reconnects = 0

    async def events(self) -> AsyncGenerator[StreamEvent]:
        """Yield every message in order; `Restarted` stands where messages may be missing."""
        attempts, pauses_s = 0, growing_pauses_s()
        while True:
            try:
                async with contextlib.aclosing(self._events()) as events:
                    async for event in events:
                        attempts, pauses_s = 0, growing_pauses_s()
                        yield event
            except (OSError, TimeoutError, WebSocketException) as error:
                lost: Exception = error
            else:
                lost = ConnectionError("the server closed the stream")
            attempts += 1
            self.reconnects += 1
            if self._attempts_max is not None and attempts > self._attempts_max:
                raise StreamLost(self._url, type(lost).__name__) from lost
            await asyncio.sleep(next(pauses_s))

    async def _events(self) -> AsyncGenerator[StreamEvent]:
        """Yield the events of one connection; it ends when a number is missing."""
        opened = connect(
            self._url,
            proxy=None,
            open_timeout=CONNECT_S,
            ping_timeout=QUIET_S,
            max_size=MESSAGE_BYTES_MAX,
        )
        async with opened as connection:
            subscription = self._subscription()
            if self._position is not None:
                subscription |= self._position._asdict()
            await connection.send(msgspec.json.encode(subscription).decode())
            unnamed = f"connection {self.reconnects}"
            async for message in _objects(connection):
                if "sequence" not in message:
                    continue  # resumed, not_resumed, heartbeat
                is_new = self._follow(message.get("stream_id", unnamed), message["sequence"])
                if self._position is None:
                    return
                if is_new and self._has_begun:
                    yield Restarted(self.reconnects)
                self._has_begun = True
                yield message

    def _follow(self, stream_id: str, sequence: int) -> bool:
        """Move to a message, and return whether its stream is new; without a position, one is missing."""
        last = self._position
        is_new = last is None or last.stream_id != stream_id
        expected = 1 if is_new or last is None else last.sequence + 1
        self._position = _Position(stream_id, sequence) if sequence == expected else None
        return is_new


async def _objects(connection: ClientConnection) -> AsyncIterator[Message]:
    """Yield the JSON objects of a connection; a refused login or subscription raises."""
    async for text in connection:
        try:
            decoded = msgspec.json.decode(text)
        except msgspec.DecodeError:
            continue  # PONG, or INVALID OPERATION
        for message in decoded if isinstance(decoded, list) else [decoded]:
            if "error" in message and "sequence" not in message:
                raise ApiRefused("the stream", 401, text_of(text))
            yield message


def text_of(text: str | bytes) -> str:
    """Return a frame as text."""
    return text if isinstance(text, str) else text.decode(errors="replace")


def market_subscription(token_ids: Sequence[str], *, has_announcements: bool = False) -> Message:
    """Return the subscription to the books and trades of tokens."""
    return {
        "type": "market",
        "assets_ids": list(token_ids),
        "custom_feature_enabled": has_announcements,
    }


def user_subscription(credentials: Credentials, markets: Sequence[str] = ()) -> Message:
    """Return the subscription to the orders and trades of a key's owner."""
    auth = {
        "apiKey": credentials.key_id,
        "secret": credentials.secret,
        "passphrase": credentials.passphrase,
    }
    return {"type": "user", "auth": auth, "markets": list(markets)}


class BookChange(NamedTuple):
    """A book after a change, and the message that changed it."""

    book: LiveBook
    message: Message


async def watch_books(
    ws_url: str, token_ids: Sequence[str], attempts_max: int | None = None
) -> AsyncGenerator[BookChange]:
    """Yield a book after each change of it; after a gap, only books that are whole again."""
    books = {token: LiveBook(token) for token in token_ids}
    stream = Stream(f"{ws_url}/market", lambda: market_subscription(token_ids), attempts_max)
    async with contextlib.aclosing(stream.events()) as events:
        async for event in events:
            if isinstance(event, Restarted):
                for book in books.values():
                    book.forget()
                continue
            for book in books.values():
                if book.apply(event):
                    yield BookChange(book, event)
