"""Commands of the engine.

A command holds all that its outcome depends on: the time, every id, the state of the chain. So a
replay of the journal of commands gives the same books, the same ledger and the same trades. A field
may be added at the end of a command, with a default; none is ever removed or moved, because old
journals must stay readable.
"""

from typing import Final

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal, Total
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules, OrderTerms, OrderType, SignedOrder
from foretell.domain.exchange.signing.stops import StopKind
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32


class OpenMarket(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="open"):
    """Open a market that this exchange settles."""

    at_ms: int
    condition_id: Bytes32
    token_yes: AssetId
    token_no: AssetId
    exchange: Address
    rules: MarketRules

    def token(self, *, is_yes: bool) -> AssetId:
        """Return the token of one outcome."""
        return self.token_yes if is_yes else self.token_no


class ChangeTick(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="tick"):
    """Change a market to a finer tick: more ticks between 0 and 1."""

    at_ms: int
    condition_id: Bytes32
    ticks_per_one: int


class ResolveMarket(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="resolve"):
    """End trading, because the chain has the payout: every order leaves the book, or at most so many at once.

    Repeated, it closes the next orders of the market; none is taken from the first time on.
    """

    at_ms: int
    condition_id: Bytes32
    orders_max: int | None = None


class PlaceOrder(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="place"):
    """Place a verified signed order.

    `order_id` is the order's hash and identifies the command: repeated, it is placed once. `builder` is
    the code of the builder that signed the request beside the owner; the order itself may name another.
    """

    at_ms: int
    order_id: Bytes32
    order: SignedOrder
    order_type: OrderType
    is_post_only: bool
    owner: str
    condition_id: Bytes32
    is_yes: bool
    terms: OrderTerms
    builder: Bytes32 | None = None

    @property
    def builder_code(self) -> Bytes32 | None:
        """The code that the order is attributed to: the one that its owner signed goes first."""
        signed = None if self.order.v2 is None else self.order.v2.builder
        return self.builder if signed in {None, ZERO_BYTES32} else signed


class ReleaseOrder(PlaceOrder, frozen=True, array_like=True, gc=False, tag="release"):
    """Place a delayed order, whose delay is over: it arrives at the time of this command.

    It is closed instead if settlement was so far behind at that time that it may not match.
    """

    is_settlement_behind: bool = False


class DelayMarket(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="delay"):
    """Hold orders of a market that would match at once for a time; zero ends that for new ones."""

    at_ms: int
    condition_id: Bytes32
    delay_ms: int


class CancelOrders(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="cancel"):
    """Cancel orders of the signer."""

    at_ms: int
    signer: Address
    order_ids: tuple[Bytes32, ...]


class ExpireOrders(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="expire"):
    """Close orders that have expired: the named ones, or the earliest ones up to a number, or all of them."""

    at_ms: int
    orders_max: int | None = None
    order_ids: tuple[Bytes32, ...] = ()


class BalanceSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A wallet's balance of an asset, in base units, at the block of the observation."""

    wallet: Address
    asset: AssetId
    units: int


class AllowanceSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A wallet's allowance for an exchange in base units, of collateral or of all its tokens."""

    wallet: Address
    exchange: Address
    is_collateral: bool
    units: int


class ReturnedOrder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An order of a failed trade that another order is to blame for, as it was placed.

    `is_filled` when it left the book because it was filled, and for nothing else.
    """

    order_id: Bytes32
    signer: Address
    owner: str
    order_type: OrderType
    price_ticks: int
    ticks_per_one: int
    size_units: int
    leaves_at_s: int | None
    placed_at_ms: int
    nonce: int
    trade_ids: tuple[str, ...]
    is_filled: bool


class TradeSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The status of a trade's settlement at the block of the observation.

    `returned` are the orders of a failed trade that are not to blame for it, and `cause` is why it failed.
    """

    trade_id: str
    status: TradeStatus
    tx_hash: str
    returned: tuple[ReturnedOrder, ...] = ()
    cause: str = ""


class CancelSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An order that its maker canceled at an exchange."""

    exchange: Address
    order_id: Bytes32


class NonceSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A maker's nonce at an exchange; orders signed with a lower one are canceled."""

    exchange: Address
    maker: Address
    nonce: int


class StopSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A maker's stop at an exchange, for one kind of its orders; 0 where there is none.

    The value is a time in milliseconds, before which orders are ended, or 1 where a Safe's first owner
    may not sign alone.
    """

    exchange: Address
    maker: Address
    kind: StopKind
    value: int


class ObserveChain(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="observe"):
    """Changes on the chain up to a block, as of that block.

    A balance includes the trades that settled in the block, so a trade stops pending in the same
    step that sets the balance. An observation that is too large for one command comes in parts,
    counted from 1, and takes effect with the last part.
    """

    at_ms: int
    block_number: int
    block_hash: Bytes32
    balances: tuple[BalanceSeen, ...]
    allowances: tuple[AllowanceSeen, ...]
    trades: tuple[TradeSeen, ...]
    part: int = 1
    parts: int = 1
    cancels: tuple[CancelSeen, ...] = ()
    nonces: tuple[NonceSeen, ...] = ()
    stops: tuple[StopSeen, ...] = ()


class JoinTreasury(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="join"):
    """Take collateral from a treasury from now on; `shard` is the name of this shard there."""

    at_ms: int
    shard: str


class TakeAllocations(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="take"):
    """Take allocations up to the total given by the treasury; repeated, it takes effect once."""

    at_ms: int
    shard: str
    given: tuple[AllocationTotal, ...]


class ReturnAllocation(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="return"):
    """Return collateral to the treasury, up to a total.

    Only a forced return closes orders: the wallet moved on the chain what they would spend.
    """

    at_ms: int
    shard: str
    wallet: Address
    returned: Total
    is_forced: bool = False


class SplitTrade(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="split"):
    """Split a trade, because some of its fills cannot settle with the others.

    A part lists the maker orders of its fills; other fills stay in the trade. `refused_ids` are
    orders that the chain refuses in any match, and `short_ids` those whose wallet could not pay for their part
    of the trade: both leave the book.
    """

    at_ms: int
    trade_id: str
    parts: tuple[tuple[Bytes32, ...], ...]
    refused_ids: tuple[Bytes32, ...]
    short_ids: tuple[Bytes32, ...] = ()


class BarWallet(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="bar"):
    """Bar a wallet from matching, for a cause that its owner sees, or end its bar."""

    at_ms: int
    wallet: Address
    is_barred: bool
    cause: str


class HaltMarket(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="halt"):
    """Take no orders of a market, because the chain lost it, or take them again."""

    at_ms: int
    condition_id: Bytes32
    is_halted: bool


Command = (
    OpenMarket
    | ChangeTick
    | ResolveMarket
    | PlaceOrder
    | CancelOrders
    | ExpireOrders
    | ObserveChain
    | JoinTreasury
    | TakeAllocations
    | ReturnAllocation
    | SplitTrade
    | BarWallet
    | HaltMarket
    | ReleaseOrder
    | DelayMarket
)

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Command]] = msgspec.msgpack.Decoder(Command)


def encode_command(command: Command) -> bytes:
    """Return the bytes that the journal stores."""
    return _ENCODER.encode(command)


def decode_command(raw: bytes) -> Command:
    """Return the command that the journal stored."""
    return _DECODER.decode(raw)
