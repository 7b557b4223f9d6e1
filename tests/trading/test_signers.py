import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.build import CHAIN_ID, EXCHANGE, NEG_RISK_EXCHANGE, a_buy, an_order_id

from foretell.domain.errors import MalformedSignature
from foretell.domain.matching_errors import EngineBusy, SignerMismatch
from foretell.domain.profiles import SANDBOX_PROFILES
from foretell.trading.signers import ORDERS_PER_TURN_MAX, Identity, Signers

pytestmark = pytest.mark.anyio


@pytest.fixture
async def signers() -> AsyncIterator[Signers]:
    signers = Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID)
    yield signers
    signers.close()


@pytest.mark.parametrize("profile", [0, 1, 2])
async def test_an_order_is_identified_under_the_domain_that_was_signed(
    signers: Signers, profile: int
) -> None:
    order = a_buy("alice", profile=profile)
    asked = msgspec.structs.replace(order, profile=0)
    assert await signers.identify(asked, EXCHANGE) == Identity(profile, an_order_id(order))


async def test_the_domain_that_a_signer_used_last_is_tried_first(signers: Signers) -> None:
    order = a_buy("alice", profile=2)
    await signers.identify(order, EXCHANGE)
    assert signers._profile_by_signer[order.signer] == 2
    assert (await signers.identify(a_buy("alice", profile=1), EXCHANGE)).profile == 1


async def test_an_order_for_one_exchange_is_none_for_another(signers: Signers) -> None:
    order = a_buy("alice", exchange=NEG_RISK_EXCHANGE)
    with pytest.raises(SignerMismatch):
        await signers.identify(order, EXCHANGE)
    identity = await signers.identify(order, NEG_RISK_EXCHANGE)
    assert identity.order_id == an_order_id(order, NEG_RISK_EXCHANGE)


@pytest.mark.parametrize("count", [1, ORDERS_PER_TURN_MAX, 5 * ORDERS_PER_TURN_MAX + 3])
async def test_many_orders_at_once_are_each_answered_for_themselves(
    signers: Signers, count: int
) -> None:
    orders = [a_buy(f"signer {number % 3}", salt=str(number)) for number in range(count)]
    identities = await asyncio.gather(*(signers.identify(order, EXCHANGE) for order in orders))
    assert [identity.order_id for identity in identities] == [
        an_order_id(order) for order in orders
    ]


async def test_a_bad_order_among_good_ones_fails_alone(signers: Signers) -> None:
    good, bad = a_buy("alice"), a_buy("alice", signature=a_buy("bob").signature)
    off_curve = a_buy("alice", signature=b"\xff" * 32 + b"\x01" * 32 + b"\x1b")
    answers = await asyncio.gather(
        *(signers.identify(order, EXCHANGE) for order in (good, bad, off_curve, good)),
        return_exceptions=True,
    )
    assert answers[0] == answers[3] == Identity(0, an_order_id(good))
    assert [type(answer) for answer in answers[1:3]] == [SignerMismatch, MalformedSignature]


async def test_a_fault_in_a_thread_is_told_to_everyone_who_waits(signers: Signers) -> None:
    broken = a_buy("alice", signature=a_buy("alice").signature, token_id="not a number")
    answers = await asyncio.gather(
        *(signers.identify(broken, EXCHANGE) for _ in range(3)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [ValueError] * 3
    assert await signers.identify(a_buy("alice"), EXCHANGE)


async def test_one_who_stops_waiting_disturbs_nobody(signers: Signers) -> None:
    gone = asyncio.create_task(signers.identify(a_buy("alice"), EXCHANGE))
    await asyncio.sleep(0)
    gone.cancel()
    assert await signers.identify(a_buy("bob"), EXCHANGE)
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_more_orders_than_may_wait_are_refused() -> None:
    signers = Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID, waiting_max=2)
    many = [signers.identify(a_buy("alice", salt=str(number)), EXCHANGE) for number in range(60)]
    answers = await asyncio.gather(*many, return_exceptions=True)
    signers.close()
    refused = [answer for answer in answers if isinstance(answer, EngineBusy)]
    assert refused
    assert len(refused) + sum(isinstance(answer, Identity) for answer in answers) == 60


async def test_only_so_many_signers_are_remembered() -> None:
    signers = Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID, kept_max=2)
    for number in range(4):
        await signers.identify(a_buy(f"signer {number}"), EXCHANGE)
    signers.close()
    assert len(signers._profile_by_signer) == 2


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=30))
async def test_whatever_comes_together_each_gets_its_own_answer(
    wanted: list[tuple[int, bool]],
) -> None:
    signers = Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID, threads=1)
    orders = [
        a_buy("alice", profile=profile, salt=str(salt))
        if is_good
        else a_buy("alice", salt=str(salt), signature=a_buy("bob").signature)
        for salt, (profile, is_good) in enumerate(wanted)
    ]
    answers = await asyncio.gather(
        *(signers.identify(order, EXCHANGE) for order in orders), return_exceptions=True
    )
    signers.close()
    assert [isinstance(answer, Identity) for answer in answers] == [good for _, good in wanted]
