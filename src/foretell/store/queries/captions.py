"""The captions of markets: their names, and those of their events."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import among
from foretell.store.tables import conditions, events, markets

_CONDITIONS: Final = "conditions"


class MarketCaption(NamedTuple):
    """The names of a market and its event."""

    title: str
    slug: str
    icon: str
    event_slug: str
    event_id: int
    outcome_yes: str
    outcome_no: str
    ends_at_ms: int
    is_neg_risk: bool

    def outcome(self, *, is_yes: bool) -> str:
        """Return the name of an outcome."""
        return self.outcome_yes if is_yes else self.outcome_no


LISTED: Final = (
    markets.c.question.label("title"),
    markets.c.slug,
    markets.c.icon,
    events.c.slug.label("event_slug"),
    events.c.event_id,
    markets.c.outcome_yes,
    markets.c.outcome_no,
    events.c.ends_at_ms,
    markets.c.is_neg_risk,
)


async def load_conditions_of_events(
    tx: Transaction, event_ids: Collection[int]
) -> Sequence[Bytes32]:
    """Return the conditions of these events."""
    rows = await tx.all(
        sa.select(markets.c.condition_id)
        .where(markets.c.event_id.in_(sorted(event_ids)))
        .order_by(markets.c.market_id)
    )
    return [Bytes32(row.condition_id) for row in rows]


_CAPTIONS: Final = (
    sa.select(conditions.c.condition_id, conditions.c.token_yes, *LISTED)
    .select_from(
        conditions.outerjoin(
            markets, markets.c.condition_id == conditions.c.condition_id
        ).outerjoin(events, events.c.event_id == markets.c.event_id)
    )
    .where(conditions.c.condition_id.in_(among(_CONDITIONS)))
)


async def load_market_captions(
    tx: Transaction, condition_ids: Collection[Bytes32]
) -> Mapping[Bytes32, tuple[AssetId, MarketCaption | None]]:
    """Return the Yes token of conditions, and the caption of those that have a market."""
    rows = await tx.all(_CAPTIONS, {_CONDITIONS: list(condition_ids)})
    return {Bytes32(row.condition_id): (AssetId(row.token_yes), caption_of(row)) for row in rows}


def caption_of(row: Any) -> MarketCaption | None:
    """Return the caption in a row whose last columns are `LISTED`, or None without a market."""
    return None if row.title is None else MarketCaption._make(row[-len(LISTED) :])
