"""The first use of a wallet on a chain where the collateral is older than the installation."""

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.rigs.trading import Trader, TradingRig, a_rig_on
from tests.rigs.values import EXCHANGE, TOKEN, a_buy, a_deployment, an_address, an_observation

from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.requests import AccountReply, AccountRequest
from foretell.store.database import Database
from foretell.store.index.wallet_readings import WalletReading, load_unread, record_readings
from foretell.store.public_reads.places import WaitBounds, answering, in_request
from foretell.store.write_places import SQLITE_PLACES, WritePlaces
from foretell.trading.accounts.reading_budget import ReadingLimits
from foretell.trading.accounts.wallet_readings import RETRY_MS, WalletReadings

pytestmark = pytest.mark.anyio

DAN = an_address("dan")
UNITS = 500 * TOKEN
ASKED_WITHIN_S = 60
WAIT_S = 60.0
"""Longer than a test: what it waits for is a row, which may take its time on a busy machine."""


@pytest.fixture
async def late(fresh_database: Database, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """An installation on a chain with an older collateral, and a market without any funded trader."""
    deployment = dataclasses.replace(a_deployment(), is_sandbox=False)
    async with a_rig_on(tmp_path / "journal", fresh_database, deployment=deployment) as rig:
        assert rig.context.wallet_readings is not None
        rig.context.wallet_readings._wait_s = WAIT_S
        await rig.open("market")
        yield rig


@pytest.fixture
async def dan(late: TradingRig) -> Trader:
    return await late.trader("dan")


async def asked(rig: TradingRig) -> list[Address]:
    async with rig.context.database.reading() as tx:
        return list(await load_unread(tx, 0, 100))


async def asked_when(rig: TradingRig, is_met: Callable[[list[Address]], bool]) -> list[Address]:
    """Return the wallets that are asked for, as soon as they meet a condition."""
    async with asyncio.timeout(ASKED_WITHIN_S):
        while not is_met(wallets := await asked(rig)):  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(0.01)
    return wallets


async def read(rig: TradingRig, wallet: Address) -> None:
    """Do what the indexer and the feed of the chain do, once the wallet is asked for."""
    await asked_when(rig, lambda wallets: wallet in wallets)
    allowed = [(EXCHANGE, True, AMOUNT_UNITS_MAX)]
    async with rig.context.database.writing() as tx:
        await record_readings(tx, [WalletReading(wallet, UNITS, allowed)], 1)
    await rig.submit(
        an_observation(
            [BalanceSeen(wallet, COLLATERAL, UNITS)],
            [AllowanceSeen(wallet, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
        )
    )


async def test_the_first_balance_is_that_of_the_chain(late: TradingRig, dan: Trader) -> None:
    reading = asyncio.create_task(read(late, DAN))
    record = await dan.get("/balance-allowance", asset_type="COLLATERAL")
    await reading
    assert record["balance"] == str(UNITS)
    assert record["allowance"] == str(2**256 - 1)
    assert await asked(late) == []


async def test_the_first_order_is_covered_by_what_the_chain_had(
    late: TradingRig, dan: Trader
) -> None:
    reading = asyncio.create_task(read(late, DAN))
    placed = await dan.placed(a_buy("dan", price_ticks=40))
    await reading
    assert placed["status"] == "live"


async def test_the_orders_of_a_batch_wait_together(late: TradingRig, dan: Trader) -> None:
    reading = asyncio.create_task(read(late, DAN))
    bodies = [dan.body(a_buy("dan", price_ticks=ticks)) for ticks in (40, 41, 42)]
    response = await dan.send("POST", "/orders", bodies)
    await reading
    assert [each["status"] for each in response.json()] == ["live"] * 3


async def test_a_dry_run_reads_the_wallet_too(late: TradingRig, dan: Trader) -> None:
    reading = asyncio.create_task(read(late, DAN))
    response = await dan.send("POST", "/order/validate", dan.body(a_buy("dan", price_ticks=40)))
    await reading
    assert response.json()["valid"] is True


def readings_of(
    rig: TradingRig,
    wait_s: float,
    limits: ReadingLimits | None = None,
    seen: Callable[[], object] = lambda: None,
) -> WalletReadings:
    """Return readings with limits of the test, which say when they ask the engine."""

    async def fetch_collateral(wallet: Address) -> AccountReply:
        seen()
        request = AccountRequest(wallet, COLLATERAL, rig.context.exchanges)
        return await rig.context.shards.account(request, None)

    context = rig.context
    database, exchanges = context.database, context.exchanges
    return WalletReadings(
        database, exchanges, fetch_collateral, context.now_ms, wait_s=wait_s, limits=limits
    )


async def test_a_chain_that_does_not_answer_costs_one_wait_in_half_a_minute(
    late: TradingRig,
) -> None:
    readings = readings_of(late, wait_s=2.0)
    before = time.monotonic()
    await readings.wait(DAN, "dan", account=DAN)
    assert 1.0 < time.monotonic() - before < RETRY_MS / 1000
    assert readings.is_known(DAN)
    late.clock.at_ms += RETRY_MS
    assert not readings.is_known(DAN)
    assert await asked(late) == [DAN]


async def test_guard_a_wait_without_limits_is_a_request_too(late: TradingRig) -> None:
    """Its client has no name, and no transaction of it had a deadline."""
    is_seen: list[bool] = []
    readings = readings_of(late, WAIT_S, seen=lambda: is_seen.append(in_request()))
    reading = asyncio.create_task(read(late, DAN))
    await readings.wait(DAN, "", account=DAN)
    await reading
    assert set(is_seen) == {True}


async def test_a_client_can_ask_for_a_bounded_number_of_wallets_and_leaves_the_others_theirs(
    late: TradingRig,
) -> None:
    limits = ReadingLimits(per_client=4, shared=3, reserve=2)
    readings = readings_of(late, WAIT_S, limits)
    wallets = [an_address(f"stranger {number}") for number in range(6)]
    waiting = [
        asyncio.create_task(readings.wait(wallet, "stranger", account=wallet)) for wallet in wallets
    ]
    await asked_when(late, lambda found: len(found) == 3 == sum(task.done() for task in waiting))
    waiting.append(asyncio.create_task(readings.wait(DAN, "dan", account=DAN)))
    assert len(await asked_when(late, lambda found: DAN in found)) == 4
    late.clock.at_ms += 60_000
    waiting.append(asyncio.create_task(readings.wait(wallets[5], "stranger", account=wallets[5])))
    await asked_when(late, lambda found: wallets[5] in found)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_orders_and_balances_count_for_the_address_of_their_client(
    late: TradingRig, dan: Trader, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients: list[str] = []
    wait = WalletReadings.wait

    async def noted(
        readings: WalletReadings, wallet: Address, client: str, *, account: Address
    ) -> None:
        clients.append(client)
        await wait(readings, wallet, client, account=account)

    monkeypatch.setattr(WalletReadings, "wait", noted)
    eve, fay = await late.trader("eve"), await late.trader("fay")
    for request, name in (
        (dan.get("/balance-allowance", asset_type="COLLATERAL"), "dan"),
        (eve.placed(a_buy("eve", price_ticks=40)), "eve"),
        (fay.send("POST", "/orders", [fay.body(a_buy("fay", price_ticks=41))]), "fay"),
    ):
        reading = asyncio.create_task(read(late, an_address(name)))
        await request
        await reading
    assert len(clients) == 3
    assert len(set(clients)) == 1
    assert clients[0]


async def test_a_wallet_is_asked_for_while_writes_of_strangers_wait(
    late: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request of a key waited among them, gave up, and the wallet had no funds."""
    places = WritePlaces(SQLITE_PLACES, WaitBounds(wait_s=0.05))
    monkeypatch.setattr(late.context.database, "_writes", places)
    readings = readings_of(late, WAIT_S)
    async with contextlib.AsyncExitStack() as stack:
        with answering("stranger"):
            await stack.enter_async_context(places.taken())
        waiting = asyncio.create_task(readings.wait(DAN, "dan", account=DAN))
        asked_for = await asked_when(late, lambda wallets: waiting.done() or bool(wallets))
    waiting.cancel()
    await asyncio.wait([waiting])
    assert asked_for == [DAN]


async def test_a_wallet_that_was_read_before_a_restart_does_not_wait(late: TradingRig) -> None:
    async with late.context.database.writing() as tx:
        await record_readings(tx, [WalletReading(DAN, UNITS, ())], 1)
    readings = readings_of(late, wait_s=60)
    await asyncio.wait_for(readings.wait(DAN, "dan", account=DAN), 60)
    assert readings.is_known(DAN)
    assert await asked(late) == []
