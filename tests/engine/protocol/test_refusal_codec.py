import msgspec
import pytest
from tests.rigs.refusals import a_refusal, every_refusal

from foretell.domain.errors.exchange import (
    AnswerLost,
    EngineStalled,
    UnknownMarket,
)
from foretell.domain.errors.families import ForetellError, InvalidFields, Unavailable
from foretell.engine.protocol.refusal_codec import (
    CLASS_BY_NAME,
    MODULES,
    EncodedRefusal,
    decode_refusal,
    encode_refusal,
)

MODULE_NAMES = {module.__name__ for module in MODULES}
CROSSING = [
    kind
    for kind in every_refusal()
    if kind.__module__ in MODULE_NAMES and kind is not InvalidFields
]


def crossed(refusal: ForetellError) -> ForetellError:
    """Return a refusal as the other end of a socket has it."""
    raw = msgspec.msgpack.encode(encode_refusal(refusal))
    return decode_refusal(msgspec.msgpack.decode(raw, type=EncodedRefusal))


def test_every_refusal_of_an_engine_is_registered() -> None:
    assert set(CROSSING) == set(CLASS_BY_NAME.values())
    assert len(CROSSING) == len(CLASS_BY_NAME)


@pytest.mark.parametrize("kind", CROSSING, ids=lambda kind: kind.__name__)
def test_a_refusal_crosses_a_socket_and_is_equal_on_the_other_end(
    kind: type[ForetellError],
) -> None:
    sent = a_refusal(kind)
    received = crossed(sent)
    assert type(received) is kind
    assert (received.message, received.details) == (sent.message, sent.details)
    assert (received.code, received.definite) == (sent.code, sent.definite)
    assert vars(received) == vars(sent)


def test_an_unregistered_refusal_crosses_as_one_that_promises_no_more() -> None:
    class Odd(ForetellError):
        definite = False

    assert type(crossed(Odd("not done"))) is AnswerLost
    assert not crossed(Odd("not done")).definite


def test_an_unregistered_refusal_that_did_nothing_keeps_its_message() -> None:
    class Odd(ForetellError):
        pass

    received = crossed(Odd("not done"))
    assert (type(received), received.message) == (Unavailable, "not done")


@pytest.mark.parametrize(
    "encoded",
    [
        EncodedRefusal("NeverDeclared", [], {}),
        EncodedRefusal(UnknownMarket.__name__, [], {}),
        EncodedRefusal(EngineStalled.__name__, [1.0], {"odd": 1}),
    ],
    ids=["unknown class", "missing argument", "unknown argument"],
)
def test_a_refusal_that_cannot_be_decoded_leaves_the_outcome_unknown(
    encoded: EncodedRefusal,
) -> None:
    assert type(decode_refusal(encoded)) is AnswerLost
