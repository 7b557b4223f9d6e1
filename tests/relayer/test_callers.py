import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs
from tests.edge.secret_forms import forms_in
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval, error_of

from foretell.domain.values.credentials import L2Signer
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.trading.api_keys import revoke_key

pytestmark = pytest.mark.anyio

Headers = dict[str, str]
FORGOTTEN_WITHIN_S = 60.0


async def approval_body(owner: OwnerClient) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig), metadata="it's")


def builder_headers(
    builder: OwnerClient, path: str, signed: bytes, prefix: str = "POLY_", method: str = "POST"
) -> Headers:
    """Return the headers of a builder, which submits for other owners."""
    timestamp = str(builder.rig.clock.at_ms // 1000)
    credentials = builder.credentials
    return {
        f"{prefix}BUILDER_API_KEY": credentials.key_id,
        f"{prefix}BUILDER_TIMESTAMP": timestamp,
        f"{prefix}BUILDER_PASSPHRASE": credentials.passphrase,
        f"{prefix}BUILDER_SIGNATURE": L2Signer(credentials.secret).sign(
            timestamp, method, path, signed
        ),
    }


async def submit(rig: RelayerRig, raw: bytes, headers: Headers) -> httpx.Response:
    return await rig.http.post("/submit", content=raw, headers=headers)


SPOILERS: dict[str, Callable[[Headers, OwnerClient], Headers]] = {
    "no headers": lambda *_: {},
    "no signature": lambda headers, _: headers | {"SERVICE_SIGNATURE": ""},
    "a wrong signature": lambda headers, _: headers | {"SERVICE_SIGNATURE": "AAAA"},
    "a wrong passphrase": lambda headers, _: headers | {"SERVICE_PASSPHRASE": "0" * 64},
    "an unknown key": lambda headers, _: (
        headers | {"SERVICE_API_KEY": "00000000-0000-4000-8000-000000000000"}
    ),
    "another address": lambda headers, other: (
        headers | {"SERVICE_ADDRESS": checksum_address(other.address)}
    ),
    "an old time": lambda headers, _: (
        headers | {"SERVICE_TIMESTAMP": str(int(headers["SERVICE_TIMESTAMP"]) - 301)}
    ),
}


@pytest.mark.spec(82)
@pytest.mark.parametrize("spoiler", SPOILERS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/submit"),
        ("POST", "/operations/redeem-position"),
        ("POST", "/operations/merge-position"),
        ("GET", "/transactions"),
    ],
)
async def test_a_caller_without_a_valid_key_is_refused(
    rig: RelayerRig, newcomer: OwnerClient, spoiler: str, method: str, path: str
) -> None:
    other = await rig.owner("somebody else")
    raw = b"{}" if method == "POST" else b""
    headers = SPOILERS[spoiler](newcomer.l2_headers(method, path, raw), other)
    answer = await rig.http.request(method, path, content=raw, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"].startswith("unauthorized: ")


@pytest.mark.case("C-13")
@pytest.mark.spec(53, 82)
async def test_a_key_that_trading_revoked_is_refused_at_once_on_every_route(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    async with rig.working():
        assert (await newcomer.get("/transactions")).status_code == 200
        async with rig.database.writing() as tx:
            await revoke_key(tx, newcomer.credentials.key_id, rig.clock.at_ms)
        async with asyncio.timeout(FORGOTTEN_WITHIN_S):
            while (await newcomer.get("/transactions")).status_code == 200:  # noqa: ASYNC110 - nobody reports
                await asyncio.sleep(0.01)
        answers = [
            await newcomer.get("/transactions"),
            await newcomer.submit(newcomer.create_body()),
            await newcomer.redeem({}),
            await newcomer.merge({}),
        ]
    assert [answer.status_code for answer in answers] == [401] * 4
    assert {answer.json()["code"] for answer in answers} == {"revoked_key"}


@pytest.mark.case("C-12")
@pytest.mark.spec(52, 119)
async def test_nothing_that_the_relayer_keeps_logs_or_answers_has_a_secret(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    key_id, secret, passphrase = newcomer.credentials
    with capture_logs() as logs:
        answers = [
            await newcomer.submit(newcomer.create_body()),
            await newcomer.get("/transactions"),
            await newcomer.merge({}),
            await submit(rig, b"{}", newcomer.l2_headers("POST", "/submit", b"another body")),
        ]
        await rig.settle()
    files = [path.read_bytes() for path in rig.folder.rglob("*") if path.is_file()]
    assert any(key_id.encode() in content for content in files)
    shown = [*files, repr(logs).encode(), *(answer.content for answer in answers)]
    assert not forms_in(shown, secret, passphrase)


@pytest.mark.spec(82)
async def test_a_signature_is_valid_for_its_own_request_only(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    raw = json.dumps(await approval_body(owner)).encode()
    for method, path in (("POST", "/operations/merge-position"), ("GET", "/submit")):
        headers = owner.l2_headers(method, path, raw)
        assert (await submit(rig, raw, headers)).status_code == 401
    headers = owner.l2_headers("POST", "/submit", raw + b" ")
    assert (await submit(rig, raw, headers)).status_code == 401


@pytest.mark.deviation(12)
async def test_a_path_with_a_trailing_slash_is_verified_as_it_was_sent(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    async def status(headers: Headers) -> int:
        return (await rig.http.get("/transactions/", headers=headers)).status_code

    def a_builder(path: str) -> Headers:
        return builder_headers(owner, path, b"", method="GET")

    assert await status(owner.l2_headers("GET", "/transactions/")) == 200
    assert await status(owner.l2_headers("GET", "/transactions")) == 401
    assert await status(a_builder("/transactions/")) == 200
    assert await status(a_builder("/transactions")) == 401


def as_sent(raw: bytes) -> bytes:
    return raw


def with_quotation_marks(raw: bytes) -> bytes:
    return raw.replace(b"'", b'"')


def as_python_prints_it(raw: bytes) -> bytes:
    return str(json.loads(raw)).replace("'", '"').encode()


@pytest.mark.parametrize("spell", [as_sent, with_quotation_marks, as_python_prints_it])
@pytest.mark.parametrize("dump", [{}, {"separators": (",", ":")}], ids=["wide", "compact"])
@pytest.mark.parametrize("metadata", ["it's", None, "Grüße"])
async def test_the_body_may_be_signed_as_clients_spell_it(
    rig: RelayerRig,
    owner: OwnerClient,
    spell: Callable[[bytes], bytes],
    dump: dict[str, Any],
    metadata: str | None,
) -> None:
    body = await approval_body(owner) | {"metadata": metadata}
    raw = json.dumps(body, **dump).encode()
    headers = owner.l2_headers("POST", "/submit", spell(raw))
    assert (await submit(rig, raw, headers)).status_code == 200


@pytest.mark.parametrize("prefix", ["SERVICE_", "POLY_", "KUEST_"])
async def test_a_builder_submits_transactions_that_owners_signed(
    rig: RelayerRig, owner: OwnerClient, prefix: str
) -> None:
    builder = await rig.owner("a builder")
    raw = json.dumps(await approval_body(owner)).encode()
    answer = await submit(rig, raw, builder_headers(builder, "/submit", raw, prefix))
    assert answer.status_code == 200, answer.text
    request = await rig.relay(answer.json()["transactionID"])
    assert (request.owner, request.submitter) == (owner.address, builder.address)


async def test_a_builder_with_a_wrong_signature_submits_nothing(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    builder = await rig.owner("a builder")
    raw = json.dumps(await approval_body(owner)).encode()
    headers = builder_headers(builder, "/submit", raw + b" ")
    assert (await submit(rig, raw, headers)).status_code == 401
    missing = {**builder_headers(builder, "/submit", raw), "POLY_BUILDER_PASSPHRASE": ""}
    assert (await submit(rig, raw, missing)).status_code == 401


async def test_headers_of_an_owner_count_before_those_of_a_builder(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    builder = await rig.owner("a builder")
    raw = json.dumps(await approval_body(owner)).encode()
    headers = builder.l2_headers("POST", "/submit", raw)
    headers |= builder_headers(builder, "/submit", raw, "SERVICE_")
    status, words = error_of(await submit(rig, raw, headers))
    assert (status, words.partition(":")[0]) == (400, "owner_address_mismatch")


@pytest.mark.spec(82)
async def test_an_operation_does_not_accept_a_builder(rig: RelayerRig) -> None:
    builder = await rig.owner("a builder")
    path = "/operations/merge-position"
    headers = builder_headers(builder, path, b"{}")
    answer = await rig.http.post(path, content=b"{}", headers=headers)
    assert answer.status_code == 401


@pytest.mark.case("C-14")
@pytest.mark.spec(84)
async def test_an_owner_submits_for_itself_alone(rig: RelayerRig, owner: OwnerClient) -> None:
    other = await rig.owner("another account")
    status, words = error_of(await other.submit(await approval_body(owner)))
    assert (status, words.partition(":")[0]) == (400, "owner_address_mismatch")
