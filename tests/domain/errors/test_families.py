"""Every refusal that a client may be told of."""

import re

import pytest
from tests.rigs.refusals import a_refusal, every_refusal

from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.exchange import (
    InsufficientAllowance,
    InsufficientBalance,
    NotEnoughFunds,
    PriceOffTick,
    ReservedByOpenOrders,
    UnknownMarket,
)
from foretell.domain.errors.families import (
    Conflict,
    FieldProblem,
    ForetellError,
    InvalidFields,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
    Upstream,
)
from foretell.domain.errors.http import ClockSkew, L1SignatureMismatch
from foretell.domain.errors.storage import StoreUnavailable

FAMILIES = (
    InvalidInput,
    Unauthenticated,
    NotFound,
    Conflict,
    Unavailable,
    Upstream,
)


def name(kind: type[ForetellError]) -> str:
    return kind.__name__


@pytest.mark.parametrize("kind", every_refusal(), ids=name)
def test_a_refusal_belongs_to_one_family_or_to_none(kind: type[ForetellError]) -> None:
    assert sum(issubclass(kind, family) for family in FAMILIES) <= 1


@pytest.mark.parametrize("kind", every_refusal(), ids=name)
def test_a_refusal_has_its_class_name_on_the_wire(kind: type[ForetellError]) -> None:
    code = a_refusal(kind).code
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", code)
    assert code.replace("_", "") == kind.__name__.lower()


def test_no_two_refusals_share_a_name() -> None:
    codes = [a_refusal(kind).code for kind in every_refusal()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (UnknownMarket, "unknown_market"),
        (L1SignatureMismatch, "l1_signature_mismatch"),
        (PriceOffTick, "price_off_tick"),
        (NotEnoughFunds, "not_enough_funds"),
    ],
)
def test_the_word_on_the_wire_is_the_class_in_snake_case(
    kind: type[ForetellError], code: str
) -> None:
    assert a_refusal(kind).code == code


@pytest.mark.parametrize("kind", every_refusal(), ids=name)
def test_a_refusal_says_why_in_its_message(kind: type[ForetellError]) -> None:
    refusal = a_refusal(kind)
    assert refusal.message == str(refusal) != ""
    assert kind.__doc__ is not None


@pytest.mark.parametrize("kind", [ChainUnavailable, StoreUnavailable], ids=name)
def test_a_fault_that_hides_the_outcome_is_not_definite(kind: type[ForetellError]) -> None:
    assert not kind.definite


@pytest.mark.parametrize(
    "kind",
    [kind for kind in every_refusal() if issubclass(kind, FAMILIES[:4])],
    ids=name,
)
def test_a_refusal_of_what_was_sent_changed_nothing(kind: type[ForetellError]) -> None:
    assert kind.definite


def test_numbers_of_a_refusal_are_kept_beside_its_words() -> None:
    refusal = ForetellError("too few: 1 of 2", have=1, want=2)
    assert (refusal.message, refusal.details) == ("too few: 1 of 2", {"have": 1, "want": 2})


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (InsufficientBalance, "does not hold as much"),
        (InsufficientAllowance, "does not allow the exchange"),
        (ReservedByOpenOrders, "open orders of the wallet"),
    ],
)
def test_a_lack_of_funds_says_which_of_three_causes_it_has(
    kind: type[NotEnoughFunds], cause: str
) -> None:
    refusal = kind(need=5, asset="0")
    assert cause in refusal.message
    assert refusal.details == {"need": 5, "asset": "0"}


def test_a_long_timestamp_is_cut_in_the_message() -> None:
    assert len(ClockSkew("9" * 10_000, 1).message) < 120


def test_only_one_problem_of_several_is_told_in_words_and_all_in_numbers() -> None:
    problems = [FieldProblem("title", "is missing"), FieldProblem("slug", "is empty")]
    refusal = InvalidFields(problems)
    assert refusal.message == "title is missing, and 1 more"
    assert refusal.details["problems"] == [
        {"field": "title", "message": "is missing"},
        {"field": "slug", "message": "is empty"},
    ]
    assert InvalidFields(problems[:1]).message == "title is missing"
