import asyncio
import io

import pytest
from rich.console import Console
from tests.rigs.values import an_address

from foretell.cli.wallet import run_bar, run_list, run_unbar
from foretell.domain.errors.families import MalformedHex
from foretell.domain.exchange.wallets.wallet_bars import WalletBar
from foretell.domain.values.hexadecimal import checksum_address
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.outbox.wallet_bars import record_bar

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
    assert printed(listed) == []


def test_a_word_that_is_no_address_is_refused(settings: Settings) -> None:
    asyncio.run(prepare(settings))
    with pytest.raises(MalformedHex, match="the wallet"):
        run_bar(settings, "alice", "x", a_console())
