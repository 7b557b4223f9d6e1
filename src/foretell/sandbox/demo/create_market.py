"""First act: a creator makes a market."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.hexadecimal import Bytes32, parse_bytes32
from foretell.sandbox.demo.session import DemoSession
from foretell.sdk.creation import CreatorClient
from foretell.sdk.payloads import MarketDraft, binary_payload, picture

OPEN_DAYS: Final = 30
NOT_FOUND: Final = 404
METADATA_UPDATE_PENDING: Final = "metadata_update_pending"
CHECKED: Final = frozenset({"finalize_running", METADATA_UPDATE_PENDING, "finalized"})


class DemoMarket(NamedTuple):
    """A market that a story is about."""

    condition_id: Bytes32
    token_yes: str
    token_no: str


async def make_market(
    session: DemoSession,
    wish: MarketDraft,
    creator_key: bytes,
    note: Callable[[str], object] = lambda _: None,
) -> DemoMarket:
    """Play the creation, from the configuration to a market that is registered.

    The request's id is noted as soon as there is one: who stops on the way goes on by it.
    """
    await _tell_price(session, wish.resolution_type)
    (market,) = await make_markets(session, binary_payload(wish), creator_key, note)
    return market


async def _tell_price(session: DemoSession, stack: ResolutionType) -> None:
    config = await session.worker.get("/market-config")
    if stack is ResolutionType.DIRECT:
        price, what = config["directNormalMarketFeeUsdc"], "for a market"
    else:
        told = config["chains"][0]["resolutionStacks"][stack]
        price, what = told["rewardUsdc"], "to reward the answer"
    session.tell(f"the worker asks {price} collateral {what} on chain {config['defaultChainId']}")


async def make_markets(
    session: DemoSession,
    payload: str,
    creator_key: bytes,
    note: Callable[[str], object] = lambda _: None,
) -> tuple[DemoMarket, ...]:
    """Play the creation of a payload's markets, and return them in its order."""
    client = _client(session, creator_key)
    challenge = await client.open_request(payload)
    note(challenge.request_id)
    session.tell(
        f"challenge {challenge.request_id} is bound to payload {challenge.payload_hash[:18]}…"
    )
    images = {"eventImage": ("cover.png", picture(), "image/png")}
    await client.prepare(challenge, payload, images)
    with session.waiting("the worker stores the picture and the metadata, and draws up the plan"):
        plan = await client.wait_for_plan(challenge.request_id)
    session.tell(f"plan: {', '.join(item['id'] for item in plan)}")
    with session.waiting("the creator sends the plan from its own wallet"):
        sent = await client.execute(plan)
    confirmed = await client.confirm(challenge.request_id, sent)
    session.tell(f"{len(confirmed['confirmedTxs'])} transactions confirmed to the worker")
    return await _finalize(session, client, challenge.request_id)


async def resume_market(
    session: DemoSession, creator_key: bytes, request_id: str
) -> DemoMarket | None:
    """Go on with a request whose creator stopped on the way; None says to begin anew.

    Before its transactions are checked, beginning anew costs nothing: the new request takes over
    what the earlier one has put on the chain. The same is so when the worker has another database
    now, and knows nothing of the request.
    """
    client = _client(session, creator_key)
    try:
        status = await client.status(request_id)
    except ApiRefused as refusal:
        if refusal.details["status"] != NOT_FOUND:
            raise
        return None
    if status not in CHECKED:
        return None
    (market,) = await _finalize(session, client, request_id)
    return market


def _client(session: DemoSession, creator_key: bytes) -> CreatorClient:
    return CreatorClient(
        session.worker, session.caller(creator_key), creator_key, session.ready.chain_id
    )


async def _finalize(
    session: DemoSession, client: CreatorClient, request_id: str
) -> tuple[DemoMarket, ...]:
    with session.waiting("the worker checks them and opens the tokens to trading"):
        answer = await client.finalize(request_id)
    for result in answer["registerResults"]:
        session.tell(f"condition {result['conditionId'][:18]}… is registered ({answer['status']})")
    if answer["status"] == METADATA_UPDATE_PENDING:
        with session.waiting("the creator attaches the final metadata"):
            updates = await client.execute(answer["metadataUpdateTxPlan"])
        await client.confirm(request_id, updates)
        with session.waiting("the worker checks that too"):
            answer = await client.finalize(request_id)
    uri = answer["metadataUpdates"][0]["metadataUri"]
    session.tell(f"{answer['status']}: {answer['creatorTxCount']} transactions, metadata at {uri}")
    return tuple(
        [
            DemoMarket(parse_bytes32(each["conditionId"]), each["tokenA"], each["tokenB"])
            for each in answer["registerResults"]
        ]
    )


def demo_draft(
    session: DemoSession, number: int, resolution_type: ResolutionType = ResolutionType.DIRECT
) -> MarketDraft:
    """Return a market that was never asked before."""
    return MarketDraft(
        creator=session.caller(session.account(AccountRole.CREATOR)).address,
        title=f"Will the demo end well? ({number})",
        slug=f"demo-ends-well-{number}",
        question=f"Will demo {number} end with every unit accounted for?",
        ends_at=_ends_at(session),
        resolution_type=resolution_type,
    )


def event_draft(session: DemoSession, number: int) -> MarketDraft:
    """Return an event that was never asked before; its outcomes are yet to be named."""
    return MarketDraft(
        creator=session.caller(session.account(AccountRole.CREATOR)).address,
        title=f"Who wins the demo? ({number})",
        slug=f"demo-winner-{number}",
        question=f"Who wins demo {number}:",
        ends_at=_ends_at(session),
    )


def _ends_at(session: DemoSession) -> str:
    ends_at = datetime.fromtimestamp(session.now_s(), UTC) + timedelta(days=OPEN_DAYS)
    return ends_at.isoformat().replace("+00:00", "Z")
