"""The live-data channel: trades of all markets as they match, by topic.

Its frames have no numbers, and a connection that is lost cannot be resumed. Topics without a source, such as
comments, are accepted and stay silent.
"""

from collections import deque
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal, NamedTuple

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.streams import MalformedMessage, TooManySubscriptions
from foretell.domain.exchange.decision import Placed
from foretell.domain.exchange.trade import Trade
from foretell.domain.values.amounts import decimal_text, ratio_text
from foretell.domain.values.hexadecimal import checksum_address
from foretell.engine.protocol.requests import CommittedCommand
from foretell.store.queries.market_listings import Listing
from foretell.trading.books.market_names import MarketNames
from foretell.trading.streams.connection import Connection
from foretell.trading.streams.flush_queue import in_turns
from foretell.trading.streams.requests import decode_message

CHANNEL: Final = "live"
SUBSCRIPTIONS_PER_CONNECTION_MAX: Final = 100
TRADES_WAITING_MAX: Final = 10_000
"""Trades whose market's names are to be read; of more, the oldest are not published."""
SLUG_CHARACTERS_MAX: Final = 300

ACTIVITY: Final = "activity"
ANY: Final = "*"
ACTIVITY_TYPES: Final = ("trades", "orders_matched")
SILENT_TOPICS: Final = frozenset({"comments", "crypto_prices", "crypto_prices_chainlink"})


class LiveFilters(msgspec.Struct):
    """What the trades of a subscription belong to; an empty slug is any."""

    event_slug: str = ""
    market_slug: str = ""


class LiveSubscription(msgspec.Struct):
    """A topic, a type of its messages, and filters: an object, or its JSON as a string."""

    topic: str
    type: str = ANY
    filters: str | LiveFilters | None = None


class LiveRequest(msgspec.Struct):
    """A message of a client: subscribe to topics, or unsubscribe from them."""

    action: str = "subscribe"
    subscriptions: list[LiveSubscription] = []


class LiveTrade(msgspec.Struct, frozen=True, rename="camel"):
    """A trade as its taker made it; its transaction is not known yet."""

    asset: str
    bio: str
    condition_id: str
    event_slug: str
    icon: str
    name: str
    outcome: str
    outcome_index: int
    price: Decimal
    profile_image: str
    proxy_wallet: str
    pseudonym: str
    side: str
    size: Decimal
    slug: str
    timestamp: int
    title: str
    transaction_hash: str
    creator: str


class LiveMessage(msgspec.Struct, frozen=True):
    """A trade that matched, once for each type that a connection subscribed to."""

    topic: Literal["activity"]
    type: Literal["trades", "orders_matched"]
    timestamp: int
    payload: LiveTrade
    connection_id: str


class _Subject(NamedTuple):
    """What a subscription is to; equal ones are one."""

    topic: str
    type: str
    event_slug: str
    market_slug: str


_NUMBERS: Final = msgspec.json.Encoder(decimal_format="number")
_DECODER: Final = msgspec.json.Decoder(LiveRequest)
_FILTERS: Final = msgspec.json.Decoder(LiveFilters)


class LiveChannel:
    """The subscriptions to topics, and the messages for them."""

    def __init__(self, market_names: MarketNames) -> None:
        self._market_names = market_names
        self._subjects_by_connection: dict[Connection, dict[_Subject, None]] = {}
        self._connections_by_subject: dict[_Subject, dict[Connection, None]] = {}
        self.waiting: deque[Trade] = deque(maxlen=TRADES_WAITING_MAX)

    def join(self, connection: Connection) -> None:
        """Add a connection."""
        self._subjects_by_connection[connection] = {}

    def leave(self, connection: Connection) -> None:
        """Remove a connection and its subscriptions."""
        for subject in self._subjects_by_connection.pop(connection, ()):
            self._forget(subject, connection)

    @property
    def is_idle(self) -> bool:
        """Whether no connection and no subscription is kept."""
        return not self._subjects_by_connection and not self._connections_by_subject

    async def handle(self, connection: Connection, text: str) -> None:
        """Handle a message of a client, or say what is wrong with it."""
        try:
            self._handle(connection, decode_message(text, _DECODER))
        except ForetellError as refusal:
            connection.refuse(refusal)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Keep the trades of a command until they are published, if anybody subscribed."""
        if self._connections_by_subject and isinstance(committed.decision, Placed):
            self.waiting.extend(committed.decision.trades)

    async def publish(self, trade: Trade) -> None:
        """Read the names of a trade's market, and publish it to its subscribers, some in a turn of the loop."""
        await self._market_names.load([trade.condition_id])
        listing = self._market_names.find(trade.condition_id)
        if listing is None:
            return
        payload = _NUMBERS.encode(_payload(trade, listing)).decode()
        for kind in ACTIVITY_TYPES:
            head = f'{{"topic":"{ACTIVITY}","type":"{kind}","timestamp":{trade.matched_at_ms},'
            async for connection in in_turns(self._receivers(kind, listing)):
                end = f'"payload":{payload},"connection_id":"{connection.stream_id}"}}'
                connection.send_frame(head + end)

    def _handle(self, connection: Connection, request: LiveRequest) -> None:
        if request.action not in {"subscribe", "unsubscribe"}:
            raise MalformedMessage(
                f"action must be subscribe or unsubscribe, and is {request.action[:32]!r}"
            )
        if len(request.subscriptions) > SUBSCRIPTIONS_PER_CONNECTION_MAX:
            raise _too_many(len(request.subscriptions))
        subjects = [_subject(each) for each in request.subscriptions]
        if not subjects:
            raise MalformedMessage("subscriptions must name a topic")
        if request.action == "unsubscribe":
            self._unsubscribe(connection, subjects)
        else:
            self._subscribe(connection, subjects)

    def _subscribe(self, connection: Connection, subjects: Sequence[_Subject]) -> None:
        held = self._subjects_by_connection[connection]
        count = len(held.keys() | set(subjects))
        if count > SUBSCRIPTIONS_PER_CONNECTION_MAX:
            raise _too_many(count)
        connection.is_subscribed = True
        for subject in subjects:
            held[subject] = None
            self._connections_by_subject.setdefault(subject, {})[connection] = None

    def _unsubscribe(self, connection: Connection, subjects: Sequence[_Subject]) -> None:
        held = self._subjects_by_connection[connection]
        for subject in subjects:
            if subject in held:
                del held[subject]
                self._forget(subject, connection)

    def _forget(self, subject: _Subject, connection: Connection) -> None:
        connections = self._connections_by_subject[subject]
        del connections[connection]
        if not connections:
            del self._connections_by_subject[subject]

    def _receivers(self, kind: str, listing: Listing) -> list[Connection]:
        """Return each connection with a subscription to a type of messages of a market, once."""
        seen: dict[Connection, None] = {}
        for named in (kind, ANY):
            for event_slug in ("", listing.event_slug):
                for market_slug in ("", listing.slug):
                    subject = _Subject(ACTIVITY, named, event_slug, market_slug)
                    seen.update(self._connections_by_subject.get(subject, {}))
        return list(seen)


def _too_many(count: int) -> TooManySubscriptions:
    return TooManySubscriptions("subscriptions", count, SUBSCRIPTIONS_PER_CONNECTION_MAX)


def _subject(asked: LiveSubscription) -> _Subject:
    """Return what a subscription is to, or refuse it."""
    if asked.topic in SILENT_TOPICS:
        return _Subject(asked.topic, ANY, "", "")
    if asked.topic != ACTIVITY:
        topics = ", ".join([ACTIVITY, *sorted(SILENT_TOPICS)])
        raise MalformedMessage(f"topic must be one of {topics}, and is {asked.topic[:32]!r}")
    if asked.type not in {ANY, *ACTIVITY_TYPES}:
        raise MalformedMessage(
            f"type must be {', '.join(ACTIVITY_TYPES)} or {ANY}, and is {asked.type[:32]!r}"
        )
    filters = _filters(asked.filters)
    slugs = filters.event_slug, filters.market_slug
    if max(map(len, slugs)) > SLUG_CHARACTERS_MAX:
        raise MalformedMessage(f"a slug has at most {SLUG_CHARACTERS_MAX} characters")
    return _Subject(ACTIVITY, asked.type, *slugs)


def _filters(given: str | LiveFilters | None) -> LiveFilters:
    if isinstance(given, LiveFilters):
        return given
    return decode_message(given, _FILTERS) if given else LiveFilters()


def _payload(trade: Trade, listing: Listing) -> LiveTrade:
    return LiveTrade(
        asset=listing.token(is_yes=trade.is_yes),
        bio="",
        condition_id=trade.condition_id,
        event_slug=listing.event_slug,
        icon=listing.icon,
        name="",
        outcome=listing.outcome(is_yes=trade.is_yes),
        outcome_index=0 if trade.is_yes else 1,
        price=Decimal(ratio_text(trade.cost_units, trade.size_units)),
        profile_image="",
        proxy_wallet=checksum_address(trade.taker),
        pseudonym="",
        side=trade.side.name,
        size=Decimal(decimal_text(trade.size_units)),
        slug=listing.slug,
        timestamp=trade.matched_at_ms // 1000,
        title=listing.question,
        transaction_hash="",
        creator=checksum_address(listing.creator),
    )
