"""Refusals of the streams: messages that are not understood, and streams that cannot go on.

Their place in the tree of refusals: see `families`.
"""

from foretell.domain.errors.families import Conflict, InvalidInput, NotFound


class MalformedMessage(InvalidInput):
    """The message of a client is not one that the channel takes."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"the message was ignored: {wanted}")


class TooManySubscriptions(InvalidInput):
    """The message names more than one connection may subscribe to."""

    def __init__(self, what: str, held: int, most: int) -> None:
        super().__init__(
            f"the connection would have {held} {what}, and may have {most};"
            " unsubscribe from some, or open another connection",
            held=held,
            most=most,
        )


class UnknownStream(NotFound):
    """No stream has this id, or none any more."""

    def __init__(self) -> None:
        super().__init__(
            "no stream of this channel has this id, its time is over, or it belongs to another"
            " process; subscribe again"
        )


class MessagesNotKept(Conflict):
    """The messages after this sequence are not kept any more, or there never was such a sequence."""

    def __init__(self, after: int, last: int) -> None:
        super().__init__(
            f"not all messages from {after + 1} to {last} of the stream are kept; subscribe again",
            after=after,
            last_sequence=last,
        )
