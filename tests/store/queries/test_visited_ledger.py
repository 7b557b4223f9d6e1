"""The activities of a ledger's page are one statement, which finds them by the wallet and their times."""

import pytest
from tests.store.queries.grown import Grown
from tests.store.queries.recorded_queries import recorded

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address
from foretell.store.queries.ledger import load_acts_at, load_position_history

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("grown")]  # both histories are made once


@pytest.mark.parametrize("size", [0, 1])
async def test_sqlite_finds_the_activities_of_a_ledger_by_their_times(
    grown: tuple[Grown, Grown], size: int
) -> None:
    names = grown[size].history.names
    whale, token = Address(names.whale), AssetId(names.token_id)
    async with grown[size].database.reading() as tx:
        _, history = await load_position_history(tx, whale, token, -1, 100)
        with recorded() as queries:
            found = await load_acts_at(tx, whale, token, history, 500)
    assert any(found.acts.values())
    assert len(queries) == 1
    activities, *conditions = [
        line for line in grown[size].plan(queries) if line.startswith("SEARCH")
    ]
    assert "ix_activities_wallet_timestamp_s (wallet=? AND timestamp_s=?)" in activities
    assert len(conditions) == 2
    assert all("(condition_id=?)" in each for each in conditions)
