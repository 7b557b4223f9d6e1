"""`foretell fee-shares`: the fees that the exchange charged, and the parts of builders, referrers and the operator."""

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import now_ms
from foretell.cli.failure import fail
from foretell.cli.sources import open_database
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.portfolio.fee_shares import REFERRER_SHARE_BPS_MAX
from foretell.domain.values.amounts import decimal_text
from foretell.settings import Settings
from foretell.store.queries.fee_shares import (
    FeeTotals,
    ReferralRate,
    load_fee_totals,
    load_referral_rates,
    record_referral_rate,
)


def run_fee_shares(settings: Settings, console: Console, referrer_share_bps: int | None) -> None:
    """Set the share of referrers if one is named, and print their rates and all fees with their parts."""
    if referrer_share_bps is not None and not 0 <= referrer_share_bps <= REFERRER_SHARE_BPS_MAX:
        most = REFERRER_SHARE_BPS_MAX
        fail(f"--referrer-share-bps must be 0 to {most}, not {referrer_share_bps}")
    rates, totals = uvloop.run(_load(settings, referrer_share_bps))
    for rate in rates:
        console.print(f"from {rate.from_ms} ms: {rate.share_bps} bps for referrers")
    table = Table("exchange", "asset", "fees", "builders", "referrers", "operator")
    for each in totals:
        units = each.fee_units, *each.shares
        asset = "collateral" if each.asset == COLLATERAL else each.asset
        table.add_row(each.exchange, asset, *map(decimal_text, units))
    console.print(table)


async def _load(
    settings: Settings, referrer_share_bps: int | None
) -> tuple[list[ReferralRate], list[FeeTotals]]:
    """Store a new rate, which is in force from now on, and return all rates and the fees."""
    async with open_database(settings) as database:
        if referrer_share_bps is not None:
            async with database.writing() as tx:
                known = await load_referral_rates(tx)
                newest_ms = known[-1].from_ms if known else 0
                rate = ReferralRate(max(now_ms(), newest_ms + 1), referrer_share_bps)
                await record_referral_rate(tx, rate)
        async with database.reading() as tx:
            return list(await load_referral_rates(tx)), list(await load_fee_totals(tx))
