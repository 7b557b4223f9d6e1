"""The AsyncAPI document of the streams, made from the structs of their messages."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from inspect import cleandoc
from typing import Any, Final, NamedTuple

import msgspec

from foretell.edge.documents.examples import Examples
from foretell.edge.documents.schemas import Schemas
from foretell.trading.books.books import BookRecord
from foretell.trading.refusals import TradingError
from foretell.trading.streams.live_channel import LiveMessage, LiveRequest
from foretell.trading.streams.messages import (
    BestPricesMessage,
    LastTradeMessage,
    MarketResolvedMessage,
    NewMarketMessage,
    OrderHead,
    PriceChangeMessage,
    TickSizeMessage,
    TradeHead,
)
from foretell.trading.streams.replies import Heartbeat, NotResumed, Resumed
from foretell.trading.streams.requests import MarketChannelRequest, UserChannelRequest
from foretell.trading.streams.run_connection import PING, PONG
from foretell.trading.streams.sports_channel import PING as SPORTS_PING
from foretell.trading.streams.sports_channel import PONG as SPORTS_PONG
from foretell.trading.streams.sports_channel import GameMessage
from foretell.trading.wire.orders import OrderRecord, TradeRecord

ASYNCAPI: Final = "3.0.0"
EXAMPLES: Final = "streams"
TITLE: Final = "Foretell streams"
ABOUT: Final = (
    "Books, prices, orders, trades and games as they change, over WebSocket. A frame holds one JSON"
    " object; the books after a subscription come in frames that are arrays."
)


class Numbered(msgspec.Struct):
    """The fields that every message begins with."""

    sequence: int
    stream_id: str
    server_ts_ms: int
    journal_sequence: int


class BookHead(msgspec.Struct, tag="book", tag_field="event_type"):
    """A token's book, after a subscription and after each trade."""


REPLIES: Final = {"resumed": Resumed, "not_resumed": NotResumed, "heartbeat": Heartbeat}
"""The replies that have no number."""


class Text(NamedTuple):
    """A frame that is a fixed text, and its meaning."""

    text: str
    about: str


PONGS: Final = {"pong": Text(PONG, f"The answer to {PING}.")}
PINGS: Final = {"ping": Text(PING, "In any case, with spaces around it.")}


class Channel(NamedTuple):
    """A channel: its address, its meaning, and the structs of each message in both directions.

    A stream that is numbered can be resumed. Frames that are texts are in both directions too.
    """

    address: str
    about: str
    sent: Mapping[str, tuple[type, ...]]
    received: type | None
    is_numbered: bool = True
    sent_texts: Mapping[str, Text] = PONGS
    received_texts: Mapping[str, Text] = PINGS


CHANNELS: Final[Mapping[str, Channel]] = {
    "market": Channel(
        "/ws/market",
        "Books, prices, and the opening and resolution of markets; no authentication.",
        {
            "book": (BookHead, BookRecord),
            "price_change": (PriceChangeMessage,),
            "last_trade_price": (LastTradeMessage,),
            "tick_size_change": (TickSizeMessage,),
            "best_bid_ask": (BestPricesMessage,),
            "new_market": (NewMarketMessage,),
            "market_resolved": (MarketResolvedMessage,),
        },
        MarketChannelRequest,
    ),
    "user": Channel(
        "/ws/user",
        "An account's orders and trades; the first message authenticates with a set of credentials.",
        {"order": (OrderHead, OrderRecord), "trade": (TradeHead, TradeRecord)},
        UserChannelRequest,
    ),
    "live": Channel(
        "/ws",
        "Trades of all markets as they match, by topic; no authentication.",
        {"activity": (LiveMessage,)},
        LiveRequest,
        is_numbered=False,
    ),
    "sports": Channel(
        "/sports/ws",
        "Games that are created, start and end; no subscription and no authentication.",
        {"game": (GameMessage,)},
        None,
        is_numbered=False,
        sent_texts=PONGS | {"server_ping": Text(SPORTS_PING, "The client answers it.")},
        received_texts=PINGS | {"client_pong": Text(SPORTS_PONG, "The answer to the server.")},
    ),
}


class _Message(NamedTuple):
    name: str
    about: str
    schema: Any


@cache
def asyncapi_document() -> dict[str, Any]:
    """Return the document."""
    schemas, examples = Schemas(), Examples.of(EXAMPLES)
    channels, operations, messages = {}, {}, {}
    for name, channel in CHANNELS.items():
        sent = [*_sent(schemas, name, channel), *_replies(schemas, name, channel)]
        received = [*_received(schemas, name, channel)]
        for each in (*sent, *received):
            messages[each.name] = _shown(each, examples)
        channels[name] = {
            "address": channel.address,
            "description": channel.about,
            "messages": {
                each.name: {"$ref": f"#/components/messages/{each.name}"}
                for each in (*sent, *received)
            },
        }
        operations[f"{name}.publish"] = _operation("send", name, sent)
        operations[f"{name}.subscribe"] = _operation("receive", name, received)
    return {
        "asyncapi": ASYNCAPI,
        "info": {"title": TITLE, "version": version("foretell"), "description": ABOUT},
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {
            "messages": messages,
            "schemas": dict(sorted(schemas.components.items())),
        },
    }


def _sent(schemas: Schemas, name: str, channel: Channel) -> Iterator[_Message]:
    """Yield the messages of the server."""
    first = (Numbered,) if channel.is_numbered else ()
    for event_type, structs in channel.sent.items():
        parts = [schemas.of_answer(struct) for struct in (*first, *structs)]
        yield _Message(f"{name}.{event_type}", cleandoc(structs[0].__doc__ or ""), {"allOf": parts})


def _replies(schemas: Schemas, name: str, channel: Channel) -> Iterator[_Message]:
    """Yield the frames of the server that have no number."""
    yield from _texts(name, channel.sent_texts)
    for event_type, struct in REPLIES.items() if channel.is_numbered else ():
        about = cleandoc(struct.__doc__ or "")
        yield _Message(f"{name}.{event_type}", about, schemas.of_answer(struct))
    about = "A message was not understood, or a login was refused; then the connection is closed."
    yield _Message(f"{name}.refused", about, schemas.of_answer(TradingError))


def _received(schemas: Schemas, name: str, channel: Channel) -> Iterator[_Message]:
    """Yield the messages of clients."""
    if channel.received is not None:
        about = cleandoc(channel.received.__doc__ or "")
        yield _Message(f"{name}.request", about, schemas.of_body(channel.received))
    yield from _texts(name, channel.received_texts)


def _texts(name: str, texts: Mapping[str, Text]) -> Iterator[_Message]:
    for kind, text in texts.items():
        yield _Message(f"{name}.{kind}", text.about, {"const": text.text})


def _shown(message: _Message, examples: Examples) -> dict[str, Any]:
    is_text = "const" in message.schema
    example = message.schema["const"] if is_text else examples.request(message.name)
    shown: dict[str, Any] = {
        "name": message.name,
        "summary": message.about,
        "contentType": "text/plain" if is_text else "application/json",
        "payload": message.schema,
    }
    return shown | ({} if example is None else {"examples": [{"payload": example}]})


def _operation(action: str, channel: str, messages: list[_Message]) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{each.name}"} for each in messages],
    }
