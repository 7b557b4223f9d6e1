import re
import uuid

import pytest
from tests.creation.rig import CreatorClient, Studio, details_of, error_of
from tests.rigs.values import NOW_MS, a_word, an_address

from foretell.creation.challenge import (
    EXPIRED_KEPT_MS,
    UNSIGNED_PER_CREATOR_MAX,
    issue_challenge,
    sweep_challenges,
)
from foretell.creation.context import CreationOptions
from foretell.creation.messages import AuthWish
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS, Challenge, RequestStatus
from foretell.domain.errors.creation import TooManyChallenges
from foretell.domain.values.hexadecimal import keccak256
from foretell.store.creation.requests import load_request

pytestmark = pytest.mark.anyio


@pytest.mark.spec(3, 38, 39, 40, 41, 56, 67, 150)
async def test_a_challenge_is_new_echoes_the_wish_and_is_kept(creator: CreatorClient) -> None:
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
    async with creator.studio.database.reading() as tx:
        kept = await load_request(tx, first["requestId"])
    assert kept is not None
    assert (kept.status, kept.challenge.nonce) == (RequestStatus.AUTH_PENDING, first["nonce"])
    assert kept.challenge.expires_at_ms == first["expiresAt"]


@pytest.mark.spec(8)
async def test_another_chain_is_refused(creator: CreatorClient) -> None:
    wish = {"creator": creator.address, "chainId": 1, "payloadHash": "0x" + "ab" * 32}

    answer = await creator.post("/prepare-auth", wish)

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer) == [("chainId", "must be one of 80002")]


def a_wish(name: str = "creator") -> AuthWish:
    return AuthWish(an_address(name), 80002, a_word("payload"))


async def kept(studio: Studio, challenges: list[Challenge]) -> list[bool]:
    async with studio.database.reading() as tx:
        return [await load_request(tx, each.request_id) is not None for each in challenges]


async def issued(studio: Studio, *names: str) -> list[Challenge]:
    challenges = []
    for name in names:
        studio.clock.now_ms += 1
        challenges.append(await issue_challenge(studio.services, a_wish(name)))
    return challenges


async def test_whoever_asks_in_a_creator_s_name_takes_no_challenge_from_it(
    creator: CreatorClient,
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    answers = [await creator.ask(b"{}") for _ in range(UNSIGNED_PER_CREATOR_MAX)]

    sent = await creator.send(raw, creator.sign(challenge))

    assert {answer.status_code for answer in answers[:-1]} == {200}
    assert error_of(answers[-1]) == (503, "too_many_challenges")
    assert sent.status_code == 200


async def test_a_creator_with_too_many_challenges_is_refused_and_others_are_not(
    studio: Studio,
) -> None:
    challenges = await issued(studio, *["creator"] * UNSIGNED_PER_CREATOR_MAX)

    with pytest.raises(TooManyChallenges, match="50 challenges of 0x"):
        await issue_challenge(studio.services, a_wish())

    challenges += await issued(studio, "other")
    assert all(await kept(studio, challenges))


async def test_a_creator_has_few_expired_challenges_and_they_make_way(studio: Studio) -> None:
    expired = await issued(studio, *["creator"] * UNSIGNED_PER_CREATOR_MAX)
    others = await issued(studio, "other")
    studio.clock.now_ms += CHALLENGE_LIFETIME_MS

    fresh = await issued(studio, "creator", "creator")

    assert await kept(studio, expired) == [False] * 2 + [True] * (UNSIGNED_PER_CREATOR_MAX - 2)
    assert await kept(studio, fresh + others) == [True] * 3


async def test_signed_requests_are_never_swept(creator: CreatorClient) -> None:
    studio = creator.studio
    request_id = await creator.prepare()
    studio.clock.now_ms += 10 * EXPIRED_KEPT_MS
    for _ in range(UNSIGNED_PER_CREATOR_MAX):
        await creator.ask(b"{}")

    await sweep_challenges(studio.services)

    assert (await creator.record(request_id))["status"] == "prepare_running"


async def test_an_expired_challenge_is_kept_for_a_day_to_be_told_of(
    creator: CreatorClient,
) -> None:
    studio = creator.studio
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    envelope = creator.sign(challenge)

    studio.clock.now_ms += CHALLENGE_LIFETIME_MS + EXPIRED_KEPT_MS
    await sweep_challenges(studio.services)
    late = await creator.send(raw, envelope)
    studio.clock.now_ms += 1
    await sweep_challenges(studio.services)
    too_late = await creator.send(raw, envelope)

    assert error_of(late) == (401, "auth_expired")
    assert error_of(too_late) == (404, "request_not_found")


async def test_unsigned_challenges_of_all_creators_are_bounded_and_none_makes_way(
    studio: Studio,
) -> None:
    studio.change(options=CreationOptions(unsigned_max=4))
    challenges = await issued(studio, "a", "b", "c", "d")

    with pytest.raises(TooManyChallenges, match="4 challenges of all creators"):
        await issue_challenge(studio.services, a_wish("e"))
    await sweep_challenges(studio.services)

    assert await kept(studio, challenges) == [True] * 4


async def test_the_oldest_expired_challenges_of_all_creators_are_swept_beyond_the_bound(
    studio: Studio,
) -> None:
    studio.change(options=CreationOptions(unsigned_max=4))
    expired = await issued(studio, "a", "b", "c", "d")
    studio.clock.now_ms += CHALLENGE_LIFETIME_MS
    fresh = await issued(studio, "a", "e", "f")

    await sweep_challenges(studio.services)

    assert await kept(studio, expired) == [False] * 3 + [True]
    assert await kept(studio, fresh) == [True] * 3


async def test_what_is_kept_of_all_creators_is_bounded_though_nobody_sweeps(
    studio: Studio,
) -> None:
    studio.change(options=CreationOptions(unsigned_max=2))
    oldest = await issued(studio, "a", "b")
    studio.clock.now_ms += CHALLENGE_LIFETIME_MS
    expired = await issued(studio, "c", "d")
    studio.clock.now_ms += CHALLENGE_LIFETIME_MS

    fresh = await issued(studio, "e", "f")

    assert await kept(studio, oldest) == [False] * 2
    assert await kept(studio, expired + fresh) == [True] * 4
