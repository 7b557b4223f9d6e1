"""Storage of images and of the documents of markets; storing them again gives the same ids."""

import asyncio
from collections.abc import Mapping
from typing import Final

from foretell.creation.context import CreationContext
from foretell.domain.creation.data_items import ItemTag, sign_item
from foretell.domain.creation.image_fields import EVENT_IMAGE, OPTION_IMAGE, TEAM_LOGO
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

STORED_AT_ONCE_MAX: Final = 16
"""Documents that are written at once: each waits for the disk."""


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
    documents = [
        draft_document(payload, market, icons_of(payload, market, image_ids))
        for market in payload.markets
    ]
    for start in range(0, len(documents), STORED_AT_ONCE_MAX):
        part = documents[start : start + STORED_AT_ONCE_MAX]
        await asyncio.gather(*(_store(context, document, JSON_TAG) for document in part))


async def store_final(
    context: CreationContext, payload: Payload, ids: MarketIds, image_ids: Mapping[str, str]
) -> str:
    """Store the final document of a market, and return its id."""
    market = next(market for market in payload.markets if market.key == ids.key)
    icons = icons_of(payload, market, image_ids)
    document = final_document(payload, market, icons, ids, context.resolver(payload))
    return await _store(context, document, JSON_TAG)


def icons_of(payload: Payload, market: MarketDraft, image_ids: Mapping[str, str]) -> Icons:
    """Return the image of the event and that of the market, and the logos of the teams.

    A market has the image of its id, else the one that its icon names: the logo of a side, or an
    uploaded image. By default it has the event's.
    """
    event, logos = image_ids[EVENT_IMAGE], logos_of(payload, image_ids)
    icon_key = "" if market.sports is None else market.sports.icon_asset_key or ""
    market_icon = (
        image_ids.get(OPTION_IMAGE + market.key)
        or logos.get(icon_key)
        or image_ids.get(OPTION_IMAGE + icon_key, event)
    )
    return Icons(event, market_icon, logos)


def logos_of(payload: Payload, image_ids: Mapping[str, str]) -> dict[str, str]:
    """Return the logo of each side that has one: the storage id of an upload, else its link."""
    if payload.sports is None:
        return {}
    logos: dict[str, str] = {}
    for side in payload.sports.logo_sides:
        team = payload.sports.team(side)
        logo = image_ids.get(TEAM_LOGO + side) or (None if team is None else team.logo)
        if logo is not None:
            logos[str(side)] = logo
    return logos


async def _store(context: CreationContext, data: bytes, kind: ItemTag) -> str:
    item = sign_item(data, (kind, APP_TAG), context.storage_key)
    return await context.blobs.store(item)
