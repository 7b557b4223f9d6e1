import re
import uuid

import httpx
import pytest
import sqlalchemy as sa
from tests.creation.rig import CreationRig, CreatorClient, details_of, error_of
from tests.rigs.values import NOW_MS, a_word, an_address

from foretell.app.clock_and_ids import monotonic_ms
from foretell.creation.challenge import (
    EXPIRED_KEPT_MS,
    UNSIGNED_PER_CREATOR_MAX,
    UNSIGNED_PER_SOURCE_MAX,
    issue_challenge,
    sweep_challenges,
)
from foretell.creation.context import CreationOptions
from foretell.creation.messages import AuthRequest
from foretell.creation.refusals import worker_body
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS, Challenge, RequestStatus
from foretell.domain.values.hexadecimal import Address, keccak256
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import DEFAULTS, RateLimits
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication
from foretell.store.creation.requests import load_request
from foretell.store.tables import requests

pytestmark = pytest.mark.anyio


@pytest.mark.spec(3, 38, 39, 40, 41, 56, 67, 150)
async def test_a_challenge_is_new_repeats_the_request_and_is_stored(creator: CreatorClient) -> None:
    raw = creator.payload()

    first, second = (await creator.ask(raw)).json(), (await creator.ask(raw)).json()

    assert str(uuid.UUID(first["requestId"])) == first["requestId"]
    assert re.fullmatch(r"0x[0-9a-f]{64}", first["nonce"])
    assert first["creator"] == creator.address
    assert first["chainId"] == 80002
    assert first["payloadHash"] == "0x" + keccak256(raw).hex()
    assert first["expiresAt"] == NOW_MS + 1_800_000
    assert first["domain"].keys() == {"name", "version", "verifyingContract"}
    assert isinstance(first["domain"]["version"], str)
    assert first["primaryType"] == "CreateMarketAuth"
    assert first["requestId"] != second["requestId"]
    assert first["nonce"] != second["nonce"]
    async with creator.rig.database.reading() as tx:
        kept = await load_request(tx, first["requestId"])
    assert kept is not None
    assert (kept.status, kept.challenge.nonce) == (RequestStatus.AUTH_PENDING, first["nonce"])
    assert kept.challenge.expires_at_ms == first["expiresAt"]


@pytest.mark.spec(8)
async def test_another_chain_is_refused(creator: CreatorClient) -> None:
    body = {"creator": creator.address, "chainId": 1, "payloadHash": "0x" + "ab" * 32}

    answer = await creator.post("/prepare-auth", body)

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer) == [("chainId", "must be one of 80002")]


def a_draft(name: str = "creator") -> AuthRequest:
    return AuthRequest(an_address(name), 80002, a_word("payload"))


async def kept(rig: CreationRig, challenges: list[Challenge]) -> list[bool]:
    async with rig.database.reading() as tx:
        return [await load_request(tx, each.request_id) is not None for each in challenges]


async def issued(rig: CreationRig, *names: str, source: str = "client") -> list[Challenge]:
    challenges = []
    for name in names:
        rig.clock.at_ms += 1
        challenges.append(await issue_challenge(rig.context, a_draft(name), source))
    return challenges


@pytest.mark.deviation(2)
async def test_requests_of_others_in_a_creator_s_name_cost_it_no_challenge(
    creator: CreatorClient,
) -> None:
    rig, raw = creator.rig, creator.payload()
    challenge = (await creator.ask(raw)).json()
    stranger = AuthRequest(Address(creator.address.lower()), 80002, a_word("payload"))
    for _ in range(2 * UNSIGNED_PER_CREATOR_MAX):
        rig.clock.at_ms += 1
        await issue_challenge(rig.context, stranger, "a stranger")

    second = await creator.ask(raw)
    sent = await creator.send(raw, creator.sign(challenge))

    assert second.status_code == 200
    assert sent.status_code == 200


async def test_the_oldest_challenge_of_a_creator_makes_way_for_its_newest(rig: CreationRig) -> None:
    half = UNSIGNED_PER_CREATOR_MAX // 2
    challenges = await issued(rig, *["creator"] * half, source="one")
    challenges += await issued(rig, *["creator"] * half, source="two")
    others = await issued(rig, "other")

    challenges += await issued(rig, "creator", source="two")

    assert await kept(rig, challenges) == [False] + [True] * UNSIGNED_PER_CREATOR_MAX
    assert await kept(rig, others) == [True]


async def test_a_source_has_few_challenges_however_many_creators_it_names(
    rig: CreationRig,
) -> None:
    others = await issued(rig, "victim", source="another")
    names = [f"creator {number}" for number in range(UNSIGNED_PER_SOURCE_MAX + 2)]

    challenges = await issued(rig, *names, source="a stranger")

    assert await kept(rig, challenges) == [False] * 2 + [True] * UNSIGNED_PER_SOURCE_MAX
    assert await kept(rig, others) == [True]


async def test_the_source_of_a_challenge_is_stored_until_its_plan_is_finalized(
    creator: CreatorClient,
) -> None:
    """A proxy that the limits trust names the client, as for the limits themselves."""
    rig, raw = creator.rig, creator.payload()
    limits = RateLimits(DEFAULTS, trusted_proxies=("127.0.0.1",))
    limiter = RateLimiter("creation", limits, monotonic_ms)
    app = ThrottledApplication(rig.app, ApiLimits(limiter, worker_body))
    rig.http = httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://worker",
        headers={"X-Forwarded-For": "203.0.113.9"},
    )
    challenge = (await creator.ask(raw)).json()
    of_unsigned = await sources(rig)
    await creator.send(raw, creator.sign(challenge))
    of_running = await sources(rig)
    await rig.settle()
    of_plan = await sources(rig)
    request_id = challenge["requestId"]
    await creator.finalize(request_id, await creator.paid(request_id))

    assert of_unsigned == of_running == of_plan == ["203.0.113.9"]
    assert await sources(rig) == [""]


async def sources(rig: CreationRig) -> list[str]:
    async with rig.database.reading() as tx:
        return [row.source for row in await tx.all(sa.select(requests.c.source))]


async def test_a_creator_has_few_expired_challenges_and_new_ones_replace_them(
    rig: CreationRig,
) -> None:
    half = UNSIGNED_PER_CREATOR_MAX // 2
    expired = await issued(rig, *["creator"] * half, source="one")
    expired += await issued(rig, *["creator"] * half, source="two")
    others = await issued(rig, "other")
    rig.clock.at_ms += CHALLENGE_LIFETIME_MS

    fresh = await issued(rig, "creator", "creator")

    assert await kept(rig, expired) == [False] * 2 + [True] * (UNSIGNED_PER_CREATOR_MAX - 2)
    assert await kept(rig, fresh + others) == [True] * 3


async def test_signed_requests_are_never_swept(creator: CreatorClient) -> None:
    rig = creator.rig
    request_id = await creator.prepare()
    rig.clock.at_ms += 10 * EXPIRED_KEPT_MS
    for _ in range(UNSIGNED_PER_CREATOR_MAX):
        await creator.ask(b"{}")

    await sweep_challenges(rig.context)

    assert (await creator.record(request_id))["status"] == "prepare_running"


async def test_an_expired_challenge_is_kept_for_a_day_and_refused_as_expired(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    envelope = creator.sign(challenge)

    rig.clock.at_ms += CHALLENGE_LIFETIME_MS + EXPIRED_KEPT_MS
    await sweep_challenges(rig.context)
    late = await creator.send(raw, envelope)
    rig.clock.at_ms += 1
    await sweep_challenges(rig.context)
    too_late = await creator.send(raw, envelope)

    assert error_of(late) == (401, "auth_expired")
    assert error_of(too_late) == (404, "request_not_found")


async def test_unsigned_challenges_of_all_creators_are_limited_and_the_largest_source_gives_way(
    rig: CreationRig,
) -> None:
    rig.change(options=CreationOptions(unsigned_max=4))
    first = await issued(rig, "a", source="single")
    many = await issued(rig, "b", "c", "d", source="many")

    last = await issued(rig, "e", source="last")

    assert await kept(rig, first + many + last) == [True, False, True, True, True]


async def test_the_oldest_expired_challenges_of_all_creators_are_swept_beyond_the_limit(
    rig: CreationRig,
) -> None:
    rig.change(options=CreationOptions(unsigned_max=4))
    expired = await issued(rig, "a", "b", "c", "d")
    rig.clock.at_ms += CHALLENGE_LIFETIME_MS
    fresh = await issued(rig, "a", "e", "f")

    await sweep_challenges(rig.context)

    assert await kept(rig, expired) == [False] * 3 + [True]
    assert await kept(rig, fresh) == [True] * 3


async def test_stored_challenges_of_all_creators_are_limited_without_a_sweep(
    rig: CreationRig,
) -> None:
    rig.change(options=CreationOptions(unsigned_max=2))
    oldest = await issued(rig, "a", "b")
    rig.clock.at_ms += CHALLENGE_LIFETIME_MS
    expired = await issued(rig, "c", "d")
    rig.clock.at_ms += CHALLENGE_LIFETIME_MS

    fresh = await issued(rig, "e", "f")

    assert await kept(rig, oldest) == [False] * 2
    assert await kept(rig, expired + fresh) == [True] * 4
