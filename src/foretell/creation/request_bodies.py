"""Bodies of the requests of market creation, for its document.

The handlers parse them field by field, to report all problems at once (`messages`, `domain/creation`).
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foretell.creation.responses import Tx
from foretell.domain.creation.payload import (
    CATEGORIES_MIN,
    RULES_CHARS_MIN,
    MarketMode,
    ResolutionType,
)
from foretell.domain.creation.sports_types import EventVariant, HostStatus, Section, StatType
from foretell.edge.codec import WireObject
from foretell.edge.documents.description import Body

Address = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{40}$")]
Word = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{64}$")]
Categories = Annotated[list["str | CategoryBody"], Meta(min_length=CATEGORIES_MIN)]
Rules = Annotated[str, Meta(min_length=RULES_CHARS_MIN)]
Number = int | float | str


class ChallengeBody(WireObject, frozen=True, kw_only=True):
    """A creator, a chain, and the hash of the payload that the creator will sign."""

    creator: Address
    chain_id: int
    payload_hash: Word


class SentTxsBody(WireObject, frozen=True, kw_only=True):
    """The hashes of transactions that the creator sent."""

    request_id: str
    creator: Address
    txs: list[Tx]


class FinalizeBody(WireObject, frozen=True, kw_only=True):
    """The hashes that were not confirmed yet, or none."""

    request_id: str
    creator: Address
    txs: list[Tx] | UnsetType = UNSET


class CategoryBody(WireObject, frozen=True, kw_only=True):
    """A category with its slug."""

    label: str
    slug: str


class OptionBody(WireObject, frozen=True, kw_only=True):
    """An option: one market of an event of several."""

    title: str
    short_name: str
    id: str | UnsetType = UNSET
    question: str | UnsetType = UNSET
    slug: str | UnsetType = UNSET


class TeamBody(WireObject, frozen=True, kw_only=True):
    """A team of a game; without a logo it needs an upload."""

    name: str
    abbreviation: str
    host_status: HostStatus = msgspec.field(name="host_status")
    logo: str | UnsetType = UNSET


class TemplateBody(WireObject, frozen=True, kw_only=True):
    """The standard markets of a game."""

    include_draw: bool | UnsetType = UNSET
    include_both_teams_to_score: bool | UnsetType = UNSET
    include_spreads: bool | UnsetType = UNSET
    include_totals: bool | UnsetType = UNSET
    spread_lines: list[Number] | UnsetType = UNSET
    total_lines: list[Number] | UnsetType = UNSET


class SportsMarketBody(WireObject, frozen=True, kw_only=True):
    """A market of a game."""

    title: str
    short_name: str
    id: str | UnsetType = UNSET
    question: str | UnsetType = UNSET
    slug: str | UnsetType = UNSET
    outcomes: list[str] | UnsetType = UNSET
    sports_market_type: str | UnsetType = UNSET
    line: Number | UnsetType = UNSET
    icon_asset_key: str | UnsetType = UNSET
    group_item_title: str | UnsetType = UNSET
    group_item_threshold: str | UnsetType = UNSET


class PropBody(WireObject, frozen=True, kw_only=True):
    """A market on a player's count."""

    player_name: str
    stat_type: StatType
    line: Number
    id: str | UnsetType = UNSET
    team_host_status: HostStatus | UnsetType = UNSET


class SportsBody(WireObject, frozen=True, kw_only=True):
    """A game and its markets."""

    section: Section | UnsetType = UNSET
    event_variant: EventVariant | UnsetType = UNSET
    source_provider: str | UnsetType = UNSET
    source_event_id: str | UnsetType = UNSET
    source_game_id: str | UnsetType = UNSET
    source_league_id: str | UnsetType = UNSET
    source_league_label: str | UnsetType = UNSET
    source_match_confidence: Number | UnsetType = UNSET
    livestream_url: str | UnsetType = UNSET
    sport_slug: str | UnsetType = UNSET
    league_slug: str | UnsetType = UNSET
    event_date: str | UnsetType = UNSET
    start_time: str | UnsetType = UNSET
    teams: list[TeamBody] | UnsetType = UNSET
    template: TemplateBody | UnsetType = UNSET
    markets: list[SportsMarketBody] | UnsetType = UNSET
    props: list[PropBody] | UnsetType = UNSET


class PayloadBody(WireObject, frozen=True, kw_only=True):
    """A market payload; the string that is signed and sent to `POST /prepare` holds one."""

    creator: Address
    title: str
    slug: str
    end_date_iso: str
    main_category_slug: str
    categories: Categories
    market_mode: MarketMode
    resolution_rules: Rules
    chain_id: int | UnsetType = UNSET
    resolution_type: ResolutionType | UnsetType = UNSET
    resolution_source: str | UnsetType = UNSET
    binary_question: str | UnsetType = UNSET
    binary_outcome_yes: str | UnsetType = UNSET
    binary_outcome_no: str | UnsetType = UNSET
    options: list[OptionBody] | UnsetType = UNSET
    sports: SportsBody | UnsetType = UNSET


_FILE: Final[dict[str, Any]] = {"type": "string", "format": "binary"}
UPLOAD: Final = Body(
    schema={
        "type": "object",
        "required": ["payload", "auth", "eventImage"],
        "properties": {
            "payload": {
                "type": "string",
                "description": "The exact JSON string whose hash was signed: a market payload.",
            },
            "auth": {
                "type": "string",
                "description": (
                    "The signed challenge as JSON: requestId, nonce, expiresAt, payloadHash and"
                    " signature."
                ),
            },
            "eventImage": _FILE | {"description": "PNG, JPEG or WebP."},
            "optionImages": {
                "type": "array",
                "items": _FILE,
                "description": "Images of the options, in their order.",
            },
            "teamLogo:home": _FILE,
            "teamLogo:away": _FILE,
        },
        "additionalProperties": _FILE | {"description": "`optionImage:<id>`: an option's image."},
    },
    media_type="multipart/form-data",
)
