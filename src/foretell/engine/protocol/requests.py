"""Requests that an engine or a treasury takes, and its replies.

A request holds everything that its reply depends on but the time, which is the engine's own. It
crosses a socket as it is when the engine runs in another process. The client raises a refusal.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal, AllocationTotals, Total
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.effects import Effect
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.state import Placement
from foretell.domain.values.hexadecimal import Address, Bytes32


class PlaceRequest(msgspec.Struct, frozen=True, array_like=True, tag="place"):
    """Place an order; its time is when the engine gets it."""

    command: PlaceOrder


class PlaceReply(msgspec.Struct, frozen=True, array_like=True, tag="placed"):
    """What became of an order, and whether it had been placed before."""

    placement: Placement
    is_known: bool


class FindPlacementRequest(msgspec.Struct, frozen=True, array_like=True, tag="find"):
    """Say whether an order was ever placed."""

    order_id: Bytes32


class FindPlacementReply(msgspec.Struct, frozen=True, array_like=True, tag="found"):
    """What became of an order at once, or None when it never was placed."""

    placement: Placement | None


class CheckOrderRequest(msgspec.Struct, frozen=True, array_like=True, tag="judge"):
    """Refuse an order that would be refused if it were placed now; nothing changes."""

    command: PlaceOrder


class CheckOrderReply(msgspec.Struct, frozen=True, array_like=True, tag="judged"):
    """Nothing speaks against the order."""


class CancelOrdersRequest(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    """Take orders out of the book that an address signed."""

    signer: Address
    order_ids: Sequence[Bytes32]


class CancelMatchingRequest(msgspec.Struct, frozen=True, array_like=True, tag="cancel_matching"):
    """Take every order that an address signed out of the book, of a key, market or token alone."""

    signer: Address
    wallets: Sequence[Address]
    owner: str | None = None
    condition_id: Bytes32 | None = None
    token_id: str | None = None


class CancelOrdersReply(msgspec.Struct, frozen=True, array_like=True, tag="canceled"):
    """Which orders are out of the book by this question, and why the others are not."""

    canceled: list[Bytes32]
    not_canceled: dict[Bytes32, str]


class AccountRequest(msgspec.Struct, frozen=True, array_like=True, tag="account"):
    """Say what a wallet has of an asset, and lets each of the exchanges move."""

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


class HeartbeatRequest(msgspec.Struct, frozen=True, array_like=True, tag="beat"):
    """Take a beat of a key, which names the one before it."""

    key_id: str
    address: Address
    heartbeat_id: str | None


class TablesRequest(msgspec.Struct, frozen=True, array_like=True, tag="await_tables"):
    """Say when the tables hold everything that is durable now."""


class TablesReply(msgspec.Struct, frozen=True, array_like=True, tag="tables_ready"):
    """The tables hold it."""


class HeartbeatReply(msgspec.Struct, frozen=True, array_like=True, tag="beaten"):
    """What the next beat must name."""

    heartbeat_id: str


class JoinRequest(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    """Take collateral from a treasury from now on, which knows the shard by this name."""

    shard: str


class JoinReply(msgspec.Struct, frozen=True, array_like=True, tag="joined"):
    """Collateral comes from the treasury."""


class TakeRequest(msgspec.Struct, frozen=True, array_like=True, tag="take"):
    """Take what the treasury gave the shard in all, of some wallets."""

    shard: str
    given: Sequence[AllocationTotal]


class TakeReply(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """The shard has it."""


class ReturnRequest(msgspec.Struct, frozen=True, array_like=True, tag="give_back"):
    """Give of a wallet's slice back what is free, until so much was returned in all.

    What was given in all is told too, so that what is still on its way can be given back. By force,
    orders are closed until enough is free.
    """

    shard: str
    given: AllocationTotal
    returned: Total
    is_forced: bool


class ReturnReply(msgspec.Struct, frozen=True, array_like=True, tag="given_back"):
    """What was returned in all."""

    returned: AllocationTotal


class ReportRequest(msgspec.Struct, frozen=True, array_like=True, tag="report"):
    """Say what became of the shard's slices, those from a place in their order on.

    Whoever names a block wants them as of that block alone; whoever names the sequence of an earlier
    report, those alone that changed after it.
    """

    start: int
    block_hash: Bytes32 | None = None
    since: int | None = None


class ReportReply(msgspec.Struct, frozen=True, array_like=True, tag="reported"):
    """A part of the slices, `count` in all, as of the block that the shard has observed.

    There is none of them when another block was wanted. Slices keep their order, and new ones
    come last. When it is not `is_whole`, it is those that changed, in one part.
    """

    shard: str
    block_number: int
    block_hash: Bytes32
    count: int
    allocations: Sequence[AllocationTotals]
    sequence: int
    is_whole: bool


class FundRequest(msgspec.Struct, frozen=True, array_like=True, tag="fund"):
    """Give a shard of a wallet's collateral, until it was given so much in all: for a treasury."""

    shard: str
    wallet: Address
    given: Total


class FundReply(msgspec.Struct, frozen=True, array_like=True, tag="funded"):
    """What the shard was given in all; less than it wanted when the wallet has no more."""

    given: AllocationTotal


ReadRequest = FindPlacementRequest | CheckOrderRequest | AccountRequest


AllocationRequest = JoinRequest | TakeRequest | ReturnRequest


ShardRequest = (
    PlaceRequest | CancelOrdersRequest | CancelMatchingRequest | ReadRequest | AllocationRequest
)


EngineRequest = ShardRequest | HeartbeatRequest | TablesRequest | ReportRequest | FundRequest


AllocationReply = JoinReply | TakeReply | ReturnReply


ShardReply = (
    PlaceReply
    | FindPlacementReply
    | CheckOrderReply
    | CancelOrdersReply
    | AccountReply
    | AllocationReply
)


EngineReply = ShardReply | HeartbeatReply | TablesReply | ReportReply | FundReply


class EngineEndpoint(Protocol):
    """Whatever can be asked: an engine, or a treasury, wherever it runs."""

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return the answer, durable if anything changed; or raise the refusal."""


class CommittedCommand(NamedTuple):
    """What one journalled command did, told once it is durable."""

    sequence: int
    effects: Sequence[Effect]


Subscriber = Callable[[CommittedCommand], None]
