"""Sockets of engines: each listens at one, and other processes of the installation find it there.

On one machine an engine listens at a Unix socket, in a folder that only its owner can enter. The folder
is next to other temporary files and named after the data folder, because the path of a socket must be
short. With FORETELL_ENGINE_HOST an engine listens at that address, for processes on other machines. The
lease of a shard with its journal in PostgreSQL names the address of the leader.
"""

import asyncio
import contextlib
import hashlib
import hmac
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from foretell.domain.errors.command import InsecureSocketFolder

UNIX: Final = "unix:"
TCP: Final = "tcp:"

_PURPOSE: Final = b"foretell engines"
_FOLDER_MODE: Final = 0o700

MakeProtocol = Callable[[], asyncio.Protocol]
FindEndpoint = Callable[[], Awaitable[str | None]]
"""Returns the address at which an engine listens now, None if it does not."""


def engine_token(master_key: bytes) -> bytes:
    """Return the token by which processes of one installation authenticate to each other."""
    return hmac.digest(master_key, _PURPOSE, hashlib.sha256)


def socket_path(data: Path, name: str) -> Path:
    """Return the path of an engine's socket; its folder is made if it is missing."""
    digest = hashlib.blake2b(str(data.resolve()).encode(), digest_size=8).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"foretell-{os.getuid()}-{digest}"
    folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    made = folder.stat()
    if made.st_uid != os.getuid() or made.st_mode & 0o077:
        raise InsecureSocketFolder(str(folder))
    return folder / f"{name}.socket"


async def listen(make_protocol: MakeProtocol, path: Path, host: str | None) -> "Listening":
    """Accept connections at a Unix socket or, if a host is given, at an address of this machine."""
    loop = asyncio.get_running_loop()
    if host is not None:
        server = await loop.create_server(make_protocol, host, 0)
        return Listening(server, f"{TCP}{host}:{server.sockets[0].getsockname()[1]}")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - a file name, not a wait
    server = await loop.create_unix_server(make_protocol, str(path))
    return Listening(server, f"{UNIX}{path}")


class Listening:
    """A socket that accepts connections, and its address for other processes."""

    def __init__(self, server: asyncio.Server, endpoint: str) -> None:
        self._server = server
        self.endpoint = endpoint

    async def close(self) -> None:
        """Stop accepting connections."""
        self._server.close()


async def connect(find_endpoint: FindEndpoint, make_protocol: MakeProtocol) -> None:
    """Connect to an engine where it listens now; raise OSError when it does not listen."""
    endpoint = await find_endpoint()
    if endpoint is None:
        raise ConnectionRefusedError("no engine leads this shard now")
    loop = asyncio.get_running_loop()
    if endpoint.startswith(UNIX):
        await loop.create_unix_connection(make_protocol, endpoint.removeprefix(UNIX))
    else:
        host, _, port = endpoint.removeprefix(TCP).rpartition(":")
        await loop.create_connection(make_protocol, host, int(port))
