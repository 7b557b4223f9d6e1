"""Placing of orders without a coroutine: every step calls the next one.

The rules are those of `order_rules`, in the same order. A coroutine is made only for an order that must
wait for something else than its signature and the journal: a nonce from the chain, another signing
profile, the treasury.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.commands import PlaceOrder
from foretell.edge.refusals import InternalError
from foretell.engine.protocol.requests import PlaceReply, PlaceRequest
from foretell.store.public_reads.places import context_of
from foretell.trading.accounts.signers import Identity
from foretell.trading.context import TradingContext
from foretell.trading.handlers.order_rules import (
    PLACING_RULES,
    RULES_BEFORE_SIGNATURE,
    OrderCheck,
    prepare_order,
    prepare_signed_order,
)

log = structlog.get_logger(__name__)

SettleOrder = Callable[[PlaceReply | ForetellError], None]
"""Takes the reply to an order, durable if it was placed, or the refusal; it is called once."""


class OrderPipeline:
    """Checks orders, identifies their signers and places them."""

    def __init__(self, context: TradingContext) -> None:
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, check: OrderCheck, settle: SettleOrder) -> None:
        """Place an order; `settle` is called at once or later."""
        try:
            for rule in RULES_BEFORE_SIGNATURE:
                rule.check(check)
        except ForetellError as refusal:
            settle(refusal)
            return
        assert check.order is not None
        assert check.token is not None
        self._context.signers.begin_identifying(
            check.order,
            check.token.market.opened.exchange,
            partial(self._identified, check, settle),
        )

    def _identified(
        self, check: OrderCheck, settle: SettleOrder, identity: Identity | ForetellError | None
    ) -> None:
        try:
            if isinstance(identity, Identity):
                check.accept(identity)
                self._check_signed(check, settle)
            elif identity is None:
                self._place_later(check, prepare_order(check), settle)
            else:
                settle(identity)
        except Exception:
            log.exception("unhandled error")
            settle(InternalError())

    def _check_signed(self, check: OrderCheck, settle: SettleOrder) -> None:
        for rule in PLACING_RULES:
            try:
                pending = rule.check(check)
            except ForetellError as refusal:
                if rule.spares_repeats:
                    self._place_later(check, prepare_signed_order(check), settle)
                else:
                    settle(refusal)
                return
            if pending is not None:
                pending.close()
                self._place_later(check, prepare_signed_order(check), settle)
                return
        self._place(check, check.command(), settle)

    def _place(self, check: OrderCheck, command: PlaceOrder, settle: SettleOrder) -> None:
        request = PlaceRequest(command)
        shards = self._context.shards
        if not shards.begin_placing(command.condition_id, request, settle):
            self.start(check, self._handle(request, settle), settle)

    async def _handle(self, request: PlaceRequest, settle: SettleOrder) -> None:
        condition_id = request.command.condition_id
        settle(await self._context.shards.handle(condition_id, request, PlaceReply))

    def _place_later(
        self, check: OrderCheck, preparing: Coroutine[Any, Any, PlaceOrder], settle: SettleOrder
    ) -> None:
        async def place() -> None:
            self._place(check, await preparing, settle)

        self.start(check, place(), settle)

    def start(
        self, check: OrderCheck, work: Coroutine[Any, Any, None], settle: SettleOrder
    ) -> None:
        """Run a coroutine whose refusal answers the order, as part of the request of the order's client.

        The connection calls the pipeline outside of any request.
        """

        async def run() -> None:
            try:
                await work
            except ForetellError as refusal:
                settle(refusal)
            except Exception:
                log.exception("unhandled error")
                settle(InternalError())

        context = context_of(check.client)
        task = asyncio.get_running_loop().create_task(run(), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
