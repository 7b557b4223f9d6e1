import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from foretell.app.engine_sockets import TCP, UNIX, connect, engine_token, listen, socket_path
from foretell.domain.errors.command import InsecureSocketFolder

pytestmark = pytest.mark.anyio


class Greeting(asyncio.Protocol):
    """Greets every client."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(b"hello")
        transport.close()


class Reading(asyncio.Protocol):
    """Keeps what it receives."""

    def __init__(self) -> None:
        self.read: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.lost = asyncio.Event()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    @override
    def data_received(self, data: bytes) -> None:
        self.read.set_result(data)


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.parametrize(("host", "kind"), [(None, UNIX), ("127.0.0.1", TCP)])
async def test_a_listener_is_found_by_its_endpoint(
    tmp_path: Path, host: str | None, kind: str
) -> None:
    listening = await listen(Greeting, socket_path(tmp_path, "one"), host)
    reading = Reading()

    async def find() -> str:
        return listening.endpoint

    await connect(find, lambda: reading)
    async with asyncio.timeout(60):
        assert await reading.read == b"hello"
        await reading.lost.wait()
    assert listening.endpoint.startswith(kind)
    await listening.close()


async def test_a_socket_that_a_killed_process_left_is_taken_over(tmp_path: Path) -> None:
    path = socket_path(tmp_path, "one")
    path.touch()
    listening = await listen(Greeting, path, None)
    assert path.is_socket()
    await listening.close()


async def test_an_engine_that_does_not_listen_cannot_be_connected_to() -> None:
    async def find() -> None:
        return None

    with pytest.raises(ConnectionRefusedError):
        await connect(find, Reading)


def test_each_data_folder_has_sockets_of_its_own(tmp_path: Path) -> None:
    one, other = (socket_path(tmp_path / name, "engine-0") for name in ("one", "other"))
    assert one.name == other.name
    assert one.parent != other.parent
    assert socket_path(tmp_path / "one", "engine-1").parent == one.parent


def test_the_path_of_a_socket_is_short_for_a_long_path_of_data_too(
    tmp_path: Path, temporary: Path
) -> None:
    path = socket_path(tmp_path / ("a" * 200), "engine-0-01234567")
    assert len(str(path)) - len(str(temporary)) < 60


def test_a_folder_that_other_users_can_enter_is_refused(tmp_path: Path) -> None:
    folder = socket_path(tmp_path, "one").parent
    assert folder.stat().st_mode & 0o777 == 0o700
    os.chmod(folder, 0o755)  # noqa: PTH101 - a mode, not a path
    with pytest.raises(InsecureSocketFolder, match="must belong to this user"):
        socket_path(tmp_path, "one")


def test_installations_with_other_master_keys_have_other_tokens() -> None:
    assert engine_token(b"one") == engine_token(b"one")
    assert engine_token(b"one") != engine_token(b"other")
    assert b"one" not in engine_token(b"one")
