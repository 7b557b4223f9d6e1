"""Bytes that clients hold, bounded for each of them and for all together."""

from collections import Counter


class ClientBytes:
    """Counts what each client holds; one that holds nothing is forgotten."""

    def __init__(self, bytes_max: int, client_bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._client_bytes_max = client_bytes_max
        self._bytes_by_client: Counter[str] = Counter()
        self.held = 0
        """Of all clients."""

    def __len__(self) -> int:
        """Return how many clients hold any."""
        return len(self._bytes_by_client)

    def exceeded_by(self, client: str, size: int) -> int | None:
        """Return the bound that so many bytes more would exceed, None if they fit: first that of the client."""
        if self._bytes_by_client[client] + size > self._client_bytes_max:
            return self._client_bytes_max
        if self.held + size > self._bytes_max:
            return self._bytes_max
        return None

    def add(self, client: str, size: int) -> None:
        """Count so many bytes more, or fewer if it is negative."""
        self.held += size
        self._bytes_by_client[client] += size
        if not self._bytes_by_client[client]:
            del self._bytes_by_client[client]
