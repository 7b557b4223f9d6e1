import asyncio
import io

import pytest
from rich.console import Console

from foretell.cli.builder_fees import run_builder_fees
from foretell.domain.portfolio.builder_fees import BuilderRates
from foretell.domain.values.hexadecimal import Bytes32
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.trading.builder_trades import load_builder_rates

CODE = Bytes32("0x" + "ab" * 32)


async def stored(settings: Settings) -> list[BuilderRates]:
    async with Database(settings.database) as database:
        await upgrade(database)
        async with database.reading() as tx:
            return list(await load_builder_rates(tx, CODE))


def set_rates(settings: Settings, code: str, share: int, flat: int) -> str:
    console = Console(file=io.StringIO(), width=200)
    run_builder_fees(settings, console, code, share, flat)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_newer_rates_leave_the_older_ones_in_force_for_their_time(settings: Settings) -> None:
    settings.data.mkdir(exist_ok=True)
    assert asyncio.run(stored(settings)) == []
    set_rates(settings, CODE.upper().replace("0X", "0x"), 3000, 50)
    printed = set_rates(settings, CODE, 0, 0)
    assert printed.count("bps of takers' fees") == 2
    first, second = asyncio.run(stored(settings))
    assert first[1:] == (3000, 50)
    assert second[1:] == (0, 0)
    assert first.from_ms < second.from_ms


@pytest.mark.parametrize(
    ("code", "share", "flat", "words"),
    [
        ("0x12", 0, 0, "the code"),
        (CODE, 10_000, 0, "--taker-share-bps must be 0 to 9999"),
        (CODE, -1, 0, "--taker-share-bps must be 0 to 9999"),
        (CODE, 0, 101, "--maker-flat-bps must be 0 to 100"),
    ],
)
def test_rates_out_of_range_are_refused(
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    code: str,
    share: int,
    flat: int,
    words: str,
) -> None:
    with pytest.raises(SystemExit):
        set_rates(settings, code, share, flat)
    assert words in capsys.readouterr().err
