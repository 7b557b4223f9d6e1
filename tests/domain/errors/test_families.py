"""The tree of all refusals."""

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
    Shortfall,
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


SHORTFALL = Shortfall(
    asset="0",
    spender="0xe1",
    need_units=5,
    have_units=4,
    pending_units=-1,
    reserved_units=2,
    allowance_units=9,
)


def name(kind: type[ForetellError]) -> str:
    return kind.__name__


def test_a_refusal_belongs_to_one_family_or_to_none() -> None:
    families = {
        name(kind): [family for family in FAMILIES if issubclass(kind, family)]
        for kind in every_refusal()
    }
    assert {kind: several for kind, several in families.items() if len(several) > 1} == {}


def test_a_code_on_the_wire_is_made_of_the_class_name() -> None:
    codes = {name(kind): a_refusal(kind).code for kind in every_refusal()}
    form = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
    assert [code for code in codes.values() if not form.fullmatch(code)] == []
    assert {kind: code.replace("_", "") for kind, code in codes.items()} == {
        kind: kind.lower() for kind in codes
    }


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
def test_the_code_on_the_wire_is_the_class_name_in_snake_case(
    kind: type[ForetellError], code: str
) -> None:
    assert a_refusal(kind).code == code


def test_a_refusal_has_a_message_and_a_docstring() -> None:
    refusals = [a_refusal(kind) for kind in every_refusal()]
    assert [each for each in refusals if not each.message == str(each) != ""] == []
    assert [kind for kind in every_refusal() if kind.__doc__ is None] == []


@pytest.mark.parametrize("kind", [ChainUnavailable, StoreUnavailable], ids=name)
def test_a_refusal_of_unknown_outcome_is_not_definite(kind: type[ForetellError]) -> None:
    assert not kind.definite


def test_a_refusal_of_a_request_is_definite() -> None:
    of_requests = [kind for kind in every_refusal() if issubclass(kind, FAMILIES[:4])]
    assert [kind for kind in of_requests if not kind.definite] == []


def test_a_refusal_keeps_its_details_apart_from_its_message() -> None:
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
def test_a_lack_of_funds_names_one_of_three_causes(kind: type[NotEnoughFunds], cause: str) -> None:
    assert cause in kind(SHORTFALL).message


def test_a_lack_of_funds_keeps_its_numbers_as_fields_and_on_the_wire_as_details() -> None:
    refusal = InsufficientBalance(SHORTFALL)
    assert refusal.shortfall == SHORTFALL
    assert refusal.details == {
        "asset": "0",
        "spender": "0xe1",
        "need": 5,
        "have": 4,
        "pending": -1,
        "reserved": 2,
        "allowance": 9,
    }
    assert refusal.message.startswith("the order needs 5 base units of collateral: ")


def test_a_long_timestamp_is_shortened_in_the_message() -> None:
    assert len(ClockSkew("9" * 10_000, 1).message) < 120


def test_the_message_has_the_first_problem_and_the_details_have_all() -> None:
    problems = [FieldProblem("title", "is missing"), FieldProblem("slug", "is empty")]
    refusal = InvalidFields(problems)
    assert refusal.message == "title is missing; the details have all 2 problems"
    assert refusal.details["problems"] == [
        {"field": "title", "message": "is missing"},
        {"field": "slug", "message": "is empty"},
    ]
    assert InvalidFields(problems[:1]).message == "title is missing"
