"""`foretell wallet`: the wallets that are barred from matching, and what failed settlements cost."""

import uvloop
from rich.console import Console

from foretell.app.clock_and_ids import now_ms
from foretell.cli.sources import open_database
from foretell.domain.exchange.wallets.wallet_bars import DAY_MS, WalletBar
from foretell.domain.values.hexadecimal import checksum_address, parse_address
from foretell.domain.values.instants import iso_time
from foretell.settings import Settings
from foretell.settlement.operator_bars import bar, barred, gas_of_failures, unbar
from foretell.store.outbox.settlement_views import NOBODY
from foretell.store.outbox.wallet_bars import WalletGas


def run_bar(settings: Settings, wallet: str, cause: str, console: Console) -> None:
    """Bar a wallet until the operator ends its bar."""
    address = parse_address(wallet, "the wallet")

    async def run() -> None:
        async with open_database(settings) as database:
            await bar(database, address, cause, now_ms())

    uvloop.run(run())
    _print(console, f"{checksum_address(address)} is barred until foretell wallet unbar ends it")


def run_unbar(settings: Settings, wallet: str, console: Console) -> None:
    """End the bar of a wallet, and forget its offences."""
    address = parse_address(wallet, "the wallet")

    async def run() -> None:
        async with open_database(settings) as database:
            await unbar(database, address, now_ms())

    uvloop.run(run())
    _print(console, f"{checksum_address(address)} may trade")


def run_list(settings: Settings, console: Console) -> None:
    """Print a line for each barred wallet: when it is probed, how many offences it gave, and the cause."""

    async def run() -> None:
        async with open_database(settings) as database:
            bars = await barred(database)
        for line in [_line(each) for each in bars] or ["no wallet is barred"]:
            _print(console, line)

    uvloop.run(run())


def run_gas(settings: Settings, console: Console) -> None:
    """Print a line for each day and wallet with the gas of its failed settlements, and the bound of the day."""

    async def run() -> None:
        async with open_database(settings) as database:
            gases = await gas_of_failures(database)
        lines = [_gas_line(each, settings) for each in gases]
        for line in lines or ["no settlement that failed has cost gas"]:
            _print(console, line)

    uvloop.run(run())


def _gas_line(each: WalletGas, settings: Settings) -> str:
    is_nobody = each.wallet == NOBODY
    who = "matches in batches" if is_nobody else checksum_address(each.wallet)
    most = settings.unsimulated_gas_per_day_max if is_nobody else settings.wallet_gas_per_day_max
    day, _, _ = iso_time(each.day * DAY_MS).partition("T")
    return f"{day}  {who}  {each.gas} gas of {most}"


def _line(each: WalletBar) -> str:
    ends = "by the operator"
    if each.probe_at_ms is not None:
        ends = f"probe {iso_time(each.probe_at_ms)}, {each.offences} offences"
    return f"{checksum_address(each.wallet)}  {ends}  {each.cause}"


def _print(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False, highlight=False)
