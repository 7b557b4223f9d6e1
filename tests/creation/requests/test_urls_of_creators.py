"""URLs in payloads: they are stored and shown, and no part of a creation opens one of them."""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop
from tests.creation.rig import CreatorClient
from tests.rigs.payloads import ABSENT, AWAY, HOME, sports_fields

from foretell.bench.rigs.ports import free_port
from foretell.store.creation.markets import load_markets

pytestmark = pytest.mark.anyio

FORMS = [
    "http://127.0.0.1:{port}/x",
    "http://localhost:{port}/x",
    "http://2130706433:{port}/x",
    "http://0x7f.1:{port}/x",
    "http://[::ffff:127.0.0.1]:{port}/x",
    "http://0.0.0.0:{port}/x",
    "http://169.254.169.254/latest/meta-data",
    "https://a-name-that-turns.example/x",
]
REFUSED_FORMS = [
    "http://example.org@127.0.0.1/x",
    "file:///etc/passwd",
    "gopher://127.0.0.1/x",
    "javascript:alert(1)",
    "//127.0.0.1/x",
]


class Watched:
    """The hosts that this process looks up or connects to while it is watched.

    Python's sockets report both. uvloop has sockets of its own, which report nothing, so that its methods are replaced.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.hosts: list[str] = []
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "socket.connect" and isinstance(arguments[1], tuple):
            self.hosts.append(f"{arguments[1][0]}:{arguments[1][1]}")
        if event in {"socket.getaddrinfo", "socket.gethostbyname"}:
            self.hosts.append(str(arguments[0]))

    def replace_methods(self, patched: pytest.MonkeyPatch) -> None:
        """Note the hosts that uvloop is asked to look up or to connect to."""
        loop, watched = uvloop.Loop, self.hosts
        connect, connect_socket, look_up = (
            loop.create_connection,
            loop.sock_connect,
            loop.getaddrinfo,
        )

        def create_connection(
            self: Any, make: Any, host: Any = None, port: Any = None, **given: Any
        ) -> Any:
            if host is not None:
                watched.append(f"{host}:{port}")
            return connect(self, make, host, port, **given)

        def sock_connect(self: Any, end: Any, address: Any) -> Any:
            watched.append(f"{address[0]}:{address[1]}")
            return connect_socket(self, end, address)

        def getaddrinfo(self: Any, host: Any, *given: Any, **named: Any) -> Any:
            watched.append(str(host))
            return look_up(self, host, *given, **named)

        patched.setattr(loop, "create_connection", create_connection)
        patched.setattr(loop, "sock_connect", sock_connect)
        patched.setattr(loop, "getaddrinfo", getaddrinfo)


WATCHED = Watched()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    WATCHED.hosts.clear()
    WATCHED.replace_methods(monkeypatch)
    WATCHED.is_on = True
    yield WATCHED.hosts
    WATCHED.is_on = False


def chain_hosts(creator: CreatorClient) -> set[str]:
    """Return the host of the node, with and without its port."""
    place = creator.rig.sandbox.rpc_url.removeprefix("http://").rstrip("/")
    return {place, place.partition(":")[0]}


def a_game(creator: CreatorClient, url: str) -> bytes:
    """Return the payload of a game with this address wherever one is taken."""
    teams = [HOME | {"logo": url}, AWAY | {"logo": url}]
    sports = sports_fields(
        event={"resolutionSource": url}, template=ABSENT, teams=teams, livestreamUrl=url
    )
    return creator.payload(**sports)


async def test_a_connection_and_a_look_up_are_noticed(watched: list[str]) -> None:
    port = free_port()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    await asyncio.get_running_loop().getaddrinfo("localhost", port)
    assert {f"127.0.0.1:{port}", "localhost"} <= set(watched)


@pytest.mark.case("F-05")
@pytest.mark.parametrize("form", FORMS)
async def test_no_address_of_a_payload_is_opened_from_its_challenge_to_its_market(
    creator: CreatorClient, watched: list[str], form: str
) -> None:
    url = form.format(port=free_port())
    await creator.finalized(a_game(creator, url))
    async with creator.rig.database.reading() as tx:
        assert [market.icon for market in await load_markets(tx)] == [url]
    assert set(watched) <= chain_hosts(creator)


@pytest.mark.case("F-05")
@pytest.mark.parametrize("form", REFUSED_FORMS)
async def test_an_address_that_is_not_of_the_web_or_hides_its_host_is_refused(
    creator: CreatorClient, watched: list[str], form: str
) -> None:
    raw = a_game(creator, form)
    challenge = (await creator.ask(raw)).json()
    answer = await creator.send(raw, creator.sign(challenge))
    assert answer.status_code == 400
    assert "must be an http or https address without credentials" in answer.text
    assert set(watched) <= chain_hosts(creator)
