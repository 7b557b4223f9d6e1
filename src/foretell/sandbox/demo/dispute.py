"""The third story: a market of the optimistic stack with a disputed first answer."""

from typing import Final, NamedTuple

import msgspec

from foretell.chain.reader import Reader
from foretell.chain.views import ViewCall, call_view
from foretell.domain.contracts.calldata import RedeemPositions
from foretell.domain.contracts.oracle import OWED
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.errors.command import DemoMismatch
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN, decimal_text
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, parse_address
from foretell.sandbox.demo.create_market import demo_draft, make_market
from foretell.sandbox.demo.resolution import wait_for_interest, wait_until_closed
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import (
    FUNDS_UNITS,
    agree,
    new_trader,
    place,
    wait_for_collateral,
    wait_for_trades,
)
from foretell.sandbox.market_creation import SandboxMarket
from foretell.sandbox.session import approval_calls
from foretell.sdk.trading import TradingClient, Wallet

SET_UNITS: Final = 100 * UNITS_PER_TOKEN
YES_UNITS: Final = 60 * UNITS_PER_TOKEN
"""What Dana pays for 100 Yes; Erik pays the rest for 100 No."""


STATUSES: Final = ["proposed", "disputed", "proposed", "resolved"]


class Stack(NamedTuple):
    """The optimistic stack, as the worker's configuration names it."""

    oracle: Address
    bond_units: int
    reward_units: int
    liveness_s: int


class Answerer(NamedTuple):
    """An account with money for bonds."""

    name: str
    private_key: bytes

    @property
    def address(self) -> Address:
        """The address of the account."""
        return address_of_key(self.private_key)


async def play_dispute(session: DemoSession) -> None:
    """Play a market from creation through a dispute to redemption; raise at the first wrong amount."""
    session.chapter("11. A market is created with an answer that may be disputed")
    draft = demo_draft(session, session.new_salt(), ResolutionType.OPTIMISTIC)
    market = await make_market(session, draft, session.account(AccountRole.CREATOR))
    stack = await _stack(session)
    dana = await _trader(session, "Dana")
    erik = await _trader(session, "Erik")
    await _trade(session, market, dana, erik)
    session.chapter("12. A wrong answer is disputed, and a right one is final")
    petra = await _answerer(session, stack, "Petra", bonds=1)
    quentin = await _answerer(session, stack, "Quentin", bonds=2)
    treasury = address_of_key(session.account(AccountRole.TREASURY))
    owed_before = await _owed(session, stack, treasury)
    await _answer(session, stack, market, petra, quentin)
    await wait_until_closed(session, market)
    listed = await session.discovery.get("/markets", condition_ids=market.condition_id)
    statuses = msgspec.json.decode(listed[0]["umaResolutionStatuses"])
    agree("umaResolutionStatuses", statuses, STATUSES)
    session.state(f"GET /markets: {', '.join(statuses)}")
    session.chapter("13. The winner redeems, and the books are closed")
    await _redeem(session, market, dana)
    owed = await _owed(session, stack, treasury) - owed_before
    wallets = (dana.wallet.maker, erik.wallet.maker, petra.address, quentin.address)
    await _balance(session, stack, wallets, owed)
    await wait_for_interest(session, market, 0)


async def _stack(session: DemoSession) -> Stack:
    config = await session.worker.get("/market-config")
    terms = config["chains"][0]["resolutionStacks"][ResolutionType.OPTIMISTIC]
    return Stack(
        parse_address(terms["oracle"]),
        int(terms["proposalBondUsdc"]) * UNITS_PER_TOKEN,
        int(terms["rewardUsdc"]) * UNITS_PER_TOKEN,
        terms["livenessSeconds"],
    )


async def _trader(session: DemoSession, name: str) -> TradingClient:
    trader = await new_trader(session, Wallet(await session.new_account()))
    await session.fund(trader.wallet.maker, FUNDS_UNITS)
    await session.caller(trader.wallet.private_key).call_all(approval_calls(session.deployment))
    await wait_for_collateral(session, trader)
    session.state(f"{name} has {decimal_text(FUNDS_UNITS)} collateral, and approvals")
    return trader


async def _trade(
    session: DemoSession, market: SandboxMarket, dana: TradingClient, erik: TradingClient
) -> None:
    await place(session, dana, market.token_yes, Side.BUY, SET_UNITS, YES_UNITS)
    matched = await place(
        session, erik, market.token_no, Side.BUY, SET_UNITS, SET_UNITS - YES_UNITS
    )
    agree("Erik's order", matched["status"], "matched")
    await wait_for_trades(session, erik, market, 1)
    session.state("Dana buys 100 Yes at 0.60, Erik 100 No at 0.40: CONFIRMED")


async def _answerer(session: DemoSession, stack: Stack, name: str, bonds: int) -> Answerer:
    """Return a new account that can put this many bonds at stake."""
    answerer = Answerer(name, await session.new_account())
    await session.fund(answerer.address, bonds * stack.bond_units)
    return answerer


async def _answer(
    session: DemoSession, stack: Stack, market: SandboxMarket, petra: Answerer, quentin: Answerer
) -> None:
    """Propose No and dispute it; then propose Yes, which stays undisputed."""
    (listed,) = await session.discovery.get("/markets", condition_ids=market.condition_id)
    bond = decimal_text(stack.bond_units)
    async with (
        session.optimistic(petra.private_key) as petras,
        session.optimistic(quentin.private_key) as quentins,
    ):
        await petras.propose(listed, "second")
        session.state(f"Petra proposes No, with {bond} at stake")
        first = await petras.standing(listed)
        await quentins.dispute(listed)
        session.state(f"Quentin disputes it, with {bond} at stake: the question is asked again")
        if (await quentins.standing(listed)).asked_at_s == first.asked_at_s:
            raise DemoMismatch("the question after a dispute", "the same", "asked again")
        await quentins.propose(listed, "first")
        session.state(f"Quentin proposes Yes, with {bond} at stake")
        await session.rpc.send("evm_increaseTime", stack.liveness_s + 1)
        await session.rpc.send("evm_mine")
        session.state(f"{stack.liveness_s} s pass on the chain without a dispute")
        await petras.report(listed)
        agree("what Petra is paid", await petras.withdraw(listed), 0)
        session.state("Petra, as any account may, has the answer reported and the bonds paid out")
        await quentins.withdraw(listed)
    gained = await Reader(session.rpc, session.deployment).collateral_units(quentin.address)
    wanted = 2 * stack.bond_units + stack.bond_units // 2 + stack.reward_units
    agree("what Quentin has", gained, wanted)
    session.state(
        f"Quentin withdraws {decimal_text(gained)}: both bonds, half of Petra's, and the reward of"
        f" {decimal_text(stack.reward_units)}"
    )


async def _redeem(session: DemoSession, market: SandboxMarket, dana: TradingClient) -> None:
    reader, wallet = Reader(session.rpc, session.deployment), dana.wallet
    before = await reader.collateral_units(wallet.maker)
    redemption = RedeemPositions(session.deployment.collateral, market.condition_id)
    with session.waiting("Dana redeems"):
        await session.caller(wallet.private_key).call(
            session.deployment.conditional_tokens, redemption.encode()
        )
    gained = await reader.collateral_units(wallet.maker) - before
    agree("what the redemption paid", gained, SET_UNITS)
    session.state(f"Dana redeems 100 Yes for {decimal_text(gained)} collateral")


async def _owed(session: DemoSession, stack: Stack, account: Address) -> int:
    return int(await call_view(session.rpc, ViewCall(stack.oracle, OWED, (account,))))


async def _balance(
    session: DemoSession, stack: Stack, wallets: tuple[Address, ...], owed_units: int
) -> None:
    """Check that what went in, the reward included, is what all have and the treasury is owed."""
    reader = Reader(session.rpc, session.deployment)
    total_in = sum(session.paid_in_units[wallet] for wallet in wallets) + stack.reward_units
    total_out = sum([await reader.collateral_units(wallet) for wallet in wallets])
    agree("collateral out", total_out + owed_units, total_in)
    session.state(
        f"{decimal_text(total_in)} in = {decimal_text(total_out)} out + {decimal_text(owed_units)}"
        " of Petra's bond owed to the treasury"
    )
