from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from foretell.edge.documents.schemas import Schemas, structs_of

Entry = TypeVar("Entry")


class Part(msgspec.Struct):
    price: Decimal


class Whole(msgspec.Struct, omit_defaults=True):
    parts: list[Part]
    by_name: dict[str, Part | None]
    absent: int | UnsetType = UNSET
    left_out: str = ""


class Listed(msgspec.Struct, Generic[Entry]):
    entries: list[Entry]
    anything: list[Any]
    count: int = 0


@pytest.fixture
def schemas() -> Schemas:
    return Schemas()


def test_a_field_that_an_answer_may_leave_out_is_not_required(schemas: Schemas) -> None:
    schemas.of_answer(Whole)
    assert schemas.components["Whole"]["required"] == ["parts", "by_name"]


def test_a_field_with_a_default_is_required_of_an_answer_and_not_of_a_body() -> None:
    answer, body = Schemas(), Schemas()
    answer.of_answer(Listed[Part])
    body.of_body(Listed[Part])
    assert answer.components["Listed_Part_"]["required"] == ["entries", "anything", "count"]
    assert body.components["Listed_Part_"]["required"] == ["entries", "anything"]
    assert body.components["Listed_Part_"]["properties"]["count"]["default"] == 0


def test_a_decimal_is_a_number(schemas: Schemas) -> None:
    schemas.of_answer(Part)
    assert schemas.components["Part"]["properties"]["price"] == {"type": "number"}


def test_a_list_of_anything_says_so(schemas: Schemas) -> None:
    assert schemas.of_answer(list[Any]) == {"type": "array", "items": {}}


def test_the_structs_within_a_type_are_found_once_each() -> None:
    assert structs_of([dict[str, Whole], list[Part]]) == [Whole, Part]
