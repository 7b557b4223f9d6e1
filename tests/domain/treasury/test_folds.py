"""What the payloads of a journal are folded into."""

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
def test_a_fold_goes_on_from_what_it_was_encoded_as(kind: JournalKind) -> None:
    fold = FOLD_BY_KIND[kind](None)
    empty = fold.encode()
    fold.take(PAYLOAD_BY_KIND[kind])
    assert fold.encode() != empty
    assert FOLD_BY_KIND[kind](fold.encode()).encode() == fold.encode()


def test_a_shard_s_journal_makes_books_and_a_treasury_s_a_treasury() -> None:
    shard, treasury = ShardFold(None), TreasuryFold(None)
    shard.take(PAYLOAD_BY_KIND[JournalKind.SHARD])
    treasury.take(PAYLOAD_BY_KIND[JournalKind.TREASURY])
    assert len(shard.state.market_by_id) == 1
    assert list(treasury.treasury.shards) == ["north"]
