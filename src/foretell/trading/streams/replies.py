"""Frames without a number: answers to a request to go on with a stream, and heartbeats."""

import msgspec


class Resumed(msgspec.Struct, frozen=True, tag="resumed", tag_field="event_type"):
    """The stream goes on: the missed messages follow, and then the newer ones."""

    stream_id: str
    last_sequence: int
    missed: int


class NotResumed(msgspec.Struct, frozen=True, tag="not_resumed", tag_field="event_type"):
    """The stream cannot go on: the message was taken as a subscription, to the stream with this id."""

    stream_id: str
    code: str
    message: str


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat", tag_field="event_type"):
    """The number of the newest message; a client that has a lower one has missed messages."""

    stream_id: str
    last_sequence: int
    server_ts_ms: int
