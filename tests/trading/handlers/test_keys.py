import asyncio
import contextlib
import re
import sqlite3
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.edge.secret_forms import forms_in
from tests.rigs.trading import MASTER_KEY, Headers, Trader, TradingRig, a_rig
from tests.rigs.values import a_buy, an_address

from foretell.domain.values.credentials import NONCE_MAX
from foretell.trading.handlers import keys
from foretell.trading.handlers.keys import list_keys

pytestmark = pytest.mark.anyio

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
LOOK_S = 0.01
L1_WORDS = "Invalid L1 Request headers"
L2_WORDS = "Unauthorized/Invalid api key"


def every_file_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def create(rig: TradingRig, name: str, nonce: int = 0) -> Any:
    trader = Trader(rig, name)
    return await rig.client.post("/auth/api-key", headers=trader.l1_headers(nonce))


async def derive(rig: TradingRig, name: str, nonce: int = 0) -> Any:
    trader = Trader(rig, name)
    return await rig.client.get("/auth/derive-api-key", headers=trader.l1_headers(nonce))


@pytest.mark.spec(2, 51, 97)
async def test_a_wallet_creates_a_key_with_its_signature(rig: TradingRig) -> None:
    response = await create(rig, "alice")
    assert response.status_code == 200
    credentials = response.json()
    assert set(credentials) == {"apiKey", "secret", "passphrase"}
    assert UUID4.match(credentials["apiKey"])
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}=", credentials["secret"])
    assert re.fullmatch(r"[0-9a-f]{64}", credentials["passphrase"])


@pytest.mark.deviation(20)
async def test_no_cache_may_keep_the_answers_with_a_secret(rig: TradingRig) -> None:
    created, derived = await create(rig, "alice"), await derive(rig, "alice")
    assert "secret" in created.json()
    assert created.headers["cache-control"] == derived.headers["cache-control"] == "no-store"
    assert "cache-control" not in (await rig.client.get("/time")).headers


@pytest.mark.spec(97, 120)
async def test_the_same_nonce_gives_the_same_key_again(rig: TradingRig) -> None:
    first = (await create(rig, "alice")).json()
    rig.clock.move(5_000)
    assert (await create(rig, "alice")).json() == first
    assert (await derive(rig, "alice")).json() == first


@pytest.mark.spec(120)
async def test_a_new_process_derives_the_same_key(database_file: Path, tmp_path: Path) -> None:
    async with a_rig(tmp_path / "journal", database_file) as rig:
        first = (await create(rig, "alice")).json()
    async with a_rig(tmp_path / "journal", database_file) as another:
        assert (await derive(another, "alice")).json() == first


OTHER_MASTER_KEY = bytes(range(32, 64))


class Restart:
    """Starts the product on the same storage; the operator has changed the master key."""

    def __init__(self, folder: Path, database_file: Path) -> None:
        self._folder = folder
        self._database_file = database_file

    def __call__(
        self, master_key: bytes = OTHER_MASTER_KEY
    ) -> AbstractAsyncContextManager[TradingRig]:
        return a_rig(self._folder, self._database_file, master_key=master_key)


@pytest.fixture
def restart(database_file: Path, tmp_path: Path) -> Restart:
    return Restart(tmp_path / "journal", database_file)


@pytest.fixture
async def old(restart: Restart) -> Trader:
    """Alice with the key of nonce 3, before the operator changed the master key."""
    async with restart(MASTER_KEY) as rig:
        return await rig.trader("alice", nonce=3)


def parts(trader: Trader) -> set[str]:
    return {trader.key_id, trader.secret, trader.passphrase}


async def test_after_a_change_of_the_master_key_a_used_nonce_gives_a_valid_key(
    restart: Restart, old: Trader
) -> None:
    async with restart() as rig:
        new = await rig.trader("alice", nonce=3)
        assert not parts(old) & parts(new)
        assert await new.get("/auth/api-keys") == [new.key_id]
        again = await rig.trader("alice", nonce=3)
        assert parts(again) == parts(new)
        assert (await derive(rig, "alice", 3)).json()["apiKey"] == new.key_id


async def test_after_a_change_of_the_master_key_nothing_is_derived_before_it_is_created_again(
    restart: Restart, old: Trader
) -> None:
    async with restart() as rig:
        response = await derive(rig, "alice", 3)
        assert (response.status_code, response.json()["error"]) == (
            400,
            "Could not derive api key!",
        )
        assert response.json()["code"] == "no_such_credentials"
        assert "master key" in response.json()["message"]
        assert old.key_id not in response.text


async def test_a_key_of_a_former_master_key_stays_revoked_though_that_one_is_used_again(
    restart: Restart, old: Trader
) -> None:
    async with restart() as rig:
        old.rig = rig
        assert (await old.send("GET", "/data/orders")).status_code == 401
        new = await rig.trader("alice", nonce=3)
        assert (await old.send("GET", "/data/orders")).json()["code"] == "revoked_key"
    async with restart(MASTER_KEY) as rig:
        rig.clock.move(1_000)
        old.rig = new.rig = rig
        newest = await rig.trader("alice", nonce=3)
        for dead in (old, new):
            assert (await dead.send("GET", "/data/orders")).json()["code"] == "revoked_key"
        assert (await newest.send("GET", "/data/orders")).status_code == 200
        assert not parts(newest) & (parts(old) | parts(new))


async def test_a_nonce_above_the_used_ones_is_new_under_another_master_key_too(
    restart: Restart, old: Trader
) -> None:
    async with restart() as rig:
        assert (await create(rig, old.name, 2)).json()["code"] == "nonce_not_monotonic"
        new = await rig.trader("alice", nonce=4)
        assert (await new.send("GET", "/data/orders")).status_code == 200


async def test_a_key_of_another_master_key_is_not_listed(restart: Restart, old: Trader) -> None:
    async with restart() as rig:
        new = await rig.trader(old.name, nonce=4)
        assert await new.get("/auth/api-keys") == [new.key_id]


async def test_keys_of_different_nonces_and_wallets_differ(rig: TradingRig) -> None:
    made = [
        (await create(rig, name, nonce)).json()
        for name, nonce in [("alice", 0), ("alice", 1), ("bob", 0)]
    ]
    assert len({value for credentials in made for value in credentials.values()}) == 9


@pytest.mark.case("C-11")
@pytest.mark.spec(113)
@pytest.mark.parametrize("nonce", [0, 4])
async def test_a_new_nonce_must_be_greater_than_every_one_used(rig: TradingRig, nonce: int) -> None:
    await create(rig, "alice", 5)
    response = await create(rig, "alice", nonce)
    assert (response.status_code, response.json()["error"]) == (400, "Could not create api key")
    assert (await create(rig, "alice", NONCE_MAX)).status_code == 200
    assert (await create(rig, "alice", 5)).status_code == 200


async def test_a_key_that_was_never_created_cannot_be_derived(rig: TradingRig) -> None:
    response = await derive(rig, "alice")
    assert (response.status_code, response.json()["error"]) == (400, "Could not derive api key!")


@pytest.mark.case("C-11")
async def test_parallel_creations_of_one_nonce_give_one_key(rig: TradingRig) -> None:
    responses = await asyncio.gather(*(create(rig, "alice", 3) for _ in range(8)))
    assert len({response.json()["apiKey"] for response in responses}) == 1


@pytest.mark.spec(97, 112, 113)
@pytest.mark.parametrize(
    "changed",
    [
        {"SERVICE_ADDRESS": None},
        {"SERVICE_SIGNATURE": None},
        {"SERVICE_TIMESTAMP": None},
        {"SERVICE_NONCE": None},
        {"SERVICE_ADDRESS": an_address("bob")},
        {"SERVICE_ADDRESS": "alice"},
        {"SERVICE_SIGNATURE": "0x" + "11" * 65},
        {"SERVICE_SIGNATURE": "0x1234"},
        {"SERVICE_TIMESTAMP": "1800000001"},
        {"SERVICE_TIMESTAMP": "1800000000000"},
        {"SERVICE_TIMESTAMP": "yesterday"},
        {"SERVICE_NONCE": "1"},
        {"SERVICE_NONCE": "-1"},
        {"SERVICE_NONCE": "one"},
        {"SERVICE_NONCE": str(2**256)},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/auth/api-key"), ("GET", "/auth/derive-api-key")]
)
async def test_a_header_that_was_not_signed_is_refused(
    rig: TradingRig, method: str, path: str, changed: dict[str, str | None]
) -> None:
    headers = Trader(rig, "alice").l1_headers() | changed
    sent = {name: value for name, value in headers.items() if value is not None}
    response = await rig.client.request(method, path, headers=sent)
    assert (response.status_code, response.json()["error"]) == (401, L1_WORDS)


async def test_a_refusal_names_the_fault_next_to_the_known_words(rig: TradingRig) -> None:
    headers = Trader(rig, "alice").l1_headers(timestamp=str(rig.clock.at_ms))
    response = await rig.client.post("/auth/api-key", headers=headers)
    assert response.json()["code"] == "clock_skew"
    assert response.json()["details"] == {"server_time_s": rig.clock.at_ms // 1000}


@pytest.mark.parametrize("prefix", ["SERVICE_", "POLY_", "KUEST_", "poly_"])
async def test_every_dialect_of_headers_is_understood(rig: TradingRig, prefix: str) -> None:
    trader = await rig.trader("alice", prefix=prefix)
    assert (await trader.send("GET", "/auth/api-keys")).status_code == 200


@pytest.mark.spec(99)
@pytest.mark.parametrize(
    ("prefix", "shape"), [("SERVICE_", None), ("KUEST_", None), ("POLY_", "apiKeys")]
)
async def test_keys_are_listed_in_the_shape_of_the_dialect(
    rig: TradingRig, prefix: str, shape: str | None
) -> None:
    first = await rig.trader("alice", prefix=prefix)
    rig.clock.move(1)
    second = await rig.trader("alice", nonce=1, prefix=prefix)
    await rig.trader("bob")
    ids = [first.key_id, second.key_id]
    assert await second.get("/auth/api-keys") == (ids if shape is None else {shape: ids})


@pytest.mark.spec(52)
async def test_a_list_with_metadata_has_no_secret(alice: Trader) -> None:
    assert await alice.get("/auth/api-keys", metadata="true") == [
        {
            "apiKey": alice.key_id,
            "nonce": "0",
            "status": "active",
            "createdAt": "2027-01-15T08:00:00Z",
            "revokedAt": None,
        }
    ]


@pytest.mark.spec(53, 99)
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"metadata": "true"},
        {"includeRevoked": "true"},
        {"metadata": "true", "includeRevoked": "true"},
        {"metadata": "false", "includeRevoked": "1"},
    ],
)
async def test_a_revoked_key_is_never_listed(
    rig: TradingRig, alice: Trader, query: dict[str, str]
) -> None:
    other = await rig.trader("alice", nonce=1)
    await alice.send("DELETE", "/auth/api-key")
    response = await other.send("GET", "/auth/api-keys", query=query)
    assert alice.key_id not in response.text
    assert other.key_id in response.text


@pytest.mark.case("C-13")
@pytest.mark.spec(53, 98)
@pytest.mark.parametrize(("prefix", "answer"), [("SERVICE_", {"revoked": True}), ("POLY_", "OK")])
async def test_a_revoked_key_is_refused_everywhere(
    rig: TradingRig, prefix: str, answer: object
) -> None:
    alice = await rig.trader("alice", prefix=prefix)
    assert (await alice.send("DELETE", "/auth/api-key")).json() == answer
    rig.clock.move(1_000)
    for method, path in [("GET", "/data/orders"), ("DELETE", "/auth/api-key")]:
        response = await alice.send(method, path)
        assert (response.status_code, response.json()["error"]) == (401, L2_WORDS)
    response = await alice.place(a_buy("alice"))
    assert (response.status_code, response.json()["code"]) == (401, "revoked_key")
    assert (await derive(rig, "alice")).status_code == 400


@pytest.mark.spec(98)
async def test_a_key_revokes_another_one_of_its_address(rig: TradingRig, alice: Trader) -> None:
    other = await rig.trader("alice", nonce=1)
    response = await alice.send("DELETE", "/auth/api-key", query={"apiKey": other.key_id})
    assert response.json() == {"revoked": True}
    assert (await other.send("GET", "/data/orders")).status_code == 401
    assert (await alice.send("GET", "/data/orders")).status_code == 200


@pytest.mark.parametrize("body", [{"apiKey": "own"}, {"a": 1}, [], None], ids=str)
async def test_attack_l4_a_body_that_names_another_key_revokes_none(
    rig: TradingRig, alice: Trader, body: object
) -> None:
    """The body was ignored, and the key revoked that signed the request."""
    other = await rig.trader("alice", nonce=2)
    refused = await alice.send("DELETE", "/auth/api-key", {"apiKey": other.key_id})
    assert (refused.status_code, refused.json()["code"]) == (400, "malformed_body")
    assert len(await alice.get("/auth/api-keys")) == 2
    harmless = {"apiKey": alice.key_id} if body == {"apiKey": "own"} else body
    assert (await alice.send("DELETE", "/auth/api-key", harmless)).status_code == 200
    assert await other.get("/auth/api-keys") == [other.key_id]


@pytest.mark.spec(98)
async def test_a_key_of_another_address_is_not_revoked(alice: Trader, bob: Trader) -> None:
    response = await bob.send("DELETE", "/auth/api-key", query={"apiKey": alice.key_id})
    unknown = await bob.send("DELETE", "/auth/api-key", query={"apiKey": "x"})
    assert (response.status_code, response.json()) == (unknown.status_code, unknown.json())
    assert response.status_code == 404
    assert (await alice.send("GET", "/data/orders")).status_code == 200


@pytest.mark.spec(53)
async def test_after_a_revocation_the_same_nonce_gives_a_new_key(rig: TradingRig) -> None:
    first = await rig.trader("alice")
    await first.send("DELETE", "/auth/api-key")
    rig.clock.move(1_000)
    second = await rig.trader("alice")
    old = {first.key_id, first.secret, first.passphrase}
    assert not old & {second.key_id, second.secret, second.passphrase}
    assert (await second.send("GET", "/data/orders")).status_code == 200
    assert (await derive(rig, "alice")).json()["apiKey"] == second.key_id


def created(rig: TradingRig, headers: Headers) -> Any:
    return rig.client.post("/auth/api-key", headers=headers)


@pytest.mark.deviation(5)
@pytest.mark.case("C-11")
@pytest.mark.parametrize("nonce", [0, 1])
@pytest.mark.parametrize("seconds", [0, 1, 290])
async def test_a_request_older_than_a_revocation_makes_no_new_set(
    rig: TradingRig, alice: Trader, nonce: int, seconds: int
) -> None:
    captured = alice.l1_headers(nonce)
    rig.clock.move(seconds * 1_000)
    revoked_at_s = rig.clock.at_ms // 1000
    await alice.send("DELETE", "/auth/api-key")

    refused = await created(rig, captured)

    assert (refused.status_code, refused.json()["error"]) == (401, L1_WORDS)
    assert refused.json()["code"] == "signed_before_revocation"
    assert refused.json()["details"]["revoked_at_s"] == revoked_at_s
    assert f"revoked at {revoked_at_s} s" in refused.json()["message"]
    rig.clock.move(1_000)
    assert (await created(rig, alice.l1_headers(nonce))).status_code == 200


@pytest.mark.case("C-09")
@pytest.mark.parametrize("path", ["/auth/api-key", "/auth/derive-api-key"])
async def test_a_request_signed_ahead_of_the_clock_makes_no_new_set_after_a_revocation(
    rig: TradingRig, alice: Trader, path: str
) -> None:
    ahead_s = rig.clock.at_ms // 1000 + 50
    captured = alice.l1_headers(timestamp=str(ahead_s))
    await rig.client.request("GET" if "derive" in path else "POST", path, headers=captured)
    rig.clock.move(5_000)
    await alice.send("DELETE", "/auth/api-key")
    rig.clock.move(100_000)

    assert (await created(rig, captured)).json()["code"] == "signed_before_revocation"
    assert (await created(rig, alice.l1_headers())).status_code == 200


async def test_a_request_older_than_a_revocation_still_gets_a_set_that_was_not_revoked(
    rig: TradingRig, alice: Trader
) -> None:
    other = await rig.trader("alice", nonce=1)
    headers = alice.l1_headers(nonce=1)
    await alice.send("DELETE", "/auth/api-key")
    assert (await created(rig, headers)).json()["apiKey"] == other.key_id


class Seconds:
    """What the handlers sleep with: a sleep ends when a test lets it."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        self.are_over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked_s.append(seconds)
        await self.are_over.wait()


async def test_a_revocation_is_answered_when_its_second_is_over(
    rig: TradingRig, alice: Trader, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = Seconds()
    monkeypatch.setattr(keys, "asyncio", seconds)
    rig.clock.move(50)
    answering = asyncio.create_task(alice.send("DELETE", "/auth/api-key"))
    while (answer := await alice.send("GET", "/data/orders")).is_success:  # noqa: ASYNC110 - as a client
        await asyncio.sleep(LOOK_S)
    assert answer.json()["code"] == "revoked_key"
    assert not answering.done()
    seconds.are_over.set()
    assert (await answering).json() == {"revoked": True}
    assert seconds.asked_s == pytest.approx([0.95])


async def test_a_key_without_a_row_lists_nothing(rig: TradingRig, alice: Trader) -> None:
    caller = await rig.context.key_ring.authenticate_credentials(
        alice.key_id, alice.secret, alice.passphrase
    )
    gone = caller._replace(key_id="gone")
    assert await list_keys(rig.context, gone, with_metadata=False) == []


@pytest.mark.case("C-12")
@pytest.mark.spec(52, 119)
async def test_no_file_backup_or_log_of_the_installation_holds_a_secret_or_passphrase(
    tmp_path: Path, database_file: Path
) -> None:
    with capture_logs() as logs:
        async with a_rig(tmp_path / "journal", database_file) as rig:
            await rig.open("market", "alice")
            created = (await create(rig, "alice")).json()
            alice = await rig.trader("alice")
            await alice.placed(a_buy("alice"))
            await alice.get("/auth/api-keys", metadata="true")
            await rig.settle_tables()
            await rig.client.get("/auth/api-keys", headers={"service_passphrase": alice.passphrase})
            await alice.send("DELETE", "/auth/api-key")
            kept = every_file_of(tmp_path)
            backup = dump_of(database_file)
    contents = [*kept, *every_file_of(tmp_path), backup, repr(logs).encode()]
    assert created["secret"] == alice.secret
    assert alice.key_id.encode() in backup
    assert any(alice.key_id.encode() in content for content in kept)
    assert not forms_in(contents, alice.secret, alice.passphrase)


def dump_of(database_file: Path) -> bytes:
    """Return a backup of a database as text."""
    with contextlib.closing(sqlite3.connect(database_file)) as connection:
        return "\n".join(connection.iterdump()).encode()


@pytest.mark.case("C-12")
@pytest.mark.spec(52)
async def test_no_answer_but_the_one_to_a_fresh_signature_has_a_secret(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    body = alice.body(a_buy("alice"))
    wrong = {"SERVICE_SIGNATURE": "AAAA"}, {"SERVICE_PASSPHRASE": "0" * 64}, {"SERVICE_ADDRESS": ""}
    headers = alice.l2_headers("GET", "/data/orders")
    answers = [
        await alice.send("POST", "/order", body),
        await alice.send("POST", "/order", body),
        await alice.send("POST", "/orders", [body]),
        await bob.send("POST", "/order", body),
        *[await alice.send("GET", path) for path in L2_GETS],
        await alice.send("GET", "/auth/api-keys", query={"metadata": "true"}),
        *[await rig.client.get("/data/orders", headers=headers | each) for each in wrong],
        await rig.client.get("/auth/api-keys", headers=headers),
        await alice.send("DELETE", "/cancel-all"),
        await alice.send("DELETE", "/auth/api-key"),
        await alice.send("GET", "/auth/api-keys"),
        await derive(rig, "alice"),
    ]
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 400, 401}
    shown = [answer.content + repr(answer.headers).encode() for answer in answers]
    assert not forms_in(shown, alice.secret, alice.passphrase)


L2_GETS = ("/auth/api-keys", "/data/orders", "/data/trades", "/trades", "/notifications", "/limits")


async def test_no_address_is_restricted_to_closing(alice: Trader) -> None:
    answer = await alice.get("/auth/ban-status/closed-only")
    assert answer == {"closed_only": False, "closedOnly": False}
