"""The handlers of the requests that need the engine of a shard alone, by the class of the request.

A request changes nothing, or its reply waits until the change is durable. The client raises a
refusal.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from foretell.domain.errors.exchange import TreasuryUnavailable
from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.allocations import AllocationTotal
from foretell.domain.exchange.apply import Cancellation, Outcome
from foretell.domain.exchange.commands import (
    CancelOrders,
    JoinTreasury,
    PlaceOrder,
    ReturnAllocation,
    TakeAllocations,
)
from foretell.domain.exchange.ledger import COLLATERAL, NOBODY, AssetId, LiveOrder
from foretell.domain.exchange.place_order import check_order as check_placing
from foretell.domain.exchange.state import Placement, State
from foretell.domain.exchange.waiting.delays import DelayedOrder
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.protocol.endpoint import SettlePlacing
from foretell.engine.protocol.requests import (
    AccountReply,
    AccountRequest,
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
    ReturnReply,
    ReturnRequest,
    ShardRequest,
    TakeReply,
    TakeRequest,
)
from foretell.engine.writer.engine import Engine

CANCELS_PER_COMMAND_MAX: Final = 10_000
"""How many orders one command cancels: any journal takes a payload of that size."""

Handler = Callable[[Engine, Any], Awaitable[EngineReply]]
"""Returns the reply to a request of one class, or raises the refusal."""


async def place(engine: Engine, request: PlaceRequest) -> PlaceReply:
    """Place an order; one that was placed before keeps its outcome."""
    is_known = request.command.order_id in engine.state.placement_by_order
    placement = await engine.submit(_timed(engine, request.command))
    assert isinstance(placement, Placement)
    return PlaceReply(placement, is_known)


def begin_placing(engine: Engine, request: PlaceRequest, settle: SettlePlacing) -> None:
    """Place an order as `place` does; `settle` gets the reply once it is durable."""
    is_known = request.command.order_id in engine.state.placement_by_order

    def settle_outcome(outcome: Outcome | ForetellError) -> None:
        if isinstance(outcome, ForetellError):
            settle(outcome)
        else:
            assert isinstance(outcome.result, Placement)
            settle(PlaceReply(outcome.result, is_known))

    engine.begin(_timed(engine, request.command), settle_outcome)


async def find_placement(engine: Engine, request: FindPlacementRequest) -> FindPlacementReply:
    """Return the outcome of an order when it was placed."""
    return FindPlacementReply(engine.state.placement_by_order.get(request.order_id))


async def check_order(engine: Engine, request: CheckOrderRequest) -> CheckOrderReply:
    """Refuse an order that would be refused if it were placed now."""
    check_placing(engine.state, _timed(engine, request.command))
    return CheckOrderReply()


async def cancel_orders(
    engine: Engine,
    request: CancelOrdersRequest,
    *,
    per_command_max: int = CANCELS_PER_COMMAND_MAX,
) -> CancelOrdersReply:
    """Cancel the named orders, by as many commands as their number needs."""
    canceled: list[Bytes32] = []
    not_canceled: dict[Bytes32, str] = {}
    order_ids = request.order_ids
    for start in range(0, max(len(order_ids), 1), per_command_max):
        part = tuple(order_ids[start : start + per_command_max])
        outcome = await engine.submit(CancelOrders(engine.clock_ms(), request.signer, part))
        assert isinstance(outcome, Cancellation)
        canceled += outcome.canceled
        not_canceled |= outcome.not_canceled
    return CancelOrdersReply(canceled, not_canceled)


async def cancel_matching(engine: Engine, request: CancelMatchingRequest) -> CancelOrdersReply:
    """Cancel the orders that match."""
    order_ids = [order.order_id for order in _matching(engine.state, request)]
    order_ids += [order.command.order_id for order in _matching_delayed(engine.state, request)]
    return await cancel_orders(engine, CancelOrdersRequest(request.signer, order_ids))


async def view_account(engine: Engine, request: AccountRequest) -> AccountReply:
    """Return what the ledger knows of a wallet's asset."""
    ledger = engine.state.ledger
    account = ledger.look_up(request.wallet, request.asset)
    return AccountReply(
        confirmed_units=account.confirmed_units,
        pending_units=account.credit_units - account.debit_units,
        reserved_units=account.reserved_units,
        allowed_units=[
            ledger.allowed_units(
                request.wallet, exchange, of_collateral=request.asset == COLLATERAL
            )
            for exchange in request.exchanges
        ],
        observed_block=engine.state.observed_block,
    )


async def join_treasury(engine: Engine, request: JoinRequest) -> JoinReply:
    """Take collateral from a treasury from now on."""
    _check_name(engine.state, request.shard, may_be_new=True)
    await engine.submit(JoinTreasury(engine.clock_ms(), request.shard))
    return JoinReply()


async def take_allocations(engine: Engine, request: TakeRequest) -> TakeReply:
    """Take what the treasury gave."""
    _check_name(engine.state, request.shard)
    taking = TakeAllocations(engine.clock_ms(), request.shard, tuple(request.given))
    await engine.submit(taking)
    return TakeReply()


async def return_allocation(engine: Engine, request: ReturnRequest) -> ReturnReply:
    """Give back what is free of an allocation."""
    _check_name(engine.state, request.shard)
    at_ms, wallet = engine.clock_ms(), request.given.wallet
    await engine.submit(TakeAllocations(at_ms, request.shard, (request.given,)))
    returned = await engine.submit(
        ReturnAllocation(
            at_ms, request.shard, wallet, request.returned, is_forced=request.is_forced
        )
    )
    assert isinstance(returned, AllocationTotal)
    return ReturnReply(returned)


HANDLERS: Final[Mapping[type[ShardRequest], Handler]] = MappingProxyType(
    {
        PlaceRequest: place,
        FindPlacementRequest: find_placement,
        CheckOrderRequest: check_order,
        CancelOrdersRequest: cancel_orders,
        CancelMatchingRequest: cancel_matching,
        AccountRequest: view_account,
        JoinRequest: join_treasury,
        TakeRequest: take_allocations,
        ReturnRequest: return_allocation,
    }
)


def _timed(engine: Engine, command: PlaceOrder) -> PlaceOrder:
    """Return the command with the engine's time, which never goes back."""
    at_ms = engine.clock_ms()
    return command if command.at_ms == at_ms else msgspec.structs.replace(command, at_ms=at_ms)


def _check_name(state: State, shard: str, *, may_be_new: bool = False) -> None:
    """Refuse a request that is meant for another shard, or comes before this one has joined."""
    known = state.allocations.shard
    if known != shard and not (may_be_new and known == ""):
        raise TreasuryUnavailable(
            f"the request is for shard {shard!r}, and this engine is shard {known!r}"
        )


def _matching(state: State, request: CancelMatchingRequest) -> Iterable[LiveOrder]:
    """Yield the live orders that match; only those of the named key and market are looked at."""
    owner, condition_id, is_yes = request.owner, request.condition_id, None
    if request.token_id is not None:
        market = state.market_by_token.get(AssetId(request.token_id))
        if market is None or condition_id not in {None, market.opened.condition_id}:
            return
        condition_id = market.opened.condition_id
        is_yes = market.opened.token_yes == request.token_id
    for wallet in request.wallets:
        accounts = state.ledger.accounts_by_wallet.get(wallet, NOBODY)
        for order in accounts.orders_of(owner, condition_id):
            if order.signer == request.signer and is_yes in {None, order.is_yes}:
                yield order


def _matching_delayed(state: State, request: CancelMatchingRequest) -> Iterable[DelayedOrder]:
    for order in (each for wallet in request.wallets for each in state.delays.of(wallet)):
        command = order.command
        token_id = state.market_by_id[command.condition_id].token(is_yes=command.is_yes)
        if (
            command.order.signer == request.signer
            and request.owner in {None, command.owner}
            and request.condition_id in {None, command.condition_id}
            and request.token_id in {None, token_id}
        ):
            yield order
