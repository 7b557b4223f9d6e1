"""Pages of activities, by any filter and in any order, against a sort of all activities."""

import random
from typing import Final

import pytest
from tests.rigs.values import a_word, an_address
from tests.store.index.test_activities import a_split, a_trade

from foretell.domain.exchange.order import Side
from foretell.store.database import Database
from foretell.store.index.activities import (
    ActivityFilter,
    ActivityKind,
    ActivityOrder,
    ActivityPage,
    ActivityRow,
    record_activities,
)
from foretell.store.index.activity_pages import load_activities
from foretell.store.index.activity_roles import ALL_ROLES, role_of, roles_of

ROWS: Final = 300
READS: Final = 300
MARKETS: Final = ("rain", "snow", "hail")
OTHERS: Final = (ActivityKind.SPLIT, ActivityKind.MERGE, ActivityKind.REDEEM)


def test_every_activity_has_one_role_and_a_filter_names_those_that_it_admits() -> None:
    numbers = [
        role_of(ActivityKind.TRADE, side.name, is_taker=is_taker)
        for side in Side
        for is_taker in (False, True)
    ]
    kinds = [kind for kind in ActivityKind if kind is not ActivityKind.TRADE]
    numbers += [role_of(kind, None, is_taker=False) for kind in kinds]
    assert sorted(numbers) == list(ALL_ROLES) == list(roles_of(None, None, takers_only=False))
    sold = role_of("TRADE", "SELL", is_taker=True)
    assert roles_of(None, "SELL", takers_only=True) == (sold,)
    assert roles_of({ActivityKind.SPLIT}, "SELL", takers_only=False) == ()
    assert roles_of((), None, takers_only=False) == ()


def some_rows(rng: random.Random) -> list[ActivityRow]:
    """Return activities of two wallets in three markets, many at one time; sells and merges are rare."""
    rows: list[ActivityRow] = []
    for number in range(ROWS):
        fields = {
            "log_index": rng.randrange(3),
            "wallet": an_address(rng.choice(("ann", "bob"))),
            "condition_id": a_word(rng.choice(MARKETS)),
            "cost_units": rng.randrange(5),
            "size_units": rng.randrange(5),
            "timestamp_s": 1_000 + number // 4,
        }
        if number % 5 == 0:
            rows.append(a_split(number, **fields, kind=rng.choice(OTHERS)))
        else:
            side, is_taker = rng.choices(list(Side), (9, 1))[0], rng.random() < 0.6
            rows.append(a_trade(number, **fields, side=side, is_taker=is_taker))
    return rows


def asked(rng: random.Random) -> tuple[ActivityFilter, ActivityPage]:
    ids = [a_word(name) for name in rng.sample(MARKETS, rng.randrange(4))]
    kinds = (None, None, (ActivityKind.TRADE,), OTHERS[:2], (*OTHERS, ActivityKind.TRADE))
    chosen = ActivityFilter(
        wallet=rng.choice((None, an_address("ann"))),
        condition_ids=rng.choice((None, ids)),
        kinds=rng.choice(kinds),
        side=rng.choice((None, *Side)),
        start_s=rng.choice((None, None, 1_020)),
        end_s=rng.choice((None, None, 1_060)),
        takers_only=rng.random() < 0.4,
        size_units_min=rng.choice((None, None, 3)),
        cost_units_min=rng.choice((None, None, 2)),
    )
    order = rng.choice((ActivityOrder.TIME, *ActivityOrder))
    limit, offset = rng.choice((0, 1, 7, 100)), rng.choice((0, 0, 1, 50))
    return chosen, ActivityPage(limit, offset, order, is_descending=rng.random() < 0.6)


def slow_page(
    rows: list[ActivityRow], chosen: ActivityFilter, page: ActivityPage
) -> list[ActivityRow]:
    ids = chosen.condition_ids
    found = [
        row
        for row in rows
        if chosen.wallet in (None, row.wallet)
        and (ids is None or row.condition_id in ids)
        and (chosen.kinds is None or row.kind in chosen.kinds)
        and chosen.side in (None, row.side)
        and (row.is_taker or not chosen.takers_only)
        and (chosen.start_s or 0) <= row.timestamp_s <= (chosen.end_s or row.timestamp_s)
        and row.size_units >= (chosen.size_units_min or 0)
        and row.cost_units >= (chosen.cost_units_min or 0)
    ]
    found.sort(
        key=lambda row: (getattr(row, page.order.value), *row[:3]), reverse=page.is_descending
    )
    return found[page.offset : page.offset + page.limit]


@pytest.mark.anyio
@pytest.mark.parametrize("rare_max", [0, ROWS], ids=["walks", "sorts"])
async def test_a_page_of_any_filter_and_order_is_that_of_a_sort_of_all(
    database: Database, monkeypatch: pytest.MonkeyPatch, rare_max: int
) -> None:
    monkeypatch.setattr("foretell.store.index.activity_pages.RARE_ROWS_MAX", rare_max)
    rng = random.Random(rare_max)
    rows, found = some_rows(rng), 0
    async with database.writing() as tx:
        await record_activities(tx, rows)
        for _ in range(READS):
            chosen, page = asked(rng)
            acts = await load_activities(tx, chosen, page)
            assert list(acts) == slow_page(rows, chosen, page), (chosen, page)
            found += len(acts)
    assert found > READS
