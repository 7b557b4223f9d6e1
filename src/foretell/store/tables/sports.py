"""Games, and the sports, series and teams that they name; written by creation."""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import document, integer, key, metadata, text

sports: Final = sa.Table(
    "sports",
    metadata,
    key("sport_id", sa.BigInteger),
    text("slug"),
    text("image"),
    text("resolution_source", nullable=True),
    integer("created_at_ms"),
    sa.UniqueConstraint("slug"),
)

series: Final = sa.Table(
    "series",
    metadata,
    key("series_id", sa.BigInteger),
    text("slug"),
    text("title"),
    text("image"),
    integer("sport_id", nullable=True),
    integer("created_at_ms"),
    integer("updated_at_ms"),
    sa.UniqueConstraint("slug"),
    sa.Index(None, "sport_id", "series_id"),
)

sport_tags: Final = sa.Table(
    "sport_tags",
    metadata,
    key("sport_id", sa.BigInteger),
    key("tag_id", sa.BigInteger),
)

teams: Final = sa.Table(
    "teams",
    metadata,
    key("team_id", sa.BigInteger),
    text("league_slug"),
    text("name"),
    text("abbreviation"),
    text("logo"),
    integer("created_at_ms"),
    integer("updated_at_ms"),
    sa.UniqueConstraint("league_slug", "name"),
)

sports_events: Final = sa.Table(
    "sports_events",
    metadata,
    key("event_id", sa.BigInteger),
    integer("sport_id", nullable=True),
    integer("series_id", nullable=True),
    text("game_id", nullable=True),
    document("details"),
    sa.Index(None, "sport_id"),
    sa.Index(None, "series_id", "event_id"),
    sa.Index(None, "game_id"),
)

sports_markets: Final = sa.Table(
    "sports_markets",
    metadata,
    key("market_id", sa.BigInteger),
    text("market_type", nullable=True),
    text("line", nullable=True),
    text("group_item_title", nullable=True),
    text("group_item_threshold", nullable=True),
    sa.Index(None, "market_type"),
)
