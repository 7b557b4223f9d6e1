"""Storage of images and of the documents of markets; storing them again gives the same ids."""

from collections.abc import Mapping

from foretell.creation.context import CreationContext
from foretell.domain.creation.data_items import ItemTag, sign_item
from foretell.domain.creation.image_fields import EVENT_IMAGE, OPTION_IMAGE
from foretell.domain.creation.metadata import (
    APP_TAG,
    JSON_TAG,
    WEBP_TAG,
    Icons,
    draft_document,
    final_document,
)
from foretell.domain.creation.payload import MarketDraft, Payload
from foretell.domain.creation.plan import MarketIds


async def store_images(
    context: CreationContext, content_by_field: Mapping[str, bytes]
) -> dict[str, str]:
    """Store normalized images, and return the id of each."""
    return {
        field: await _store(context, content, WEBP_TAG)
        for field, content in content_by_field.items()
    }


async def store_drafts(
    context: CreationContext, payload: Payload, image_ids: Mapping[str, str]
) -> None:
    """Store the draft document of each market, before its question is on the chain."""
    for market in payload.markets:
        document = draft_document(payload, market, icons_of(market, image_ids))
        await _store(context, document, JSON_TAG)


async def store_final(
    context: CreationContext, payload: Payload, ids: MarketIds, image_ids: Mapping[str, str]
) -> str:
    """Store the final document of a market, and return its id."""
    market = next(market for market in payload.markets if market.key == ids.key)
    icons = icons_of(market, image_ids)
    document = final_document(payload, market, icons, ids, context.resolver(payload))
    return await _store(context, document, JSON_TAG)


def icons_of(market: MarketDraft, image_ids: Mapping[str, str]) -> Icons:
    """Return the image of the event and that of the market, which is the event's by default."""
    event = image_ids[EVENT_IMAGE]
    return Icons(event, image_ids.get(OPTION_IMAGE + market.key, event))


async def _store(context: CreationContext, data: bytes, kind: ItemTag) -> str:
    item = sign_item(data, (kind, APP_TAG), context.storage_key)
    await context.blobs.store(item)
    return item.item_id
