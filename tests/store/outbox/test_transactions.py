from dataclasses import replace

import pytest

from foretell.domain.evm.raw_transaction import Fees, TxFields, sign_tx
from foretell.domain.evm.transaction import SentTx, TxAttempt, TxMove, TxStatus, TxTrigger, moved
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.outbox.settlements import record_settlements
from foretell.store.outbox.transactions import RELAYED, SETTLEMENT, TxOutbox, load_tx, load_txs

pytestmark = pytest.mark.anyio

KEY = bytes([5]) * 32
SENDER = address_of_key(KEY)
TARGET = Address("0x" + "7a" * 20)
CALLDATA = b"\x01\x02\xff"


def an_attempt(nonce: int, fees: Fees, at_ms: int = 1000, *, is_noop: bool = False) -> TxAttempt:
    target, calldata = (SENDER, b"") if is_noop else (TARGET, CALLDATA)
    signed = sign_tx(TxFields(80002, nonce, fees, 50_000, target, calldata), KEY)
    return TxAttempt(signed.tx_hash, signed.raw, fees, at_ms)


def a_tx(tx_id: str = "settle-1", nonce: int = 0) -> SentTx:
    return SentTx(
        tx_id=tx_id,
        sender=SENDER,
        account_nonce=nonce,
        target=TARGET,
        calldata=CALLDATA,
        gas=50_000,
        status=TxStatus.PENDING,
        attempts=(an_attempt(nonce, Fees(100, 10)),),
        created_at_ms=1000,
        updated_at_ms=1000,
    )


@pytest.fixture
def outbox(database: Database) -> TxOutbox:
    return TxOutbox(database, SETTLEMENT)


async def test_a_transaction_is_loaded_as_it_was_stored(
    outbox: TxOutbox, database: Database
) -> None:
    assert await outbox.load("settle-1") is None
    assert await outbox.record_new(a_tx())
    assert await outbox.load("settle-1") == a_tx()
    async with database.reading() as tx:
        assert await load_tx(tx, SETTLEMENT, "settle-1") == a_tx()
        assert await load_tx(tx, RELAYED, "settle-1") is None


async def test_an_id_and_a_nonce_are_used_once(outbox: TxOutbox) -> None:
    assert await outbox.record_new(a_tx("settle-1", nonce=4))
    assert not await outbox.record_new(a_tx("settle-1", nonce=5))
    assert not await outbox.record_new(a_tx("settle-2", nonce=4))
    assert await outbox.load("settle-2") is None
    assert await outbox.load_at_nonce(SENDER, 4) == a_tx("settle-1", nonce=4)
    assert await outbox.load_at_nonce(SENDER, 5) is None


@pytest.mark.parametrize("tx_id", ["settle:trade-1:1", "batch:trade-1:1"])
async def test_a_transaction_that_no_trade_names_any_more_is_not_stored(
    outbox: TxOutbox, database: Database, tx_id: str
) -> None:
    named = Settlement("trade-1", tx_id=tx_id)
    assert not await outbox.record_new(a_tx(tx_id))
    async with database.writing() as tx:
        await record_settlements(tx, [named, Settlement("trade-2", tx_id=tx_id)])
    assert not await outbox.record_all_new([a_tx(tx_id), a_tx("settle:trade-3:1", nonce=1)])
    assert await outbox.load(tx_id) is None
    assert await outbox.record_all_new([a_tx(tx_id), a_tx("probe", nonce=1)])


async def test_the_last_nonce_is_the_highest_of_the_account(outbox: TxOutbox) -> None:
    assert await outbox.load_last_nonce(SENDER) is None
    await outbox.record_new(a_tx("a", nonce=10))
    await outbox.record_new(a_tx("b", nonce=9))
    assert await outbox.load_last_nonce(SENDER) == 10
    assert await outbox.load_last_nonce(TARGET) is None


async def test_unfinished_transactions_are_sorted_by_nonce(outbox: TxOutbox) -> None:
    for tx_id, nonce in (("a", 3), ("b", 1), ("c", 2)):
        await outbox.record_new(a_tx(tx_id, nonce))
    canceled = moved(a_tx("c", 2), TxMove(TxTrigger.CANCEL, failure="used elsewhere"), 2000)
    assert await outbox.record_move(a_tx("c", 2), canceled)
    unfinished = await outbox.load_unfinished(SENDER, 10)
    assert [tx.tx_id for tx in unfinished] == ["b", "a"]
    assert [tx.tx_id for tx in await outbox.load_unfinished(SENDER, 1)] == ["b"]
    assert await outbox.load_unfinished(TARGET, 10) == []
    assert await outbox.load("c") == canceled


async def test_a_move_is_stored_only_from_the_current_status(outbox: TxOutbox) -> None:
    new = a_tx()
    await outbox.record_new(new)
    mined = moved(new, TxMove(TxTrigger.MINE, new.newest.tx_hash, 12), 3000)
    assert await outbox.record_move(new, mined)
    assert not await outbox.record_move(new, mined)
    assert await outbox.load("settle-1") == mined


async def test_every_attempt_is_stored_the_newest_last(outbox: TxOutbox) -> None:
    tx = a_tx()
    await outbox.record_new(tx)
    dearer = tx.with_attempt(an_attempt(0, Fees(120, 12), at_ms=500))
    await outbox.record_attempt(dearer)
    given_up = dearer.with_attempt(
        an_attempt(0, Fees(120, 12), is_noop=True), "intrinsic gas too low"
    )
    await outbox.record_attempt(given_up)
    stored = await outbox.load("settle-1")
    assert stored == given_up
    assert stored.is_given_up


async def test_transactions_are_found_by_many_ids_at_once(
    outbox: TxOutbox, database: Database
) -> None:
    await outbox.record_new(a_tx("a", 0))
    await outbox.record_new(a_tx("b", 1))
    async with database.reading() as tx:
        found = await load_txs(tx, SETTLEMENT, ["b", "missing", "a"])
    assert [sent.tx_id for sent in found] == ["a", "b"]


async def test_every_change_wakes_the_watches_on_outcomes(
    outbox: TxOutbox, database: Database
) -> None:
    watch = await database.watch(SETTLEMENT.topic)
    new = a_tx()
    await outbox.record_new(new)
    assert await watch.wait(5)
    dearer = new.with_attempt(an_attempt(0, Fees(120, 12)))
    await outbox.record_attempt(dearer)
    assert await watch.wait(5)
    await outbox.record_move(dearer, replace(dearer, status=TxStatus.SENT))
    assert await watch.wait(5)


async def test_each_product_has_its_own_rows(outbox: TxOutbox, database: Database) -> None:
    relayed = TxOutbox(database, RELAYED)
    assert await outbox.record_new(a_tx())
    assert await relayed.record_new(a_tx())
    assert await relayed.load_last_nonce(SENDER) == 0
