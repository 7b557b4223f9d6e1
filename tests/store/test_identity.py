"""The epoch of a database's keys: chosen once, and empty where keys are older than epochs."""

import asyncio

import pytest

from foretell.domain.values.credentials import KeyIndex, derive_credentials, master_key_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.identity import FIRST_EPOCH, load_fact, load_key_epoch, record_fact
from foretell.store.trading.api_keys import record_key

pytestmark = pytest.mark.anyio

INDEX = KeyIndex(1, Address("0x" + "11" * 20), 0)
MASTER_KEY = bytes(range(32))


async def test_a_new_database_keeps_the_first_epoch_that_it_is_given(database: Database) -> None:
    seen = await asyncio.gather(*(load_key_epoch(database, f"epoch {n}") for n in range(4)))
    assert len({*seen, await load_key_epoch(database, "later")}) == 1
    assert seen[0].startswith("epoch ")


async def test_m4_keys_older_than_epochs_stay_valid(database: Database) -> None:
    async with database.writing() as tx:
        await record_key(tx, "key", INDEX, 1)
    assert await load_key_epoch(database, "new") == FIRST_EPOCH
    assert master_key_of(MASTER_KEY, FIRST_EPOCH) == MASTER_KEY


def test_m4_epochs_have_no_credential_in_common() -> None:
    sets = [derive_credentials(master_key_of(MASTER_KEY, epoch), INDEX) for epoch in ("", "a", "b")]
    assert len({part for each in sets for part in each}) == 9


async def test_a_fact_is_replaced(database: Database) -> None:
    for value in ("one", "two"):
        async with database.writing() as tx:
            await record_fact(tx, "chain", value)
    async with database.reading() as tx:
        assert await load_fact(tx, "chain") == "two"
        assert await load_fact(tx, "unknown") is None
