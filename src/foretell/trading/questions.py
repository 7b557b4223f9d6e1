"""What can be asked of an engine, wherever it runs, and how it answers.

A question holds everything that its answer depends on but the time, which is the engine's own. It
crosses a socket as it is when the engine is another process. A refusal is raised by who asks.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from foretell.domain.book import LiveOrder
from foretell.domain.commands import CancelOrders, PlaceOrder
from foretell.domain.fold import Cancellation
from foretell.domain.hexadecimal import Address, Bytes32
from foretell.domain.ledger import COLLATERAL, AssetId, Ledger
from foretell.domain.matching_errors import OrderDuplicated
from foretell.domain.placing import judge_order
from foretell.domain.state import Placement, State
from foretell.trading.engine import Engine

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


BookQuestion = Place | FindPlacement | JudgeOrder | CancelNamed | CancelMatching | LookUpAccount
Question = BookQuestion | Beat | AwaitTables
Answer = Placed | FoundPlacement | Judged | Canceled | AccountView | Beaten | TablesReady


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
        case _:
            return _look(engine, question)


def _look(engine: Engine, question: FindPlacement | JudgeOrder | LookUpAccount) -> Answer:
    """Return what the engine knows; nothing changes."""
    match question:
        case FindPlacement():
            return FoundPlacement(engine.state.placement_by_order.get(question.order_id))
        case JudgeOrder():
            _judge(engine.state, _timed(engine, question.command))
            return Judged()
        case LookUpAccount():
            return account_view(engine.state, question)


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
