"""Bodies that have arrived and are not read yet.

The framework's server parses a body into memory before the application asks for it, which may wait for a rate limit
or a place, or may never ask. What waits counts in the memory for bodies, for the client of the request, until the
application receives it; from then on the application counts what it keeps.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.connection_places import Place
from foretell.app.http.parser_refusals import RequestRefused
from foretell.app.http.request_head import END
from foretell.domain.errors.http import BodiesBusy, BodyTooLarge, TooManyChunks
from foretell.edge.codec import HeldBytes
from foretell.edge.telemetry import AsgiApp, Message, Receive, Scope, Send

_WITHOUT_BODY: Final = frozenset({b"GET", b"HEAD"})
"""Methods whose requests need none."""
_CHUNKS_BYTES_MIN: Final = 128
"""Of a body in chunks, which may hold what looks like the end of a head as often as its sender likes."""


class UnreadBody:
    """The application of one request, whose body counts from its arrival until the application receives it.

    What the parser calls raises `RequestRefused`.
    """

    __slots__ = (
        "_announced_bytes",
        "_app",
        "_bytes_max",
        "_chunks",
        "_held",
        "_limits",
        "_place",
        "_read_on",
        "_received_bytes",
        "_turn_chunks",
        "client",
        "head_bytes",
        "is_asked_for",
        "is_begun",
        "size",
    )

    def __init__(
        self,
        app: AsgiApp,
        limits: ConnectionLimits,
        place: Place,
        client: str,
        read_on: Callable[["UnreadBody"], None],
    ) -> None:
        """`read_on` is called when the application begins to read, and when it has received what had arrived."""
        self._app = app
        self._limits = limits
        self._place = place
        self._read_on = read_on
        self._bytes_max: int | None = None
        self._announced_bytes = 0
        """Zero if the length is not known."""
        self._held = HeldBytes()
        self._received_bytes = self._chunks = self._turn_chunks = 0
        self.client = client
        """The address that the request counts for."""
        self.head_bytes = 0
        """Of the request."""
        self.is_asked_for = False
        """Whether the application has begun to read it."""
        self.is_begun = False
        """Whether the application carries out the request, or has done so."""
        self.size = 0
        """The bytes that wait."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out the request."""

        async def received() -> Message:
            if not self.is_asked_for:
                self.is_asked_for = True
                self._read_on(self)
            message = await receive()
            self.end()
            self._read_on(self)
            return message

        self.is_begun = True
        try:
            await self._app(scope, received, send)
        finally:
            self.end()

    def begin(self, method: bytes, headers: Sequence[tuple[bytes, bytes]], head_bytes: int) -> None:
        """Refuse a request that announces a large body which nobody asked for; the parser has checked the number."""
        self.head_bytes = head_bytes
        lengths = (int(value) for name, value in headers if name == b"content-length")
        self._announced_bytes = next(lengths, 0)
        if method in _WITHOUT_BODY:
            self._bytes_max = self._limits.unasked_body_bytes_max
            if self._announced_bytes > self._bytes_max:
                raise RequestRefused(BodyTooLarge(self._bytes_max))

    @property
    def left_bytes(self) -> int:
        """What has not arrived yet; zero if the length of the body is not known."""
        return max(0, self._announced_bytes - self._received_bytes)

    def count_chunk(self) -> None:
        """Count a chunk that begins, and refuse a body of very many small ones."""
        self._chunks += 1
        self._turn_chunks += 1
        limits = self._limits
        if self._chunks > limits.chunks_free + self._received_bytes // limits.chunk_bytes_min:
            raise RequestRefused(TooManyChunks(limits.chunks_free, limits.chunk_bytes_min))

    def end_part(self) -> bool:
        """Return whether as many chunks as one turn may have were read."""
        if self._turn_chunks < self._limits.turn_chunks_max:
            return False
        self._turn_chunks = 0
        return True

    def receive(self, size: int, *, is_kept: bool, is_next: bool) -> None:
        """Count bytes that arrive, or refuse them; they are not kept after the answer.

        The first ones of the request that is answered next do not count: one with a key that is not verified yet gets
        that far even if strangers have all the memory that they may have.
        """
        self._received_bytes += size
        if not is_kept:
            return
        if self._bytes_max is not None and self._received_bytes > self._bytes_max:
            raise RequestRefused(BodyTooLarge(self._bytes_max))
        self.size += size
        more = self.size - self._held.size - (self._limits.unread_free_bytes if is_next else 0)
        if more > 0:
            self._hold(more)

    def _hold(self, size: int) -> None:
        if not self._held.size:
            self._held.begin(self.client, is_known=self._place.has_known_client)
        try:
            self._held.add(size)
        except BodiesBusy as refusal:
            raise RequestRefused(refusal) from None

    def end(self) -> None:
        """Stop counting: the application has what arrived, or will not have it."""
        self.size = 0
        self._held.end()


class UnreadBodies:
    """The bodies of the requests of one connection that are not answered, in their order."""

    __slots__ = ("_limits", "_unanswered", "arriving")

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._unanswered: list[UnreadBody] = []
        """No deque: an empty one is large, and most connections are idle."""
        self.arriving: UnreadBody | None = None
        """That of the request whose head has arrived and whose end has not; it may be answered."""

    def __len__(self) -> int:
        """Return how many requests are not answered."""
        return len(self._unanswered)

    @property
    def is_unread(self) -> bool:
        """Whether so much waits of the body that arrives that no more of it may be parsed."""
        return self.arriving is not None and self.arriving.size >= self._limits.unread_bytes_max

    @property
    def awaits_its_reader(self) -> bool:
        """Whether the application has not begun to read the body that arrives."""
        return self.arriving is not None and not self.arriving.is_asked_for

    @property
    def have_large_heads(self) -> bool:
        """Whether the heads of requests that wait for answers to earlier ones are so large that no more may be parsed."""
        sizes = (body.head_bytes for body in islice(self._unanswered, 1, None))
        return sum(sizes) > self._limits.head_bytes_max

    @property
    def free_bytes(self) -> int:
        """How many more of the body that arrives wait without counting."""
        if self.arriving is None or len(self._unanswered) > 1:
            return 0
        return max(0, self._limits.unread_free_bytes - self.arriving.size)

    def may_end_with(self, data: bytes) -> bool:
        """Return whether data may have the end of the body that arrives: of one in chunks, that of an empty line."""
        left_bytes = self.arriving.left_bytes if self.arriving is not None else 0
        if left_bytes:
            return left_bytes <= len(data)
        return END in data or data.startswith((b"\r\n", b"\n"))

    def end_part(self) -> bool:
        """Return whether the body that arrives has had its part of this turn of the loop."""
        return self.arriving is not None and self.arriving.end_part()

    def piece_end(self, data: bytes, at: int) -> int:
        """Return up to where data is parsed at once: a request that has no body ends its piece, as far as can be seen."""
        left_bytes = self.arriving.left_bytes if self.arriving is not None else 0
        if left_bytes:
            return at + min(left_bytes, self._limits.body_piece_bytes)
        end = at + self._limits.piece_bytes
        if self.arriving is None:
            least = min(len(data), end) - len(data[at:end].lstrip(b"\r\n"))  # behind empty lines
        else:
            least = at + _CHUNKS_BYTES_MIN
        head_end = data.find(END, least, end)
        return end if head_end < 0 else head_end + len(END)

    def add(self, body: UnreadBody) -> None:
        """Add that of a request that has been given to its application."""
        self._unanswered.append(body)
        self.arriving = body

    def end_first(self) -> None:
        """Drop what is unread of a request that is answered."""
        if self._unanswered:
            self._unanswered.pop(0).end()

    def drop_arriving(self) -> None:
        """Drop that of a request that is refused."""
        self._unanswered.pop().end()
        self.arriving = None

    def drop(self) -> None:
        """Drop all that no application will read.

        The first one with another behind it has arrived whole; if its application has begun, that reads and ends it.
        """
        if len(self._unanswered) > 1 and self._unanswered[0].is_begun:
            self._unanswered.pop(0)
        while self._unanswered:
            self.end_first()
        self.arriving = None
