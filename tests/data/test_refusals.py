"""Refusals of the data API: status and words."""

from foretell.data.refusals import data_body
from foretell.domain.errors.storage import StoreUnavailable


def test_a_data_refusal_begins_with_a_word_for_programs() -> None:
    assert data_body(StoreUnavailable("why")) == (
        503,
        {"error": "store_unavailable: the database is unavailable: why"},
    )
