"""Requests of creators that have no whitelist or too little collateral: what their attempts cost, and whom they delay."""

import json
from dataclasses import dataclass

import pytest
from tests.creation.rig import CreationRig, CreatorClient, status_of
from tests.rigs.values import an_address
from typing_extensions import override

from foretell.chain.reader import ProposerWhitelist, Reader
from foretell.creation.attempts import (
    FIRST_PER_ROUND_MAX,
    PAUSE_S_MAX,
    SHORTFALL_KEPT_S,
    WAITING_PER_ROUND_MAX,
    Attempts,
    CollateralShortfall,
)
from foretell.domain.creation.payload import PAYLOAD_BYTES_MAX, Payload, parse_payload
from foretell.domain.creation.request import RequestStatus
from foretell.domain.values.hexadecimal import Address
from foretell.store.creation.requests import CreationRequest, RunningRequest, load_request
from foretell.store.database import Transaction

pytestmark = pytest.mark.anyio

FEE_UNITS = 5_000_000
FIELDS = 4_900
ATTEMPTS = 20


def a_large_payload(creator: CreatorClient) -> bytes:
    """Return a valid payload of the largest size, with thousands of unknown fields."""
    document = json.loads(creator.payload()) | {f"f{number}": 1 for number in range(FIELDS)}
    raw = json.dumps(document).encode()
    return raw + b" " * (PAYLOAD_BYTES_MAX - len(raw))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The payloads that were parsed after their acceptance."""
    payloads: list[bytes] = []

    def counted(raw: bytes, *arguments: object, **named: object) -> Payload:
        payloads.append(raw)
        return parse_payload(raw, *arguments, **named)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr("foretell.creation.prepare.parse_payload", counted)
    return payloads


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that the worker loaded, with their payloads."""
    request_ids: list[str] = []

    async def counted(tx: Transaction, request_id: str) -> CreationRequest | None:
        request_ids.append(request_id)
        return await load_request(tx, request_id)

    monkeypatch.setattr("foretell.creation.worker.load_request", counted)
    return request_ids


@pytest.mark.parametrize("has_whitelist", [False, True])
async def test_attack_h5_a_payload_is_not_parsed_again_while_its_creator_cannot_pay(
    rig: CreationRig, parsed: list[bytes], loaded: list[str], *, has_whitelist: bool
) -> None:
    stranger = await rig.newcomer("stranger", 0 if has_whitelist else FEE_UNITS)
    if has_whitelist:
        await rig.whitelist(stranger)
    creator = rig.creator(stranger)
    request_id = await creator.prepare(a_large_payload(creator))
    parsed.clear()

    for _ in range(ATTEMPTS):
        await rig.runner.run_once()
        rig.clock.move(int(SHORTFALL_KEPT_S * 1000) // (ATTEMPTS + 1))

    assert await status_of(creator, request_id) == "prepare_running"
    # With a whitelist the first attempt shows what the plan costs.
    assert len(parsed) == len(loaded) == (1 if has_whitelist else 0)


async def test_a_shortfall_is_computed_again_after_a_time_or_with_another_balance(
    rig: CreationRig, parsed: list[bytes]
) -> None:
    stranger = await rig.newcomer("stranger")
    await rig.whitelist(stranger)
    await rig.creator(stranger).prepare()
    parsed.clear()

    counts = []
    for pause_s in (PAUSE_S_MAX, SHORTFALL_KEPT_S, PAUSE_S_MAX):
        await rig.runner.run_once()
        counts.append(len(parsed))
        rig.clock.move(int(pause_s) * 1000)
    await rig.give(stranger.address, 1)
    await rig.runner.run_once()

    assert [*counts, len(parsed)] == [1, 1, 2, 3]


class CountingReader(Reader):
    """A chain that counts for which creators it was asked."""

    asked: list[Address]

    @override
    async def proposer_whitelist(
        self, creator: Address, at: str = "latest"
    ) -> ProposerWhitelist | None:
        self.asked.append(creator)
        return await super().proposer_whitelist(creator, at)


async def test_attack_h5_requests_that_wait_for_a_whitelist_delay_no_creator_that_has_one(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    reader = CountingReader(rig.sandbox.rpc, rig.sandbox.deployment)
    reader.asked = []
    rig.change(reader=reader)
    strangers = [
        rig.creator(await rig.newcomer(f"stranger {n}")) for n in range(WAITING_PER_ROUND_MAX + 5)
    ]
    for each in strangers:
        await each.prepare(each.payload(slug=f"slug-{each.address.lower()}"))
    await rig.runner.run_once()
    rig.clock.move(int(PAUSE_S_MAX) * 1000)
    request_id = await creator.prepare()
    reader.asked.clear()

    await rig.runner.run_once()

    assert await status_of(creator, request_id) == "prepared"
    assert reader.asked[0] == creator.account.address
    others = [each for each in reader.asked if each != creator.account.address]
    assert len(others) == WAITING_PER_ROUND_MAX


@dataclass
class Seconds:
    """A clock."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def running(name: str, status: RequestStatus = RequestStatus.PREPARE_RUNNING) -> RunningRequest:
    return RunningRequest(name, an_address(name), status, 0)


def test_guard_a_round_begins_with_what_goes_on_and_ends_with_some_of_those_that_wait() -> None:
    clock = Seconds()
    attempts = Attempts(clock)
    waiting = [running(f"waiting {n}") for n in range(WAITING_PER_ROUND_MAX + 5)]
    for each in waiting:
        attempts.pause(each, is_for_creator=True)
        clock.now_s += 0.001
    silent, paused = running("node is silent"), running("paused")
    attempts.pause(silent)
    clock.now_s = PAUSE_S_MAX
    attempts.pause(paused)
    new = [running(f"new {n}") for n in range(FIRST_PER_ROUND_MAX + 5)]
    final = running("final", RequestStatus.FINALIZE_RUNNING)

    due = attempts.due([*waiting, silent, paused, *new, final])

    assert due[:2] == [silent, final]
    assert due[2 : 2 + FIRST_PER_ROUND_MAX] == new[:FIRST_PER_ROUND_MAX]
    last = due[2 + FIRST_PER_ROUND_MAX :]
    assert len(last) == WAITING_PER_ROUND_MAX
    assert set(last) <= set(waiting)


def test_guard_each_of_many_that_wait_has_its_turn() -> None:
    clock = Seconds()
    attempts = Attempts(clock)
    waiting = [running(f"waiting {n}") for n in range(4 * WAITING_PER_ROUND_MAX)]
    attempted = set()
    for _ in range(100):
        for each in attempts.due(waiting)[:FIRST_PER_ROUND_MAX]:
            attempts.pause(each, is_for_creator=True)
            attempted.update([each] if clock.now_s > PAUSE_S_MAX else [])
        clock.now_s += 1

    assert attempted == set(waiting)


def test_a_request_that_runs_no_more_is_forgotten() -> None:
    clock = Seconds()
    attempts = Attempts(clock)
    attempts.pause(running("ended"))
    attempts.note_shortfall(running("ended"), CollateralShortfall("2", "1"))

    assert attempts.due([]) == []
    assert attempts.shortfall(running("ended")) is None
    assert attempts.due([running("ended")]) == [running("ended")]
