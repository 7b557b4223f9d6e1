"""Rows of markets that open, and the stored results of their creation."""

from collections.abc import Sequence

from foretell.creation.context import CreationContext
from foretell.creation.metadata import icons_of
from foretell.creation.prepare import ids_of, payload_of
from foretell.creation.registration import Registered
from foretell.domain.creation.payload import Payload
from foretell.domain.creation.plan import MarketIds, MetadataName
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.creation.documents import StoredMetadataUpdate, StoredRegistration
from foretell.store.creation.games import GameRow
from foretell.store.creation.markets import EventRow, MarketRow
from foretell.store.creation.requests import CreationRequest


def registration_of(
    context: CreationContext, ids: MarketIds, registered: Registered
) -> StoredRegistration:
    """Return the registration of a market's tokens."""
    return StoredRegistration(
        key=ids.key,
        condition_id=ids.condition_id,
        exchange=checksum_address(context.exchange(ids)),
        token_a=str(ids.tokens.yes),
        token_b=str(ids.tokens.no),
        already_registered=registered.tx_hash is None,
        tx_hash=registered.tx_hash,
    )


def update_of(context: CreationContext, name: MetadataName) -> StoredMetadataUpdate:
    """Return the metadata of a market before the chain has its id."""
    return StoredMetadataUpdate(
        key=name.market.key,
        condition_id=name.condition_id,
        metadata_tx_id=name.metadata_id,
        metadata_uri=context.blobs.uri(name.metadata_id),
        update_tx_hash=None,
    )


def event_row(
    context: CreationContext, request: CreationRequest, updates: Sequence[StoredMetadataUpdate]
) -> EventRow:
    """Return the rows of an event and its markets, which open them to trading."""
    payload = payload_of(context, request)
    options, adapter = context.options, context.contracts(payload).adapter
    update_by_key = {update.key: update for update in updates}
    markets = [
        MarketRow(
            condition_id=ids.condition_id,
            question_id=ids.question_id,
            market_key=market.key,
            slug=market.slug,
            question=market.question,
            title=market.title,
            outcome_yes=market.outcome_yes,
            outcome_no=market.outcome_no,
            tokens=ids.tokens,
            exchange=context.exchange(ids),
            oracle=adapter,
            resolution_type=payload.resolution_type,
            metadata_id=update_by_key[market.key].metadata_tx_id,
            metadata_uri=update_by_key[market.key].metadata_uri,
            icon=icons_of(payload, market, request.image_ids).market,
            ticks_per_one=options.ticks_per_one,
            size_units_min=options.size_units_min,
            fee_rate_bps=options.fee_rate_bps,
            is_neg_risk=payload.is_neg_risk,
            neg_risk_market_id=ids.neg_risk_market_id,
            neg_risk_request_id=ids.asked_id if payload.is_neg_risk else None,
        )
        for market, ids in zip(payload.markets, ids_of(context, payload), strict=True)
    ]
    return EventRow(
        request_id=request.request_id,
        slug=payload.slug,
        title=payload.title,
        creator=payload.creator,
        chain_id=payload.chain_id,
        market_mode=payload.market_mode,
        main_category_slug=payload.main_category_slug,
        rules=payload.resolution_rules,
        resolution_source=payload.resolution_source,
        image=icons_of(payload, payload.markets[0], request.image_ids).event,
        ends_at_ms=payload.ends_at_ms,
        tags=payload.tags,
        markets=tuple(markets),
        game=_game_row(payload, request),
    )


def _game_row(payload: Payload, request: CreationRequest) -> GameRow | None:
    if payload.sports is None:
        return None
    icons = icons_of(payload, payload.markets[0], request.image_ids)
    return GameRow(
        event=payload.sports,
        logos=icons.logos,
        markets=tuple(market.sports for market in payload.markets),
        slug=payload.slug,
        image=icons.event,
        resolution_source=payload.resolution_source,
    )
