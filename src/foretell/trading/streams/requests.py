"""Messages that clients send on the channels."""

from typing import Final, TypeVar

import msgspec

from foretell.domain.errors.streams import MalformedMessage

PING_OPERATION: Final = "ping"
_OPERATIONS: Final = frozenset({None, "subscribe", "unsubscribe", PING_OPERATION})
"""The operations of a request; without one it subscribes."""

Request = TypeVar("Request")


def decode_message(text: str, decoder: msgspec.json.Decoder[Request]) -> Request:
    """Return the message of a client, or refuse it and name what is wrong."""
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedMessage(f"it must be a JSON object; {error}") from error


def check_request(channel: str, kind: str | None, operation: str | None) -> None:
    """Refuse a message for another channel, or with an unknown operation."""
    if kind is not None and kind.lower() != channel:
        raise MalformedMessage(f"type must be {channel}, and is {kind[:32]!r}")
    if operation not in _OPERATIONS:
        raise MalformedMessage(
            f"operation must be subscribe, unsubscribe or ping, and is {operation[:32]!r}"
            if operation
            else "operation must be subscribe, unsubscribe or ping"
        )


class MarketChannelRequest(msgspec.Struct):
    """A message of a client: subscribe to tokens, or unsubscribe from them.

    The first one may name a stream to go on with, and the number of the last message of it that came.
    """

    type: str | None = None
    operation: str | None = None
    assets_ids: list[str] = []
    asset_ids: list[str] = []
    markets: list[str] = []
    initial_dump: bool = True
    custom_feature_enabled: bool | None = None
    heartbeat: bool | None = None
    stream_id: str | None = None
    sequence: int = 0


class StreamAuth(msgspec.Struct):
    """A set of credentials, whose key clients name in several ways; or a read-only key with its address."""

    secret: str = ""
    passphrase: str = ""
    api_key: str = msgspec.field(name="apiKey", default="")
    api_key_lower: str = msgspec.field(name="apikey", default="")
    api_key_snake: str = msgspec.field(name="api_key", default="")
    key: str = ""
    readonly_api_key: str = msgspec.field(name="readonlyApiKey", default="")
    address: str = ""

    @property
    def key_id(self) -> str:
        """The key, under whichever name."""
        return self.api_key or self.api_key_lower or self.api_key_snake or self.key


class UserChannelRequest(msgspec.Struct):
    """A message of a client: authenticate and subscribe to markets, or unsubscribe from them.

    The first one may name a stream to go on with, and the number of the last message of it that came.
    """

    type: str | None = None
    operation: str | None = None
    auth: StreamAuth | None = None
    markets: list[str] = []
    heartbeat: bool | None = None
    stream_id: str | None = None
    sequence: int = 0
