"""Gas of the contracts, from receipts of the development chain.

    python tests/run.py contracts.gas           print the table
    python tests/run.py contracts.gas --write   write it to contracts/gas.json

Fees are off, signatures are those of externally owned accounts, and wallets already hold the tokens
that they receive, as in the settlement of an active market.
"""

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import anyio
from tests.contracts.batches import Batches, Match, deploy_batches
from tests.contracts.evm import ROOT, Actor, Evm
from tests.contracts.gas_tables.calldata import calldata_rows
from tests.contracts.gas_tables.packed import rows, tables_of
from tests.contracts.market import Fill, World, deploy_world
from tests.contracts.neg_risk.rig import NegRisk, deploy_neg_risk
from tests.contracts.resolution import PRICE_YES, deploy_resolution
from tests.contracts.signing import OWN_V1, OWN_V2, UNIT, Order

from foretell.bench.rigs.ports import free_port
from foretell.chain.devchain import DevChain, DevChainOptions, find_anvil

SNAPSHOT: Final = ROOT / "contracts" / "gas.json"
CHAIN_ID: Final = 80002
KINDS: Final = ("transfer", "mint", "merge")
PROFILES: Final = {"v1": OWN_V1, "v2": OWN_V2}
MAKERS: Final = (1, 5, 20)
TAKERS: Final = 20
SIZE: Final = 100 * UNIT
SALT: Final = 1_730_000_000_000


def measured(neg_risk: NegRisk) -> dict[str, int]:
    """Return the gas of each call."""
    matches = enumerate(itertools.product(KINDS, PROFILES.items(), MAKERS))
    batches = deploy_batches(neg_risk)
    return {
        **{
            f"match, {kind}, {name}, makers: {makers}": match_gas(
                neg_risk.world, kind, profile, makers, SALT + number
            )
            for number, (kind, (name, profile), makers) in matches
        },
        **dict(of_batches(batches)),
        **dict(others(neg_risk.world)),
        **dict(of_events(neg_risk)),
        **dict(of_packed(neg_risk, batches)),
    }


def scene(
    world: World, kind: str, profile: int, salt: int, parties: tuple[Actor, Sequence[Actor]]
) -> tuple[Order, list[Order]]:
    """Return an order of a taker and orders of makers that it fills completely."""
    by, makers = parties
    fields = {"profile": profile, "salt": salt}
    fields |= {"timestamp": SALT} if profile == OWN_V2 else {}
    taker = world.sell if kind == "merge" else world.buy
    maker = world.buy if kind == "mint" else world.sell
    token = world.yes if kind == "transfer" else world.no
    return (
        taker(by, world.yes, len(makers) * SIZE, 50, **fields),
        [maker(who, token, SIZE, 50, **fields) for who in makers],
    )


def filled(taker: Order, makers: Sequence[Order]) -> Fill:
    """Return the amounts that fill all orders of a scene."""
    return Fill(taker.maker_amount, tuple(maker.maker_amount for maker in makers))


def match_gas(world: World, kind: str, profile: int, makers: int, salt: int = SALT) -> int:
    """Return the gas of such a match."""
    taker, resting = scene(world, kind, profile, salt, (world.taker, world.makers[:makers]))
    return world.match(taker, resting, filled(taker, resting)).gas_used


def of_batches(batches: Batches) -> Iterator[tuple[str, int]]:
    """Yield the gas of one batch of twenty takers, each with a maker of its own."""
    world = batches.world
    takers = [
        world.trader(f"batch taker {n}", collateral=TAKERS * SIZE, sets=TAKERS * SIZE)
        for n in range(TAKERS)
    ]
    for number, (kind, (name, profile)) in enumerate(itertools.product(KINDS, PROFILES.items())):
        gas = batch_gas(batches, takers, kind, profile, SALT + 100 + number)
        yield f"batch, {kind}, {name}, takers: {TAKERS}", gas


def batch_gas(batches: Batches, takers: Sequence[Actor], kind: str, profile: int, salt: int) -> int:
    """Return the gas of a batch in which each taker meets one maker of its own."""
    world = batches.world
    scenes = [
        scene(world, kind, profile, salt, (taker, (maker,)))
        for taker, maker in zip(takers, world.makers, strict=True)
    ]
    matches = [Match(taker, makers, filled(taker, makers)) for taker, makers in scenes]
    receipt = batches.settle(matches)
    assert not batches.failed(receipt)
    return receipt.gas_used


def others(world: World) -> Iterator[tuple[str, int]]:
    """Yield the gas of a maker's own calls at the exchange."""
    maker, exchange = world.evm.actor("canceller"), world.exchange
    orders = [world.sell(maker, world.yes, SIZE, 50, salt=salt) for salt in range(20)]
    receipt = exchange.send("cancelOrder", orders[0].fields, sender=maker.address)
    yield "cancelOrder", receipt.gas_used
    fields = [order.fields for order in orders]
    receipt = exchange.send("cancelOrders", fields, sender=maker.address)
    yield "cancelOrders, orders: 20", receipt.gas_used
    receipt = exchange.send("incrementNonce", sender=maker.address)
    yield "incrementNonce", receipt.gas_used


def of_packed(neg_risk: NegRisk, batches: Batches) -> Iterator[tuple[str, int]]:
    """Yield the gas of packed matches, and the calldata of all forms."""
    tables = tables_of(neg_risk)
    yield from rows(*tables, batches)
    yield from calldata_rows(*tables, batches)


def of_events(neg_risk: NegRisk) -> Iterator[tuple[str, int]]:
    """Yield the gas of all calls of an event of four questions."""
    adapter, market = neg_risk.adapter, neg_risk.market()
    yield "event, prepareMarket", neg_risk.open_market().gas_used
    yield "event, prepareQuestion", neg_risk.add_question(0).gas_used
    for index in (1, 2, 3):
        neg_risk.add_question(index)
    yield "event, sealMarket", neg_risk.seal().gas_used
    holder = neg_risk.holder("holder", 100 * SIZE)
    neg_risk.split(holder, 0, SIZE)
    yield "event, splitPosition", neg_risk.split(holder, 1, SIZE).gas_used
    receipt = adapter.send("convertPositions", market, 0b0011, SIZE // 2, sender=holder)
    yield "event, convertPositions, 2 of 4", receipt.gas_used
    short = "mergePositions(bytes32,uint256)"
    receipt = adapter.send(short, neg_risk.condition(0), SIZE // 4, sender=holder)
    yield "event, mergePositions", receipt.gas_used
    yield "event, proposeAndResolveNegRisk", neg_risk.answer(0, PRICE_YES).gas_used
    amounts = list(neg_risk.held(holder, 0))
    receipt = adapter.send("redeemPositions", neg_risk.condition(0), amounts, sender=holder)
    yield "event, redeemPositions", receipt.gas_used


async def measure() -> dict[str, int]:
    """Return the table, measured on a separate chain."""
    with tempfile.TemporaryDirectory() as folder:
        options = DevChainOptions(
            anvil=find_anvil(None, ROOT / "contracts" / "node_modules"),
            folder=Path(folder),
            chain_id=CHAIN_ID,
            port=free_port(),
            is_instant=True,
            is_kept=False,
        )
        chain = DevChain(options)
        await chain.start()
        try:
            return await anyio.to_thread.run_sync(measured_at, chain.rpc_url)
        finally:
            await chain.stop()


def measured_at(rpc_url: str) -> dict[str, int]:
    with Evm(rpc_url) as evm:
        return measured(deploy_neg_risk(deploy_resolution(deploy_world(evm))))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what the contracts cost.")
    parser.add_argument("--write", action="store_true", help=f"keep the table in {SNAPSHOT}")
    is_kept = parser.parse_args().write
    text = json.dumps(anyio.run(measure), indent=1) + "\n"
    sys.stdout.write(text)
    if is_kept:
        SNAPSHOT.write_text(text)


if __name__ == "__main__":
    main()
