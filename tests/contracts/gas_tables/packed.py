"""Gas of packed matches: plain, with fees, in an event, and in the worst cases."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.contracts.batches import MATCH_GAS, Batches
from tests.contracts.market import Fill, World
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.packed import match_packed, records
from tests.contracts.signing import ERC1271, OWN_V1, OWN_V2, UNIT, Order
from tests.contracts.wallets import HONEST

from foretell.domain.exchange.signing.wallet_signatures import WALLET_SIGNATURE_BYTES

KINDS: Final = ("transfer", "mint", "merge")
PROFILES: Final = {"v1": OWN_V1, "v2": OWN_V2}
MAKERS: Final = 20
SIZE: Final = 100 * UNIT
TIMESTAMP: Final = 1_730_000_000_000
FIRST_SALT: Final = 1_740_000_000_000
FEE_RATE_BPS: Final = 100
LAST_BYTES: Final = 256

# A text that no other question of the measurements has.
FREE_QUESTION: Final = 9


@dataclass
class Tables:
    """Matches at one exchange; every order has a salt of its own."""

    world: World
    tokens: tuple[int, int]
    salts: Iterator[int]

    def orders(
        self, kind: str, profile: int, makers: int, *, has_fees: bool = False
    ) -> tuple[Order, list[Order]]:
        """Return orders that fill each other, the taker's first."""
        world, (yes, no) = self.world, self.tokens
        fields: dict[str, Any] = {"profile": profile, "salt": next(self.salts)}
        if profile == OWN_V2:
            fields |= {"timestamp": TIMESTAMP}
        elif has_fees:
            fields |= {"fee_rate_bps": FEE_RATE_BPS}
        taker = world.sell if kind == "merge" else world.buy
        maker = world.buy if kind == "mint" else world.sell
        token = yes if kind == "transfer" else no
        resting = [maker(who, token, SIZE, 50, **fields) for who in world.makers[:makers]]
        return taker(world.taker, yes, makers * SIZE, 50, **fields), resting

    def gas(self, kind: str, profile: int, makers: int = MAKERS, *, has_fees: bool = False) -> int:
        """Return the gas of such a match."""
        taker, resting = self.orders(kind, profile, makers, has_fees=has_fees)
        fill = with_fees(taker, resting) if has_fees else filled(taker, resting)
        return match_packed(self.world, taker, resting, fill).gas_used


def filled(taker: Order, makers: Sequence[Order]) -> Fill:
    """Return the amounts that fill all orders."""
    return Fill(taker.maker_amount, tuple(maker.maker_amount for maker in makers))


def with_fees(taker: Order, makers: Sequence[Order]) -> Fill:
    """Return the amounts that fill all orders, with the highest fees."""
    fee, *fees = (FEE_RATE_BPS * order.taker_amount // 10_000 for order in (taker, *makers))
    return replace(filled(taker, makers), taker_fee=fee, maker_fees=tuple(fees))


def tables_of(neg_risk: NegRisk) -> tuple[Tables, Tables]:
    """Return the tables of the exchange, and those of the exchange of events, with v2 fees allowed."""
    world, salts = neg_risk.world, itertools.count(FIRST_SALT)
    neg_risk.open_market(fee_bips=1)
    market = neg_risk.market(fee_bips=1)
    neg_risk.add_question(FREE_QUESTION, market)
    pair, condition = neg_risk.tokens(0, market), neg_risk.condition(0, market)
    exchange = neg_risk.exchange
    exchange.send("registerToken", pair.yes, pair.no, condition, sender=world.registrar)
    for place, maker in enumerate((world.taker, *world.makers)):
        neg_risk.holder(f"maker {place - 1}" if place else "taker", 0)
        neg_risk.split(maker.address, 0, 100 * SIZE, market)
    world.endow(world.fee_receiver, collateral=2 * SIZE, sets=SIZE)
    spender = neg_risk.adapter.address
    world.collateral.send("approve", spender, SIZE, sender=world.fee_receiver)
    neg_risk.split(world.fee_receiver, 0, SIZE, market)
    for each in (world.exchange, exchange):
        world.allow_fees(FEE_RATE_BPS, each)
    events = Tables(replace(world, exchange=exchange), (pair.yes, pair.no), salts)
    return Tables(world, (world.yes, world.no), salts), events


def rows(plain: Tables, events: Tables, batches: Batches) -> Iterator[tuple[str, int]]:
    """Yield the gas of packed matches; the last row spoils the memory of nonces."""
    cases = list(itertools.product(KINDS, PROFILES.items()))
    for (kind, (name, profile)), makers in itertools.product(cases, (1, 5, MAKERS)):
        yield f"packed, {kind}, {name}, makers: {makers}", plain.gas(kind, profile, makers)
    for kind, (name, profile) in cases:
        gas = plain.gas(kind, profile, has_fees=True)
        yield f"packed with fees, {kind}, {name}, makers: {MAKERS}", gas
        gas = events.gas(kind, profile)
        yield f"packed, neg-risk {kind}, {name}, makers: {MAKERS}", gas
        gas = events.gas(kind, profile, has_fees=True)
        yield f"packed with fees, neg-risk {kind}, {name}, makers: {MAKERS}", gas
    for name, profile in PROFILES.items():
        yield from second_fill(plain, name, profile)
        yield from packed_batch(plain, batches, name, profile)
        yield from first_time(plain, name, profile)
    yield from contract_wallets(plain)
    yield from own_calls(plain)
    yield from spoilt(plain)


def second_fill(tables: Tables, name: str, profile: int) -> Iterator[tuple[str, int]]:
    taker, resting = tables.orders("transfer", profile, MAKERS)
    half = Fill(taker.maker_amount // 2, tuple(order.maker_amount // 2 for order in resting))
    match_packed(tables.world, taker, resting, half)
    gas = match_packed(tables.world, taker, resting, half).gas_used
    yield f"packed, transfer, {name}, makers: {MAKERS}, second fill", gas


def packed_batch(
    tables: Tables, batches: Batches, name: str, profile: int
) -> Iterator[tuple[str, int]]:
    arguments = packed_batch_arguments(tables, "transfer", profile)
    receipt = batches.settler.send("settle", *arguments, sender=tables.world.operator)
    assert not batches.failed(receipt)
    yield f"batch, packed transfer, {name}, takers: {MAKERS}", receipt.gas_used


def packed_batch_arguments(tables: Tables, kind: str, profile: int) -> tuple[Any, ...]:
    """Return the arguments of a batch of takers, each with a maker of its own."""
    world, exchange = tables.world, tables.world.exchange
    calls = []
    for number, maker in enumerate(world.makers):
        taker = world.evm.actor(f"batch taker {number}")
        one = replace(world, taker=taker, makers=(maker,))
        order, resting = replace(tables, world=one).orders(kind, profile, 1)
        packed = records(order, resting, filled(order, resting))
        calls.append(exchange.calldata("matchPacked", packed))
    return exchange.address, calls, [MATCH_GAS] * len(calls)


def first_time(tables: Tables, name: str, profile: int) -> Iterator[tuple[str, int]]:
    """Yield the gas when neither side had held what it gets."""
    world = tables.world
    makers = [world.evm.actor(f"first maker {name} {number}") for number in range(MAKERS)]
    for maker in makers:
        world.endow(maker.address, sets=SIZE)
        world.ctf.send(
            "safeTransferFrom",
            *(maker.address, world.taker.address, world.no, SIZE, b""),
            sender=maker.address,
        )
    taker = world.evm.actor(f"first taker {name}")
    world.endow(taker.address, collateral=MAKERS * SIZE)
    fresh = replace(tables, world=replace(world, taker=taker, makers=tuple(makers)))
    yield (
        f"packed, transfer, {name}, makers: {MAKERS}, first receipts",
        fresh.gas("transfer", profile),
    )


def contract_wallets(tables: Tables) -> Iterator[tuple[str, int]]:
    """Yield the gas of both forms when each maker is a contract that judges a long signature."""
    world = tables.world
    makers = tuple(world.evm.actor(f"contract maker {number}") for number in range(MAKERS))
    for maker in makers:
        world.endow(maker.address, collateral=SIZE, sets=3 * SIZE)
        world.evm.rpc("anvil_setCode", maker.address, "0x" + HONEST.hex())
    signature = bytes(range(1, 256)) + bytes(range(1, WALLET_SIGNATURE_BYTES - 254))
    fresh = replace(tables, world=replace(world, makers=makers))
    for name, match in (("packed", match_packed), ("match", World.match)):
        taker, resting = fresh.orders("transfer", OWN_V2, MAKERS)
        signed = [replace(order, signature_type=ERC1271, signature=signature) for order in resting]
        gas = match(world, taker, signed, filled(taker, signed)).gas_used
        yield f"{name}, transfer, type 3, makers: {MAKERS}", gas


def own_calls(tables: Tables) -> Iterator[tuple[str, int]]:
    """Yield the gas of a maker's newer calls."""
    world, exchange = tables.world, tables.world.exchange
    maker = world.makers[0]
    time = world.evm.now() * 1_000
    yield "cancelBefore", exchange.send("cancelBefore", time, sender=maker.address).gas_used
    receipt = exchange.send("setOwnerSigning", False, sender=maker.address)  # noqa: FBT003
    yield "setOwnerSigning", receipt.gas_used
    exchange.send("setOwnerSigning", True, sender=maker.address)  # noqa: FBT003


def spoilt(tables: Tables) -> Iterator[tuple[str, int]]:
    """Yield the gas of a v1 match after someone has raised a nonce under every last byte."""
    world = tables.world
    for number in range(LAST_BYTES):
        world.evm.fund(address := f"0x{number:040x}")
        world.exchange.send("incrementNonce", sender=address)
    yield f"packed, transfer, v1, makers: {MAKERS}, spoilt nonces", tables.gas("transfer", OWN_V1)
