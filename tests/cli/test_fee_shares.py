import asyncio
import io

import pytest
from rich.console import Console
from tests.rigs.rows import Rows
from tests.rigs.values import EXCHANGE, a_word, an_asset

from foretell.cli.fee_shares import run_fee_shares
from foretell.domain.exchange.order import Side
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.index.activities import ExchangeFill, record_exchange_fills
from foretell.store.migrations import upgrade


async def charge(settings: Settings) -> None:
    """Write a fill whose seller paid a fee of 1.5."""
    async with Database(settings.database) as database:
        await upgrade(database)
        async with database.writing() as tx:
            rows = Rows(tx)
            await rows.open_named("rain")
            act = await rows.buy("bob", "rain", 10, 4, side=Side.SELL)
            fill = ExchangeFill(
                block_number=act.block_number,
                log_index=act.log_index,
                part=act.part,
                order_id=a_word("order"),
                wallet=act.wallet,
                counterparty=EXCHANGE,
                side=Side.SELL,
                token_id=an_asset(is_yes=True),
                size_units=10,
                cost_units=4,
                fee_units=1_500_000,
                is_taker=True,
                tx_hash=act.tx_hash,
            )
            await record_exchange_fills(tx, [fill])


def printed(settings: Settings, referrer_share_bps: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=200)
    run_fee_shares(settings, console, referrer_share_bps)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_fees_are_printed_with_their_parts_and_the_rates_of_referrers(settings: Settings) -> None:
    settings.data.mkdir(exist_ok=True)
    asyncio.run(charge(settings))
    assert "bps for referrers" not in printed(settings)
    assert printed(settings, 2_000).count("2000 bps for referrers") == 1
    words = printed(settings, 0)
    assert words.count("bps for referrers") == 2
    line = next(each for each in words.splitlines() if "collateral" in each)
    assert line.count("1.5") == 2, "all of it is the operator's"


@pytest.mark.parametrize("share", [-1, 10_001])
def test_a_share_out_of_range_is_refused(
    settings: Settings, capsys: pytest.CaptureFixture[str], share: int
) -> None:
    with pytest.raises(SystemExit):
        printed(settings, share)
    assert "--referrer-share-bps must be 0 to 10000" in capsys.readouterr().err
