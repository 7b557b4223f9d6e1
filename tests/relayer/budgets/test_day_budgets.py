"""Budgets of 24 hours: one API key, or many, spend so much of the relayer's gas and no more."""

import asyncio
import json
from collections.abc import Callable
from typing import Final

import httpx
import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs
from tests.relayer.rig import Body, OwnerClient, RelayerRig
from tests.relayer.test_callers import builder_headers
from tests.relayer.test_deposit_wallets import creation
from tests.rigs.values import a_key, an_address

from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.contracts.neg_risk import CONVERT_POSITIONS
from foretell.domain.contracts.sandbox_accounts import AccountRole, SandboxAccount
from foretell.domain.relay.allowed_calls import EventCall, ServedCall
from foretell.domain.relay.request import CREATE_GAS, RELAY_GAS_MAX
from foretell.relayer.body import parse_submission
from foretell.relayer.checks import CheckedSubmission, checked_submission
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

TWO: Final = 2 * CREATE_GAS
BODIES: Final[dict[str, Callable[[OwnerClient], Body]]] = {
    "nothing is signed": creation,
    "each new owner signs": OwnerClient.create_body,
}


def stranger(rig: RelayerRig, name: str) -> OwnerClient:
    """Return an owner without an API key."""
    return OwnerClient(rig, SandboxAccount(AccountRole.TRADER, a_key(name)))


async def bring(builder: OwnerClient, body: Body) -> httpx.Response:
    """Submit a body of another owner with the builder's headers."""
    raw = json.dumps(body).encode()
    headers = builder_headers(builder, "/submit", raw)
    return await builder.rig.http.post("/submit", content=raw, headers=headers)


async def brought(builder: OwnerClient, *names: str) -> list[int]:
    """Return the statuses of new deposit wallets for owners that never asked, one after the other."""
    answers = [await bring(builder, creation(stranger(builder.rig, name))) for name in names]
    return [answer.status_code for answer in answers]


@pytest.mark.case("D-13")
@pytest.mark.parametrize("kind", BODIES)
async def test_attack_l7_one_key_has_so_many_wallets_made_for_others_a_day(
    rig: RelayerRig, newcomer: OwnerClient, kind: str
) -> None:
    """A finding: limits counted by owner, and one free key had 40 wallets made for 40 owners."""
    rig.change(relays_per_builder_max=2, relays_per_owner_max=1)
    before = await rig.sent_count()
    bodies = [BODIES[kind](stranger(rig, name)) for name in ("one", "two", "three")]
    answers = [await bring(newcomer, body) for body in bodies]
    await rig.settle()
    refused = answers[-1]
    wait_s = int(refused.headers["retry-after"])
    rig.clock.move((wait_s - 1) * 1000)
    still = await bring(newcomer, bodies[-1])
    rig.clock.move(1000)

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert refused.json()["code"] == "builder_limit_reached"
    assert await rig.sent_count() == before + 2
    assert 24 * 3_600 <= wait_s <= 25 * 3_600
    assert (still.status_code, (await bring(newcomer, bodies[-1])).status_code) == (429, 200)


@pytest.mark.case("D-13")
async def test_attack_l7_one_key_spends_so_much_gas_for_others_a_day(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    rig.change(relay_gas_per_builder_max=TWO)
    assert await brought(newcomer, "one", "two") == [200, 200]
    refused = await bring(newcomer, creation(stranger(rig, "three")))
    details = refused.json()["details"]
    assert (refused.status_code, refused.json()["code"]) == (429, "builder_gas_reached")
    assert (details["most"], details["used"], details["needed"]) == (TWO, TWO, CREATE_GAS)
    assert refused.headers["retry-after"] == str(details["retry_after_s"])


async def test_attack_l7_keys_of_one_account_have_one_budget(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    rig.change(relays_per_builder_max=1)
    second = OwnerClient(rig, newcomer.account, nonce=1)
    await second.create_key()
    assert await brought(newcomer, "one") == [200]
    assert await brought(second, "two") == [429]


@pytest.mark.case("D-13")
@pytest.mark.parametrize(
    "limits",
    [
        {"relays_per_builder_max": 3},
        {"relay_gas_per_builder_max": 3 * CREATE_GAS},
        {"relay_gas_per_day_max": 4 * CREATE_GAS},
    ],
    ids=lambda limits: next(iter(limits)),
)
async def test_attack_l7_requests_at_once_to_two_processes_do_not_exceed_a_budget(
    rig: RelayerRig, twin: RelayerRig, newcomer: OwnerClient, limits: dict[str, int]
) -> None:
    """The locks of wallets do not help: each request is of another wallet."""
    for each in (rig, twin):
        each.change(**limits)
    clients = [newcomer, OwnerClient(twin, newcomer.account)] * 4
    bodies = [creation(stranger(rig, f"owner {number}")) for number in range(len(clients))]
    answers = await asyncio.gather(*map(bring, clients, bodies))
    assert sum(answer.status_code == 200 for answer in answers) == 3
    assert {answer.status_code for answer in answers} <= {200, 429, 503}


@pytest.mark.case("D-13")
async def test_attack_l7_many_keys_together_spend_so_much_gas_a_day(rig: RelayerRig) -> None:
    """A refused request is not stored, and the operator reads of it in the log."""
    rig.change(relay_gas_per_day_max=TWO)
    clients = [await rig.owner(name) for name in ("a builder", "an owner", "another owner")]
    before = await rig.sent_count()
    assert await brought(clients[0], "one") == [200]
    assert (await clients[1].submit(clients[1].create_body())).status_code == 200
    with capture_logs() as logs:
        refused = await clients[2].submit(clients[2].create_body())
    await rig.settle()

    assert (refused.status_code, refused.json()["code"]) == (503, "relayer_gas_reached")
    assert 24 * 3_600 <= int(refused.headers["retry-after"]) <= 25 * 3_600
    assert (await clients[2].get("/transactions")).json() == []
    assert await rig.sent_count() == before + 2
    assert [each["log_level"] for each in logs if "used up" in each["event"]] == ["warning"]


async def test_an_admitted_builder_has_a_budget_of_its_own(rig: RelayerRig) -> None:
    """Strangers do not use it up, and it uses nothing of theirs."""
    named, other = await rig.owner("a front-end"), await rig.owner("another builder")
    rig.change(
        relays_per_builder_max=1,
        relay_gas_by_builder={named.address: TWO},
        relay_gas_per_day_max=CREATE_GAS,
    )
    assert await brought(named, "one") == [200]
    assert await brought(other, "two", "three") == [200, 429]
    assert await brought(named, "four", "five") == [200, 429]
    rig.change(relay_gas_by_builder={named.address: 0})
    assert await brought(named, "five", "six") == [200, 200]


async def test_a_builder_that_is_admitted_later_frees_what_it_had_used_of_all(
    rig: RelayerRig,
) -> None:
    named, other = await rig.owner("a front-end"), await rig.owner("another builder")
    rig.change(relay_gas_per_day_max=CREATE_GAS)
    assert await brought(named, "one", "two") == [200, 503]
    rig.change(relay_gas_by_builder={named.address: 0})
    assert await brought(other, "two") == [200]


async def test_what_an_owner_submits_for_itself_is_bound_by_an_owners_limits_alone(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    rig.change(
        relays_per_builder_max=1, relay_gas_per_builder_max=CREATE_GAS, relays_per_owner_max=2
    )
    assert await brought(newcomer, "one", "two") == [200, 429]
    own = [newcomer.create_body(), creation(newcomer), creation(newcomer, 1)]
    answers = [await newcomer.submit(own[0]), await bring(newcomer, own[1])]
    assert [answer.status_code for answer in answers] == [200, 200]
    refused = await newcomer.submit(own[2])
    assert refused.json()["code"] == "owner_limit_reached"


async def test_what_was_never_sent_counts_toward_no_budget(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    builder = await rig.owner("a builder")
    collateral = rig.sandbox.deployment.collateral
    reverting = await owner.call_body(collateral, Transfer(an_address("bob"), 10**30))
    rig.change(relays_per_builder_max=1)
    for _ in range(2):
        refused = await bring(builder, reverting)
        assert refused.json()["code"] == "call_reverts"
    assert await brought(builder, "one", "two") == [200, 429]


async def test_a_request_that_is_known_counts_once(rig: RelayerRig, newcomer: OwnerClient) -> None:
    rig.change(relays_per_builder_max=1)
    assert await brought(newcomer, "one", "one", "two") == [200, 200, 429]


async def test_attack_l7_an_amount_that_looks_like_a_conversion_reserves_no_gas_of_one(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    """A finding: an owner's gas of a day was gone after 75 approvals of such an amount."""
    deployment = rig.sandbox.deployment
    gas = []
    for units in (1, int.from_bytes(CONVERT_POSITIONS.selector)):
        body = await owner.call_body(
            deployment.collateral, Approve(deployment.conditional_tokens, units)
        )
        checked = checked_submission(rig.context, parse_submission(json.dumps(body).encode()))
        gas.append(checked.request("an id", owner.address, 0).gas)
        converted = CheckedSubmission(
            checked.submission, checked.digest, (EventCall(ServedCall.CONVERT_POSITIONS),)
        )
        assert converted.request("an id", owner.address, 0).gas == RELAY_GAS_MAX
    assert gas[0] == gas[1] < RELAY_GAS_MAX


def test_an_operator_admits_builders_by_address() -> None:
    address = "0x" + "Ab" * 20
    settings = Settings.model_validate({"relay_gas_by_builder": {address: 5}})
    assert settings.relay_gas_by_builder == {address.lower(): 5}
    for wrong in ({"0x12": 5}, {address: -1}, {f"0x{n:040x}": 0 for n in range(101)}):
        with pytest.raises(ValidationError):
            Settings.model_validate({"relay_gas_by_builder": wrong})


def test_an_installation_without_settings_has_every_budget() -> None:
    settings = Settings()
    assert 0 < settings.relays_per_owner_max < settings.relays_per_builder_max
    assert (
        0
        < settings.relay_gas_per_owner_max
        < settings.relay_gas_per_builder_max
        < settings.relay_gas_per_day_max
    )
