"""The bytes of the calls' calldata, which a rollup charges for, and how many of them are not zero."""

import itertools
from collections.abc import Iterator
from typing import Final

from tests.contracts.batches import Batches
from tests.contracts.evm import Contract
from tests.contracts.gas_tables.packed import (
    KINDS,
    MAKERS,
    PROFILES,
    TIMESTAMP,
    Tables,
    filled,
    packed_batch_arguments,
    with_fees,
)
from tests.contracts.market import match_args
from tests.contracts.packed import records

Row = tuple[str, int]

FEES: Final = {False: "", True: " with fees"}


def calldata_rows(plain: Tables, events: Tables, batches: Batches) -> Iterator[Row]:
    """Yield the calldata of matches, of batches, and of what ends orders."""
    for kind, name, has_fees in itertools.product(KINDS, PROFILES, FEES):
        yield from of_matches(plain, kind, name, has_fees=has_fees)
    for kind, name in itertools.product(KINDS, PROFILES):
        yield from of_matches(events, f"neg-risk {kind}", name)
        arguments = packed_batch_arguments(plain, kind, PROFILES[name])
        call = f"batch of matchPacked, {kind}, {name}, takers: {MAKERS}"
        yield from row(call, batches.settler, "settle", *arguments)
    for name in PROFILES:
        yield from of_cancels(plain, name)
    yield from row("cancelBefore", plain.world.exchange, "cancelBefore", TIMESTAMP)
    yield from row("incrementNonce", plain.world.exchange, "incrementNonce")


def of_matches(tables: Tables, kind: str, name: str, *, has_fees: bool = False) -> Iterator[Row]:
    """Yield the calldata of both forms of a match."""
    exchange, plain_kind = tables.world.exchange, kind.removeprefix("neg-risk ")
    orders = tables.orders(plain_kind, PROFILES[name], MAKERS, has_fees=has_fees)
    fill = with_fees(*orders) if has_fees else filled(*orders)
    ending = f"{FEES[has_fees]}, {kind}, {name}, makers: {MAKERS}"
    yield from row(f"matchOrders{ending}", exchange, "matchOrders", *match_args(*orders, fill))
    yield from row(f"matchPacked{ending}", exchange, "matchPacked", records(*orders, fill))


def of_cancels(tables: Tables, name: str) -> Iterator[Row]:
    exchange = tables.world.exchange
    _, orders = tables.orders("transfer", PROFILES[name], MAKERS)
    fields = [order.fields for order in orders]
    yield from row(f"cancelOrder, {name}", exchange, "cancelOrder", fields[0])
    yield from row(f"cancelOrders, {name}, orders: {MAKERS}", exchange, "cancelOrders", fields)


def row(call: str, contract: Contract, name: str, *arguments: object) -> Iterator[Row]:
    """Yield all bytes of a call, and those that are not zero."""
    calldata = contract.calldata(name, *arguments)
    yield f"calldata bytes, {call}", len(calldata)
    yield f"calldata bytes not zero, {call}", len(calldata) - calldata.count(0)
