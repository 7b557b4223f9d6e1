"""Refusals of market creation: status, code and details."""

import json
from typing import Any

import pytest
from tests.rigs.refusals import a_refusal, every_refusal

from foretell.creation.refusals import worker_body
from foretell.domain.errors.creation import CreatorNotWhitelisted
from foretell.domain.errors.exchange import EngineStopped
from foretell.domain.errors.families import ForetellError, MalformedHex


def refused(error: ForetellError) -> tuple[int, Any]:
    """Return the status and the error of the body, as a client reads it."""
    status, body = worker_body(error)
    return status, json.loads(json.dumps(body, default=dict))["error"]


@pytest.mark.spec(125)
def test_a_creation_body_always_has_its_three_keys() -> None:
    errors = {kind.__name__: refused(a_refusal(kind))[1] for kind in every_refusal()}
    keys = {"code", "message", "details"}
    assert [kind for kind, error in errors.items() if set(error) != keys] == []
    assert [kind for kind, error in errors.items() if not isinstance(error["code"], str)] == []
    assert [kind for kind, error in errors.items() if not isinstance(error["message"], str)] == []


@pytest.mark.spec(125)
def test_malformed_input_of_a_creator_is_a_validation_error() -> None:
    status, error = refused(MalformedHex("creator", "an address"))
    assert (status, error["code"]) == (400, "validation_error")


def test_a_creation_refusal_has_its_values_as_details() -> None:
    assert refused(CreatorNotWhitelisted("0x01"))[1]["details"] == {"creator": "0x01"}
    assert refused(EngineStopped("why"))[1]["details"] is None
