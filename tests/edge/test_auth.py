"""L1 and L2 header checks."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar import Litestar, Request, Response, post
from litestar.datastructures import State
from tests.edge.rig import (
    ALICE,
    ALICES,
    BOB,
    BOBS,
    BODY,
    MASTER_KEY,
    REVOKED,
    UNKNOWN_KEY,
    Headers,
    check,
    l1_headers,
    l2_headers,
)
from tests.rigs.values import CHAIN_ID, NOW_MS, NOW_S, a_key, an_address

from foretell.domain.errors.families import Unauthenticated
from foretell.domain.errors.http import (
    L1SignatureMismatch,
    L2SignatureMismatch,
    MissingHeader,
    UnboundSignature,
    UnknownKey,
)
from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.values.credentials import (
    L1_DOMAIN_NAME,
    NONCE_MAX,
    SKEW_FUTURE_S,
    SKEW_PAST_S,
    Credentials,
    KeyIndex,
    l1_digest,
)
from foretell.domain.values.eip712 import CURVE_ORDER, sign_digest
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.edge.auth import KeyRing, L1Caller, L2Caller
from foretell.edge.builder_requests import authenticate_builder
from foretell.edge.codec import read_body
from foretell.edge.header_rules import HeaderRules
from foretell.edge.refusals import handlers
from foretell.store.database import Database
from foretell.trading.refusals import trading_body

pytestmark = pytest.mark.anyio

PREFIXES = ["service_", "poly_", "kuest_"]
SIGNATURE = l1_headers()["service_signature"]


def without(headers: Mapping[str, str], name: str) -> Headers:
    return {each: value for each, value in headers.items() if each != name}


@pytest.mark.spec(2)
@pytest.mark.parametrize("prefix", PREFIXES)
async def test_l2_headers_of_every_dialect_name_their_caller(ring: KeyRing, prefix: str) -> None:
    assert await check(ring, l2_headers(prefix)) == L2Caller(ALICE, ALICES.key_id, prefix)


@pytest.mark.spec(2)
@pytest.mark.parametrize("prefix", PREFIXES)
async def test_l1_headers_of_every_dialect_name_their_caller(ring: KeyRing, prefix: str) -> None:
    assert ring.authenticate_l1(l1_headers(prefix)) == L1Caller(CHAIN_ID, ALICE, 0, prefix, NOW_S)


@pytest.mark.deviation(23)
async def test_only_configured_dialects_are_accepted(database: Database) -> None:
    rules = HeaderRules(prefixes=("MINE_",))
    ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: NOW_MS, rules)
    assert ring.authenticate_l1(l1_headers("mine_")).dialect == "mine_"
    with pytest.raises(MissingHeader, match="SERVICE_ADDRESS"):
        ring.authenticate_l1(l1_headers("service_"))


@pytest.mark.deviation(23)
@pytest.mark.case("C-01")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("Example Exchange", L1_DOMAIN_NAME),
        (L1_DOMAIN_NAME, "Example Exchange"),
        ("Example Exchange", "Another Exchange"),
        ("Example Exchange", "example exchange"),
    ],
)
async def test_a_signature_for_another_domain_is_refused(
    database: Database, ours: str, theirs: str
) -> None:
    signed = {}
    for domain in (ours, theirs):
        digest = l1_digest(CHAIN_ID, ALICE, str(NOW_S), 0, domain)
        signed[domain] = "0x" + sign_digest(digest, a_key("alice")).hex()
    rules = HeaderRules(l1_domain=ours)
    ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: NOW_MS, rules)
    with pytest.raises(L1SignatureMismatch):
        ring.authenticate_l1(l1_headers(signature=signed[theirs]))
    assert ring.authenticate_l1(l1_headers(signature=signed[ours])).address == ALICE


CONTRACT = an_address("exchange")


def signed_for(contract: Address | None, chain_id: int = CHAIN_ID) -> str:
    digest = l1_digest(chain_id, ALICE, str(NOW_S), 0, contract=contract)
    return "0x" + sign_digest(digest, a_key("alice")).hex()


def bound_ring(database: Database, *, accepts_unbound: bool) -> KeyRing:
    rules = HeaderRules(l1_contract=CONTRACT, accepts_unbound_l1=accepts_unbound)
    return KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: NOW_MS, rules)


@pytest.mark.parametrize("accepts_unbound", [True, False])
async def test_a_signature_in_the_installation_s_domain_is_accepted(
    database: Database, *, accepts_unbound: bool
) -> None:
    ring = bound_ring(database, accepts_unbound=accepts_unbound)
    headers = l1_headers(signature=signed_for(CONTRACT))
    assert ring.authenticate_l1(headers).address == ALICE
    for other in (an_address("another"), ALICE):
        with pytest.raises(L1SignatureMismatch):
            ring.authenticate_l1(l1_headers(signature=signed_for(other)))
    with pytest.raises(L1SignatureMismatch):
        ring.authenticate_l1(l1_headers(signature=signed_for(CONTRACT, chain_id=1)))


async def test_a_signature_that_names_no_installation_is_a_setting(database: Database) -> None:
    """Another exchange of the chain may have got it from its client."""
    headers = l1_headers(signature=signed_for(None))
    assert bound_ring(database, accepts_unbound=True).authenticate_l1(headers).address == ALICE
    with pytest.raises(UnboundSignature, match=CONTRACT):
        bound_ring(database, accepts_unbound=False).authenticate_l1(headers)


async def test_headers_of_two_dialects_are_not_mixed(ring: KeyRing) -> None:
    theirs = without(l2_headers("poly_"), "poly_address")
    with pytest.raises(MissingHeader, match="SERVICE_API_KEY"):
        await check(ring, {"service_address": ALICE, **theirs})


async def test_an_address_may_carry_its_checksum(ring: KeyRing) -> None:
    address = checksum_address(ALICE)
    assert (await check(ring, l2_headers(address=address))).address == ALICE
    assert ring.authenticate_l1(l1_headers(address=address)).address == ALICE


@pytest.mark.parametrize("chain_id", [137, CHAIN_ID])
async def test_the_chain_is_the_one_that_was_signed_for(ring: KeyRing, chain_id: int) -> None:
    assert ring.authenticate_l1(l1_headers(chain_id=chain_id)).chain_id == chain_id


@pytest.mark.parametrize(
    "spelling",
    [SIGNATURE, SIGNATURE[2:], "0X" + SIGNATURE[2:].upper()],
    ids=["0x", "bare", "upper case"],
)
async def test_an_l1_signature_may_be_spelled_in_hex_of_any_kind(
    ring: KeyRing, spelling: str
) -> None:
    assert ring.authenticate_l1(l1_headers(signature=spelling)).address == ALICE


@pytest.mark.parametrize("v", ["00", "01", "1b", "1c"])
async def test_an_l1_signature_may_end_in_either_spelling_of_v(ring: KeyRing, v: str) -> None:
    last = int(SIGNATURE[-2:], 16) - 27
    fits = int(v, 16) % 27 == last
    outcome: Any = contextlib.nullcontext() if fits else pytest.raises(L1SignatureMismatch)
    with outcome:
        ring.authenticate_l1(l1_headers(signature=SIGNATURE[:-2] + v))


@pytest.mark.parametrize("nonce", ["0", "7", str(NONCE_MAX)])
async def test_the_nonce_is_the_one_that_was_signed(ring: KeyRing, nonce: str) -> None:
    assert ring.authenticate_l1(l1_headers(signed_nonce=nonce)).nonce == int(nonce)


HIGH_S = SIGNATURE[:66] + f"{CURVE_ORDER - 1:064x}" + SIGNATURE[130:]
OF_BOB = "0x" + sign_digest(l1_digest(CHAIN_ID, ALICE, str(NOW_S), 0), a_key("bob")).hex()

L1_REFUSALS: dict[str, tuple[Headers, str, str]] = {
    "no header at all": ({}, "missing_header", "SERVICE_ADDRESS"),
    "no address": (without(l1_headers(), "service_address"), "missing_header", "SERVICE_ADDRESS"),
    "empty address": (l1_headers(address=""), "missing_header", "SERVICE_ADDRESS"),
    "short address": (l1_headers(address=ALICE[:-1]), "missing_header", "SERVICE_ADDRESS"),
    "bare address": (l1_headers(address=ALICE[2:]), "missing_header", "SERVICE_ADDRESS"),
    "another address": (l1_headers(address=BOB), "l1_signature_mismatch", BOB),
    "no timestamp": (without(l1_headers(), "service_timestamp"), "missing_header", "SERVICE_TIMESTAMP"),
    "empty timestamp": (l1_headers(timestamp=""), "missing_header", "SERVICE_TIMESTAMP"),
    "another timestamp": (l1_headers(timestamp=str(NOW_S - 1)), "l1_signature_mismatch", ALICE),
    "timestamp in milliseconds": (l1_headers(signed_at=str(NOW_MS)), "clock_skew", "whole seconds"),
    "timestamp of a float": (l1_headers(timestamp=f"{NOW_S}.5"), "clock_skew", "whole seconds"),
    "old timestamp": (l1_headers(signed_at=str(NOW_S - SKEW_PAST_S - 1)), "clock_skew", str(NOW_S)),
    "early timestamp": (l1_headers(signed_at=str(NOW_S + SKEW_FUTURE_S + 1)), "clock_skew", str(NOW_S)),
    "no nonce": (without(l1_headers(), "service_nonce"), "missing_header", "SERVICE_NONCE"),
    "empty nonce": (l1_headers(nonce=""), "missing_header", "SERVICE_NONCE"),
    "another nonce": (l1_headers(nonce="1"), "l1_signature_mismatch", ALICE),
    "negative nonce": (l1_headers(nonce="-1"), "missing_header", "SERVICE_NONCE"),
    "nonce in hex": (l1_headers(nonce="0x0"), "missing_header", "SERVICE_NONCE"),
    "nonce beyond 256 bits": (l1_headers(nonce=str(2**256)), "missing_header", "SERVICE_NONCE"),
    "no signature": (without(l1_headers(), "service_signature"), "missing_header", "SERVICE_SIGNATURE"),
    "empty signature": (l1_headers(signature=""), "missing_header", "SERVICE_SIGNATURE"),
    "signature that is no hex": (l1_headers(signature="0x" + "g" * 130), "missing_header", "SERVICE_SIGNATURE"),
    "signature of 64 bytes": (l1_headers(signature=SIGNATURE[:-2]), "missing_header", "SERVICE_SIGNATURE"),
    "signature of 66 bytes": (l1_headers(signature=SIGNATURE + "00"), "missing_header", "SERVICE_SIGNATURE"),
    "signature of a megabyte": (l1_headers(signature="0x" + "00" * 10**6), "missing_header", "SERVICE_SIGNATURE"),
    "signature in the upper half": (l1_headers(signature=HIGH_S), "missing_header", "SERVICE_SIGNATURE"),
    "signature of strange v": (l1_headers(signature=SIGNATURE[:-2] + "1d"), "missing_header", "SERVICE_SIGNATURE"),
    "signature of bob": (l1_headers(signature=OF_BOB), "l1_signature_mismatch", ALICE),
    "signature of no point": (l1_headers(signature="0x" + "00" * 31 + "05" + SIGNATURE[66:]), "l1_signature_mismatch", ALICE),
    "signature for another chain": (l1_headers(chain_id=1), "l1_signature_mismatch", ALICE),
    "poly without a nonce": (without(l1_headers("poly_"), "poly_nonce"), "missing_header", "POLY_NONCE"),
}  # fmt: skip


@pytest.mark.spec(112)
@pytest.mark.parametrize("name", L1_REFUSALS)
async def test_every_l1_header_altered_alone_has_its_own_refusal(ring: KeyRing, name: str) -> None:
    headers, code, words = L1_REFUSALS[name]
    with pytest.raises(Unauthenticated, match=words) as refusal:
        ring.authenticate_l1(headers)
    assert refusal.value.code == code
    assert trading_body(refusal.value)[0] == 401


L2_REFUSALS: dict[str, tuple[Headers, str, str]] = {
    "no header at all": ({}, "missing_header", "SERVICE_ADDRESS"),
    "no address": (without(l2_headers(), "service_address"), "missing_header", "SERVICE_ADDRESS"),
    "empty address": (l2_headers(address=""), "missing_header", "SERVICE_ADDRESS"),
    "long address": (l2_headers(address=ALICE + "0"), "missing_header", "SERVICE_ADDRESS"),
    "another address": (l2_headers(address=BOB), "unknown_key", "does not belong to this address"),
    "no key": (without(l2_headers(), "service_api_key"), "missing_header", "SERVICE_API_KEY"),
    "empty key": (l2_headers(api_key=""), "missing_header", "SERVICE_API_KEY"),
    "unknown key": (l2_headers(api_key=UNKNOWN_KEY), "unknown_key", "the API key does not exist"),
    "key in upper case": (l2_headers(api_key=ALICES.key_id.upper()), "unknown_key", "the API key does not exist"),
    "key that is none": (l2_headers(api_key="' OR 1=1 --"), "unknown_key", "the API key does not exist"),
    "key with a zero byte": (l2_headers(api_key=ALICES.key_id[:-1] + "\0"), "unknown_key", "the API key does not exist"),
    "key of bob": (l2_headers(api_key=BOBS.key_id), "unknown_key", "does not belong to this address"),
    "revoked key": (l2_headers(api_key=REVOKED.key_id), "revoked_key", "was revoked"),
    "no timestamp": (without(l2_headers(), "service_timestamp"), "missing_header", "SERVICE_TIMESTAMP"),
    "empty timestamp": (l2_headers(timestamp=""), "missing_header", "SERVICE_TIMESTAMP"),
    "another timestamp": (l2_headers(timestamp=str(NOW_S + 1)), "l2_signature_mismatch", "does not fit"),
    "timestamp of another spelling": (l2_headers(timestamp=f"0{NOW_S}"), "l2_signature_mismatch", "does not fit"),
    "timestamp in milliseconds": (l2_headers(signed_at=str(NOW_MS)), "clock_skew", "whole seconds"),
    "negative timestamp": (l2_headers(signed_at="-1"), "clock_skew", "whole seconds"),
    "timestamp in words": (l2_headers(signed_at="now"), "clock_skew", "whole seconds"),
    "old timestamp": (l2_headers(signed_at=str(NOW_S - SKEW_PAST_S - 1)), "clock_skew", str(NOW_S)),
    "early timestamp": (l2_headers(signed_at=str(NOW_S + SKEW_FUTURE_S + 1)), "clock_skew", str(NOW_S)),
    "no passphrase": (without(l2_headers(), "service_passphrase"), "missing_header", "SERVICE_PASSPHRASE"),
    "empty passphrase": (l2_headers(passphrase=""), "missing_header", "SERVICE_PASSPHRASE"),
    "passphrase of bob": (l2_headers(passphrase=BOBS.passphrase), "wrong_passphrase", "does not belong to the API key"),
    "passphrase in upper case": (l2_headers(passphrase=ALICES.passphrase.upper()), "wrong_passphrase", "does not belong to the API key"),
    "shorter passphrase": (l2_headers(passphrase=ALICES.passphrase[:-1]), "wrong_passphrase", "does not belong to the API key"),
    "passphrase that is not ascii": (l2_headers(passphrase="\u00e9" * 64), "wrong_passphrase", "does not belong to the API key"),
    "no signature": (without(l2_headers(), "service_signature"), "missing_header", "SERVICE_SIGNATURE"),
    "empty signature": (l2_headers(signature=""), "missing_header", "SERVICE_SIGNATURE"),
    "another signature": (l2_headers(signature="A" * 43 + "="), "l2_signature_mismatch", "does not fit"),
    "signature that is no base64": (l2_headers(signature="!"), "l2_signature_mismatch", "does not fit"),
    "signature that is not ascii": (l2_headers(signature="\u00e9"), "l2_signature_mismatch", "does not fit"),
    "signature by another secret": (l2_headers(secret=BOBS.secret), "l2_signature_mismatch", "does not fit"),
    "poly without a passphrase": (without(l2_headers("poly_"), "poly_passphrase"), "missing_header", "POLY_PASSPHRASE"),
    "kuest without a key": (without(l2_headers("kuest_"), "kuest_api_key"), "missing_header", "KUEST_API_KEY"),
}  # fmt: skip


@pytest.mark.case("C-07")
@pytest.mark.spec(51, 114, 115)
@pytest.mark.parametrize("name", L2_REFUSALS)
async def test_every_l2_header_altered_alone_has_its_own_refusal(ring: KeyRing, name: str) -> None:
    headers, code, words = L2_REFUSALS[name]
    with pytest.raises(Unauthenticated, match=words) as refusal:
        await check(ring, headers)
    assert refusal.value.code == code
    assert trading_body(refusal.value)[0] == 401


@pytest.mark.parametrize("name", L2_REFUSALS)
async def test_no_refusal_contains_a_secret(ring: KeyRing, name: str) -> None:
    with pytest.raises(Unauthenticated) as refusal:
        await check(ring, L2_REFUSALS[name][0])
    shown = repr(trading_body(refusal.value)[1])
    assert ALICES.secret not in shown
    assert ALICES.passphrase not in shown
    assert BOBS.passphrase not in shown


@pytest.mark.case("C-07", "G-06")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/order", BODY),
        ("post", "/order", BODY),
        ("POST", "/orders", BODY),
        ("POST", "/clob/order", BODY),
        ("POST", "/order?a=b", BODY),
        ("POST", "/order", BODY + b" "),
        ("POST", "/order", b""),
    ],
)
async def test_headers_are_valid_only_for_the_signed_request(
    ring: KeyRing, method: str, path: str, body: bytes
) -> None:
    with pytest.raises(L2SignatureMismatch):
        await ring.authenticate_l2(l2_headers(), method, path, body)


@pytest.mark.case("C-09")
@pytest.mark.spec(115)
@pytest.mark.parametrize("off_by_s", [-SKEW_PAST_S, SKEW_FUTURE_S])
async def test_the_edges_of_the_window_are_inside(ring: KeyRing, off_by_s: int) -> None:
    signed_at = str(NOW_S + off_by_s)
    assert (await check(ring, l2_headers(signed_at=signed_at))).address == ALICE
    assert ring.authenticate_l1(l1_headers(signed_at=signed_at)).address == ALICE


async def test_one_signature_serves_several_requests_within_its_window(ring: KeyRing) -> None:
    headers = l2_headers()
    assert await check(ring, headers) == await check(ring, headers)


async def test_a_malformed_key_id_is_not_looked_up(tmp_path: Path) -> None:
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'without tables.db'}") as database:
        ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: NOW_MS)
        with pytest.raises(UnknownKey):
            await check(ring, l2_headers(api_key="x" * 10_000))
        with pytest.raises(StoreUnavailable):
            await check(ring, l2_headers())


async def test_complete_credentials_name_their_owner(ring: KeyRing) -> None:
    assert await ring.authenticate_credentials(*ALICES) == L2Caller(
        ALICE, ALICES.key_id, "service_"
    )


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (ALICES._replace(secret=BOBS.secret), "wrong_passphrase"),
        (ALICES._replace(passphrase=BOBS.passphrase), "wrong_passphrase"),
        (ALICES._replace(secret=""), "wrong_passphrase"),
        (ALICES._replace(passphrase="\u00e9"), "wrong_passphrase"),
        (ALICES._replace(key_id=BOBS.key_id), "wrong_passphrase"),
        (ALICES._replace(key_id=""), "unknown_key"),
        (ALICES._replace(key_id="\0"), "unknown_key"),
        (ALICES._replace(key_id=UNKNOWN_KEY), "unknown_key"),
        (REVOKED, "revoked_key"),
    ],
    ids=range(9),
)
async def test_wrong_credentials_are_refused(ring: KeyRing, given: Credentials, code: str) -> None:
    with pytest.raises(Unauthenticated) as refusal:
        await ring.authenticate_credentials(*given)
    assert refusal.value.code == code


def builder_headers(prefix: str = "service_", **changes: str) -> Headers:
    """Return a builder's headers: like an owner's, without the address."""
    plain = without(l2_headers(**changes), "service_address")
    return {name.replace("service_", f"{prefix}builder_"): each for name, each in plain.items()}


@pytest.mark.parametrize("prefix", PREFIXES)
async def test_a_builder_is_identified_by_its_key_alone(ring: KeyRing, prefix: str) -> None:
    headers = builder_headers(prefix)
    caller = await authenticate_builder(ring, headers, "POST", "/order", BODY)
    assert caller == L2Caller(ALICE, ALICES.key_id, prefix)
    assert ring.builder_dialect(headers) == prefix


BUILDER_REFUSALS: dict[str, tuple[Headers, str, str]] = {
    "no header at all": ({}, "missing_header", "SERVICE_BUILDER_API_KEY"),
    "the builder's own L2 headers": (l2_headers(), "missing_header", "SERVICE_BUILDER_API_KEY"),
    "empty key": (builder_headers(api_key=""), "missing_header", "SERVICE_BUILDER_API_KEY"),
    "unknown key": (builder_headers(api_key=UNKNOWN_KEY), "unknown_key", "the API key does not exist"),
    "revoked key": (builder_headers(api_key=REVOKED.key_id), "revoked_key", "was revoked"),
    "key of bob": (builder_headers(api_key=BOBS.key_id), "wrong_passphrase", "does not belong to the API key"),
    "no timestamp": (without(builder_headers("poly_"), "poly_builder_timestamp"), "missing_header", "POLY_BUILDER_TIMESTAMP"),
    "old timestamp": (builder_headers(signed_at=str(NOW_S - SKEW_PAST_S - 1)), "clock_skew", str(NOW_S)),
    "another passphrase": (builder_headers(passphrase=BOBS.passphrase), "wrong_passphrase", "does not belong to the API key"),
    "signature by another secret": (builder_headers(secret=BOBS.secret), "l2_signature_mismatch", "does not fit"),
}  # fmt: skip


@pytest.mark.parametrize("name", BUILDER_REFUSALS)
async def test_every_builder_header_altered_alone_has_its_own_refusal(
    ring: KeyRing, name: str
) -> None:
    headers, code, words = BUILDER_REFUSALS[name]
    with pytest.raises(Unauthenticated, match=words) as refusal:
        await authenticate_builder(ring, headers, "POST", "/order", BODY)
    assert refusal.value.code == code


async def test_a_request_without_builder_headers_is_not_a_builder_s(ring: KeyRing) -> None:
    assert ring.builder_dialect(l2_headers()) is None


async def test_the_credentials_of_an_index_are_the_derived_ones(ring: KeyRing) -> None:
    assert ring.credentials(KeyIndex(CHAIN_ID, ALICE, 0)) == ALICES


def an_app(ring: KeyRing) -> Litestar:
    @post("/order", status_code=200)
    async def place(request: Request[Any, Any, State]) -> Response[str]:
        body = await read_body(request)
        caller = await ring.authenticate_l2(
            request.headers, request.method, request.scope["path"], body
        )
        return Response(caller.address)

    return Litestar([place], exception_handlers=handlers(trading_body), logging_config=None)


@pytest.mark.spec(114)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({name.upper(): value for name, value in l2_headers().items()}, 200),
        (l2_headers("Poly_"), 200),
        (l2_headers(address=BOB), 401),
        ({}, 401),
    ],
    ids=["upper case", "mixed case", "another address", "none"],
)
async def test_headers_reach_the_check_through_http_in_any_case(
    ring: KeyRing, headers: Headers, status: int
) -> None:
    transport = httpx.ASGITransport(an_app(ring))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.post("/order?strict=true", content=BODY, headers=headers)
    assert answer.status_code == status


@pytest.mark.deviation(22)
@pytest.mark.parametrize("name", sorted(l2_headers()))
async def test_a_header_that_is_sent_twice_is_refused(ring: KeyRing, name: str) -> None:
    headers = [*l2_headers().items(), (name, l2_headers()[name])]
    transport = httpx.ASGITransport(an_app(ring))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.post("/order", content=BODY, headers=headers)
    assert (answer.status_code, answer.json()["details"]) == (401, {"header": name.upper()})
