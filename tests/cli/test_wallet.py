import asyncio
import io

import pytest
from rich.console import Console
from tests.rigs.values import an_address

from foretell.cli.wallet import run_bar, run_gas, run_list, run_unbar
from foretell.domain.errors.families import MalformedHex
from foretell.domain.exchange.wallets.wallet_bars import WalletBar
from foretell.domain.values.hexadecimal import checksum_address
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.outbox.settlement_views import NOBODY
from foretell.store.outbox.wallet_bars import add_gas, record_bar

ALICE, BOB = an_address("alice"), an_address("bob")


def a_console() -> Console:
    return Console(file=io.StringIO(), width=40)


def printed(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


async def prepare(settings: Settings) -> None:
    settings.data.mkdir(exist_ok=True)
    async with Database(settings.database) as database:
        await upgrade(database)
        bar = WalletBar(
            BOB, is_barred=True, cause="[x] reverts", offences=2, barred_at_ms=1, probe_at_ms=0
        )
        async with database.writing() as tx:
            await record_bar(tx, bar)


def test_an_operator_bars_lists_and_frees_wallets(settings: Settings) -> None:
    asyncio.run(prepare(settings))
    run_bar(settings, ALICE, "asked by a court", a_console())
    listed = a_console()
    run_list(settings, listed)
    assert printed(listed) == [
        f"{checksum_address(BOB)}  probe 1970-01-01T00:00:00Z, 2 offences  [x] reverts",
        f"{checksum_address(ALICE)}  by the operator  asked by a court",
    ]
    for wallet in (ALICE, checksum_address(BOB)):
        run_unbar(settings, wallet, a_console())
    listed = a_console()
    run_list(settings, listed)
    assert printed(listed) == ["no wallet is barred"]


def test_gas_of_no_failed_settlement_is_a_line_that_says_so(settings: Settings) -> None:
    asyncio.run(prepare(settings))
    listed = a_console()
    run_gas(settings, listed)
    assert printed(listed) == ["no settlement that failed has cost gas"]


def test_a_word_that_is_no_address_is_refused(settings: Settings) -> None:
    asyncio.run(prepare(settings))
    with pytest.raises(MalformedHex, match="the wallet"):
        run_bar(settings, "alice", "x", a_console())


async def spend(settings: Settings) -> None:
    async with Database(settings.database) as database, database.writing() as tx:
        await add_gas(tx, ALICE, 20_000, 5)
        await add_gas(tx, NOBODY, 20_001, 7)
        await add_gas(tx, NOBODY, 20_001, 2)
        await add_gas(tx, BOB, 20_001, 8)
        await add_gas(tx, an_address("carol"), 20_001, 0)


def test_the_gas_of_failed_settlements_is_printed_beside_its_bounds(settings: Settings) -> None:
    asyncio.run(prepare(settings))
    asyncio.run(spend(settings))
    listed = a_console()
    run_gas(settings, listed)
    assert printed(listed) == [
        "2024-10-05  matches in batches  9 gas of 50000000",
        f"2024-10-05  {checksum_address(BOB)}  8 gas of 10000000",
        f"2024-10-04  {checksum_address(ALICE)}  5 gas of 10000000",
    ]
