"""Chapter 1: a creator creates a market."""

from collections.abc import Callable
from typing import Final

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.creation.payload import ResolutionType
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.market_creation import MarketCreator, SandboxMarket, iso_time_in
from foretell.sdk.payloads import NewMarket, binary_payload

OPEN_DAYS: Final = 30


async def make_market(
    session: DemoSession,
    draft: NewMarket,
    creator_key: bytes,
    note: Callable[[str], object] = lambda _: None,
) -> SandboxMarket:
    """Play the creation of a market, from its price to tradable tokens.

    The id of the request is noted as soon as there is one.
    """
    await _state_price(session, draft.resolution_type)
    creator = MarketCreator(session, creator_key, session)
    (market,) = await creator.create(binary_payload(draft), note)
    return market


async def _state_price(session: DemoSession, stack: ResolutionType) -> None:
    config = await session.worker.get("/market-config")
    if stack is ResolutionType.DIRECT:
        price, purpose = config["directNormalMarketFeeUsdc"], "for a market"
    else:
        terms = config["chains"][0]["resolutionStacks"][stack]
        price, purpose = terms["rewardUsdc"], "to reward the answer"
    chain_id = config["defaultChainId"]
    session.state(f"the worker asks {price} collateral {purpose} on chain {chain_id}")


def demo_draft(
    session: DemoSession, number: int, resolution_type: ResolutionType = ResolutionType.DIRECT
) -> NewMarket:
    """Return the draft of a market that no earlier demo asked."""
    return NewMarket(
        creator=session.caller(session.account(AccountRole.CREATOR)).address,
        title=f"Will the demo end well? ({number})",
        slug=f"demo-ends-well-{number}",
        question=f"Will demo {number} end with every unit accounted for?",
        ends_at=iso_time_in(session, OPEN_DAYS),
        resolution_type=resolution_type,
    )


def event_draft(session: DemoSession, number: int) -> NewMarket:
    """Return the draft of an event that no earlier demo asked, without its outcomes."""
    return NewMarket(
        creator=session.caller(session.account(AccountRole.CREATOR)).address,
        title=f"Who wins the demo? ({number})",
        slug=f"demo-winner-{number}",
        question=f"Who wins demo {number}:",
        ends_at=iso_time_in(session, OPEN_DAYS),
    )
