"""What the engine can be told.

A command holds everything that its outcome depends on: the time, every id, what the chain says. So
the journal of commands is the whole truth, and telling them again in their order gives the same
books, the same ledger and the same trades. A field may be added at the end of a command, with a
default; none is ever removed or moved, because journals are kept.
"""

from typing import Final

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal, Total
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules, OrderTerms, OrderType, SignedOrder
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32


class OpenMarket(msgspec.Struct, frozen=True, array_like=True, tag="open"):
    """A market may trade from now on, settled by this exchange."""

    at_ms: int
    condition_id: Bytes32
    token_yes: AssetId
    token_no: AssetId
    exchange: Address
    rules: MarketRules


class ChangeTick(msgspec.Struct, frozen=True, array_like=True, tag="tick"):
    """From now on there are so many ticks between 0 and 1 in a market, more than before."""

    at_ms: int
    condition_id: Bytes32
    ticks_per_one: int


class ResolveMarket(msgspec.Struct, frozen=True, array_like=True, tag="resolve"):
    """The chain has the condition's payout: trading ends and every order leaves the book."""

    at_ms: int
    condition_id: Bytes32


class PlaceOrder(msgspec.Struct, frozen=True, array_like=True, tag="place"):
    """A signed order, verified, that its owner wants in the book.

    `order_id` is the order's hash, which makes the command's identity: told twice, it happens once.
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


class CancelOrders(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    """The signer wants these orders out of the book."""

    at_ms: int
    signer: Address
    order_ids: tuple[Bytes32, ...]


class ExpireOrders(msgspec.Struct, frozen=True, array_like=True, tag="expire"):
    """The time has come to take out what leaves the book by itself."""

    at_ms: int


class BalanceSeen(msgspec.Struct, frozen=True, array_like=True):
    """What a wallet holds of an asset, in base units, at the block of the observation."""

    wallet: Address
    asset: AssetId
    units: int


class AllowanceSeen(msgspec.Struct, frozen=True, array_like=True):
    """What a wallet lets an exchange move, in base units, of collateral or of all its tokens."""

    wallet: Address
    exchange: Address
    is_collateral: bool
    units: int


class TradeSeen(msgspec.Struct, frozen=True, array_like=True):
    """How far a trade's settlement has come at the block of the observation."""

    trade_id: str
    status: TradeStatus
    tx_hash: str


class CancelSeen(msgspec.Struct, frozen=True, array_like=True):
    """An order that its maker ended at an exchange."""

    exchange: Address
    order_id: Bytes32


class NonceSeen(msgspec.Struct, frozen=True, array_like=True):
    """A maker's nonce at an exchange, which ended every order that was signed with a lower one."""

    exchange: Address
    maker: Address
    nonce: int


class ObserveChain(msgspec.Struct, frozen=True, array_like=True, tag="observe"):
    """What changed on the chain up to a block, all of it as of that block.

    Balances are what the wallet holds after everything in the block, settled trades included:
    that is why a trade stops pending in the same step that brings the balance. What is too much
    for one command comes in parts, counted from 1, and counts for nothing before the last is there.
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


class JoinTreasury(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    """Collateral comes in slices from a treasury from now on, which knows us by this name."""

    at_ms: int
    shard: str


class TakeAllocations(msgspec.Struct, frozen=True, array_like=True, tag="take"):
    """What the treasury gave the shard in all, of some wallets; told again, it happens once."""

    at_ms: int
    shard: str
    given: tuple[AllocationTotal, ...]


class ReturnAllocation(msgspec.Struct, frozen=True, array_like=True, tag="return"):
    """The treasury wants collateral back, until so much was returned in all.

    Only a forced return closes orders: the wallet took on the chain what they would spend.
    """

    at_ms: int
    shard: str
    wallet: Address
    returned: Total
    is_forced: bool = False


class SplitTrade(msgspec.Struct, frozen=True, array_like=True, tag="split"):
    """Some of a trade's fills cannot settle with the others: each part is a trade of its own now.

    A part is the maker orders of its fills; what is in none of them stays in the trade.
    `refused_ids` are orders that the chain refuses whatever they meet, so they leave the book.
    """

    at_ms: int
    trade_id: str
    parts: tuple[tuple[Bytes32, ...], ...]
    refused_ids: tuple[Bytes32, ...]


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
)

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Command]] = msgspec.msgpack.Decoder(Command)


def encode_command(command: Command) -> bytes:
    """Return the bytes that the journal keeps."""
    return _ENCODER.encode(command)


def decode_command(raw: bytes) -> Command:
    """Return the command that the journal kept."""
    return _DECODER.decode(raw)
