"""`GET /pending` shows each step of a request: done, waiting for something until some time, or open."""

from typing import Any

import pytest
from tests.creation.rig import CreationRig, CreatorClient
from tests.rigs.values import a_word

from foretell.creation.context import CreationOptions

pytestmark = pytest.mark.anyio

NAMES = [
    "challenge",
    "preparation",
    "whitelist",
    "funding",
    "transactions",
    "confirmations",
    "registration",
    "metadata",
]
FEE_UNITS = 5_000_000


async def steps_of(creator: CreatorClient, request_id: str) -> dict[str, Any]:
    """Return the steps by name; those before the present one are done, those after it open."""
    steps = (await creator.record(request_id))["steps"]
    assert [step["step"] for step in steps] == NAMES
    return {step["step"]: step for step in steps}


def states(steps: dict[str, Any]) -> list[str]:
    return [step["state"] for step in steps.values()]


async def test_an_unsigned_request_waits_for_the_signature(creator: CreatorClient) -> None:
    challenge = (await creator.ask(creator.payload())).json()

    steps = await steps_of(creator, challenge["requestId"])

    assert states(steps) == ["waiting"] + ["open"] * 7
    assert steps["challenge"]["until"] == challenge["expiresAt"]
    assert "POST /prepare" in steps["challenge"]["message"]


async def test_a_preparation_runs_until_its_deadline(creator: CreatorClient) -> None:
    request_id = await creator.prepare()
    rig = creator.rig

    steps = await steps_of(creator, request_id)

    assert states(steps) == ["done", "running"] + ["open"] * 6
    assert steps["preparation"]["until"] == rig.clock.at_ms + rig.options.prepare_deadline_ms


async def test_a_preparation_waits_for_the_whitelist_in_words_to_act_on(rig: CreationRig) -> None:
    account = await rig.newcomer("without a whitelist", FEE_UNITS)
    creator = rig.creator(account)
    request_id = await creator.prepare(creator.payload(slug="other"))
    await rig.run_once()
    rig.clock.move(60_000)
    await rig.run_once()

    waiting = await steps_of(creator, request_id)
    until_ms = rig.clock.at_ms - 60_000 + rig.options.prepare_deadline_ms
    await rig.whitelist(account)
    await rig.settle(pause_ms=1_000)
    prepared = await steps_of(creator, request_id)

    assert states(waiting) == ["done", "done", "waiting"] + ["open"] * 5
    assert "registerWhitelist" in waiting["whitelist"]["message"]
    assert creator.address in waiting["whitelist"]["message"]
    assert waiting["whitelist"]["until"] == until_ms
    assert states(prepared) == ["done"] * 4 + ["waiting"] + ["open"] * 3


async def test_a_preparation_waits_for_the_collateral_in_words_to_act_on(rig: CreationRig) -> None:
    account = await rig.newcomer("without collateral", FEE_UNITS - 1)
    await rig.whitelist(account)
    creator = rig.creator(account)
    request_id = await creator.prepare(creator.payload(slug="poor"))
    await rig.run_once()

    waiting = await steps_of(creator, request_id)
    until_ms = rig.clock.at_ms + rig.options.prepare_deadline_ms
    await rig.give(account.address, 1)
    await rig.settle(pause_ms=1_000)
    prepared = await steps_of(creator, request_id)

    assert states(waiting) == ["done"] * 3 + ["waiting"] + ["open"] * 4
    assert "costs 5 collateral" in waiting["funding"]["message"]
    assert f"{creator.address} holds 4.999999" in waiting["funding"]["message"]
    assert waiting["funding"]["until"] == until_ms
    assert states(prepared) == ["done"] * 4 + ["waiting"] + ["open"] * 3


async def test_a_creator_without_the_collateral_fails_after_the_deadline(rig: CreationRig) -> None:
    account = await rig.newcomer("poor", FEE_UNITS - 1)
    await rig.whitelist(account)
    creator = rig.creator(account)
    request_id = await creator.prepare(creator.payload(slug="poor"))
    await rig.run_once()
    rig.clock.move(rig.options.prepare_deadline_ms + 1)
    await rig.settle()

    record = await creator.record(request_id)

    assert record["status"] == "failed"
    assert record["errorMessage"].startswith("creator_underfunded: the plan costs 5 collateral")


async def test_a_prepared_request_waits_for_the_transactions_without_a_hash(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared()
    before = await steps_of(creator, request_id)
    ids = ["approve-direct-resolution-fee", "initialize-market-1"]
    await creator.confirm(request_id, [{"id": ids[0], "hash": a_word("1")}])
    half = await steps_of(creator, request_id)
    await creator.confirm(request_id, [{"id": ids[1], "hash": a_word("2")}])
    full = await steps_of(creator, request_id)

    assert states(before) == ["done"] * 4 + ["waiting"] + ["open"] * 3
    assert before["transactions"]["waitsFor"] == ids
    assert half["transactions"]["waitsFor"] == ids[1:]
    assert before["transactions"]["until"] is None
    assert "POST /finalize" in full["transactions"]["message"]


async def test_a_finalization_waits_for_confirmations_and_then_for_registration(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    rig.change(options=CreationOptions(confirmations=3))
    request_id = await creator.prepared()
    await creator.finalize(request_id, await creator.paid(request_id))
    started = await steps_of(creator, request_id)
    await rig.runner.run_once()
    shallow = await steps_of(creator, request_id)
    for _ in range(3):
        await rig.sandbox.mine()
    await rig.runner.run_once()
    registering = await steps_of(creator, request_id)
    for _ in range(3):
        await rig.settle()
    updating = await steps_of(creator, request_id)

    assert states(started) == ["done"] * 5 + ["running"] + ["open"] * 2
    assert states(shallow) == ["done"] * 5 + ["waiting"] + ["open"] * 2
    assert "3 confirmations" in shallow["confirmations"]["message"]
    until_ms = rig.clock.at_ms + rig.options.finalize_deadline_ms
    assert shallow["confirmations"]["until"] == until_ms
    assert states(registering) == ["done"] * 6 + ["waiting"] + ["open"]
    assert registering["registration"]["until"] == until_ms
    assert updating["metadata"]["waitsFor"] == ["update-metadata-1"]


async def test_a_finalized_request_has_every_step_done(creator: CreatorClient) -> None:
    assert states(await steps_of(creator, await creator.finalized())) == ["done"] * 8


async def test_a_failed_request_shows_the_step_and_the_cause(rig: CreationRig) -> None:
    creator = rig.creator(await rig.newcomer("without a whitelist"))
    request_id = await creator.prepare(creator.payload(slug="other"))
    await rig.run_once()
    rig.clock.move(rig.options.prepare_deadline_ms + 1)
    await rig.settle()

    steps = await steps_of(creator, request_id)

    assert steps["preparation"]["state"] == "failed"
    assert "proposer whitelist" in steps["preparation"]["message"]
    assert "start a new request" in steps["preparation"]["message"]
