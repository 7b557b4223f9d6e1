"""Calls that the domain encodes do on a real chain what they say."""

import msgspec
import pytest
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.rigs.values import encode_cancel_orders

from foretell.chain.logs import LogReader
from foretell.domain.contracts.calldata import (
    Approve,
    MergePositions,
    OrderFill,
    RedeemPositions,
    SplitPosition,
    Transfer,
    encode_match_orders,
)
from foretell.domain.contracts.log_decoder import decode_log
from foretell.domain.contracts.logs import (
    ContractKind,
    OrderCancelled,
    OrderFilledLog,
    OrdersMatched,
    SafeExecuted,
)
from foretell.domain.contracts.safe import (
    OPERATION_DELEGATECALL,
    InnerCall,
    SafeTx,
    encode_multi_send,
    sign_safe_tx,
)
from foretell.domain.contracts.sandbox_accounts import TRADER_UNITS, AccountRole, SandboxAccount
from foretell.domain.exchange.order import Side, SignatureType, SignedOrder
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, word_of

pytestmark = pytest.mark.anyio

UNITS = 1_000_000


def a_buy(
    sandbox: Sandbox, trader: SandboxAccount, token_id: int, price_percent: int, profile: int = 0
) -> SignedOrder:
    """Return an order of a trader for 100 tokens, signed under a profile of the exchange."""
    unsigned = SignedOrder(
        salt="77",
        maker=trader.address,
        signer=trader.address,
        taker=ZERO_ADDRESS,
        token_id=str(token_id),
        maker_amount=price_percent * UNITS,
        taker_amount=100 * UNITS,
        expiration_s=0,
        nonce=0,
        fee_rate_bps=0,
        side=Side.BUY,
        signature_type=SignatureType.EOA,
        profile=profile,
        signature=b"",
    )
    digest = sandbox.deployment.separators().digest(unsigned, profile)
    return msgspec.structs.replace(unsigned, signature=sign_digest(digest, trader.private_key))


@pytest.mark.parametrize("profile", [0, 1, 2])
async def test_orders_of_every_profile_settle_and_are_logged(
    fresh_sandbox: Sandbox, profile: int
) -> None:
    market = await fresh_sandbox.ask()
    exchange = fresh_sandbox.deployment.exchange
    taker, maker = fresh_sandbox.trader(0), fresh_sandbox.trader(1)
    await fresh_sandbox.allow(taker, exchange)
    await fresh_sandbox.allow(maker, exchange)
    yes = a_buy(fresh_sandbox, taker, market.tokens.yes, 40, profile)
    no = a_buy(fresh_sandbox, maker, market.tokens.no, 60)
    calldata = encode_match_orders(OrderFill(yes, 40 * UNITS), [OrderFill(no, 60 * UNITS)])
    operator = fresh_sandbox.account(AccountRole.OPERATOR)
    receipt = await fresh_sandbox.call(operator, exchange, calldata)
    holdings = [(taker.address, yes.token_id), (maker.address, no.token_id)]
    assert await fresh_sandbox.reader.token_units(holdings) == [100 * UNITS] * 2
    logs = LogReader(fresh_sandbox.rpc, {exchange: ContractKind.EXCHANGE})
    (block,) = await logs.read(receipt.block_number, receipt.block_number)
    separators = fresh_sandbox.deployment.separators()
    assert [placed.log for placed in block.logs] == [
        OrderFilledLog(
            order_id=separators.order_id(no),
            maker=maker.address,
            counterparty=taker.address,
            side=Side.BUY,
            token_id=no.token_id,
            size_units=100 * UNITS,
            cost_units=60 * UNITS,
            fee_units=0,
        ),
        OrderFilledLog(
            order_id=separators.order_id(yes),
            maker=taker.address,
            counterparty=exchange,
            side=Side.BUY,
            token_id=yes.token_id,
            size_units=100 * UNITS,
            cost_units=40 * UNITS,
            fee_units=0,
        ),
        OrdersMatched(
            order_id=separators.order_id(yes),
            maker=taker.address,
            side=Side.BUY,
            token_id=yes.token_id,
            size_units=100 * UNITS,
            cost_units=40 * UNITS,
        ),
    ]


async def test_a_maker_cancels_its_orders_on_chain(fresh_sandbox: Sandbox) -> None:
    market = await fresh_sandbox.ask()
    exchange = fresh_sandbox.deployment.exchange
    order = a_buy(fresh_sandbox, fresh_sandbox.trader(), market.tokens.yes, 40)
    calldata = encode_cancel_orders([order])
    receipt = await fresh_sandbox.call(fresh_sandbox.trader(), exchange, calldata)
    (log,) = receipt.logs
    order_id = fresh_sandbox.deployment.separators().order_id(order)
    assert decode_log(ContractKind.EXCHANGE, log.topics, log.data) == OrderCancelled(order_id)


async def a_funded_safe(sandbox: Sandbox, owner: SandboxAccount) -> Address:
    safe = await sandbox.make_safe(owner)
    await sandbox.call(owner, sandbox.deployment.collateral, Transfer(safe, 10 * UNITS).encode())
    return safe


async def relay(sandbox: Sandbox, tx: SafeTx, signature: bytes) -> SafeExecuted:
    """Have the relayer send what an owner signed, and return what the Safe says of it."""
    receipt = await sandbox.call(
        sandbox.account(AccountRole.RELAYER), tx.safe, tx.encode(signature)
    )
    said = [
        decode_log(ContractKind.SAFE, log.topics, log.data)
        for log in receipt.logs
        if log.address == tx.safe
    ]
    (executed,) = [log for log in said if isinstance(log, SafeExecuted)]
    return executed


def splitting(sandbox: Sandbox, market: SandboxMarket) -> list[InnerCall]:
    deployment = sandbox.deployment
    allow = Approve(deployment.conditional_tokens, 10 * UNITS)
    split = SplitPosition(deployment.collateral, market.condition_id, 10 * UNITS)
    return [
        InnerCall(deployment.collateral, allow.encode()),
        InnerCall(deployment.conditional_tokens, split.encode()),
    ]


async def test_a_safe_executes_transactions_signed_in_either_way_and_bundles(
    fresh_sandbox: Sandbox,
) -> None:
    market = await fresh_sandbox.ask()
    owner, deployment = fresh_sandbox.trader(), fresh_sandbox.deployment
    safe = await a_funded_safe(fresh_sandbox, owner)
    bundle = encode_multi_send(splitting(fresh_sandbox, market))
    split = SafeTx(safe, deployment.multi_send, bundle, 0, OPERATION_DELEGATECALL)
    digest = split.digest(deployment.chain_id)
    executed = await relay(fresh_sandbox, split, sign_safe_tx(digest, owner.private_key))
    assert executed == SafeExecuted(word_of(digest), is_success=True)
    merge = MergePositions(deployment.collateral, market.condition_id, 4 * UNITS).encode()
    merging = SafeTx(safe, deployment.conditional_tokens, merge, 1)
    digest = merging.digest(deployment.chain_id)
    executed = await relay(fresh_sandbox, merging, sign_digest(digest, owner.private_key))
    assert executed == SafeExecuted(word_of(digest), is_success=True)
    assert await fresh_sandbox.reader.collateral_units(safe) == 4 * UNITS
    state = await fresh_sandbox.reader.safe(safe)
    assert state is not None
    assert state.nonce == 2


async def test_a_winner_redeems_to_the_unit(fresh_sandbox: Sandbox) -> None:
    market = await fresh_sandbox.ask()
    trader, deployment = fresh_sandbox.trader(), fresh_sandbox.deployment
    await fresh_sandbox.split(trader, market, 10 * UNITS)
    await fresh_sandbox.answer(market)
    redeem = RedeemPositions(deployment.collateral, market.condition_id).encode()
    await fresh_sandbox.call(trader, deployment.conditional_tokens, redeem)
    assert await fresh_sandbox.reader.collateral_units(trader.address) == TRADER_UNITS
