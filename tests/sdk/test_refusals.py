import pytest

from foretell.domain.errors.command import ApiRefused
from foretell.sdk.refusals import CURE_BY_STATUS, CURES, Refusal, cure_of, refusal_of


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (
            '{"error": "invalid price", "code": "price_off_tick", "message": "0.333 is not"}',
            Refusal("price_off_tick", "0.333 is not", CURES["price_off_tick"]),
        ),
        (
            '{"error": {"code": "validation_error", "message": "slug is taken", "details": null}}',
            Refusal("validation_error", "slug is taken", CURE_BY_STATUS[400]),
        ),
        (
            '{"error": "nonce_mismatch: expected 3", "code": "nonce_mismatch", "details": {}}',
            Refusal("nonce_mismatch", "nonce_mismatch: expected 3", CURES["nonce_mismatch"]),
        ),
        (
            '{"error": "missing_field: user is required"}',
            Refusal("missing_field", "user is required", CURE_BY_STATUS[400]),
        ),
        (
            '{"type": "not found error", "error": "slug not found"}',
            Refusal("not found error", "slug not found", CURE_BY_STATUS[400]),
        ),
        ('{"code": "x_y", "message": "m", "cure": "do this"}', Refusal("x_y", "m", "do this")),
    ],
)
def test_every_form_of_refusal_has_a_code_a_cause_and_a_cure(body: str, refusal: Refusal) -> None:
    assert refusal_of(ApiRefused("GET /", 400, body)) == refusal


@pytest.mark.parametrize("body", ["", "Bad Gateway", "[]", "7", '"text"'])
def test_an_answer_of_another_form_is_quoted(body: str) -> None:
    refusal = refusal_of(ApiRefused("GET /x", 502, body))
    assert (refusal.code, refusal.cure) == ("", CURE_BY_STATUS[502])
    assert refusal.cause == f"GET /x answered 502: {body}"


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [("not_served", 403, "make parquet"), ("read_too_slow", 503, "ask for less")],
)
def test_the_cure_of_a_refusal_of_the_data_api_is_what_helps(
    code: str, status: int, words: str
) -> None:
    assert words in cure_of(code, status)
