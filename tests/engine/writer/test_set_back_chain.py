"""A chain that ends below the block that an engine has observed: its node is behind, or the chain itself went back."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.engine.rig import EngineRig, an_engine_rig
from tests.engine.rig import block_hash as shards_block_hash
from tests.engine.writer.test_chain_feed import at_block, block_hash, index, known
from tests.rigs.trading import TradingRig, a_rig
from tests.rigs.values import TOKEN, a_buy, a_placing, a_word

from foretell.chain.rpc_types import BlockHeader
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.lower_head import SET_BACK_WAIT_S, LowerHead
from foretell.store.database import Database
from foretell.store.index.blocks import Block
from foretell.store.index.unwind import unwind
from foretell.store.tables import settlement_txs

pytestmark = pytest.mark.anyio

LAST = Block(5, block_hash(5), block_hash(4), 0)
WAIT_S = int(SET_BACK_WAIT_S)


@dataclass
class Node:
    """A node whose head a test chooses, and a clock."""

    number: int = 5
    block_hash: Bytes32 = field(default_factory=lambda: block_hash(5))
    is_silent: bool = False
    at_s: float = 100.0
    asked: int = 0

    async def fetch_head(self) -> BlockHeader | None:
        self.asked += 1
        if self.is_silent:
            raise ChainUnavailable("eth_getBlockByNumber", "no answer")
        return BlockHeader(self.number, self.block_hash, block_hash(0), 0, b"", 0)

    def watch(self) -> LowerHead:
        return LowerHead(self.fetch_head, monotonic_s=lambda: self.at_s)


async def found(node: Node, watch: LowerHead, seconds: int, observed_block: int = 9) -> list[int]:
    """Look once a second, and return in which seconds the chain was found to end with the last block."""
    seconds_found = []
    for second in range(seconds):
        if await watch.is_end_of(LAST, observed_block):
            seconds_found.append(second)
        node.at_s += 1
    return seconds_found


async def test_a_chain_whose_head_stays_the_end_of_the_tables_went_back() -> None:
    node = Node()
    assert await found(node, node.watch(), WAIT_S + 2) == [WAIT_S, WAIT_S + 1]


async def test_tables_that_are_indexed_again_are_behind_a_longer_chain() -> None:
    node = Node(number=9, block_hash=block_hash(9))
    assert await found(node, node.watch(), 3 * WAIT_S) == []


@pytest.mark.parametrize(("number", "name"), [(8, "block 8"), (5, "another")])
async def test_tables_that_do_not_end_with_the_head_are_not_believed(
    number: int, name: str
) -> None:
    node = Node(number, a_word(name))
    watch = node.watch()
    assert await found(node, watch, 3 * WAIT_S) == []
    node.number, node.block_hash = 5, block_hash(5)
    assert await found(node, watch, 1) == [0], "the chain was shorter all the time"


async def test_the_wait_begins_again_after_a_head_that_is_not_below() -> None:
    node = Node()
    watch = node.watch()
    assert await found(node, watch, WAIT_S) == []
    node.number = 9
    assert await found(node, watch, 1) == []
    node.number = 5
    assert await found(node, watch, WAIT_S) == []
    node.is_silent = True
    assert await found(node, watch, 1) == []
    node.is_silent = False
    assert await found(node, watch, WAIT_S) == []
    assert await found(node, watch, 1, observed_block=LAST.block_number) == []
    assert await found(node, watch, WAIT_S + 1) == [WAIT_S]


async def test_a_node_is_asked_once_a_second_and_only_while_the_tables_are_below() -> None:
    node = Node()
    watch = node.watch()
    for _ in range(10):
        await watch.is_end_of(LAST, 9)
        await watch.is_end_of(LAST, LAST.block_number)
    assert node.asked == 1


@pytest.fixture
async def rig(database_file: Path, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """Trading whose engine has observed two blocks, the second of which brought its traders funds."""
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market")
        await index(rig, 1, 10 * TOKEN)
        await index(rig, 2, 100 * TOKEN)
        yield rig


def a_feed(rig: TradingRig, watch: LowerHead | None) -> ChainFeed:
    context = rig.context
    return ChainFeed(rig.host.engine, context.database, context.exchanges, 1, lower_head=watch)


async def confirm(rig: TradingRig, block_number: int) -> None:
    """Store a transaction of settlement that was confirmed in a block."""
    values = {
        "tx_id": f"tx {block_number}",
        "sender": "sender",
        "account_nonce": block_number,
        "target": "",
        "calldata": "",
        "gas": 1,
        "status": TxStatus.CONFIRMED.value,
        "block_number": block_number,
        "created_at_ms": 0,
        "updated_at_ms": 0,
    }
    async with rig.context.database.writing() as tx:
        await tx.execute(settlement_txs.insert().values(values))


async def test_an_engine_follows_a_chain_that_went_back(rig: TradingRig) -> None:
    """No observation was made until the chain was as long as before, and orders were refused."""
    node = Node(1, block_hash(1))
    feed = a_feed(rig, node.watch())
    await feed.run_once()
    placed = [a_placing(a_buy("trader 0", salt=str(salt))) for salt in range(1, 4)]
    for placing in placed:
        await rig.submit(placing)
    await confirm(rig, 1)
    await confirm(rig, 2)
    async with rig.context.database.writing() as tx:
        await unwind(tx, 1)
    with capture_logs() as logs:
        for _ in range(WAIT_S):
            await feed.run_once()
            node.at_s += 1
        assert known(rig) == at_block(2, 100 * TOKEN), "a head may be lower for a moment"
        await feed.run_once()
        assert known(rig) == at_block(1, 10 * TOKEN)
        covered = [placing.order_id for placing in placed[:2]]
        assert list(rig.host.engine.state.live_orders) == covered
        node.at_s += 1
        await feed.run_once()
    (line,) = [each for each in logs if "the chain went back" in each["event"]]
    assert (line["block"], line["observed_block"], line["confirmed_txs_lost"]) == (1, 2, 1)
    await index(rig, 2, 90 * TOKEN)
    await feed.run_once()
    assert known(rig) == at_block(2, 90 * TOKEN)


async def test_a_chain_with_regular_blocks_is_awaited(rig: TradingRig) -> None:
    """Its node is more likely to be behind, and it is soon longer."""
    feed = a_feed(rig, None)
    await feed.run_once()
    async with rig.context.database.writing() as tx:
        await unwind(tx, 1)
    await feed.run_once()
    assert known(rig) == at_block(2, 100 * TOKEN)


@pytest.fixture
async def shards(fresh_database: Database, tmp_path: Path) -> AsyncIterator[EngineRig]:
    async with an_engine_rig(tmp_path, fresh_database) as rig:
        yield rig


async def test_a_treasury_and_its_shards_follow_a_chain_that_went_back(shards: EngineRig) -> None:
    await shards.index([("alice", COLLATERAL, 500 * TOKEN), ("bob", COLLATERAL, 7 * TOKEN)])
    assert await shards.run_once()
    node = Node(1, shards_block_hash(1))
    shards.feeds = [replace(feed, lower_head=node.watch()) for feed in shards.feeds]
    shards.treasury.feed.lower_head = node.watch()
    async with shards.database.writing() as tx:
        await unwind(tx, 1)
    free = []
    for _ in range(WAIT_S + 1):
        await shards.run_once()
        free.append((shards.free_tokens("alice"), shards.free_tokens("bob")))
        node.at_s += 1
    assert free == [*[(500, 7)] * WAIT_S, (100, 0)]
    assert shards.treasury.engine.state.observed_block == 1
