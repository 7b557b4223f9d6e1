"""Requests that an engine or a treasury takes, and its replies.

A request holds everything that its reply depends on except the time, which is the engine's own. It
crosses a socket unchanged when the engine runs in another process. Each reply follows its request.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal, AllocationTotals, Total
from foretell.domain.exchange.apply import Outcome
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.decision import Decision
from foretell.domain.exchange.effects import Effect
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.state import Placement
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.journal.framing import payload_digest

# Orders


class PlaceRequest(msgspec.Struct, frozen=True, array_like=True, tag="place"):
    """Place an order; its time is when the engine receives it."""

    command: PlaceOrder


class PlaceReply(msgspec.Struct, frozen=True, array_like=True, tag="placed"):
    """The outcome of an order, and whether it had been placed before."""

    placement: Placement
    is_known: bool


class FindPlacementRequest(msgspec.Struct, frozen=True, array_like=True, tag="find"):
    """Return whether an order was ever placed."""

    order_id: Bytes32


class FindPlacementReply(msgspec.Struct, frozen=True, array_like=True, tag="found"):
    """The outcome of an order when it was placed, or None if it never was."""

    placement: Placement | None


class CheckOrderRequest(msgspec.Struct, frozen=True, array_like=True, tag="check"):
    """Refuse an order that would be refused if it were placed now; nothing changes."""

    command: PlaceOrder


class CheckOrderReply(msgspec.Struct, frozen=True, array_like=True, tag="checked"):
    """The order would be accepted."""


class CancelOrdersRequest(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    """Cancel the named orders that an address signed."""

    signer: Address
    order_ids: Sequence[Bytes32]


class CancelMatchingRequest(msgspec.Struct, frozen=True, array_like=True, tag="cancel_matching"):
    """Cancel all orders that an address signed, or those of one API key, market or token."""

    signer: Address
    wallets: Sequence[Address]
    owner: str | None = None
    condition_id: Bytes32 | None = None
    token_id: str | None = None


class CancelOrdersReply(msgspec.Struct, frozen=True, array_like=True, tag="canceled"):
    """The orders that this request canceled, and the reason for each other one."""

    canceled: list[Bytes32]
    not_canceled: dict[Bytes32, str]


# Accounts, heartbeats and tables


class AccountRequest(msgspec.Struct, frozen=True, array_like=True, tag="account"):
    """Return what a wallet holds of an asset, and what it allows each of the exchanges to move."""

    wallet: Address
    asset: AssetId
    exchanges: Sequence[Address]


class AccountReply(msgspec.Struct, frozen=True, array_like=True, tag="account_view"):
    """One wallet's units of one asset; `allowed_units` are in the order of the exchanges."""

    confirmed_units: int
    pending_units: int
    reserved_units: int
    allowed_units: Sequence[int]
    observed_block: int


class HeartbeatRequest(msgspec.Struct, frozen=True, array_like=True, tag="heartbeat"):
    """Take a heartbeat of an API key, which names the one before it."""

    key_id: str
    address: Address
    heartbeat_id: str | None


class HeartbeatReply(msgspec.Struct, frozen=True, array_like=True, tag="heartbeat_id"):
    """The id that the next heartbeat must name."""

    heartbeat_id: str


class TablesRequest(msgspec.Struct, frozen=True, array_like=True, tag="await_tables"):
    """Reply when the tables hold everything that is durable now."""


class TablesReply(msgspec.Struct, frozen=True, array_like=True, tag="tables_ready"):
    """The tables hold it."""


# Allocations of collateral: the treasury asks its shards for all but the last


class JoinRequest(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    """Take collateral from the treasury from now on; it knows the shard by this name."""

    shard: str


class JoinReply(msgspec.Struct, frozen=True, array_like=True, tag="joined"):
    """Collateral comes from the treasury."""


class TakeRequest(msgspec.Struct, frozen=True, array_like=True, tag="take"):
    """Take what the treasury has given the shard in total, for some wallets."""

    shard: str
    given: Sequence[AllocationTotal]


class TakeReply(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """The shard has it."""


class ReturnRequest(msgspec.Struct, frozen=True, array_like=True, tag="give_back"):
    """Give back free units of a wallet's allocation, until this much was returned in total.

    It states the total given as well, so that a grant on its way can be returned. When forced,
    orders are closed until enough is free.
    """

    shard: str
    given: AllocationTotal
    returned: Total
    is_forced: bool


class ReturnReply(msgspec.Struct, frozen=True, array_like=True, tag="given_back"):
    """The total returned."""

    returned: AllocationTotal


class ReportRequest(msgspec.Struct, frozen=True, array_like=True, tag="report"):
    """Return the shard's allocations from position `start` on.

    With `block_hash`, only those as of that block; with `since`, the sequence of an earlier report,
    only those that changed after it.
    """

    start: int
    block_hash: Bytes32 | None = None
    since: int | None = None


class ReportReply(msgspec.Struct, frozen=True, array_like=True, tag="reported"):
    """A part of the `count` allocations, as of the block that the shard has observed.

    It is empty when another block was requested. Allocations keep their order, and new ones come
    last. When it is not `is_whole`, it holds all that changed, in one part. A shard has another
    `start_id` after each start.
    """

    shard: str
    block_number: int
    block_hash: Bytes32
    count: int
    allocations: Sequence[AllocationTotals]
    sequence: int
    is_whole: bool
    start_id: str = ""


class FundRequest(msgspec.Struct, frozen=True, array_like=True, tag="fund"):
    """Give a shard of a wallet's collateral, until this much was given in total: for a treasury."""

    shard: str
    wallet: Address
    given: Total


class FundReply(msgspec.Struct, frozen=True, array_like=True, tag="funded"):
    """The total given; it is less than requested when the wallet has no more."""

    given: AllocationTotal


# Unions, for decoders and signatures

ShardRequest = (
    PlaceRequest
    | FindPlacementRequest
    | CheckOrderRequest
    | CancelOrdersRequest
    | CancelMatchingRequest
    | AccountRequest
    | JoinRequest
    | TakeRequest
    | ReturnRequest
)
"""A request that needs the engine of a shard alone."""

EngineRequest = ShardRequest | HeartbeatRequest | TablesRequest | ReportRequest | FundRequest

EngineReply = (
    PlaceReply
    | FindPlacementReply
    | CheckOrderReply
    | CancelOrdersReply
    | AccountReply
    | HeartbeatReply
    | TablesReply
    | JoinReply
    | TakeReply
    | ReturnReply
    | ReportReply
    | FundReply
)


class CommittedCommand(NamedTuple):
    """What one journalled command did, published once it is durable; or a part of the state before it.

    `payload` is the command as the journal has it, empty for a part of the state. `kept_digest` is that of a
    payload which did not come with the command.
    """

    sequence: int
    outcome: Outcome
    payload: bytes = b""
    kept_digest: bytes = b""

    @property
    def digest(self) -> bytes:
        """The digest of the payload, empty for a part of the state."""
        return payload_digest(self.payload) if self.payload else self.kept_digest

    @property
    def effects(self) -> Sequence[Effect]:
        """The effects of the command, made when they are first read."""
        return self.outcome.effects

    @property
    def decision(self) -> Decision:
        """The compact form of the effects."""
        return self.outcome.decision

    @property
    def placing(self) -> PlaceOrder:
        """The order of a command whose decision is `Placed`."""
        command = self.outcome.command
        assert isinstance(command, PlaceOrder)
        return command

    @property
    def at_ms(self) -> int:
        """The time of a command whose decision is not `Done`."""
        assert self.outcome.command is not None
        return self.outcome.command.at_ms


def committed_effects(
    sequence: int, effects: Sequence[Effect], digest: bytes = b""
) -> CommittedCommand:
    """Return effects as they are published, with the digest of their command if they have one."""
    outcome = Outcome(None, list(effects), is_change=True)
    return CommittedCommand(sequence, outcome, kept_digest=digest)
