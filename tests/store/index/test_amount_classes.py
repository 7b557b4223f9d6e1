"""Pages of what takers traded from a cost on, found class by class, against a sort of all trades."""

import random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_word, an_address
from tests.store.index.test_activities import a_split, a_trade
from tests.store.queries.recorded_queries import recorded

from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.store.database import Database
from foretell.store.index.activities import (
    ActivityFilter,
    ActivityKind,
    ActivityPage,
    ActivityRow,
    record_activities,
)
from foretell.store.index.activity_pages import load_activities
from foretell.store.index.amount_classes import class_of

ROWS: Final = 300
COMMON: Final = 1_024
COSTS: Final = (0, 1, 7, 8, 9, 100, 101, 1_000, 10**6, 10**6 + 1, 2**40, AMOUNT_UNITS_MAX)
AMOUNTS: Final = st.integers(0, AMOUNT_UNITS_MAX)


@given(AMOUNTS, AMOUNTS)
def test_a_class_grows_with_its_amounts_and_is_at_most_a_quarter_as_wide(
    one: int, other: int
) -> None:
    less, more = sorted((one, other))
    assert class_of(less) <= class_of(more)
    if class_of(less) == class_of(more):
        assert more - less <= less // 4


def some_rows(seed: int) -> list[ActivityRow]:
    """Return trades and splits, many at one time; some costs are common, and some are beside the ends of classes."""
    rng = random.Random(seed)
    rows: list[ActivityRow] = []
    for number in range(ROWS):
        cost = rng.choice((rng.choice(COSTS), rng.randrange(2 ** rng.randrange(1, 63)), 1_000))
        fields = {
            "log_index": rng.randrange(3),
            "wallet": an_address(rng.choice(("ann", "bob"))),
            "condition_id": a_word(rng.choice(("rain", "snow"))),
            "side": rng.choice(list(Side)),
            "cost_units": cost,
            "size_units": cost // 2,
            "is_taker": rng.random() < 0.6,
            "timestamp_s": 1_000 + number // 4,
        }
        rows.append(a_trade(number, **fields) if number % 9 else a_split(number, cost_units=cost))
    return rows


def slow_page(
    rows: list[ActivityRow], chosen: ActivityFilter, page: ActivityPage
) -> list[ActivityRow]:
    found = [
        row
        for row in rows
        if row.kind in (chosen.kinds or ActivityKind)
        and row.cost_units >= (chosen.cost_units_min or 0)
        and row.size_units >= (chosen.size_units_min or 0)
        and (row.is_taker or not chosen.takers_only)
        and chosen.side in (None, row.side)
        and row.timestamp_s >= (chosen.start_s or 0)
        and (chosen.end_s is None or row.timestamp_s <= chosen.end_s)
        and row.condition_id in (chosen.condition_ids or [row.condition_id])
    ]
    found.sort(
        key=lambda row: (row.timestamp_s, *row[:3]),
        reverse=page.is_descending,
    )
    return found[page.offset : page.offset + page.limit]


def asked(rng: random.Random) -> tuple[ActivityFilter, ActivityPage]:
    """Return a filter by cost, mostly one that classes answer, and a page of it."""
    chosen = ActivityFilter(
        kinds=rng.choice((None, (ActivityKind.TRADE,))),
        side=rng.choice((None, None, Side.BUY)),
        start_s=rng.choice((None, None, 1_020)),
        end_s=rng.choice((None, None, 1_060)),
        takers_only=rng.random() < 0.9,
        cost_units_min=rng.choice((*COSTS, 999, 10**5)),
        size_units_min=rng.choice((None, None, None, 500)),
        condition_ids=rng.choice((None, None, None, [a_word("rain")])),
    )
    limit, offset = rng.choice((0, 1, 7, 100)), rng.choice((0, 0, 1, 50, 400))
    return chosen, ActivityPage(limit, offset, is_descending=rng.random() < 0.8)


@pytest.mark.anyio
@pytest.mark.parametrize("rows_max", [0, 300, 10**6], ids=["walks", "some of each", "classes"])
@pytest.mark.parametrize("share", [1, 4, 10**6], ids=["dense", "a quarter", "any"])
async def test_a_page_by_classes_is_that_of_a_sort_of_all(
    database: Database, monkeypatch: pytest.MonkeyPatch, rows_max: int, share: int
) -> None:
    monkeypatch.setattr("foretell.store.index.activity_pages.LEAST_CLASS_SHARE", share)
    monkeypatch.setattr("foretell.store.index.activity_pages.RARE_ROWS_MAX", rows_max)
    rows = some_rows(share)
    rng = random.Random(rows_max)
    found = 0
    async with database.writing() as tx:
        await record_activities(tx, rows)
        for _ in range(100):
            chosen, page = asked(rng)
            acts = await load_activities(tx, chosen, page)
            assert list(acts) == slow_page(rows, chosen, page)
            found += len(acts)
    assert found > 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("least", "is_by_class"),
    [(COMMON, True), (COMMON + 1, False), (16 * COMMON, True), (AMOUNT_UNITS_MAX, True)],
    ids=["all of it", "next to none of it", "few rows", "no rows"],
)
async def test_a_class_is_walked_only_if_enough_of_it_is_in_the_page(
    database: Database, least: int, *, is_by_class: bool
) -> None:
    """A bound beside a cost that most trades have would pass over all of them."""
    large = [a_trade(ROWS + number, cost_units=16 * COMMON + number) for number in range(9)]
    async with database.writing() as tx:
        await record_activities(tx, [a_trade(each, cost_units=COMMON) for each in range(ROWS)])
        await record_activities(tx, large)
        with recorded() as queries:
            chosen = ActivityFilter(takers_only=True, cost_units_min=least)
            acts = await load_activities(tx, chosen, ActivityPage(10))
    assert len(acts) == {COMMON: 10, AMOUNT_UNITS_MAX: 0}.get(least, len(large))
    assert ("cost_class" in queries[-1][0]) == is_by_class
