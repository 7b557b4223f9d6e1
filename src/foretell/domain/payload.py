"""The market payload: the document that a creator hashes, signs and sends.

It is judged in one go, and every field that breaks a rule is told. What comes out holds one draft
for each market, whatever the mode, so that all that follows knows requests of several markets.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from foretell.domain.errors import FieldProblem, InvalidFields
from foretell.domain.fields import Fields
from foretell.domain.hexadecimal import Address, Bytes32, keccak256, word_of
from foretell.domain.request_errors import MalformedBody
from foretell.domain.slugs import SLUG_CHARS_MAX, market_slug, normalize_slug
from foretell.domain.strict_json import parse_json

PAYLOAD_BYTES_MAX: Final = 256 * 1024
CATEGORIES_MIN: Final = 5
CATEGORIES_MAX: Final = 50
RULES_CHARS_MIN: Final = 60
RULES_CHARS_MAX: Final = 8192
TITLE_CHARS_MAX: Final = 300
QUESTION_CHARS_MAX: Final = 500
OUTCOME_CHARS_MAX: Final = 60
LABEL_CHARS_MAX: Final = 80
SLUG_TEXT_CHARS_MAX: Final = 300
ANCILLARY_BYTES_MAX: Final = 8139 - len(",initializer:") - 40
"""What the contract leaves for the text of a question, beside who asks it."""

BINARY_KEY: Final = "binary"
SPORTS_CATEGORY: Final = "sports"

_NOT_SERVED: Final = "is not served by this installation yet"


class ResolutionType(enum.StrEnum):
    """Which resolution stack answers the question."""

    DIRECT = "dro_moov2"
    OPTIMISTIC = "alt_moov2"


class MarketMode(enum.StrEnum):
    """How the markets of an event belong together."""

    BINARY = "binary"
    MULTI_MULTIPLE = "multi_multiple"
    MULTI_UNIQUE = "multi_unique"


OPTIMISTIC_ALIAS: Final = "uma_moov2"
SERVED_TYPES: Final = frozenset({ResolutionType.DIRECT})
SERVED_MODES: Final = frozenset({MarketMode.BINARY})


@dataclass(frozen=True, slots=True)
class PayloadRules:
    """What this installation takes and what it assumes where a payload is silent."""

    supported_chain_ids: tuple[int, ...]
    default_chain_id: int
    default_resolution_type: ResolutionType = ResolutionType.DIRECT
    has_optimistic_alias: bool = False

    @property
    def type_by_word(self) -> Mapping[str, str]:
        """The words that a payload may say for a resolution type."""
        words = {str(kind): str(kind) for kind in ResolutionType}
        alias = {OPTIMISTIC_ALIAS: str(ResolutionType.OPTIMISTIC)}
        return MappingProxyType(words | alias if self.has_optimistic_alias else words)


@dataclass(frozen=True, slots=True)
class Category:
    """A tag of the event, known by its slug."""

    label: str
    slug: str


@dataclass(frozen=True, slots=True)
class MarketDraft:
    """One market as its creator wants it."""

    key: str
    slug: str
    question: str
    title: str
    short_title: str
    outcome_yes: str
    outcome_no: str


@dataclass(frozen=True, slots=True)
class Payload:
    """An event and its markets as their creator wants them, every rule kept."""

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

    @property
    def tags(self) -> tuple[Category, ...]:
        """The categories, with the main one first where it is not among them."""
        slugs = {category.slug for category in self.categories}
        if self.main_category_slug in slugs:
            return self.categories
        return (Category(self.main_category_slug, self.main_category_slug), *self.categories)

    @property
    def slugs(self) -> tuple[str, ...]:
        """Every address that the event and its markets take, each once."""
        return tuple(dict.fromkeys((self.slug, *(market.slug for market in self.markets))))


def payload_hash(raw: bytes) -> Bytes32:
    """Return the hash of the very bytes that were received."""
    return word_of(keccak256(raw))


def ancillary_text(market: MarketDraft, rules: str) -> str:
    """Return the question as it is put to the oracle, without who asks it."""
    return (
        f"q: title: {market.question}, description: {rules} res_data: p1: 0, p2: 1, p3: 0.5."
        f" Where p1 corresponds to {market.outcome_no}, p2 to {market.outcome_yes}, p3 to unknown"
    )


def parse_payload(raw: bytes, rules: PayloadRules, now_ms: int) -> Payload:
    """Return what the payload says, or refuse it with all that is wrong."""
    fields = Fields(_object(raw))
    payload = Payload(
        chain_id=_chain_id(fields, rules),
        resolution_type=_resolution_type(fields, rules),
        creator=fields.address("creator"),
        title=fields.text("title", TITLE_CHARS_MAX),
        slug=_slug(fields, "slug"),
        ends_at_ms=_ends_at_ms(fields, now_ms),
        main_category_slug=_slug(fields, "mainCategorySlug"),
        categories=_categories(fields),
        market_mode=_market_mode(fields),
        resolution_source=_resolution_source(fields),
        resolution_rules=_resolution_rules(fields),
        markets=(),
    )
    _refuse_sports(fields, payload.main_category_slug)
    if fields.value("marketMode") == MarketMode.BINARY:
        payload = replace(payload, markets=(_binary_market(fields, payload),))
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
    if kind is not None and kind not in SERVED_TYPES:
        fields.refuse("resolutionType", f"{kind} {_NOT_SERVED}")
    return ResolutionType(kind or rules.default_resolution_type)


def _slug(fields: Fields, name: str) -> str:
    return _checked_slug(fields, name, fields.text(name, SLUG_TEXT_CHARS_MAX))


def _checked_slug(fields: Fields, name: str, text: str) -> str:
    slug = normalize_slug(text)
    if text and not slug:
        fields.refuse(name, "must have a letter from a to z or a digit")
    if len(slug) > SLUG_CHARS_MAX:
        fields.refuse(name, f"must have at most {SLUG_CHARS_MAX} characters as a slug")
    return slug


def _ends_at_ms(fields: Fields, now_ms: int) -> int:
    ends_at_ms = fields.instant_ms("endDateIso")
    if ends_at_ms is not None and ends_at_ms <= now_ms:
        fields.refuse("endDateIso", "must be in the future")
    return ends_at_ms or 0


def _categories(fields: Fields) -> tuple[Category, ...]:
    """Return the categories, each slug once, the first of its spellings."""
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
        return Category(inner.text("label", LABEL_CHARS_MAX), _slug(inner, "slug"))
    label = fields.inside("categories", {str(index): entry}).text(str(index), LABEL_CHARS_MAX)
    return Category(label, _checked_slug(fields, where, label))


def _market_mode(fields: Fields) -> MarketMode:
    mode = fields.choice("marketMode", {str(mode): str(mode) for mode in MarketMode})
    if mode is not None and mode not in SERVED_MODES:
        fields.refuse("marketMode", f"{mode} {_NOT_SERVED}")
    return MarketMode(mode or MarketMode.BINARY)


def _resolution_source(fields: Fields) -> str | None:
    name = "resolutionSource" if fields.has("resolutionSource") else "resolutionSourceUrl"
    return fields.url(name)


def _resolution_rules(fields: Fields) -> str:
    rules = fields.text("resolutionRules", RULES_CHARS_MAX, may_break=True)
    if rules and len(rules) < RULES_CHARS_MIN:
        fields.refuse("resolutionRules", f"must have at least {RULES_CHARS_MIN} characters")
    return rules


def _refuse_sports(fields: Fields, main_category_slug: str) -> None:
    if not fields.has("sports"):
        return
    fields.refuse("sports", f"a sports payload {_NOT_SERVED}")
    if main_category_slug != SPORTS_CATEGORY:
        fields.refuse("mainCategorySlug", f"must be {SPORTS_CATEGORY} in a sports payload")
    if fields.value("marketMode") != MarketMode.MULTI_MULTIPLE:
        fields.refuse("marketMode", f"must be {MarketMode.MULTI_MULTIPLE} in a sports payload")


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
    length = len(ancillary_text(market, payload.resolution_rules).encode())
    if length > ANCILLARY_BYTES_MAX:
        fields.refuse(
            "resolutionRules",
            f"must be shorter: with the question they make {length} bytes, and"
            f" {ANCILLARY_BYTES_MAX} fit on the chain",
        )
    return market
