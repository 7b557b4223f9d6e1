"""The addresses of clients: that of the connection, or the one that a trusted proxy forwards.

A proxy adds the address that it sees at the end of `X-Forwarded-For`. The last address there that is no
trusted proxy is the client's; what stands before it anyone can write. All addresses of an IPv6 network of
64 bits are one client.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

from foretell.runtime.lru import LruCache

CACHED_MAX: Final = 10_000
FORWARDED_CHARS_MAX: Final = 1_000
IPV6_CLIENT_BITS: Final = 64
UNKNOWN: Final = "unknown"

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class ClientAddresses:
    """Finds the address that a request counts for."""

    def __init__(self, trusted_proxies: Sequence[str] = ()) -> None:
        self._proxies = tuple(ipaddress.ip_network(proxy) for proxy in trusted_proxies)
        self._client_by_peer: LruCache[str, str] = LruCache(CACHED_MAX)
        self._client_by_forwarded: LruCache[tuple[str, str], str] = LruCache(CACHED_MAX)

    @property
    def reads_forwarded(self) -> bool:
        """Whether a header may name the client."""
        return bool(self._proxies)

    def is_proxy(self, peer: str) -> bool:
        """Return whether a connection comes from a trusted proxy, so from many clients."""
        address = parse_ip(peer) if self._proxies else None
        return address is not None and self._is_trusted(address)

    def client(self, peer: str | None, forwarded: str | None = None) -> str:
        """Return the client at the other end of a connection, or behind the proxy there."""
        if peer is None:
            return UNKNOWN
        if forwarded is not None and self._proxies and len(forwarded) <= FORWARDED_CHARS_MAX:
            return self._forwarded_client(peer, forwarded)
        client = self._client_by_peer.get(peer)
        if client is None:
            address = parse_ip(peer)
            client = peer if address is None else _client_name(address)
            self._client_by_peer.put(peer, client)
        return client

    def _forwarded_client(self, peer: str, forwarded: str) -> str:
        cached = self._client_by_forwarded.get((peer, forwarded))
        if cached is None:
            cached = self._find(peer, forwarded)
            self._client_by_forwarded.put((peer, forwarded), cached)
        return cached

    def _find(self, peer: str, forwarded: str) -> str:
        """Return the last address that is no trusted proxy, reading from the connection backwards."""
        address = parse_ip(peer)
        if address is None:
            return peer
        for text in reversed(forwarded.split(",")):
            before = parse_ip(text.strip()) if self._is_trusted(address) else None
            if before is None:
                break
            address = before
        return _client_name(address)

    def _is_trusted(self, address: IpAddress) -> bool:
        return any(address in network for network in self._proxies)


def parse_ip(text: str) -> IpAddress | None:
    """Return an address, of IPv4 also in its IPv6 form, or None if the text is none."""
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _client_name(address: IpAddress) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, IPV6_CLIENT_BITS), strict=False))
