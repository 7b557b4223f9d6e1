"""The node and the database of a data folder, for the commands that read them.

A setting that was given names them. Without one, the node is that of the sandbox that runs on the folder. It is asked for
its first block before anything else is read: two sandboxes have the same chain id and the same addresses.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import httpx

from foretell.app.origin import fetch_chain, noted_chain
from foretell.chain.deploy import load_deployment
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.chain import ChainUnavailable, InvalidDeployment
from foretell.domain.errors.command import NotRunning
from foretell.domain.errors.sources import DatabaseUnavailable, ForeignNode, NodeUnavailable
from foretell.domain.errors.storage import StoreUnavailable
from foretell.sandbox.ready import FILE, read_ready
from foretell.settings import Settings
from foretell.store.database import Database, shown_url


class NodeAddress(NamedTuple):
    """The URL of a node, which may hold a key, and what named it."""

    url: str
    source: str

    def shown(self) -> str:
        """Return the address for a message: a path, a query or a user may be a key."""
        url = httpx.URL(self.url).copy_with(userinfo=b"", raw_path=b"/", fragment=None)
        return f"{str(url).rstrip('/')} ({self.source})"


class Sources(NamedTuple):
    """What an installation's figures are computed from; the chain is that of the tables."""

    deployment: Deployment
    rpc: Rpc
    database: Database


def node_address(settings: Settings) -> NodeAddress:
    """Return the node that a setting names, or that of the sandbox of the data folder."""
    if settings.rpc_url is not None:
        return NodeAddress(settings.rpc_url.get_secret_value(), "by FORETELL_RPC_URL")
    if "chain_port" in settings.model_fields_set:
        return NodeAddress(settings.devchain_url, "by FORETELL_CHAIN_PORT")
    try:
        return NodeAddress(read_ready(settings.data).rpc, f"by {settings.data / FILE}")
    except NotRunning:
        return NodeAddress(
            settings.devchain_url,
            f"by default: no sandbox runs on {settings.data}, and foretell up starts it",
        )


def shown_database(settings: Settings) -> str:
    """Return the database for a message, without its password."""
    if settings.database_url is None:
        return f"{settings.sqlite_file} (of the data folder)"
    return f"{shown_url(settings.database)} (by FORETELL_DATABASE_URL)"


@contextlib.asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Give the database of an installation, which has to exist; a refusal says which one it is."""
    if settings.database_url is None and not settings.sqlite_file.is_file():
        raise DatabaseUnavailable("the database does not exist", shown_database(settings))
    async with Database(settings.database, settings.public_reads) as database:
        try:
            yield database
        except StoreUnavailable as error:
            raise DatabaseUnavailable(error.message, shown_database(settings)) from error


@contextlib.asynccontextmanager
async def open_sources(settings: Settings) -> AsyncIterator[Sources]:
    """Give the deployment, the node and the database of an installation.

    Raises ForeignNode when the node serves another chain than the tables are of.
    """
    deployment = load_deployment(settings.deployment_file)
    if deployment is None:
        raise InvalidDeployment(f"{settings.deployment_file} does not exist; start Foretell first")
    node = node_address(settings)
    async with (
        Rpc(node.url, deployment.chain_id) as rpc,
        open_database(settings) as database,
    ):
        sources = Sources(deployment, rpc, database)
        with naming(node):
            await _check_chain(settings, node, sources)
            yield sources


@contextlib.contextmanager
def naming(node: NodeAddress) -> Iterator[None]:
    """Have a refusal say which node did not answer."""
    try:
        yield
    except ChainUnavailable as error:
        raise NodeUnavailable(error.message, node.shown()) from error


async def _check_chain(settings: Settings, node: NodeAddress, sources: Sources) -> None:
    """Refuse a node of another chain; one without an early block may be a node that keeps late ones only."""
    deployment = sources.deployment
    seen = await fetch_chain(Reader(sources.rpc, deployment), deployment)
    if seen is None and deployment.is_sandbox:
        seen = f"chain {deployment.chain_id} without a first block"
    kept = await noted_chain(sources.database, settings.data)
    if None not in {seen, kept} and seen != kept:
        raise ForeignNode(node.shown(), str(seen), shown_database(settings), str(kept))
