"""The configuration that the web app reads when it starts: addresses of the APIs, and the chain."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.values.hexadecimal import checksum_address
from foretell.edge.codec import WireObject


class ApiUrls(WireObject, frozen=True):
    """The base URL of each API; one that begins with a slash is on the page's own host."""

    trading: str = "/clob"
    create_market: str = "/create-market"
    relayer: str = "/relayer"
    data: str = "/data"
    discovery: str = "/discovery"

    def all(self) -> tuple[str, ...]:
        """Return all URLs."""
        return (self.trading, self.create_market, self.relayer, self.data, self.discovery)


class WebConfiguration(WireObject, frozen=True):
    """The content of `/config.json`."""

    version: str
    chain_id: int
    is_sandbox: bool
    chain_url: str | None
    """The node's URL for wallets that do not know the chain; in the sandbox only."""
    images_url: str
    """The beginning of pictures' URLs; the page shows no other host's."""
    apis: ApiUrls
    contracts: dict[str, str]
    safe_factory_name: str


def contracts_of(deployment: Deployment) -> dict[str, str]:
    """Return the addresses of the contracts by their names."""
    return {
        name.value: checksum_address(contract.address)
        for name, contract in deployment.contracts.items()
    }


_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self';"
    " img-src 'self' data: blob:{origins}; connect-src 'self'{origins}{streams}; manifest-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def policy_of(urls: Iterable[str], page_url: str) -> str:
    """Return the content security policy of a page that uses APIs at these URLs.

    Scripts come from the page's own host alone. Streams are named besides, because older browsers do
    not count them as their host's own.
    """
    origins = {origin for url in urls if (origin := origin_of(url))}
    streams = {
        origin.replace("http", "ws", 1) for origin in {*origins, origin_of(page_url)} if origin
    }
    return _POLICY.format(
        origins="".join(f" {origin}" for origin in sorted(origins)),
        streams="".join(f" {stream}" for stream in sorted(streams)),
    )


def origin_of(url: str) -> str:
    """Return the origin of a URL, empty for a path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in {"http", "https"} else ""
