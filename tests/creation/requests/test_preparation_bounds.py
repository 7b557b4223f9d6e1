"""The bounds on preparations that run: those of a creator, of a client address, and of all."""

from dataclasses import replace

import pytest
import sqlalchemy as sa
from tests.creation.rig import CreationRig, CreatorClient, error_of, status_of

from foretell.creation.context import CreationOptions
from foretell.creation.worker import clean_sources
from foretell.domain.creation import preparation_bounds
from foretell.domain.creation.preparation_bounds import (
    UNPAID_COUNTED_MS,
    WITH_WHITELIST,
    WITHOUT_WHITELIST,
    PreparationBound,
    PreparationBounds,
    PreparationUse,
    PreparationUses,
    check_preparations,
)
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS
from foretell.domain.errors.creation import PreparationsBusy, TooManyPreparations
from foretell.store.creation import preparations
from foretell.store.creation.requests import RUNNING_MAX
from foretell.store.tables import requests

pytestmark = pytest.mark.anyio

FEE_UNITS = 5_000_000
WIDE = PreparationBound(100, 2**30)
BOUNDS = PreparationBounds(WIDE, WIDE, WIDE)
NONE = PreparationUse()
SINCE_MS = 1_000_000


def bound(
    rig: CreationRig, narrow: PreparationBounds, wide: PreparationBounds | None = None
) -> None:
    """Serve with these bounds, and with wider ones for creators that have a whitelist."""
    wide = wide or narrow
    rig.change(options=CreationOptions(preparations=narrow, preparations_with_whitelist=wide))


async def stranger(rig: CreationRig, number: int = 0) -> CreatorClient:
    return rig.creator(await rig.newcomer(f"stranger {number}"))


async def begun(creator: CreatorClient, slug: str = "first", address: str = "") -> tuple[int, str]:
    """Send a request, and return the status of its answer with the request's status or the refusal's code."""
    raw = creator.payload(slug=slug, binaryQuestion=f"{slug}?")
    challenge = (await creator.ask(raw)).json()
    answer = await creator.send(raw, creator.sign(challenge))
    if answer.status_code != 200:
        return error_of(answer)
    if address:
        async with creator.rig.database.writing() as tx:
            is_it = requests.c.request_id == challenge["requestId"]
            await tx.execute(requests.update().where(is_it).values(source=address))
    return answer.status_code, answer.json()["status"]


BEGUN = (200, "prepare_in_progress")


async def test_attack_h5_the_preparations_of_an_address_are_bounded(rig: CreationRig) -> None:
    bound(rig, replace(BOUNDS, of_source=PreparationBound(2, 2**30)))
    answers = [await begun(await stranger(rig, number), f"slug-{number}") for number in range(3)]

    assert answers == [BEGUN, BEGUN, (429, "too_many_preparations")]


async def test_attack_h5_the_preparations_of_an_address_take_no_place_of_another(
    rig: CreationRig,
) -> None:
    bound(
        rig,
        replace(BOUNDS, of_source=PreparationBound(2, 2**30), of_all=PreparationBound(3, 2**30)),
    )
    for number in range(2):
        await begun(await stranger(rig, number), f"slug-{number}", "203.0.113.9")

    answers = [await begun(await stranger(rig, number), f"slug-{number}") for number in (2, 3)]

    assert answers == [BEGUN, (503, "preparations_busy")]


async def test_attack_h5_the_preparations_of_a_creator_are_bounded(rig: CreationRig) -> None:
    bound(rig, replace(BOUNDS, of_creator=PreparationBound(2, 2**30)))
    creator = await stranger(rig)

    answers = [await begun(creator, f"slug-{number}", f"203.0.113.{number}") for number in range(3)]

    assert answers == [BEGUN, BEGUN, (429, "too_many_preparations")]


@pytest.mark.parametrize("group", ["of_creator", "of_source", "of_all"])
async def test_attack_h5_payloads_and_images_that_wait_are_bounded_in_bytes(
    rig: CreationRig, group: str
) -> None:
    bound(rig, replace(BOUNDS, **{group: PreparationBound(100, 2_500)}))
    creator = await stranger(rig)

    answers = [await begun(creator, f"slug-{number}") for number in range(4)]

    code = (503, "preparations_busy") if group == "of_all" else (429, "too_many_preparations")
    assert answers[0] == BEGUN
    assert answers[-1] == code


async def test_attack_h5_a_refusal_parses_nothing_and_leaves_the_challenge(
    rig: CreationRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(rig, replace(BOUNDS, of_creator=PreparationBound(1, 2**30)))
    creator = await stranger(rig)
    first = await creator.prepare()
    raw = creator.payload(slug="second", binaryQuestion="Second?")
    challenge = (await creator.ask(raw)).json()
    with monkeypatch.context() as patched:
        patched.delattr("foretell.creation.accept.parse_payload")
        refused = await creator.send(raw, creator.sign(challenge))
    ends_after_s = rig.options.prepare_deadline_ms // 1000
    rig.clock.move(ends_after_s * 1000 + 1000)
    await rig.settle(pause_ms=1_000)

    accepted = await creator.send(raw, creator.sign(challenge))

    assert error_of(refused) == (429, "too_many_preparations")
    assert refused.headers["retry-after"] == str(ends_after_s)
    assert f"in {ends_after_s} s at the latest" in refused.json()["error"]["message"]
    assert await status_of(creator, first) == "failed"
    assert accepted.status_code == 200


async def test_attack_h5_strangers_take_no_place_of_a_creator_with_a_whitelist(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    one = PreparationBound(1, 2**30)
    bound(rig, replace(BOUNDS, of_source=one, of_all=one), BOUNDS)
    assert await begun(await stranger(rig), "taken") == BEGUN

    refused = await begun(await stranger(rig, 1), "other")
    prepared = await creator.prepare()
    await rig.run_once()

    assert refused == (429, "too_many_preparations")
    assert await status_of(creator, prepared) == "prepared"


async def test_a_request_that_was_accepted_is_answered_at_any_bound(rig: CreationRig) -> None:
    bound(rig, replace(BOUNDS, of_creator=PreparationBound(1, 2**30)))
    creator = await stranger(rig)
    raw = creator.payload()
    envelope = creator.sign((await creator.ask(raw)).json())

    answers = [await creator.send(raw, envelope) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200] * 3


async def test_a_request_that_is_prepared_or_failed_takes_no_place(creator: CreatorClient) -> None:
    rig = creator.rig
    bound(
        rig,
        replace(BOUNDS, of_creator=PreparationBound(1, 2**30), of_all=PreparationBound(1, 2**30)),
    )

    for slug in ("first", "second"):
        await creator.prepared(creator.payload(slug=slug, binaryQuestion=f"{slug}?"))


async def plan(creator: CreatorClient, slug: str) -> str:
    return await creator.prepared(creator.payload(slug=slug, binaryQuestion=f"{slug}?"))


async def sources(rig: CreationRig) -> set[str]:
    async with rig.database.reading() as tx:
        return {row.source for row in await tx.all(sa.select(requests.c.source))}


@pytest.mark.parametrize("most", ["UNPAID_OF_CREATOR_MAX", "UNPAID_OF_SOURCE_MAX"])
async def test_guard_plans_that_are_not_paid_are_bounded_for_a_day(
    creator: CreatorClient, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    """A finding: one wallet with the collateral of one market had images posted for any number of them."""
    rig = creator.rig
    for module in (preparation_bounds, preparations):
        monkeypatch.setattr(module, most, 2)
    first = await plan(creator, "first")
    await plan(creator, "second")
    assert await begun(creator, "third") == (429, "too_many_unpaid")
    other = await begun(await stranger(rig), "other")
    assert other == (BEGUN if most == "UNPAID_OF_CREATOR_MAX" else (429, "too_many_unpaid"))

    await creator.finalize(first, await creator.paid(first))
    assert await begun(creator, "third") == BEGUN


async def test_guard_a_plan_that_is_not_paid_counts_for_a_day(
    creator: CreatorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = creator.rig
    for module in (preparation_bounds, preparations):
        monkeypatch.setattr(module, "UNPAID_OF_CREATOR_MAX", 1)
    await plan(creator, "first")
    rig.clock.move(UNPAID_COUNTED_MS - 1_000)
    raw = creator.payload(slug="second", binaryQuestion="Second?")
    answer = await creator.send(raw, creator.sign((await creator.ask(raw)).json()))
    assert error_of(answer) == (429, "too_many_unpaid")
    assert 0 < int(answer.headers["retry-after"]) <= 2
    rig.clock.move(1_000)
    assert await begun(creator, "third") == BEGUN


async def test_the_address_of_a_plan_is_kept_for_a_day_or_until_it_is_paid(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    request_id = await plan(creator, "first")
    assert "" not in await sources(rig)
    rig.clock.move(UNPAID_COUNTED_MS)
    assert not await clean_sources(rig.context)
    assert "" not in await sources(rig)
    rig.clock.move(CHALLENGE_LIFETIME_MS + 1)
    assert not await clean_sources(rig.context)
    assert await sources(rig) == {""}
    second = await plan(creator, "second")
    assert len(await sources(rig)) == 2
    await creator.finalize(second, await creator.paid(second))
    assert await sources(rig) == {""}
    assert await status_of(creator, request_id) == "prepared"


def use(number: int = 0, size_bytes: int = 0, first_at_ms: int | None = None) -> PreparationUse:
    return PreparationUse(number, size_bytes, first_at_ms)


@pytest.mark.parametrize(
    ("uses", "refusal"),
    [
        (PreparationUses(use(2), NONE, use(2)), TooManyPreparations),
        (PreparationUses(NONE, use(2), use(2)), TooManyPreparations),
        (PreparationUses(NONE, NONE, use(2)), PreparationsBusy),
        (PreparationUses(use(1, 91), NONE, NONE), TooManyPreparations),
        (PreparationUses(NONE, use(1, 91), NONE), TooManyPreparations),
        (PreparationUses(NONE, NONE, use(1, 91)), PreparationsBusy),
    ],
)
def test_guard_one_preparation_more_than_a_bound_is_refused(
    uses: PreparationUses, refusal: type[Exception]
) -> None:
    narrow = PreparationBound(2, 100)
    bounds = PreparationBounds(narrow, narrow, narrow)
    within = PreparationUses(use(1, 90), use(1, 90), use(1, 90))

    check_preparations(bounds, within, 10, SINCE_MS)
    with pytest.raises(refusal):
        check_preparations(bounds, uses, 10, SINCE_MS)


@pytest.mark.parametrize(
    ("first_at_ms", "wait_s"),
    [(None, 1), (SINCE_MS - 5_000, 1), (SINCE_MS + 1, 1), (SINCE_MS + 1_001, 2)],
)
def test_a_refusal_says_when_the_first_preparation_ends(
    first_at_ms: int | None, wait_s: int
) -> None:
    full = PreparationUses(NONE, NONE, use(100, 0, first_at_ms))

    with pytest.raises(PreparationsBusy) as refused:
        check_preparations(BOUNDS, full, 10, SINCE_MS)

    assert refused.value.retry_after_s == wait_s


def test_guard_an_address_and_a_creator_have_a_small_part_of_all_places() -> None:
    for bounds in (WITHOUT_WHITELIST, WITH_WHITELIST):
        for part in (bounds.of_creator, bounds.of_source):
            assert part.count_max * 5 <= bounds.of_all.count_max
            assert part.bytes_max * 5 <= bounds.of_all.bytes_max
    assert WITHOUT_WHITELIST.of_all.count_max < WITH_WHITELIST.of_all.count_max < RUNNING_MAX
    assert WITHOUT_WHITELIST.of_all.bytes_max < WITH_WHITELIST.of_all.bytes_max
