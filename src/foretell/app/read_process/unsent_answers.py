"""Answers that are not sent yet, as their clients have not read what came before: bounded in bytes.

A client that reads nothing, or little, would else have as many answers kept for it as it can ask for.
"""

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final

from foretell.domain.errors.http import TooManyRequests

RETRY_AFTER_S: Final = 5


class UnsentAnswer:
    """The parts of an answer that are left to be sent."""

    def __init__(self, client: str, parts: deque[bytes], close: Callable[[], None]) -> None:
        self.client = client
        self.parts = parts
        self.size = sum(map(len, parts))
        """The bytes that are not sent, a part that is being sent among them."""
        self.close = close
        """Closes the connection, whose client would wait for the rest."""


class UnsentAnswers:
    """The answers that are being sent, in the order in which they began."""

    def __init__(self, client_bytes_max: int, bytes_max: int) -> None:
        self._client_bytes_max = client_bytes_max
        self._bytes_max = bytes_max
        self._bytes_by_client: Counter[str] = Counter()
        self._answers: dict[UnsentAnswer, None] = {}

    @property
    def bytes_held(self) -> int:
        """How many bytes are not sent, of all answers."""
        return self._bytes_by_client.total()

    def check(self, client: str) -> None:
        """Refuse one more answer for a client that has not read enough of those before, as TooManyRequests."""
        if self._bytes_by_client[client] >= self._client_bytes_max:
            raise TooManyRequests(RETRY_AFTER_S)

    @contextlib.contextmanager
    def sending(
        self, client: str, parts: deque[bytes], close: Callable[[], None]
    ) -> Iterator[Iterator[tuple[bytes, bool]]]:
        """Take each part to be sent, and say whether more come; all that is not sent counts as held.

        Beyond the bytes of all clients the oldest answer of the client with most of them is given up, so that
        nobody who reads is refused for others who do not.
        """
        answer = UnsentAnswer(client, parts, close)
        self._answers[answer] = None
        self._bytes_by_client[client] += answer.size
        while self.bytes_held > self._bytes_max:
            self._give_up_one()
        try:
            yield self._take_parts(answer)
        finally:
            self._end(answer)

    def _take_parts(self, answer: UnsentAnswer) -> Iterator[tuple[bytes, bool]]:
        while answer.parts:
            part = answer.parts.popleft()
            yield part, bool(answer.parts)
            self._release(answer, len(part))

    def _give_up_one(self) -> None:
        [(client, _)] = self._bytes_by_client.most_common(1)
        oldest = next(each for each in self._answers if each.client == client)
        self._end(oldest)
        oldest.close()

    def _end(self, answer: UnsentAnswer) -> None:
        if answer in self._answers:
            del self._answers[answer]
            answer.parts.clear()
            self._release(answer, answer.size)

    def _release(self, answer: UnsentAnswer, sent_bytes: int) -> None:
        """Hold less of an answer; one that was given up meanwhile holds nothing."""
        released = min(sent_bytes, answer.size)
        answer.size -= released
        self._bytes_by_client[answer.client] -= released
        if not self._bytes_by_client[answer.client]:
            del self._bytes_by_client[answer.client]
