"""Unmodified clients, each in a process and with packages of its own."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.build import a_key, an_address

from foretell.domain.hexadecimal import Address, checksum_address

FOLDER: Final = Path(sys.prefix) / "clients"
DRIVER: Final = Path(__file__).with_name("driver.py")
ANSWER_WITHIN_S: Final = 30.0
NAMES: Final = ("py-clob-client", "kuest-py-clob-client")


class Refused(Exception):
    """The client raised what it raises for an answer that is not 200."""

    def __init__(self, status: int | None, error: Any) -> None:
        super().__init__(f"{status}: {error}")
        self.status = status
        self.error = error


class Client:
    """One client in its process."""

    def __init__(self, process: asyncio.subprocess.Process, address: Address) -> None:
        self._process = process
        self.address = address
        self.credentials: Mapping[str, str] = {}

    async def call(self, name: str, *args: Any, keep: str = "", **kwargs: Any) -> Any:
        """Return what a method of the client returns, or raise what it was refused with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told = {"call": name, "args": args, "kwargs": kwargs, "keep": keep}
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        async with asyncio.timeout(ANSWER_WITHIN_S):
            line = await self._process.stdout.readline()
        assert line, f"the client ended in {name}"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["status"], answer["error"])
        return answer["result"]

    async def log_in(self) -> None:
        """Create the credentials, as every program of the client begins."""
        self.credentials = await self.call("create_or_derive_api_creds", keep="credentials")
        await self.call("set_api_creds", {"__kept": "credentials"})


@contextlib.asynccontextmanager
async def a_client(
    name: str, host: str, person: str, signature_type: int = 0, funder: Address | None = None
) -> AsyncIterator[Client]:
    """Start a client with a person's key, and end it."""
    folder = FOLDER / name
    assert folder.is_dir(), f"{folder} is missing: make .venv/.dev installs it"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(DRIVER),
        f"http://{host}",
        "0x" + a_key(person).hex(),
        str(signature_type),
        "-" if funder is None else checksum_address(funder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(folder), "NO_PROXY": "*"},
    )
    try:
        yield Client(process, an_address(person))
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
