"""`foretell builder-fees`: the rates by which a builder's fees are accounted."""

import uvloop
from rich.console import Console

from foretell.app.clock_and_ids import now_ms
from foretell.cli.failure import fail
from foretell.cli.sources import open_database
from foretell.domain.errors.families import MalformedHex
from foretell.domain.portfolio.builder_fees import (
    MAKER_FLAT_BPS_MAX,
    TAKER_SHARE_BPS_MAX,
    BuilderRates,
)
from foretell.domain.values.hexadecimal import Bytes32, parse_bytes32
from foretell.settings import Settings
from foretell.store.trading.builder_trades import load_builder_rates, record_builder_rates


def run_builder_fees(
    settings: Settings, console: Console, code: str, taker_share_bps: int, maker_flat_bps: int
) -> None:
    """Store rates that are in force from now on, and print all rates of the builder."""
    try:
        parsed = parse_bytes32(code, "the code")
    except MalformedHex as error:
        fail(error.message)
    if not 0 <= taker_share_bps <= TAKER_SHARE_BPS_MAX:
        fail(f"--taker-share-bps must be 0 to {TAKER_SHARE_BPS_MAX}, not {taker_share_bps}")
    if not 0 <= maker_flat_bps <= MAKER_FLAT_BPS_MAX:
        fail(f"--maker-flat-bps must be 0 to {MAKER_FLAT_BPS_MAX}, not {maker_flat_bps}")
    rates = uvloop.run(_record(settings, parsed, taker_share_bps, maker_flat_bps))
    for each in rates:
        console.print(
            f"from {each.from_ms} ms: {each.taker_share_bps} bps of takers' fees,"
            f" {each.maker_flat_bps} bps of makers' collateral",
            soft_wrap=True,
        )


async def _record(
    settings: Settings, code: Bytes32, taker_share_bps: int, maker_flat_bps: int
) -> list[BuilderRates]:
    """Return the builder's rates with the new ones, whose time is after that of all others."""
    async with (
        open_database(settings) as database,
        database.writing() as tx,
    ):
        known = await load_builder_rates(tx, code)
        newest_ms = known[-1].from_ms if known else 0
        rates = BuilderRates(max(now_ms(), newest_ms + 1), taker_share_bps, maker_flat_bps)
        await record_builder_rates(tx, code, rates)
        return [*known, rates]
