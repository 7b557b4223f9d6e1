"""The second half of the relayer's gas of a day, for owners whose wallets hold something."""

import asyncio
from typing import Final

import pytest
from structlog.testing import capture_logs
from tests.relayer.budgets.test_day_budgets import bring, brought, stranger
from tests.relayer.rig import OwnerClient, RelayerRig
from tests.relayer.test_deposit_wallets import creation
from tests.rigs.rows import Rows
from tests.rigs.values import TOKEN, a_word, an_asset

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.relay.budgets import DAY_MS, hour_of
from foretell.domain.relay.request import CREATE_GAS
from foretell.domain.values.hexadecimal import Address
from foretell.relayer.budgets import wallets_of
from foretell.store.index.balances import Balance, record_balances
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.outbox.relay_hours import EVERYBODY
from foretell.store.tables import relay_hours

pytestmark = pytest.mark.anyio

DAY: Final = 200 * CREATE_GAS
"""Of what is left of it after the half, an owner may have a creation: 99 creations are more than 64."""
SIZE_MIN: Final = 5 * TOKEN
BLOCK_S: Final = 2
BLOCKS_PER_DAY: Final = DAY_MS // 1000 // BLOCK_S


async def hold(
    rig: RelayerRig, wallet: Address, units: int, asset: AssetId = COLLATERAL, block: int = 1
) -> None:
    async with rig.database.writing() as tx:
        await record_balances(tx, [Balance(wallet, asset, units, block)])


async def use_half(rig: RelayerRig) -> None:
    """Have strangers use more than half of the gas of a day."""
    rig.change(relay_gas_per_day_max=DAY)
    hour = hour_of(rig.clock.now_ms())
    used = relay_hours.insert().values(account=EVERYBODY, hour=hour, relays=1, gas=DAY // 2 + 1)
    async with rig.database.writing() as tx:
        await tx.execute(used)


@pytest.mark.case("D-13")
async def test_attack_h4_strangers_leave_the_second_half_of_the_gas_to_owners_who_hold_something(
    rig: RelayerRig,
) -> None:
    await use_half(rig)
    empty, holder = await rig.owner("an empty one"), await rig.owner("a holder")
    await hold(rig, empty.address, SIZE_MIN - 1)
    await hold(rig, holder.safe, SIZE_MIN)
    before = await rig.sent_count()
    with capture_logs() as logs:
        refused = await empty.submit(empty.create_body())
    assert (refused.status_code, refused.json()["code"]) == (503, "relayer_gas_reserved")
    details = refused.json()["details"]
    assert (details["most"], details["used"], details["needed"]) == (0, 0, CREATE_GAS)
    assert refused.headers["retry-after"] == str(details["retry_after_s"])
    assert [each["log_level"] for each in logs if "for others" in each["event"]] == ["info"]
    assert await rig.sent_count() == before
    assert (await holder.submit(holder.create_body())).status_code == 200


@pytest.mark.case("D-13")
async def test_attack_h4_an_owner_who_holds_something_has_a_part_of_what_is_left(
    rig: RelayerRig,
) -> None:
    await use_half(rig)
    greedy, other = await rig.owner("a greedy one"), await rig.owner("another")
    for each in (greedy, other):
        await hold(rig, each.address, SIZE_MIN)
    answers = [await bring(greedy, creation(greedy, number)) for number in (0, 1)]
    assert [answer.status_code for answer in answers] == [200, 503]
    assert answers[1].json()["code"] == "relayer_gas_reserved"
    assert answers[1].json()["details"]["used"] == CREATE_GAS
    assert (await other.submit(other.create_body())).status_code == 200


async def test_attack_h4_a_builder_brings_no_strangers_into_the_second_half(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    await use_half(rig)
    await hold(rig, newcomer.address, SIZE_MIN)
    known = stranger(rig, "a known one")
    await hold(rig, known.address, SIZE_MIN)
    assert await brought(newcomer, "an unknown one", "a known one") == [503, 200]
    rig.change(relay_gas_by_builder={newcomer.address: 0})
    assert await brought(newcomer, "an unknown one") == [200]


@pytest.mark.parametrize("number", range(5))
async def test_what_any_wallet_of_an_owner_holds_counts(rig: RelayerRig, number: int) -> None:
    owner = await rig.owner("a holder of tokens")
    wallets = wallets_of(rig.sandbox.deployment, owner.address)
    assert len(set(wallets)) == len(wallets) == 5
    await use_half(rig)
    async with rig.database.writing() as tx:
        await Rows(tx).open_named("rain")
    await hold(rig, wallets[number], SIZE_MIN, an_asset(is_yes=True, market="rain"))
    assert (await owner.submit(owner.create_body())).status_code == 200


async def test_attack_h4_what_is_passed_on_within_a_day_makes_one_owner_known(
    rig: RelayerRig,
) -> None:
    """Each of many owners used its part, and sent the same few dollars to the next one."""
    await use_half(rig)
    last = 2 * BLOCKS_PER_DAY
    kept = [
        Block(number, a_word(f"block {number}"), a_word(f"block {number - 1}"), number * BLOCK_S)
        for number in (last - 1, last)
    ]
    async with rig.database.writing() as tx:
        await record_blocks(tx, kept)
    first, second = await rig.owner("the first"), await rig.owner("the second")
    await hold(rig, first.address, SIZE_MIN, block=last - BLOCKS_PER_DAY)
    assert (await first.submit(first.create_body())).status_code == 200
    await hold(rig, first.address, 0, block=last)
    await hold(rig, second.address, SIZE_MIN, block=last)
    refused = await second.submit(second.create_body())
    assert (refused.status_code, refused.json()["code"]) == (503, "relayer_gas_reserved")
    assert "for a day" in refused.json()["error"]


async def test_without_a_limit_nothing_is_reserved(rig: RelayerRig, newcomer: OwnerClient) -> None:
    await use_half(rig)
    rig.change(relay_gas_per_day_max=0)
    assert (await newcomer.submit(newcomer.create_body())).status_code == 200


@pytest.mark.parametrize(
    "limits", [{"relays_per_owner_max": 1}, {"relay_gas_per_owner_max": CREATE_GAS}]
)
async def test_attack_h4_requests_at_once_for_wallets_of_one_owner_do_not_exceed_its_budget(
    rig: RelayerRig, twin: RelayerRig, newcomer: OwnerClient, limits: dict[str, int]
) -> None:
    """A finding: the owner's budget was read before the request was stored, and each wallet has a lock of its own."""
    for each in (rig, twin):
        each.change(**limits)
    elsewhere = OwnerClient(twin, newcomer.account)
    answers = await asyncio.gather(
        newcomer.submit(newcomer.create_body()),
        bring(newcomer, creation(newcomer)),
        bring(elsewhere, creation(newcomer, 1)),
    )
    assert sum(answer.status_code == 200 for answer in answers) == 1
    assert {answer.status_code for answer in answers} <= {200, 429, 503}
