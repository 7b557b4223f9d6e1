"""Orders of both structs, of all profiles and of every kind of wallet, settled together on a real chain."""

from typing import Any, Final

import msgspec
import pytest
import sqlalchemy as sa
from tests.rigs.orders.version_2 import KUEST_V2, OWN_V2, POLYMARKET_V2, V2_PROFILES
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import HELD, UNIT, SettlementRig, Trader

from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    MATCH_ORDERS,
    SAFE_TRANSFER_FROM,
    Approve,
    ClientCall,
    SetApprovalForAll,
    Transfer,
)
from foretell.domain.contracts.deposit_wallet import WalletBatch
from foretell.domain.contracts.packed_match import MATCH_PACKED
from foretell.domain.contracts.proxy_wallet import encode_proxy_calls
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import (
    OrderStatus,
    OrderV2Fields,
    Side,
    SignatureType,
    SignedOrder,
)
from foretell.domain.exchange.signing.wallet_signatures import wallet_digest, wallet_signature
from foretell.domain.exchange.trade import FILLS_PER_TRADE_MAX, TradeStatus
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32
from foretell.store.tables import exchange_fills
from foretell.store.trading.trade_causes import with_causes
from foretell.store.trading.trades import load_trade_ids, load_trades_by_id

pytestmark = pytest.mark.anyio

V2: Final = OrderV2Fields(1_800_000_000_000, ZERO_BYTES32, Bytes32("0x" + "b0" * 32))


async def execute(trader: Trader, *calls: tuple[Address, ClientCall]) -> None:
    """Have a deposit wallet make calls that its owner signed."""
    sandbox = trader.rig.sandbox
    state = await sandbox.reader.safe(trader.wallet)
    assert state is not None
    assert state.is_owned_by(trader.account.address)
    inner = tuple(InnerCall(target, call.encode()) for target, call in calls)
    batch = WalletBatch(trader.wallet, inner, state.nonce, 2**40)
    signature = sign_digest(batch.digest(SANDBOX_CHAIN_ID), trader.account.private_key)
    await sandbox.call(trader.account, trader.wallet, batch.encode(signature))


async def wallet_trader(
    rig: SettlementRig, number: int, factory: int, market: SandboxMarket
) -> Trader:
    """Return the owner of a deposit wallet that has collateral and tokens and approves the exchange."""
    sandbox, deployment = rig.sandbox, rig.sandbox.deployment
    account = sandbox.trader(number)
    wallet = await sandbox.make_deposit_wallet(account.address, factory)
    await sandbox.call(account, deployment.collateral, Transfer(wallet, HELD).encode())
    await sandbox.split(account, market, HELD)
    for token in market.tokens:
        gift = SAFE_TRANSFER_FROM.encode(account.address, wallet, token, HELD, b"")
        await sandbox.call(account, deployment.conditional_tokens, gift)
    trader = Trader(rig, account, wallet, SignatureType.CONTRACT)
    await execute(
        trader,
        (deployment.collateral, Approve(deployment.exchange, ALLOWANCE_UNITS_MAX)),
        (
            deployment.conditional_tokens,
            SetApprovalForAll(deployment.exchange, is_approved=True),
        ),
    )
    return trader


def signed(
    trader: Trader, market: SandboxMarket, side: Side, price_ticks: int, size: int, **fields: Any
) -> SignedOrder:
    """Return a trader's order of version 2, signed as its kind of wallet signs."""
    order = trader.order(market, side, price_ticks, size, **{"v2": V2, "profile": OWN_V2} | fields)
    if trader.signature_type is not SignatureType.CONTRACT:
        return order
    accepted = trader.rig.separators(market)
    separator, struct_hash = accepted.by_profile[order.profile], accepted.struct_hash(order)
    digest = wallet_digest(separator, struct_hash, trader.wallet, SANDBOX_CHAIN_ID)
    inner = sign_digest(digest, trader.account.private_key)
    signature = wallet_signature(inner, separator, struct_hash)
    return msgspec.structs.replace(order, signature=signature)


async def test_orders_of_all_profiles_and_wallets_settle_in_one_transaction(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    taker, maker = traders[0], traders[1]
    safe = await rig.safe_trader(2, market)
    wallets = [await wallet_trader(rig, 3 + factory, factory, market) for factory in (0, 1)]
    proxy = await proxy_trader(rig, 5, market)
    await rig.see()
    sales = [maker.order(market, Side.SELL, 40, UNIT, profile=profile) for profile in range(3)]
    sales += [proxy.order(market, Side.SELL, 40, UNIT, profile=profile) for profile in (1, 2)]
    sales += [
        signed(each, market, Side.SELL, 40, UNIT, profile=profile)
        for each in (maker, safe, proxy, *wallets)
        for profile in V2_PROFILES
    ]
    makers = [maker] * 3 + [proxy] * 2
    makers += [each for each in (maker, safe, proxy, *wallets) for _ in V2_PROFILES]
    for trader, sale in zip(makers, sales, strict=True):
        await trader.place(market, sale)
    sellers = (safe, proxy, *wallets)
    before = [await rig.chain_units(each.wallet, COLLATERAL) for each in sellers]
    assert len(sales) == FILLS_PER_TRADE_MAX
    bought = await taker.place(market, signed(taker, market, Side.BUY, 40, len(sales) * UNIT))
    await rig.settle()
    assert await rig.statuses(bought.trade_ids) == [TradeStatus.CONFIRMED]
    (sent,) = await rig.sent()
    assert sent.calldata[:4] == MATCH_ORDERS.selector  # a record has no room for a proxy wallet
    yes = AssetId(str(market.tokens.yes))
    assert await rig.chain_units(taker.wallet, yes) == HELD + len(sales) * UNIT
    after = [await rig.chain_units(each.wallet, COLLATERAL) for each in sellers]
    paid = [then - now for now, then in zip(before, after, strict=True)]
    assert paid == [1_200_000, 2_000_000, 1_200_000, 1_200_000]
    async with rig.database.reading() as tx:
        fees = [row.fee_units for row in await tx.all(sa.select(exchange_fills.c.fee_units))]
    assert fees == [0] * (len(sales) + 1)
    await rig.check_ledger()


async def proxy_trader(rig: SettlementRig, number: int, market: SandboxMarket) -> Trader:
    """Return the owner of a proxy wallet that has collateral and tokens and approves the exchange."""
    sandbox, deployment = rig.sandbox, rig.sandbox.deployment
    account, factory = sandbox.trader(number), deployment.proxy_wallet_factory
    assert factory is not None
    wallet = deployment.proxy_wallet_of(account.address)
    await sandbox.call(account, deployment.collateral, Transfer(wallet, HELD).encode())
    await sandbox.split(account, market, HELD)
    calls: list[tuple[Address, ClientCall]] = [
        (deployment.collateral, Approve(deployment.exchange, ALLOWANCE_UNITS_MAX)),
        (
            deployment.conditional_tokens,
            SetApprovalForAll(deployment.exchange, is_approved=True),
        ),
    ]
    inner = tuple(InnerCall(target, call.encode()) for target, call in calls)
    await sandbox.call(account, factory, encode_proxy_calls(inner))
    for token in market.tokens:
        gift = SAFE_TRANSFER_FROM.encode(account.address, wallet, token, HELD, b"")
        await sandbox.call(account, deployment.conditional_tokens, gift)
    return Trader(rig, account, wallet, SignatureType.PROXY)


async def test_orders_of_a_proxy_wallet_settle_as_maker_and_as_taker(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    other, owner = traders[0], await proxy_trader(rig, 2, market)
    await rig.see()
    yes = AssetId(str(market.tokens.yes))
    for fields in ({"v2": None, "profile": 0}, {}):
        await owner.place(market, signed(owner, market, Side.SELL, 40, UNIT, **fields))
        bought = await other.place(market, signed(other, market, Side.BUY, 40, UNIT))
        await other.place(market, signed(other, market, Side.SELL, 45, UNIT))
        taken = await owner.place(market, signed(owner, market, Side.BUY, 45, UNIT, **fields))
        await rig.settle()
        statuses = await rig.statuses([*bought.trade_ids, *taken.trade_ids])
        assert statuses == [TradeStatus.CONFIRMED] * 2
    assert await rig.chain_units(owner.wallet, yes) == HELD
    assert await rig.chain_units(owner.wallet, COLLATERAL) == HELD - 2 * UNIT * 5 // 100
    await rig.check_ledger()


@pytest.mark.parametrize("builder", [ZERO_BYTES32, V2.builder])
async def test_orders_of_version_2_settle_by_a_packed_call(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], builder: Bytes32
) -> None:
    """Each of the addresses' and Safes' orders with one of version 1 and with one of version 2."""
    taker, maker = traders[0], traders[1]
    safe = await rig.safe_trader(2, market)
    await rig.see()
    fields = {"v2": msgspec.structs.replace(V2, builder=builder), "profile": POLYMARKET_V2}
    await maker.place(market, maker.order(market, Side.SELL, 40, UNIT))
    for each in (maker, safe):
        await each.place(market, signed(each, market, Side.SELL, 40, UNIT, **fields))
    bought = await taker.place(market, signed(taker, market, Side.BUY, 40, 3 * UNIT, **fields))
    await rig.settle()
    (sent,) = await rig.sent()
    assert sent.calldata[:4] == MATCH_PACKED.selector
    assert await rig.statuses(bought.trade_ids) == [TradeStatus.CONFIRMED]
    await rig.check_ledger()


@pytest.mark.parametrize("profile", [OWN_V2, POLYMARKET_V2, KUEST_V2])
async def test_a_deposit_wallet_takes_what_an_address_offers_by_version_1(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], profile: int
) -> None:
    taker = await wallet_trader(rig, 3, 0, market)
    await rig.see()
    await traders[0].sell(market, 40, 10 * UNIT)
    await traders[1].buy(market, 55, 10 * UNIT, is_yes=False)
    order = signed(taker, market, Side.BUY, 45, 20 * UNIT, profile=profile)
    bought = await taker.place(market, order)
    await rig.settle()
    (sent,) = await rig.sent()
    assert sent.calldata[:4] == MATCH_PACKED.selector
    assert await rig.statuses(bought.trade_ids) == [TradeStatus.CONFIRMED]
    row = await rig.order_row(bought.order_id)
    assert row.signed == order
    yes = AssetId(str(market.tokens.yes))
    assert await rig.chain_units(taker.wallet, yes) == HELD + 20 * UNIT


async def test_the_chain_s_answer_on_a_wallet_s_signature_is_read(
    rig: SettlementRig, market: SandboxMarket
) -> None:
    reader, separators = rig.sandbox.reader, rig.separators(market)
    trader = await wallet_trader(rig, 3, 0, market)
    order = signed(trader, market, Side.BUY, 45, UNIT)
    digest = bytes.fromhex(separators.order_id(order)[2:])
    assert await reader.accepts_signature(trader.wallet, digest, order.signature)
    assert not await reader.accepts_signature(trader.wallet, bytes(32), order.signature)
    other = rig.sandbox.deployment.deposit_wallets_of(trader.account.address)[1]
    assert not await reader.accepts_signature(other, digest, order.signature)


HOSTILE: Final = {
    "reverts": "5f5ffd",
    "burns its gas": "5b5f56",
    "is no code": "fe",
    "says nothing": "00",
    "says yes in four bytes": "631626ba7e60e01b5f5260045ff3",
    "says yes in a megabyte": "631626ba7e60e01b5f5262100000" + "5ff3",
    "says no": "5f5f5260205ff3",
    "would write": "60015f55631626ba7e60e01b5f5260205ff3",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_contract_costs_one_bounded_call(rig: SettlementRig, name: str) -> None:
    wallet = Address("0x" + "ab" * 20)
    await rig.sandbox.rpc.send("anvil_setCode", wallet, "0x" + HOSTILE[name])
    accepted = await rig.sandbox.reader.accepts_signature(wallet, bytes(32), bytes(317))
    assert accepted is (name == "would write")


async def test_a_wallet_that_says_yes_and_then_no_settles_nothing_and_loses_only_its_own_order(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    taker, maker = traders[0], traders[1]
    fickle = await wallet_trader(rig, 3, 0, market)
    await rig.see()
    kept = await maker.place(market, signed(maker, market, Side.SELL, 40, UNIT))
    lost = await fickle.place(market, signed(fickle, market, Side.SELL, 40, 2 * UNIT))
    bought = await taker.place(market, signed(taker, market, Side.BUY, 40, 3 * UNIT))
    await rig.sandbox.rpc.send("anvil_setCode", fickle.wallet, "0x" + HOSTILE["says no"])
    await rig.settle(step_ms=600_000)
    assert await rig.statuses(bought.trade_ids) == [TradeStatus.CONFIRMED]
    yes = AssetId(str(market.tokens.yes))
    assert await rig.chain_units(taker.wallet, yes) == HELD + UNIT
    assert await rig.chain_units(fickle.wallet, yes) == HELD
    async with rig.database.reading() as tx:
        (trade_id,) = (await load_trade_ids(tx, [lost.order_id]))[lost.order_id]
        (failed,) = await with_causes(tx, await load_trades_by_id(tx, [trade_id]))
    assert (failed.status, failed.cause) == (TradeStatus.FAILED, "InvalidSignature")
    assert (await rig.order_row(kept.order_id)).status is OrderStatus.MATCHED
    await rig.check_ledger()
