"""The rig of the indexer: a market on a real chain whose traders act at random.

An act that the contracts refuse reverts, and no test minds. The node mines blocks only on request: with
automine a block may still be under way when the chain is reset, and shows up on the new chain.
"""

import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import sqlalchemy as sa
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.rigs.values import encode_cancel_orders
from tests.store.live_sums import STANDINGS, dump_sums

from foretell.domain.contracts.calldata import (
    INCREMENT_NONCE,
    SAFE_TRANSFER_FROM,
    Approve,
    MergePositions,
    OrderFill,
    RedeemPositions,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
    encode_match_orders,
)
from foretell.domain.contracts.sandbox_accounts import AccountRole, SandboxAccount
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import Side, SignatureType, SignedOrder
from foretell.domain.exchange.profiles import Separators
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address
from foretell.store.database import Database
from foretell.store.index.unwind import unwind
from foretell.store.tables import (
    allowances,
    balances,
    indexing,
    locked_collateral,
    metadata,
    positions,
)

TRADERS: Final = 3
GAS: Final = hex(3_000_000)
UNLIMITED: Final = 2**256 - 1
TABLES: Final = [
    table
    for table in metadata.sorted_tables
    if table in [value for value in vars(indexing).values() if isinstance(value, sa.Table)]
]

Dump = dict[str, list[tuple[object, ...]]]


def a_signed_order(
    separators: Separators,
    salt: int,
    trader: SandboxAccount,
    side: Side,
    token: int,
    amounts: tuple[int, int],
) -> SignedOrder:
    """Return a trader's signed order of one token, whose amounts are those of maker and taker."""
    order = SignedOrder(
        salt=str(salt),
        maker=trader.address,
        signer=trader.address,
        taker=ZERO_ADDRESS,
        token_id=str(token),
        maker_amount=amounts[0],
        taker_amount=amounts[1],
        expiration_s=0,
        nonce=0,
        fee_rate_bps=1000,
        side=side,
        signature_type=SignatureType.EOA,
        profile=0,
        signature=b"",
    )
    digest = separators.digest(order, order.profile)
    return msgspec.structs.replace(order, signature=sign_digest(digest, trader.private_key))


class IndexerRig:
    """A market with traders that have collateral and approvals, and all acts open to them."""

    def __init__(self, sandbox: Sandbox, market: SandboxMarket, seed: int) -> None:
        self._sandbox = sandbox
        self.market = market
        self._deployment = sandbox.deployment
        self._salts = itertools.count(1)
        self._random = random.Random(seed)
        self.traders = [sandbox.trader(number) for number in range(TRADERS)]
        self.tokens = market.tokens
        self.condition_id = market.condition_id

    async def open(self) -> None:
        """Approve both contracts for all assets of the traders, and split some collateral."""
        for trader in self.traders:
            await self._approve(trader, self._deployment.exchange, UNLIMITED)
            await self._approve(trader, self._deployment.conditional_tokens, UNLIMITED)
            await self._allow_tokens(trader, is_approved=True)
            await self.split(trader, 10_000)
        await self._sandbox.mine()

    async def act(self) -> None:
        """Do one to three random acts and mine them in one block."""
        for _ in range(self._random.choice([1, 1, 1, 3])):
            await self._act_once()
        await self._sandbox.mine()

    async def resolve(self) -> None:
        """Answer the question, unless it is answered."""
        if await self._sandbox.reader.payouts(self.market.condition_id) is None:
            await self._sandbox.answer(self.market)

    async def ask(self) -> None:
        """Open another market."""
        await self._sandbox.ask(f"Another question {next(self._salts)}?")

    async def _act_once(self) -> None:
        one, other = self._random.sample(self.traders, 2)
        units = self._random.randint(1, 500) * 10
        acts: list[Callable[[], Awaitable[None]]] = [
            lambda: self.split(one, units),
            lambda: self.merge(one, units),
            lambda: self.redeem(one),
            lambda: self._give(one, other, units),
            lambda: self._pay(one, other, units),
            lambda: self._approve(one, self._deployment.exchange, self._random.choice([0, 2_000])),
            lambda: self._approve(one, self._deployment.exchange, UNLIMITED),
            lambda: self._approve(one, self._deployment.conditional_tokens, 3_000),
            lambda: self._allow_tokens(one, is_approved=self._random.random() < 0.8),
            lambda: self._cancel(one, units),
            self._raise_nonce,
            *(lambda: self.trade(one, other, units) for _ in range(3)),
            *(lambda: self.mint(one, other, units) for _ in range(3)),
            *(lambda: self.unmint(one, other, units) for _ in range(3)),
        ]
        await self._random.choice(acts)()

    async def split(self, trader: SandboxAccount, units: int) -> None:
        """Split collateral into complete sets."""
        sets = SplitPosition(self._deployment.collateral, self.market.condition_id, units)
        await self._send(trader, self._deployment.conditional_tokens, sets.encode())

    async def merge(self, trader: SandboxAccount, units: int) -> None:
        """Merge complete sets."""
        sets = MergePositions(self._deployment.collateral, self.market.condition_id, units)
        await self._send(trader, self._deployment.conditional_tokens, sets.encode())

    async def redeem(self, trader: SandboxAccount) -> None:
        """Redeem all tokens of the trader."""
        sets = RedeemPositions(self._deployment.collateral, self.market.condition_id)
        await self._send(trader, self._deployment.conditional_tokens, sets.encode())

    async def _give(self, giver: SandboxAccount, taker: SandboxAccount, units: int) -> None:
        arguments = giver.address, taker.address, self._token(), units, b""
        calldata = SAFE_TRANSFER_FROM.encode(*arguments)
        await self._send(giver, self._deployment.conditional_tokens, calldata)

    async def _pay(self, payer: SandboxAccount, payee: SandboxAccount, units: int) -> None:
        transfer = Transfer(payee.address, units)
        await self._send(payer, self._deployment.collateral, transfer.encode())

    async def _approve(self, trader: SandboxAccount, spender: Address, units: int) -> None:
        await self._send(trader, self._deployment.collateral, Approve(spender, units).encode())

    async def _allow_tokens(self, trader: SandboxAccount, *, is_approved: bool) -> None:
        approval = SetApprovalForAll(self._deployment.exchange, is_approved)
        await self._send(trader, self._deployment.conditional_tokens, approval.encode())

    async def trade(self, buyer: SandboxAccount, seller: SandboxAccount, units: int) -> None:
        """Trade a token at 0.40; the buyer pays a fee."""
        token, cost, fee = self._token(), units * 4 // 10, units // 100
        taker = self._order(buyer, Side.BUY, token, (cost, units))
        maker = self._order(seller, Side.SELL, token, (units, cost))
        await self._match(OrderFill(taker, cost, fee), OrderFill(maker, units))

    async def mint(self, one: SandboxAccount, other: SandboxAccount, units: int) -> None:
        """Let two buyers of complements split collateral: Yes at 0.70; the taker pays a fee."""
        cost = units * 7 // 10
        taker = self._order(one, Side.BUY, self.tokens.yes, (cost, units))
        maker = self._order(other, Side.BUY, self.tokens.no, (units - cost, units))
        await self._match(OrderFill(taker, cost, units // 200), OrderFill(maker, units - cost))

    async def unmint(self, one: SandboxAccount, other: SandboxAccount, units: int) -> None:
        """Let two sellers of complements merge: Yes at 0.70; the maker pays a fee."""
        cost, fee = units * 7 // 10, units // 200
        taker = self._order(one, Side.SELL, self.tokens.yes, (units, cost))
        maker = self._order(other, Side.SELL, self.tokens.no, (units, units - cost))
        await self._match(OrderFill(taker, units), OrderFill(maker, units, fee))

    async def _cancel(self, trader: SandboxAccount, units: int) -> None:
        order = self._order(trader, Side.BUY, self._token(), (units, units))
        calldata = encode_cancel_orders([order])
        await self._send(trader, self._deployment.exchange, calldata)

    async def _raise_nonce(self) -> None:
        """Raise the nonce of an account that has no orders."""
        operator = self._sandbox.account(AccountRole.OPERATOR)
        await self._send(operator, self._deployment.exchange, INCREMENT_NONCE.encode())

    async def _match(self, taker: OrderFill, maker: OrderFill) -> None:
        calldata = encode_match_orders(taker, [maker])
        operator = self._sandbox.account(AccountRole.OPERATOR)
        await self._send(operator, self._deployment.exchange, calldata)

    def _token(self) -> int:
        return self._random.choice(self.tokens)

    def _order(
        self, trader: SandboxAccount, side: Side, token: int, amounts: tuple[int, int]
    ) -> SignedOrder:
        separators, salt = self._deployment.separators(), next(self._salts)
        return a_signed_order(separators, salt, trader, side, token, amounts)

    async def _send(self, account: SandboxAccount, target: Address, calldata: bytes) -> None:
        call = {"from": account.address, "to": target, "data": "0x" + calldata.hex(), "gas": GAS}
        await self._sandbox.rpc.send("eth_sendTransaction", call)


async def dump(database: Database) -> Dump:
    """Return every row of every indexed table."""
    async with database.reading() as tx:
        return {
            table.name: sorted(tuple(row) for row in await tx.all(sa.select(table)))
            for table in TABLES
        }


async def dump_standings(database: Database) -> Dump:
    """Return the standings and wins of every wallet, period and category."""
    sums = await dump_sums(database)
    return {table.name: sums[table.name] for table in STANDINGS}


async def wipe(database: Database) -> None:
    """Empty every indexed table."""
    async with database.writing() as tx:
        await unwind(tx, -1)


async def check_against_chain(sandbox: Sandbox, database: Database) -> None:
    """Assert that every balance, allowance and locked amount equals the contracts'."""
    await check_balances(sandbox, database)
    async with database.reading() as tx:
        locked_units = await tx.scalar(sa.select(sa.func.sum(locked_collateral.c.units)))
    backing = await sandbox.reader.collateral_units(sandbox.deployment.conditional_tokens)
    assert locked_units == backing


async def check_balances(sandbox: Sandbox, database: Database) -> None:
    """Assert that every balance, allowance and position equals the contracts'."""
    async with database.reading() as tx:
        held = await tx.all(sa.select(balances))
        allowed = await tx.all(sa.select(allowances))
    reader, unlimited = sandbox.reader, 2**63 - 1
    tokens = [(row.wallet, row.asset) for row in held if row.asset != COLLATERAL]
    seen = await reader.token_units(tokens)
    assert seen == [row.units for row in held if row.asset != COLLATERAL]
    for row in (row for row in held if row.asset == COLLATERAL):
        assert await reader.collateral_units(row.wallet) == row.units
    for row in allowed:
        if row.is_collateral:
            units = await reader.allowance_units(row.wallet, row.spender)
        else:
            units = unlimited * await sandbox.is_approved(row.wallet, row.spender)
        assert min(units, unlimited) == row.units
    async with database.reading() as tx:
        sizes = {
            (row.wallet, row.token_id): row.size_units for row in await tx.all(sa.select(positions))
        }
    assert sizes == {key: units for key, units in zip(tokens, seen, strict=True) if key in sizes}
