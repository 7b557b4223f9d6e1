"""Messages between a serving process and the process that settles its trades.

The tables are the truth of both. A lost message delays work until the next look at them, and figures
for the metrics are the only thing that is sent once.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from foretell.domain.exchange.settlement import SettlementOptions
from foretell.engine.protocol.framing import framed


class BeginSettlement(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """The database, the node, the contracts and the accounts of settlement.

    URLs may hold passwords, and the keys are secrets, which is why they come here and neither on the
    command line nor in the environment. The first key is that of the account that sends any transaction.
    """

    database_url: str
    rpc_url: str
    deployment: bytes
    operator_keys: Sequence[bytes]
    confirmations: int
    wallet_gas_per_day_max: int
    options: SettlementOptions = SettlementOptions()


class Announced(msgspec.Struct, frozen=True, array_like=True, tag="announced"):
    """Topics that the sender's commits announced; needed where the database does not carry them."""

    topics: Collection[str]


class SettlementStarted(msgspec.Struct, frozen=True, array_like=True, tag="started"):
    """The process works."""


class FailedGas(msgspec.Struct, frozen=True, array_like=True, tag="gas"):
    """Gas of settlements that were mined in vain, for the counter of the serving process."""

    blamed: str
    gas: int


class UnknownWaiting(msgspec.Struct, frozen=True, array_like=True, tag="unknown"):
    """How many transactions wait at the node and are not in the database, for the gauge of the serving process."""

    count: int


class SettlementAlive(msgspec.Struct, frozen=True, array_like=True, tag="alive"):
    """The process works, even if the database or the node does not answer."""


ToSettlement = BeginSettlement | Announced
FromSettlement = Announced | SettlementStarted | FailedGas | UnknownWaiting | SettlementAlive

_ENCODER: Final = msgspec.msgpack.Encoder()
_TO_SETTLEMENT: Final[msgspec.msgpack.Decoder[ToSettlement]] = msgspec.msgpack.Decoder(ToSettlement)
_FROM_SETTLEMENT: Final[msgspec.msgpack.Decoder[FromSettlement]] = msgspec.msgpack.Decoder(
    FromSettlement
)


def message(content: ToSettlement | FromSettlement) -> bytes:
    """Return a message as it is sent."""
    return framed(_ENCODER.encode(content))


def decode_to_settlement(received: bytes) -> ToSettlement:
    """Return a message of the serving process."""
    return _TO_SETTLEMENT.decode(received)


def decode_from_settlement(received: bytes) -> FromSettlement:
    """Return a message of the process that settles."""
    return _FROM_SETTLEMENT.decode(received)
