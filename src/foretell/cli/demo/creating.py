"""First act: a creator makes a market."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from foretell.cli.clients.creating import CreatorClient
from foretell.cli.clients.payloads import MarketWish, binary_payload, picture
from foretell.cli.demo.stage import Stage
from foretell.domain.hexadecimal import Bytes32, parse_bytes32
from foretell.domain.sandbox import Role

OPEN_DAYS = 30


class DemoMarket(NamedTuple):
    """The market that the story is about."""

    slug: str
    condition_id: Bytes32
    token_yes: str
    token_no: str


async def make_market(stage: Stage, wish: MarketWish, creator_key: bytes) -> DemoMarket:
    """Play the creation, from the configuration to a market that is registered."""
    config = await stage.worker.get("/market-config")
    fee = config["directNormalMarketFeeUsdc"]
    stage.tell(f"the worker asks {fee} collateral for a market on chain {config['defaultChainId']}")
    client = CreatorClient(
        stage.worker, stage.caller(creator_key), creator_key, config["defaultChainId"]
    )
    payload = binary_payload(wish)
    challenge = await client.open_request(payload)
    stage.tell(
        f"challenge {challenge.request_id} is bound to payload {challenge.payload_hash[:18]}…"
    )
    images = {"eventImage": ("cover.png", picture(), "image/png")}
    await client.prepare(challenge, payload, images)
    with stage.waiting("the worker stores the picture and the metadata, and draws up the plan"):
        plan = await client.wait_for_plan(challenge.request_id)
    stage.tell(f"plan: {', '.join(item['id'] for item in plan)}")
    market = await _carry_out(stage, client, challenge.request_id, plan)
    return DemoMarket(wish.slug, *market)


async def _carry_out(
    stage: Stage, client: CreatorClient, request_id: str, plan: Any
) -> tuple[Bytes32, str, str]:
    with stage.waiting("the creator sends the plan from its own wallet"):
        sent = await client.execute(plan)
    confirmed = await client.confirm(request_id, sent)
    stage.tell(f"{len(confirmed['confirmedTxs'])} transactions confirmed to the worker")
    with stage.waiting("the worker checks them and opens the tokens to trading"):
        pending = await client.finalize(request_id, sent)
    result = pending["registerResults"][0]
    stage.tell(f"condition {result['conditionId'][:18]}… is registered ({pending['status']})")
    with stage.waiting("the creator attaches the final metadata"):
        updates = await client.execute(pending["metadataUpdateTxPlan"])
    await client.confirm(request_id, updates)
    with stage.waiting("the worker checks that too"):
        final = await client.finalize(request_id, [*sent, *updates])
    uri = final["metadataUpdates"][0]["metadataUri"]
    stage.tell(f"{final['status']}: {final['creatorTxCount']} transactions, metadata at {uri}")
    return parse_bytes32(result["conditionId"]), result["tokenA"], result["tokenB"]


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
