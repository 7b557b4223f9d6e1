"""What can be asked of an engine, wherever it runs, and how it answers.

A question holds everything that its answer depends on but the time, which is the engine's own. It
crosses a socket as it is when the engine is another process. A refusal is raised by who asks.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from foretell.domain.errors.exchange import TreasuryUnavailable
from foretell.domain.exchange.allocations import AllocationTotal
from foretell.domain.exchange.apply import Cancellation
from foretell.domain.exchange.book import LiveOrder
from foretell.domain.exchange.commands import (
    CancelOrders,
    JoinTreasury,
    PlaceOrder,
    ReturnAllocation,
    TakeAllocations,
)
from foretell.domain.exchange.ledger import COLLATERAL, Ledger
from foretell.domain.exchange.place_order import plan_order
from foretell.domain.exchange.state import Placement, State
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.engine.protocol.requests import (
    AccountReply,
    AccountRequest,
    AllocationReply,
    AllocationRequest,
    CancelMatchingRequest,
    CancelOrdersReply,
    CancelOrdersRequest,
    CheckOrderReply,
    CheckOrderRequest,
    EngineReply,
    FindPlacementReply,
    FindPlacementRequest,
    JoinReply,
    JoinRequest,
    PlaceReply,
    PlaceRequest,
    ReadRequest,
    ReturnReply,
    ReturnRequest,
    ShardRequest,
    TakeReply,
    TakeRequest,
)
from foretell.engine.writer.engine import Engine

CANCELS_PER_COMMAND_MAX: Final = 10_000


async def handle(engine: Engine, question: ShardRequest) -> EngineReply:
    """Return what the engine makes of a question, durable if anything changed; or refuse."""
    match question:
        case PlaceRequest():
            return await _place(engine, question.command)
        case CancelOrdersRequest():
            return await _cancel(engine, question.signer, question.order_ids)
        case CancelMatchingRequest():
            ids = [order.order_id for order in _matching(engine.state, question)]
            return await _cancel(engine, question.signer, ids)
        case JoinRequest() | TakeRequest() | ReturnRequest():
            return await _move_allocations(engine, question)
        case _:
            return _look(engine, question)


def _look(engine: Engine, question: ReadRequest) -> EngineReply:
    """Return what the engine knows; nothing changes."""
    match question:
        case FindPlacementRequest():
            return FindPlacementReply(engine.state.placement_by_order.get(question.order_id))
        case CheckOrderRequest():
            plan_order(engine.state, _timed(engine, question.command))
            return CheckOrderReply()
        case AccountRequest():
            return account_view(engine.state, question)


async def _move_allocations(engine: Engine, question: AllocationRequest) -> AllocationReply:
    match question:
        case JoinRequest():
            _check_name(engine.state, question.shard, may_be_new=True)
            await engine.submit(JoinTreasury(engine.clock_ms(), question.shard))
            return JoinReply()
        case TakeRequest():
            _check_name(engine.state, question.shard)
            taking = TakeAllocations(engine.clock_ms(), question.shard, tuple(question.given))
            await engine.submit(taking)
            return TakeReply()
        case ReturnRequest():
            _check_name(engine.state, question.shard)
            return ReturnReply(await _give_back(engine, question))


def _check_name(state: State, shard: str, *, may_be_new: bool = False) -> None:
    """Refuse what is meant for another shard, or comes before this one has joined."""
    known = state.allocations.shard
    if known != shard and not (may_be_new and known == ""):
        raise TreasuryUnavailable(f"the shard {shard} is known here as {known!r}")


async def _give_back(engine: Engine, wanted: ReturnRequest) -> AllocationTotal:
    at_ms = engine.clock_ms()
    await engine.submit(TakeAllocations(at_ms, wanted.shard, (wanted.given,)))
    returned = await engine.submit(
        ReturnAllocation(
            at_ms,
            wanted.shard,
            wanted.given.wallet,
            wanted.returned,
            is_forced=wanted.is_forced,
        )
    )
    assert isinstance(returned, AllocationTotal)
    return returned


async def _place(engine: Engine, command: PlaceOrder) -> PlaceReply:
    is_known = command.order_id in engine.state.placement_by_order
    placement = await engine.submit(_timed(engine, command))
    assert isinstance(placement, Placement)
    return PlaceReply(placement, is_known)


def _timed(engine: Engine, command: PlaceOrder) -> PlaceOrder:
    """Return the command with the engine's time, which never goes back."""
    at_ms = engine.clock_ms()
    return command if command.at_ms == at_ms else msgspec.structs.replace(command, at_ms=at_ms)


async def _cancel(
    engine: Engine, signer: Address, order_ids: Sequence[Bytes32]
) -> CancelOrdersReply:
    """Take orders out in commands that any journal takes."""
    canceled: list[Bytes32] = []
    not_canceled: dict[Bytes32, str] = {}
    for start in range(0, max(len(order_ids), 1), CANCELS_PER_COMMAND_MAX):
        part = tuple(order_ids[start : start + CANCELS_PER_COMMAND_MAX])
        outcome = await engine.submit(CancelOrders(engine.clock_ms(), signer, part))
        assert isinstance(outcome, Cancellation)
        canceled += outcome.canceled
        not_canceled |= outcome.not_canceled
    return CancelOrdersReply(canceled, not_canceled)


def _matching(state: State, wanted: CancelMatchingRequest) -> Iterable[LiveOrder]:
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


def account_view(state: State, wanted: AccountRequest) -> AccountReply:
    """Return what the ledger knows of a wallet's asset."""
    account = state.ledger.look_up(wanted.wallet, wanted.asset)
    return AccountReply(
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
