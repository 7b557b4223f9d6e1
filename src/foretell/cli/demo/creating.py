"""First act: a creator makes a market."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from foretell.cli.clients.creating import CreatorClient
from foretell.cli.clients.payloads import MarketWish, binary_payload, picture
from foretell.cli.demo.stage import Stage
from foretell.domain.command_errors import ApiRefused
from foretell.domain.hexadecimal import Bytes32, parse_bytes32
from foretell.domain.sandbox import Role

OPEN_DAYS: Final = 30
NOT_FOUND: Final = 404
METADATA_UPDATE_PENDING: Final = "metadata_update_pending"
CHECKED: Final = frozenset({"finalize_running", METADATA_UPDATE_PENDING, "finalized"})


class DemoMarket(NamedTuple):
    """The market that the story is about."""

    slug: str
    condition_id: Bytes32
    token_yes: str
    token_no: str


async def make_market(
    stage: Stage,
    wish: MarketWish,
    creator_key: bytes,
    note: Callable[[str], object] = lambda _: None,
) -> DemoMarket:
    """Play the creation, from the configuration to a market that is registered.

    The request's id is noted as soon as there is one: who stops on the way goes on by it.
    """
    config = await stage.worker.get("/market-config")
    fee = config["directNormalMarketFeeUsdc"]
    stage.tell(f"the worker asks {fee} collateral for a market on chain {config['defaultChainId']}")
    client = _client(stage, creator_key)
    payload = binary_payload(wish)
    challenge = await client.open_request(payload)
    note(challenge.request_id)
    stage.tell(
        f"challenge {challenge.request_id} is bound to payload {challenge.payload_hash[:18]}…"
    )
    images = {"eventImage": ("cover.png", picture(), "image/png")}
    await client.prepare(challenge, payload, images)
    with stage.waiting("the worker stores the picture and the metadata, and draws up the plan"):
        plan = await client.wait_for_plan(challenge.request_id)
    stage.tell(f"plan: {', '.join(item['id'] for item in plan)}")
    with stage.waiting("the creator sends the plan from its own wallet"):
        sent = await client.execute(plan)
    confirmed = await client.confirm(challenge.request_id, sent)
    stage.tell(f"{len(confirmed['confirmedTxs'])} transactions confirmed to the worker")
    return await _finalize(stage, client, challenge.request_id, wish.slug)


async def resume_market(
    stage: Stage, slug: str, creator_key: bytes, request_id: str
) -> DemoMarket | None:
    """Go on with a request whose creator stopped on the way; None says to begin anew.

    Before its transactions are checked, beginning anew costs nothing: the new request takes over
    what the earlier one has put on the chain. The same is so when the worker has another database
    now, and knows nothing of the request.
    """
    client = _client(stage, creator_key)
    try:
        status = await client.status(request_id)
    except ApiRefused as refusal:
        if refusal.details["status"] != NOT_FOUND:
            raise
        return None
    if status not in CHECKED:
        return None
    return await _finalize(stage, client, request_id, slug)


def _client(stage: Stage, creator_key: bytes) -> CreatorClient:
    return CreatorClient(stage.worker, stage.caller(creator_key), creator_key, stage.ready.chain_id)


async def _finalize(stage: Stage, client: CreatorClient, request_id: str, slug: str) -> DemoMarket:
    with stage.waiting("the worker checks them and opens the tokens to trading"):
        answer = await client.finalize(request_id)
    result = answer["registerResults"][0]
    stage.tell(f"condition {result['conditionId'][:18]}… is registered ({answer['status']})")
    if answer["status"] == METADATA_UPDATE_PENDING:
        with stage.waiting("the creator attaches the final metadata"):
            updates = await client.execute(answer["metadataUpdateTxPlan"])
        await client.confirm(request_id, updates)
        with stage.waiting("the worker checks that too"):
            answer = await client.finalize(request_id)
    uri = answer["metadataUpdates"][0]["metadataUri"]
    stage.tell(f"{answer['status']}: {answer['creatorTxCount']} transactions, metadata at {uri}")
    condition_id = parse_bytes32(result["conditionId"])
    return DemoMarket(slug, condition_id, result["tokenA"], result["tokenB"])


def demo_wish(stage: Stage, number: int) -> MarketWish:
    """Return a market that was never asked before."""
    ends_at = datetime.fromtimestamp(stage.now_s(), UTC) + timedelta(days=OPEN_DAYS)
    return MarketWish(
        creator=stage.caller(stage.account(Role.CREATOR)).address,
        title=f"Will the demo end well? ({number})",
        slug=f"demo-ends-well-{number}",
        question=f"Will demo {number} end with every unit accounted for?",
        ends_at=ends_at.isoformat().replace("+00:00", "Z"),
    )
