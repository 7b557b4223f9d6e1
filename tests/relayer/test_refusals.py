"""Refusals of the relayer: status, words and code."""

from typing import Any

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import UnknownKey
from foretell.domain.errors.relayer import InvalidField
from foretell.domain.errors.storage import StoreUnavailable
from foretell.relayer.refusals import relayer_body


def refused(error: ForetellError) -> tuple[int, Any]:
    status, body = relayer_body(error)
    return status, body


def test_a_relayer_refusal_begins_with_a_word_for_programs() -> None:
    status, body = refused(UnknownKey("the API key does not exist"))
    assert (status, body["error"]) == (401, "unauthorized: the API key does not exist")
    status, body = refused(StoreUnavailable("why"))
    assert (status, body["error"]) == (
        503,
        "store_unavailable: the database is unavailable: why",
    )


def test_a_relayer_refusal_of_a_field_names_the_field() -> None:
    status, body = refused(InvalidField("proxyWallet", "a Safe that is deployed"))
    assert status == 400
    assert body["error"].startswith("invalid_field proxyWallet: ")
    assert body["details"] == {"field": "proxyWallet"}
