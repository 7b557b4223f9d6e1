"""What can be asked of an engine, wherever it runs, and how it answers.

A question holds everything that its answer depends on but the time, which is the engine's own. It
crosses a socket as it is when the engine is another process. A refusal is raised by who asks.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from foretell.domain.errors.exchange import OrderDuplicated, TreasuryUnavailable
from foretell.domain.exchange.allocations import SliceTotal, SliceTotals, Total
from foretell.domain.exchange.apply import Cancellation
from foretell.domain.exchange.book import LiveOrder
from foretell.domain.exchange.commands import (
    CancelOrders,
    JoinTreasury,
    PlaceOrder,
    ReturnSlice,
    TakeSlices,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId, Ledger
from foretell.domain.exchange.place_order import judge_order
from foretell.domain.exchange.state import Placement, State
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.engine.writer.engine import Engine

CANCELS_PER_COMMAND_MAX: Final = 10_000


class Place(msgspec.Struct, frozen=True, array_like=True, tag="place"):
    """Place an order; its time is when the engine gets it."""

    command: PlaceOrder


class Placed(msgspec.Struct, frozen=True, array_like=True, tag="placed"):
    """What became of an order, and whether it had been placed before."""

    placement: Placement
    is_known: bool


class FindPlacement(msgspec.Struct, frozen=True, array_like=True, tag="find"):
    """Say whether an order was ever placed."""

    order_id: Bytes32


class FoundPlacement(msgspec.Struct, frozen=True, array_like=True, tag="found"):
    """What became of an order at once, or None when it never was placed."""

    placement: Placement | None


class JudgeOrder(msgspec.Struct, frozen=True, array_like=True, tag="judge"):
    """Refuse an order that would be refused if it were placed now; nothing changes."""

    command: PlaceOrder


class Judged(msgspec.Struct, frozen=True, array_like=True, tag="judged"):
    """Nothing speaks against the order."""


class CancelNamed(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    """Take orders out of the book that an address signed."""

    signer: Address
    order_ids: Sequence[Bytes32]


class CancelMatching(msgspec.Struct, frozen=True, array_like=True, tag="cancel_matching"):
    """Take every order that an address signed out of the book, of a key, market or token alone."""

    signer: Address
    wallets: Sequence[Address]
    owner: str | None = None
    condition_id: Bytes32 | None = None
    token_id: str | None = None


class Canceled(msgspec.Struct, frozen=True, array_like=True, tag="canceled"):
    """Which orders are out of the book by this question, and why the others are not."""

    canceled: list[Bytes32]
    not_canceled: dict[Bytes32, str]


class LookUpAccount(msgspec.Struct, frozen=True, array_like=True, tag="account"):
    """Say what a wallet has of an asset, and lets each of the exchanges move."""

    wallet: Address
    asset: AssetId
    exchanges: Sequence[Address]


class AccountView(msgspec.Struct, frozen=True, array_like=True, tag="account_view"):
    """One wallet's units of one asset; `allowed_units` are in the order of the exchanges."""

    confirmed_units: int
    pending_units: int
    reserved_units: int
    allowed_units: Sequence[int]
    observed_block: int


class Beat(msgspec.Struct, frozen=True, array_like=True, tag="beat"):
    """Take a beat of a key, which names the one before it."""

    key_id: str
    address: Address
    heartbeat_id: str | None


class AwaitTables(msgspec.Struct, frozen=True, array_like=True, tag="await_tables"):
    """Say when the tables hold everything that is durable now."""


class TablesReady(msgspec.Struct, frozen=True, array_like=True, tag="tables_ready"):
    """The tables hold it."""


class Beaten(msgspec.Struct, frozen=True, array_like=True, tag="beaten"):
    """What the next beat must name."""

    heartbeat_id: str


class Join(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    """Take collateral from a treasury from now on, which knows the shard by this name."""

    shard: str


class Joined(msgspec.Struct, frozen=True, array_like=True, tag="joined"):
    """Collateral comes from the treasury."""


class Take(msgspec.Struct, frozen=True, array_like=True, tag="take"):
    """Take what the treasury gave the shard in all, of some wallets."""

    shard: str
    given: Sequence[SliceTotal]


class Taken(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """The shard has it."""


class GiveBack(msgspec.Struct, frozen=True, array_like=True, tag="give_back"):
    """Give of a wallet's slice back what is free, until so much was returned in all.

    What was given in all is told too, so that what is still on its way can be given back. By force,
    orders are closed until enough is free.
    """

    shard: str
    given: SliceTotal
    returned: Total
    is_forced: bool


class GivenBack(msgspec.Struct, frozen=True, array_like=True, tag="given_back"):
    """What was returned in all."""

    returned: SliceTotal


class ReportSlices(msgspec.Struct, frozen=True, array_like=True, tag="report"):
    """Say what became of the shard's slices, those from a place in their order on.

    Whoever names a block wants them as of that block alone; whoever names the sequence of an earlier
    report, those alone that changed after it.
    """

    start: int
    block_hash: Bytes32 | None = None
    since: int | None = None


class SlicesReported(msgspec.Struct, frozen=True, array_like=True, tag="reported"):
    """A part of the slices, `count` in all, as of the block that the shard has observed.

    There is none of them when another block was wanted. Slices keep their order, and new ones
    come last. When it is not `is_whole`, it is those that changed, in one part.
    """

    shard: str
    block_number: int
    block_hash: Bytes32
    count: int
    slices: Sequence[SliceTotals]
    sequence: int
    is_whole: bool


class Fund(msgspec.Struct, frozen=True, array_like=True, tag="fund"):
    """Give a shard of a wallet's collateral, until it was given so much in all: for a treasury."""

    shard: str
    wallet: Address
    given: Total


class Funded(msgspec.Struct, frozen=True, array_like=True, tag="funded"):
    """What the shard was given in all; less than it wanted when the wallet has no more."""

    given: SliceTotal


LookQuestion = FindPlacement | JudgeOrder | LookUpAccount
SliceQuestion = Join | Take | GiveBack
BookQuestion = Place | CancelNamed | CancelMatching | LookQuestion | SliceQuestion
Question = BookQuestion | Beat | AwaitTables | ReportSlices | Fund
SliceAnswer = Joined | Taken | GivenBack
BookAnswer = Placed | FoundPlacement | Judged | Canceled | AccountView | SliceAnswer
Answer = BookAnswer | Beaten | TablesReady | SlicesReported | Funded


class Answering(Protocol):
    """Whatever can be asked: an engine, or a treasury, wherever it runs."""

    async def ask(self, question: Question) -> Answer:
        """Return the answer, durable if anything changed; or raise the refusal."""


async def answer(engine: Engine, question: BookQuestion) -> Answer:
    """Return what the engine makes of a question, durable if anything changed; or refuse."""
    match question:
        case Place():
            return await _place(engine, question.command)
        case CancelNamed():
            return await _cancel(engine, question.signer, question.order_ids)
        case CancelMatching():
            ids = [order.order_id for order in _matching(engine.state, question)]
            return await _cancel(engine, question.signer, ids)
        case Join() | Take() | GiveBack():
            return await _move_slices(engine, question)
        case _:
            return _look(engine, question)


def _look(engine: Engine, question: LookQuestion) -> Answer:
    """Return what the engine knows; nothing changes."""
    match question:
        case FindPlacement():
            return FoundPlacement(engine.state.placement_by_order.get(question.order_id))
        case JudgeOrder():
            _judge(engine.state, _timed(engine, question.command))
            return Judged()
        case LookUpAccount():
            return account_view(engine.state, question)


async def _move_slices(engine: Engine, question: SliceQuestion) -> SliceAnswer:
    match question:
        case Join():
            _check_name(engine.state, question.shard, may_be_new=True)
            await engine.submit(JoinTreasury(engine.clock_ms(), question.shard))
            return Joined()
        case Take():
            _check_name(engine.state, question.shard)
            taking = TakeSlices(engine.clock_ms(), question.shard, tuple(question.given))
            await engine.submit(taking)
            return Taken()
        case GiveBack():
            _check_name(engine.state, question.shard)
            return GivenBack(await _give_back(engine, question))


def _check_name(state: State, shard: str, *, may_be_new: bool = False) -> None:
    """Refuse what is meant for another shard, or comes before this one has joined."""
    known = state.slices.shard
    if known != shard and not (may_be_new and known == ""):
        raise TreasuryUnavailable(f"the shard {shard} is known here as {known!r}")


async def _give_back(engine: Engine, wanted: GiveBack) -> SliceTotal:
    at_ms = engine.clock_ms()
    await engine.submit(TakeSlices(at_ms, wanted.shard, (wanted.given,)))
    returned = await engine.submit(
        ReturnSlice(
            at_ms,
            wanted.shard,
            wanted.given.wallet,
            wanted.returned,
            is_forced=wanted.is_forced,
        )
    )
    assert isinstance(returned, SliceTotal)
    return returned


async def _place(engine: Engine, command: PlaceOrder) -> Placed:
    is_known = command.order_id in engine.state.placement_by_order
    placement = await engine.submit(_timed(engine, command))
    assert isinstance(placement, Placement)
    return Placed(placement, is_known)


def _timed(engine: Engine, command: PlaceOrder) -> PlaceOrder:
    """Return the command with the engine's time, which never goes back."""
    at_ms = engine.clock_ms()
    return command if command.at_ms == at_ms else msgspec.structs.replace(command, at_ms=at_ms)


async def _cancel(engine: Engine, signer: Address, order_ids: Sequence[Bytes32]) -> Canceled:
    """Take orders out in commands that any journal takes."""
    canceled: list[Bytes32] = []
    not_canceled: dict[Bytes32, str] = {}
    for start in range(0, max(len(order_ids), 1), CANCELS_PER_COMMAND_MAX):
        part = tuple(order_ids[start : start + CANCELS_PER_COMMAND_MAX])
        outcome = await engine.submit(CancelOrders(engine.clock_ms(), signer, part))
        assert isinstance(outcome, Cancellation)
        canceled += outcome.canceled
        not_canceled |= outcome.not_canceled
    return Canceled(canceled, not_canceled)


def _matching(state: State, wanted: CancelMatching) -> Iterable[LiveOrder]:
    for order in live_orders_of(state.ledger, wanted.signer, wanted.wallets):
        token_id = state.market_by_id[order.condition_id].token(is_yes=order.is_yes)
        if (
            wanted.owner in {None, order.owner}
            and wanted.condition_id in {None, order.condition_id}
            and wanted.token_id in {None, token_id}
        ):
            yield order


def live_orders_of(ledger: Ledger, address: Address, wallets: Sequence[Address]) -> list[LiveOrder]:
    """Return the live orders that an address signed, found in its wallets' accounts."""
    return [
        order
        for wallet in wallets
        for asset in ledger.assets(wallet)
        for order in ledger.look_up(wallet, asset).orders.values()
        if order.signer == address
    ]


def _judge(state: State, command: PlaceOrder) -> None:
    known = state.placement_by_order.get(command.order_id)
    if known is None:
        judge_order(state, command)
    elif (known.owner, known.order_type) != (command.owner, command.order_type):
        raise OrderDuplicated(command.order_id)


def account_view(state: State, wanted: LookUpAccount) -> AccountView:
    """Return what the ledger knows of a wallet's asset."""
    account = state.ledger.look_up(wanted.wallet, wanted.asset)
    return AccountView(
        confirmed_units=account.confirmed_units,
        pending_units=account.credit_units - account.debit_units,
        reserved_units=account.reserved_units,
        allowed_units=[
            state.ledger.allowed_units(
                wanted.wallet, exchange, of_collateral=wanted.asset == COLLATERAL
            )
            for exchange in wanted.exchanges
        ],
        observed_block=state.observed_block,
    )
