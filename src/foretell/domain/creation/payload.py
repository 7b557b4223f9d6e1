"""The market payload: the document that a creator hashes, signs and sends.

Parsing reports every field that breaks a rule, not only the first. The result has one draft for
each market in every mode, so later steps always handle a list of markets.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from foretell.domain.creation.options import OPTIONS_MIN, read_options
from foretell.domain.creation.slug_fields import checked_slug, read_slug
from foretell.domain.creation.sports import SportsEvent, read_sports
from foretell.domain.creation.sports_types import SportsMarket
from foretell.domain.creation.text_limits import (
    LABEL_CHARS_MAX,
    OUTCOME_CHARS_MAX,
    QUESTION_CHARS_MAX,
    TITLE_CHARS_MAX,
)
from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.http import MalformedBody
from foretell.domain.values.document_fields import Fields
from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256, word_of
from foretell.domain.values.slugs import SLUG_CHARS_MAX, market_slug
from foretell.domain.values.strict_json import parse_json

PAYLOAD_BYTES_MAX: Final = 256 * 1024
CATEGORIES_MIN: Final = 5
CATEGORIES_MAX: Final = 50
RULES_CHARS_MIN: Final = 60
RULES_CHARS_MAX: Final = 8192
ANCILLARY_BYTES_MAX: Final = 8139 - len(",initializer:") - 40
"""The contract's limit of a question's text, less the creator that it appends."""

BINARY_KEY: Final = "binary"
YES: Final = "Yes"
NO: Final = "No"
SPORTS_CATEGORY: Final = "sports"


class ResolutionType(enum.StrEnum):
    """The resolution stack that answers the question."""

    DIRECT = "dro_moov2"
    OPTIMISTIC = "alt_moov2"


class MarketMode(enum.StrEnum):
    """The relation of an event's markets to each other."""

    BINARY = "binary"
    MULTI_MULTIPLE = "multi_multiple"
    MULTI_UNIQUE = "multi_unique"


OPTIMISTIC_ALIAS: Final = "uma_moov2"


@dataclass(frozen=True, slots=True)
class PayloadRules:
    """The values that this installation accepts, and the defaults of absent fields."""

    supported_chain_ids: tuple[int, ...]
    default_chain_id: int
    default_resolution_type: ResolutionType = ResolutionType.DIRECT
    accepts_uma_moov2: bool = False

    @property
    def type_by_word(self) -> Mapping[str, str]:
        """The resolution type of each accepted word."""
        words = {str(kind): str(kind) for kind in ResolutionType}
        alias = {OPTIMISTIC_ALIAS: str(ResolutionType.OPTIMISTIC)}
        return MappingProxyType(words | alias if self.accepts_uma_moov2 else words)


@dataclass(frozen=True, slots=True)
class Category:
    """A tag of the event, known by its slug."""

    label: str
    slug: str


@dataclass(frozen=True, slots=True)
class MarketDraft:
    """One market of a payload."""

    key: str
    slug: str
    question: str
    title: str
    short_title: str
    outcome_yes: str
    outcome_no: str
    sports: SportsMarket | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """A valid payload: an event and its markets."""

    chain_id: int
    resolution_type: ResolutionType
    creator: Address
    title: str
    slug: str
    ends_at_ms: int
    main_category_slug: str
    categories: tuple[Category, ...]
    market_mode: MarketMode
    resolution_source: str | None
    resolution_rules: str
    markets: tuple[MarketDraft, ...]
    sports: SportsEvent | None = None

    @property
    def is_neg_risk(self) -> bool:
        """Whether at most one market can resolve to Yes, enforced by the contracts."""
        return self.market_mode is MarketMode.MULTI_UNIQUE

    @property
    def tags(self) -> tuple[Category, ...]:
        """The categories; the main one is put first unless it is among them."""
        slugs = {category.slug for category in self.categories}
        if self.main_category_slug in slugs:
            return self.categories
        return (Category(self.main_category_slug, self.main_category_slug), *self.categories)

    @property
    def slugs(self) -> tuple[str, ...]:
        """The distinct slugs of the event and its markets."""
        return tuple(dict.fromkeys((self.slug, *(market.slug for market in self.markets))))


def payload_hash(raw: bytes) -> Bytes32:
    """Return the hash of the bytes as received."""
    return word_of(keccak256(raw))


def ancillary_text(market: MarketDraft, rules: str, *, may_be_unknown: bool = True) -> str:
    """Return the text of a question for the oracle, without the creator.

    In a neg-risk event the answer "unknown", a half, is not offered.
    """
    half, unknown = (", p3: 0.5", ", p3 to unknown") if may_be_unknown else ("", "")
    return (
        f"q: title: {market.question}, description: {rules} res_data: p1: 0, p2: 1{half}."
        f" Where p1 corresponds to {market.outcome_no}, p2 to {market.outcome_yes}{unknown}"
    )


def parse_payload(raw: bytes, rules: PayloadRules, now_ms: int) -> Payload:
    """Return the payload, or refuse it with all its problems."""
    fields = Fields(_object(raw))
    payload = Payload(
        chain_id=_chain_id(fields, rules),
        resolution_type=_resolution_type(fields, rules),
        creator=fields.address("creator"),
        title=fields.text("title", TITLE_CHARS_MAX),
        slug=read_slug(fields, "slug"),
        ends_at_ms=_ends_at_ms(fields, now_ms),
        main_category_slug=read_slug(fields, "mainCategorySlug"),
        categories=_categories(fields),
        market_mode=_market_mode(fields),
        resolution_source=_resolution_source(fields),
        resolution_rules=_resolution_rules(fields),
        markets=(),
    )
    sports = _sports(fields, payload)
    payload = replace(payload, sports=sports)
    payload = replace(payload, markets=_markets(fields, payload))
    fields.check()
    return payload


def _object(raw: bytes) -> Mapping[str, Any]:
    if len(raw) > PAYLOAD_BYTES_MAX:
        raise InvalidFields(
            [FieldProblem("payload", f"must have at most {PAYLOAD_BYTES_MAX} bytes")]
        )
    try:
        parsed = parse_json(raw)
    except MalformedBody as error:
        raise InvalidFields([FieldProblem("payload", f"must be strict JSON: {error}")]) from error
    if not isinstance(parsed, dict):
        raise InvalidFields([FieldProblem("payload", "must be a JSON object")])
    return parsed


def _chain_id(fields: Fields, rules: PayloadRules) -> int:
    if not fields.has("chainId"):
        return rules.default_chain_id
    chain_id = fields.integer("chainId")
    if chain_id is not None and chain_id not in rules.supported_chain_ids:
        fields.refuse("chainId", f"must be one of {', '.join(map(str, rules.supported_chain_ids))}")
    return chain_id or rules.default_chain_id


def _resolution_type(fields: Fields, rules: PayloadRules) -> ResolutionType:
    if not fields.has("resolutionType"):
        return rules.default_resolution_type
    kind = fields.choice("resolutionType", rules.type_by_word)
    return ResolutionType(kind or rules.default_resolution_type)


def _ends_at_ms(fields: Fields, now_ms: int) -> int:
    ends_at_ms = fields.instant_ms("endDateIso")
    if ends_at_ms is not None and ends_at_ms <= now_ms:
        fields.refuse("endDateIso", "must be in the future")
    return ends_at_ms or 0


def _categories(fields: Fields) -> tuple[Category, ...]:
    """Return the categories; of equal slugs the first counts."""
    entries = fields.entries("categories", CATEGORIES_MAX)
    if entries is None:
        return ()
    category_by_slug: dict[str, Category] = {}
    for index, entry in enumerate(entries):
        category = _category(fields, index, entry)
        category_by_slug.setdefault(category.slug, category)
    category_by_slug.pop("", None)
    if len(category_by_slug) < CATEGORIES_MIN:
        fields.refuse("categories", f"must have at least {CATEGORIES_MIN} unique entries")
    return tuple(category_by_slug.values())


def _category(fields: Fields, index: int, entry: Any) -> Category:
    where = f"categories/{index}"
    if isinstance(entry, dict):
        inner = fields.inside(where, entry)
        return Category(inner.text("label", LABEL_CHARS_MAX), read_slug(inner, "slug"))
    label = fields.inside("categories", {str(index): entry}).text(str(index), LABEL_CHARS_MAX)
    return Category(label, checked_slug(fields, where, label))


def _market_mode(fields: Fields) -> MarketMode:
    mode = fields.choice("marketMode", {str(mode): str(mode) for mode in MarketMode})
    return MarketMode(mode or MarketMode.BINARY)


def _resolution_source(fields: Fields) -> str | None:
    name = "resolutionSource" if fields.has("resolutionSource") else "resolutionSourceUrl"
    return fields.url(name)


def _resolution_rules(fields: Fields) -> str:
    rules = fields.text("resolutionRules", RULES_CHARS_MAX, may_break=True)
    if rules and len(rules) < RULES_CHARS_MIN:
        fields.refuse("resolutionRules", f"must have at least {RULES_CHARS_MIN} characters")
    return rules


def _sports(fields: Fields, payload: Payload) -> SportsEvent | None:
    """Return the sports event of a payload, None when it has none or is refused."""
    if not fields.has("sports"):
        return None
    if payload.main_category_slug != SPORTS_CATEGORY:
        fields.refuse("mainCategorySlug", f"must be {SPORTS_CATEGORY} in a sports payload")
    if fields.value("marketMode") != MarketMode.MULTI_MULTIPLE:
        fields.refuse("marketMode", f"must be {MarketMode.MULTI_MULTIPLE} in a sports payload")
    value = fields.value("sports")
    if not isinstance(value, dict):
        fields.refuse("sports", "must be an object")
        return None
    has_options = fields.value("options") not in (None, [])
    return read_sports(fields.inside("sports", value), payload.title, has_other_markets=has_options)


def _markets(fields: Fields, payload: Payload) -> tuple[MarketDraft, ...]:
    """Return the markets, or none in an unknown mode or a refused sports event."""
    if fields.has("sports"):
        return () if payload.sports is None else _sports_markets(fields, payload, payload.sports)
    mode = fields.value("marketMode")
    if mode == MarketMode.BINARY:
        return (_binary_market(fields, payload),)
    is_multi = mode in (MarketMode.MULTI_MULTIPLE, MarketMode.MULTI_UNIQUE)
    return _option_markets(fields, payload) if is_multi else ()


def _sports_markets(
    fields: Fields, payload: Payload, event: SportsEvent
) -> tuple[MarketDraft, ...]:
    """Return the markets of a sports event; each keeps its own fields beside those of all."""
    markets = tuple(
        MarketDraft(
            key=market.key,
            slug=market_slug(payload.slug, market.slug),
            question=market.question,
            title=market.title,
            short_title=market.short_title,
            outcome_yes=market.outcomes[0],
            outcome_no=market.outcomes[1],
            sports=market,
        )
        for market in event.markets
    )
    for market, place in zip(markets, event.places, strict=True):
        inner = fields.inside(f"sports/{place}", {})
        _check_slug_fits(inner, market)
        _check_fits(inner, "question", market, payload)
    return (*markets, *_further_options(fields, payload, markets))


def _further_options(
    fields: Fields, payload: Payload, markets: Sequence[MarketDraft]
) -> tuple[MarketDraft, ...]:
    """Return the options of a sports payload that its sports markets lack, by their ids."""
    if fields.value("options") in (None, []):
        return ()
    keys = {market.key for market in markets}
    taken = {text for market in markets for text in (market.slug, market.question)}
    options = _option_markets(fields, payload, options_min=1)
    for index, option in enumerate(options):
        for name, text in (("slug", option.slug), ("question", option.question)):
            if option.key not in keys and text in taken:
                fields.refuse(f"options/{index}/{name}", "must differ from that of a sports market")
    return tuple(option for option in options if option.key not in keys)


def _option_markets(
    fields: Fields, payload: Payload, options_min: int = OPTIONS_MIN
) -> tuple[MarketDraft, ...]:
    """Return a Yes/No market for each option."""
    markets = tuple(
        MarketDraft(
            key=option.key,
            slug=market_slug(payload.slug, option.slug),
            question=option.question,
            title=option.title,
            short_title=option.short_title,
            outcome_yes=YES,
            outcome_no=NO,
        )
        for option in read_options(fields, payload.title, options_min)
    )
    for index, market in enumerate(markets):
        inner = fields.inside(f"options/{index}", {})
        _check_slug_fits(inner, market)
        _check_fits(inner, "question", market, payload)
    return markets


def _binary_market(fields: Fields, payload: Payload) -> MarketDraft:
    market = MarketDraft(
        key=BINARY_KEY,
        slug=market_slug(payload.slug),
        question=fields.text("binaryQuestion", QUESTION_CHARS_MAX),
        title=payload.title,
        short_title=payload.title,
        outcome_yes=fields.text("binaryOutcomeYes", OUTCOME_CHARS_MAX),
        outcome_no=fields.text("binaryOutcomeNo", OUTCOME_CHARS_MAX),
    )
    if market.outcome_yes and market.outcome_yes.casefold() == market.outcome_no.casefold():
        fields.refuse("binaryOutcomeNo", "must differ from binaryOutcomeYes")
    _check_fits(fields, "resolutionRules", market, payload)
    return market


def _check_slug_fits(fields: Fields, market: MarketDraft) -> None:
    if len(market.slug) > SLUG_CHARS_MAX:
        fields.refuse("slug", f"must be shorter: with the event's at most {SLUG_CHARS_MAX}")


def _check_fits(fields: Fields, name: str, market: MarketDraft, payload: Payload) -> None:
    """Refuse a question that is too long for the contract, with its rules."""
    length = len(ancillary_text(market, payload.resolution_rules).encode())
    if length > ANCILLARY_BYTES_MAX:
        fields.refuse(
            name,
            f"must be shorter: question and rules together make {length} bytes, and"
            f" {ANCILLARY_BYTES_MAX} fit on the chain",
        )
