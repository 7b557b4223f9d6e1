"""Chapters 5 and 6: a merge, the resolution, the redemption, and the balance to the base unit."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from rich.table import Table

from foretell.chain.reader import Reader
from foretell.domain.contracts.calldata import (
    MergePositions,
    RedeemPositions,
    SplitPosition,
)
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import ApiRefused, DemoMismatch
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.amounts import UNITS_PER_TOKEN, decimal_text
from foretell.domain.values.hexadecimal import Address
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import Traders, new_safe_owner
from foretell.sandbox.market_creation import SandboxMarket
from foretell.sandbox.session import approvals
from foretell.sdk.http import wait_for
from foretell.sdk.relayer import RelayerClient

SET_UNITS: Final = 50 * UNITS_PER_TOKEN
SPLIT_UNITS: Final = 80 * UNITS_PER_TOKEN


async def merge(session: DemoSession, market: SandboxMarket) -> Address:
    """Split and merge complete sets in the Safe of a third account, and return that Safe."""
    _, carol = await new_safe_owner(session)
    await session.fund(carol.safe, SPLIT_UNITS)
    split = SplitPosition(session.deployment.collateral, market.condition_id, SPLIT_UNITS)
    calls = [
        *approvals(session.deployment),
        InnerCall(session.deployment.conditional_tokens, split.encode()),
    ]
    with session.waiting("Carol's Safe splits 80 collateral into complete sets"):
        await carol.execute(calls)
    wanted = MergePositions(session.deployment.collateral, market.condition_id, SET_UNITS)
    with session.waiting("Carol merges 50 of them back"):
        answer = await carol.operate("merge-position", wanted.encode())
    session.state(
        f"POST /operations/merge-position: 50 sets merged in {answer['txHash'][:18]}…"
        f" ({answer['confirmations']} confirmation)"
    )
    return carol.safe


async def refuse_early_redemption(
    session: DemoSession, market: SandboxMarket, safe: RelayerClient
) -> None:
    """Check that a redemption before the resolution is refused."""
    try:
        await safe.operate("redeem-position", _redemption(session, market))
    except ApiRefused as refusal:
        session.state(f"redeeming before the resolution is refused: {refusal.status}")
    else:
        raise DemoMismatch("an early redemption", "accepted", "refused")


async def resolve(session: DemoSession, market: SandboxMarket) -> None:
    """Have the proposer answer Yes on the chain."""
    (listed,) = await session.discovery.get("/markets", condition_ids=market.condition_id)
    with session.waiting("the proposer answers Yes"):
        async with session.resolver(session.account(AccountRole.PROPOSER)) as proposer:
            await proposer.resolve(listed, "first")
    session.state("the proposer answered Yes: final at once")
    await wait_until_closed(session, market)


async def wait_until_closed(session: DemoSession, market: SandboxMarket) -> None:
    """Wait until the discovery API shows that a market was resolved."""

    async def fetch_closed() -> bool | None:
        found = await session.discovery.get("/markets", condition_ids=market.condition_id)
        return True if found[0]["closed"] else None

    with session.waiting("the market closes"):
        await wait_for("the market to close", fetch_closed)


async def redeem(session: DemoSession, market: SandboxMarket, bob: RelayerClient) -> None:
    """Redeem the winning tokens of Bob's Safe, and check what they paid to the base unit."""
    reader = Reader(session.rpc, session.deployment)
    before = await reader.collateral_units(bob.safe)
    winning = await reader.token_units([(bob.safe, AssetId(market.token_yes))])
    with session.waiting("Bob redeems from his Safe"):
        answer = await bob.operate("redeem-position", _redemption(session, market))
    gained = await reader.collateral_units(bob.safe) - before
    if gained != winning[0]:
        raise DemoMismatch("what the redemption paid", gained, winning[0])
    session.state(
        f"POST /operations/redeem-position: {decimal_text(gained)} collateral arrived in"
        f" {answer['txHash'][:18]}…"
    )


async def balance(
    session: DemoSession, market: SandboxMarket, wallet_by_name: Mapping[str, Address]
) -> None:
    """Print what each wallet put in, has, and has locked in tokens; check that the sums are equal."""
    reader = Reader(session.rpc, session.deployment)
    table = Table("", "collateral in", "collateral out", "locked in Yes", title="to the base unit")
    total_in = total_out = locked = 0
    for name, wallet in wallet_by_name.items():
        paid_in = session.paid_in_units.get(wallet, 0)
        has = await reader.collateral_units(wallet)
        units = (await reader.token_units([(wallet, AssetId(market.token_yes))]))[0]
        table.add_row(name, *map(decimal_text, (paid_in, has, units)))
        total_in, total_out, locked = total_in + paid_in, total_out + has, locked + units
    table.add_section()
    table.add_row("all", *map(decimal_text, (total_in, total_out, locked)))
    session.console.print(table)
    if total_in != total_out + locked:
        raise DemoMismatch("collateral in", total_in, total_out + locked)
    await wait_for_interest(session, market, locked)
    session.state(
        f"{decimal_text(total_in)} in = {decimal_text(total_out)} out + {decimal_text(locked)}"
        " still locked, and GET /oi agrees"
    )
    await close_books(session)


async def close_books(session: DemoSession) -> None:
    """Check that the contracts hold what all tokens of the installation can claim.

    A chain that was started again has no state of the block that the index may still be at.
    """
    head = await Reader(session.rpc, session.deployment).head()

    async def fetch_report() -> Any | None:
        try:
            report = (await session.data.get("/solvency", limit=0))["total"]
        except ApiRefused as refusal:
            if refusal.status != HTTPStatus.BAD_GATEWAY:
                raise
            return None
        return report if report["block"] >= head else None

    with session.waiting("the report of solvency reaches the last block"):
        report = await wait_for("GET /solvency", fetch_report)
    if not report["isSolvent"]:
        raise DemoMismatch("deficits", report["deficits"], [])
    session.state(
        f"GET /solvency: {report['conditions']} conditions, {report['held']:g} held,"
        f" {report['owed']:g} owed, no deficit at block {report['block']}"
    )


async def wait_for_interest(session: DemoSession, market: SandboxMarket, units: int) -> None:
    """Wait until the data API shows this open interest of a market."""

    async def fetch_interest() -> bool | None:
        (interest,) = await session.data.get("/oi", market=market.condition_id)
        return True if round(interest["value"] * UNITS_PER_TOKEN) == units else None

    with session.waiting("the indexer reads it too"):
        await wait_for(f"GET /oi to be {decimal_text(units)}", fetch_interest)


def wallets(traders: Traders, carols_safe: Address) -> dict[str, Address]:
    """Return the wallets of the story by name."""
    return {
        "Alice": traders.alice.wallet.maker,
        "Bob's Safe": traders.bob.wallet.maker,
        "Carol's Safe": carols_safe,
    }


def _redemption(session: DemoSession, market: SandboxMarket) -> bytes:
    return RedeemPositions(session.deployment.collateral, market.condition_id).encode()
