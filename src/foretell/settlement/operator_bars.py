"""Bars that the operator sets or ends, and what failed settlements cost; settlement may run meanwhile."""

from collections.abc import Sequence

from foretell.domain.exchange.wallets.wallet_bars import (
    WalletBar,
    barred_by_operator,
    ended_by_operator,
)
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.outbox.wallet_bars import (
    WalletGas,
    load_bar,
    load_barred,
    load_gas,
    record_bar,
)


async def bar(database: Database, wallet: Address, cause: str, now_ms: int) -> None:
    """Bar a wallet until the operator ends its bar."""
    async with database.writing() as tx:
        known = await load_bar(tx, wallet)
        await record_bar(tx, barred_by_operator(known, wallet, cause, now_ms))


async def unbar(database: Database, wallet: Address, now_ms: int) -> None:
    """End the bar of a wallet, and forget its offences."""
    async with database.writing() as tx:
        known = await load_bar(tx, wallet)
        await record_bar(tx, ended_by_operator(known, wallet, now_ms))


async def barred(database: Database) -> Sequence[WalletBar]:
    """Return all bars that have not ended, the oldest first."""
    async with database.reading() as tx:
        return await load_barred(tx)


async def gas_of_failures(database: Database) -> Sequence[WalletGas]:
    """Return the gas of failed settlements on the last two days that had any, by wallet."""
    async with database.reading() as tx:
        return await load_gas(tx)
