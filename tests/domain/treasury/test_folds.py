"""States that a journal is replayed into."""

import pytest
from tests.rigs.values import NOW_MS, an_open_market

from foretell.domain.exchange.commands import encode_command
from foretell.domain.treasury.commands import AdmitShard, encode_treasury_command
from foretell.domain.treasury.folds import FOLD_BY_KIND, JournalKind, ShardFold, TreasuryFold

PAYLOAD_BY_KIND = {
    JournalKind.SHARD: encode_command(an_open_market()),
    JournalKind.TREASURY: encode_treasury_command(AdmitShard(NOW_MS, "north")),
}


@pytest.mark.parametrize("kind", JournalKind)
def test_a_fold_continues_from_its_encoded_state(kind: JournalKind) -> None:
    fold = FOLD_BY_KIND[kind](None)
    empty = fold.encode()
    fold.take(PAYLOAD_BY_KIND[kind])
    assert fold.encode() != empty
    assert FOLD_BY_KIND[kind](fold.encode()).encode() == fold.encode()


def test_the_kind_of_a_journal_gives_the_kind_of_its_fold() -> None:
    shard, treasury = ShardFold(None), TreasuryFold(None)
    shard.take(PAYLOAD_BY_KIND[JournalKind.SHARD])
    treasury.take(PAYLOAD_BY_KIND[JournalKind.TREASURY])
    assert len(shard.state.market_by_id) == 1
    assert list(treasury.treasury.shards) == ["north"]
