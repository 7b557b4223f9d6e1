"""Unmodified clients: each family in a process and with packages of its own."""

import asyncio
import contextlib
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.rigs.values import a_key, an_address

from foretell.domain.values.hexadecimal import Address, checksum_address

FOLDER: Final = Path(sys.prefix) / "clients"
DRIVER: Final = Path(__file__).with_name("driver.py")
ANSWER_WITHIN_S: Final = 30.0
NAMES: Final = ("py-clob-client", "kuest-py-clob-client")
"""The clients of version 1 of the order struct, which have the same methods."""

RELAYER_CLIENTS: Final = ("py-builder-relayer-client", "kuest-py-builder-relayer-client")
RELAYER_DRIVER: Final = Path(__file__).with_name("relayer_driver.py")

POLYMARKET_V2: Final = "py-clob-client-v2"
KUEST_V2: Final = "kuest-py-clob-client-2"
PACKAGES: Final = {POLYMARKET_V2: "py_clob_client_v2"}
"""The import names of packages that have not the usual one."""


class Refused(Exception):
    """The client raised its exception for an answer that is not 200."""

    def __init__(self, status: int | None, error: Any) -> None:
        super().__init__(f"{status}: {error}")
        self.status = status
        self.error = error


class Family:
    """The process of all clients of a family; starting one takes a second."""

    def __init__(self, name: str, driver: Path = DRIVER) -> None:
        self.name = name
        self._driver = driver
        self._package = PACKAGES.get(name, "py_clob_client")
        self._folder = FOLDER / name
        assert self._folder.is_dir(), f"{self._folder} is missing: make .venv/.dev installs it"
        self._process: asyncio.subprocess.Process | None = None
        self.numbers = itertools.count(1)

    async def start(self) -> None:
        """Start the process, unless it runs."""
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                str(self._driver),
                self._package,
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

    async def ask(self, **request: Any) -> Any:
        """Return the result of a request; a process that does not answer is stopped."""
        try:
            line = await self._line(json.dumps(request).encode() + b"\n")
        except BaseException:
            await self.stop()
            raise
        answer = json.loads(line)
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

    async def log_in(self, method: str = "create_or_derive_api_creds") -> None:
        """Create the credentials, as every program of the client does first."""
        self.credentials = await self.call(method, keep="credentials")
        await self.call("set_api_creds", {"__kept": "credentials"})


@contextlib.asynccontextmanager
async def a_client(
    family: Family, host: str, person: str, signature_type: int = 0, funder: Address | None = None
) -> AsyncIterator[Client]:
    """Create a client with a trader's key for the duration of the context."""
    await family.start()
    number = next(family.numbers)
    await family.ask(
        make=number,
        host=f"http://{host}",
        key="0x" + a_key(person).hex(),
        signature_type=signature_type,
        funder=None if funder is None else checksum_address(funder),
    )
    yield Client(family, number, an_address(person))
    await family.ask(end=number)
